"""The dashboard of what users did: a panel for every metric of the catalogue that no other dashboard shows.

Its panels are made from the catalogue, so that a new metric is never without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grafana.names import title_of
from grafana.panels import OURS, Panel, graph, joined, ours
from monitor.catalogue import ALL_SPECS
from monitor.core.results import ResultKind
from monitor.metrics.exported import SLICE_LABELS, Suffix, metric_family_name
from monitor.metrics.family import SPLIT_LABEL, MetricSpec, Theme

# The AUC and related metrics of exposures. Those of a model's samples have a split, and their own dashboard.
OF_EXPOSURES = ours(f'{SPLIT_LABEL}=""')
_UNITS = {"ratio": "percentunit", "bits": "suffix: bit", "seconds": "s", "": "none"}


def rows(elsewhere: Sequence[str]) -> Iterator[tuple[str, list[Panel]]]:
    """Title and panels of each row: the metrics that no panel of another dashboard shows, by their theme."""
    left = [
        spec
        for spec in ALL_SPECS.values()
        if metric_family_name(spec) not in elsewhere and not spec.kind.is_of_models
    ]
    themes: dict[Theme, list[MetricSpec]] = {}
    for spec in left:
        themes.setdefault(spec.theme, []).append(spec)
    for theme, specs in themes.items():
        yield theme, [panel(spec, OF_EXPOSURES if spec.of_samples else OURS) for spec in specs]


def panel(
    spec: MetricSpec,
    selector: str = OURS,
    further: Sequence[str] = (),
    most: int | None = None,
    *,
    sliced: str = "",
    bounds: bool = True,
) -> Panel:
    """A panel of a metric, with its bounds; of many series (`most`) the largest by recommender and `by`.

    `further` are the labels that the series of this selector have beside those of the metric. For series of
    slices, `sliced` says in the title which. Without `bounds` the interval is left out, because these series
    have none.
    """
    further = (*further, *(SLICE_LABELS if sliced else ()))
    by = ("by",) if spec.by or spec.by_help else ()
    legend = " ".join(f"{{{{{label}}}}}" for label in ("recommender", *by, *spec.labels, *further))
    largest = "" if most is None else f"topk by ({', '.join(('recommender', *by))}) "

    def asked(part: Suffix) -> str:
        series = f"{metric_family_name(spec, part, sliced=bool(sliced))}{selector}"
        return f"{largest}({most}, {series})" if largest else series

    lines = [(asked(""), legend)]
    with_bounds = spec.interval and bounds
    if with_bounds:
        lines.append(
            (joined([(asked("lower"), "lower"), (asked("upper"), "upper")]), f"{legend} {{{{bound}}}}")
        )
    # Only metrics of windows are compared with their past, those of models are not.
    compared = spec.kind is ResultKind.METRIC and not further
    description = [spec.help]
    if most is not None:
        description.append(f"The {most} largest.")
    if with_bounds:
        where = ", where they are exported" if spec.kind is ResultKind.METRIC else ""
        description.append(f"Dashed: the bounds of its interval{where}.")
    return graph(
        title_of(spec.name) + (f" {sliced}" if sliced else ""),
        " ".join(description),
        lines,
        unit=_UNITS[spec.unit],
        dashed=("B",)[: len(lines) - 1],
        of_the_past=spec.name if compared else "",
    )
