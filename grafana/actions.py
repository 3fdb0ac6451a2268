"""The dashboard of what users did: a panel for every metric of the catalogue that no other dashboard shows.

Its panels are made from the catalogue, so that a new metric is never without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grafana.panels import OURS, Panel, graph
from monitor.metrics.catalogue import ALL_SPECS
from monitor.metrics.family import MetricSpec
from monitor.metrics.health_specs import HEALTH_SPECS
from monitor.service.families import metric_family_name

_UNITS = {"ratio": "percentunit", "bits": "suffix: bit", "": "none"}


def rows(elsewhere: Sequence[str]) -> Iterator[tuple[str, list[Panel]]]:
    """Title and panels of each row: the metrics that no panel of another dashboard shows, by their theme."""
    left = [spec for spec in ALL_SPECS.values() if metric_family_name(spec) not in elsewhere]
    themes: dict[str, list[MetricSpec]] = {}
    for spec in left:
        themes.setdefault(_theme(spec), []).append(spec)
    for theme, specs in themes.items():
        yield theme, [_panel(spec) for spec in specs]


def _theme(spec: MetricSpec) -> str:
    if spec.name in HEALTH_SPECS:
        return "Health score"
    if "experiment" in spec.labels:
        return "Experiments"
    if "k" in spec.labels:
        return "Lists at k"
    return "Actions by event" if "event" in spec.labels else "Scores against actions"


def _panel(spec: MetricSpec) -> Panel:
    own = (*(("by",) if spec.by or spec.by_help else ()), *spec.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in ("recommender", *own))
    lines = [(f"{metric_family_name(spec)}{OURS}", legend)]
    if spec.interval:
        lines += [
            (f"{metric_family_name(spec, 'lower')}{OURS}", f"{legend} lower"),
            (f"{metric_family_name(spec, 'upper')}{OURS}", f"{legend} upper"),
        ]
    title = spec.name.replace("_", " ")
    help_ = f"{spec.help} Dashed: the bounds of its interval." if spec.interval else spec.help
    return graph(
        title[0].upper() + title[1:],
        help_,
        lines,
        unit=_UNITS[spec.unit],
        dashed=("B", "C")[: len(lines) - 1],
    )
