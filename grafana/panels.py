"""The kinds of panels that the dashboards are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common as models
from grafana_foundation_sdk.models import dashboard as shapes

OURS: Final = '{recommender=~"$recommender"}'
DATASOURCE: Final = shapes.DataSourceRef(type_val="prometheus", uid="${datasource}")

# The five verdicts and `undefined`, from harmless to harmful; the highest one wins where series are merged.
STATES: Final = (
    ("ok", 1, "green"),
    ("undefined", 2, "text"),
    ("no_data", 3, "blue"),
    ("late", 4, "yellow"),
    ("error", 5, "orange"),
    ("violated", 6, "red"),
)

_REFS: Final = "ABCDEF"

Panel = timeseries.Panel | stat.Panel | statetimeline.Panel


def ours(matchers: str) -> str:
    """A selector of the chosen recommenders with further matchers.

    >>> ours('status="ok"')
    '{status="ok", recommender=~"$recommender"}'
    """
    return f"{{{matchers}, {OURS[1:]}"


def number(
    title: str,
    description: str,
    expression: str,
    *,
    unit: str = "short",
    bad_from: float | None = None,
    legend: str = "",
    show_name: bool = False,
) -> stat.Panel:
    """One number of now, six to a row; red from `bad_from` on."""
    steps = [shapes.Threshold(value=None, color="green" if bad_from is not None else "text")]
    if bad_from is not None:
        steps.append(shapes.Threshold(value=bad_from, color="red"))
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value("no data")
        .span(4)
        .height(4)
        .graph_mode(models.BigValueGraphMode.NONE)
        .text_mode(models.BigValueTextMode.NAME if show_name else models.BigValueTextMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(dashboard.ThresholdsConfig().mode(shapes.ThresholdsMode.ABSOLUTE).steps(steps))
        .with_target(query("A", expression, legend).instant())
    )


def graph(
    title: str,
    description: str,
    lines: Sequence[tuple[str, str]],
    *,
    unit: str,
    dashed: Sequence[str] = (),
    of_the_past: str = "",
    bars: bool = False,
    logarithmic: bool = False,
) -> timeseries.Panel:
    """Lines (or bars) over time, two panels to a row; the queries named in `dashed` are thin and dashed.

    `of_the_past` are the metrics, as a regular expression, whose bands are drawn as dotted lines beside them.
    """
    around = expected(of_the_past) if of_the_past else ()
    lines = (*lines, *around)
    description += " Dotted: the value expected from its own past, and its band." if around else ""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit(unit)
        .no_value("no data")
        .span(12)
        .height(8)
        .line_width(2)
        .fill_opacity(60 if bars else 0)
        .draw_style(models.GraphDrawStyle.BARS if bars else models.GraphDrawStyle.LINE)
        .show_points(models.VisibilityMode.NEVER)
        .tooltip(common.VizTooltipOptions().mode(models.TooltipDisplayMode.MULTI))
        .legend(
            common.VizLegendOptions()
            .display_mode(models.LegendDisplayMode.LIST)
            .placement(models.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    if logarithmic:
        scale = common.ScaleDistributionConfig().type(models.ScaleDistribution.LOG).log(10)
        panel = panel.scale_distribution(scale)
    for ref, (expression, legend) in zip(_REFS, lines, strict=False):
        panel = panel.with_target(query(ref, expression, legend))
    for ref in _REFS[len(lines) - len(around) : len(lines)]:
        dotted = [
            shapes.DynamicConfigValue(id_val="custom.lineWidth", value=1),
            shapes.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dot", "dash": [2, 4]}),
            shapes.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": "green"}),
        ]
        panel = panel.override_by_query(ref, dotted)
    for ref in dashed:
        thin = [
            shapes.DynamicConfigValue(id_val="custom.lineWidth", value=1),
            shapes.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [6, 6]}),
        ]
        panel = panel.override_by_query(ref, thin)
    return panel


def expected(metrics: str) -> tuple[tuple[str, str], ...]:
    """The queries, with their legends, of what these metrics are expected to be: the middle, then the band.

    >>> [query for query, legend in expected("gini|novelty")][1]
    'recsys_expected_lower{metric=~"gini|novelty", recommender=~"$recommender"}'
    """
    which = ours(f'metric=~"{metrics}"' if "|" in metrics else f'metric="{metrics}"')
    legend = "{{recommender}} {{by}} {{of}}"
    parts = (("", "expected"), ("_lower", "band, lower"), ("_upper", "band, upper"))
    return tuple((f"recsys_expected{part}{which}", f"{legend} {name}") for part, name in parts)


def metric(title: str, description: str, name: str, unit: str, *, by: bool = False) -> timeseries.Panel:
    """A health metric with the two bounds of its interval."""
    legend = "{{recommender}} {{by}}" if by else "{{recommender}}"
    suffix = "_ratio" if unit == "ratio" else ""
    return graph(
        title,
        f"{description} Dashed: the bounds of its interval.",
        [
            (f"recsys_{name}{suffix}{OURS}", legend),
            (f"recsys_{name}_lower{suffix}{OURS}", f"{legend} lower"),
            (f"recsys_{name}_upper{suffix}{OURS}", f"{legend} upper"),
        ],
        unit={"ratio": "percentunit", "bits": "suffix: bit", "": "none"}[unit],
        dashed=("B", "C"),
        of_the_past=name,
    )


def timeline(
    title: str, description: str, family: str, labels: Sequence[str], legend: str
) -> statetimeline.Panel:
    """The states of many things over time, one bar each."""
    selectors = [(code, ours(f'status="{status}"')) for status, code, _ in STATES]
    cases = " or ".join(f"{code} * ({family}{selector} == 1)" for code, selector in selectors)
    names = {
        str(code): shapes.ValueMappingResult(text=status.replace("_", " "), color=color, index=code)
        for status, code, color in STATES
    }
    return (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit("short")
        .no_value("no data")
        .span(24)
        .height(8)
        .merge_values(True)
        .show_value(models.VisibilityMode.NEVER)
        .fill_opacity(80)
        .mappings([shapes.ValueMap(options=names)])
        .with_target(query("A", f"max by ({', '.join(labels)}) ({cases})", legend))
    )


def query(ref: str, expression: str, legend: str) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .ref_id(ref)
        .datasource(DATASOURCE)
        .expr(expression)
        .legend_format(legend or "__auto")
    )
