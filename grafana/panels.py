"""The kinds of panels that the dashboards are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as models
from grafana_foundation_sdk.models import dashboard as shapes
from grafana_foundation_sdk.models import prometheus as of_prometheus

from grafana import links

SCRAPED: Final = '{job=~"$job", instance=~"$instance"}'
"""Of the chosen monitors."""
OURS: Final = '{job=~"$job", instance=~"$instance", recommender=~"$recommender"}'
"""Of the chosen recommenders."""
OF_SLICE: Final = f'{{dimension=~"$dimension", value=~"$slice", {OURS[1:]}'
"""Of the chosen slices of them."""
OF_MONITORS: Final = f"and on (job, instance) recsys_build_info{SCRAPED}"
"""After a family that every program has: of the chosen monitors alone, also where all jobs are chosen."""
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

Panel = timeseries.Panel | stat.Panel | statetimeline.Panel | table.Panel


def ours(matchers: str) -> str:
    """A selector of the chosen recommenders with further matchers.

    >>> ours('status="ok"')
    '{status="ok", job=~"$job", instance=~"$instance", recommender=~"$recommender"}'
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


def listed(title: str, description: str, expression: str, labels: Sequence[str]) -> table.Panel:
    """The labels of the series of now, a series to a row, ordered by the first label."""
    only = {"include": {"names": list(labels)}}
    order = {"indexByName": {label: place for place, label in enumerate(labels)}}
    return (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .unit("none")
        .no_value("no data")
        .span(12)
        .height(8)
        .sort_by([common.TableSortByFieldState().display_name(labels[0])])
        .with_transformation(shapes.DataTransformerConfig(id_val="filterFieldsByName", options=only))
        .with_transformation(shapes.DataTransformerConfig(id_val="organize", options=order))
        .with_target(
            query("A", expression, " ".join(f"{{{{{label}}}}}" for label in labels))
            .instant()
            .format(of_prometheus.PromQueryFormat.TABLE)
        )
    )


def counted(family: str, selector: str, every: str = OURS, *, of_slices: str = "") -> str:
    """How many series of a family of states match the selector: 0, and not nothing, if only others exist.

    Those of the family `of_slices` count too.

    >>> counted("recsys_rule_status", '{status="violated"}', "{}")
    'sum(recsys_rule_status{status="violated"}) or 0 * count(recsys_rule_status{})'
    """
    found, known = (
        " or ".join(f"{name}{of}" for name in (family, of_slices) if name) for of in (selector, every)
    )
    return f"sum({found}) or 0 * count({known})"


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
    data_links: Sequence[dashboard.DashboardLink] | None = None,
) -> timeseries.Panel:
    """Lines (or bars) over time, two panels to a row; the queries named in `dashed` are thin and dashed.

    `of_the_past` are the metrics, as a regular expression, whose bands are drawn as dotted lines beside them.
    Series of recommenders link to the board and the page of theirs, unless other `data_links` are given.
    """
    around = expected(of_the_past) if of_the_past else ()
    lines = (*lines, *around)
    description += " Dotted: the value expected from its own past, and its band." if around else ""
    if data_links is None and "{{recommender}}" in lines[0][1]:
        data_links = links.of_recommender()
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
    if data_links:
        panel = panel.data_links(list(data_links))
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
    """The query, with its legend, of what these metrics are expected to be: the middle and the band."""
    which = ours(f'metric=~"{metrics}"' if "|" in metrics else f'metric="{metrics}"')
    families = (("", "expected"), ("_lower", "band, lower"), ("_upper", "band, upper"))
    named = [(f"recsys_expected{part}{which}", name) for part, name in families]
    return ((joined(named), "{{recommender}} {{by}} {{of}} {{bound}}"),)


def joined(series: Sequence[tuple[str, str]]) -> str:
    """One query of several, each of which is named by the label `bound`: a board sends fewer queries.

    >>> joined([("x_lower", "lower"), ("x_upper", "upper")])
    'label_replace(x_lower, "bound", "lower", "", "") or label_replace(x_upper, "bound", "upper", "", "")'
    """
    return " or ".join(f'label_replace({one}, "bound", "{name}", "", "")' for one, name in series)


def bounds(name: str, unit: str = "", selector: str = OURS) -> str:
    """The query of both bounds of an interval.

    >>> bounds("recsys_coverage", "_ratio", "{}")
    'label_replace(recsys_coverage_lower_ratio{}, "bound", "lower", "", "") \
or label_replace(recsys_coverage_upper_ratio{}, "bound", "upper", "", "")'
    """
    return joined([(f"{name}_{side}{unit}{selector}", side) for side in ("lower", "upper")])


def linked(expression: str, labels: Sequence[str]) -> str:
    """The same by these labels, with the address of the monitor that exports each series as `url`."""
    by = ", ".join(labels)
    return (
        f"max by (url, {by}) (max by (job, instance, {by}) ({expression}) "
        f"* on (job, instance) group_left (url) recsys_web_info{SCRAPED})"
    )


def metric(title: str, description: str, name: str, unit: str, *, by: bool = False) -> timeseries.Panel:
    """A health metric with the two bounds of its interval."""
    legend = "{{recommender}} {{by}}" if by else "{{recommender}}"
    suffix = "_ratio" if unit == "ratio" else ""
    return graph(
        title,
        f"{description} Dashed: the bounds of its interval, where they are exported.",
        [
            (f"recsys_{name}{suffix}{OURS}", legend),
            (bounds(f"recsys_{name}", suffix), f"{legend} {{{{bound}}}}"),
        ],
        unit={"ratio": "percentunit", "bits": "suffix: bit", "": "none"}[unit],
        dashed=("B",),
        of_the_past=name,
    )


def timeline(
    title: str,
    description: str,
    family: str,
    labels: Sequence[str],
    legend: str,
    page: str = "",
    selector: str = OURS,
) -> statetimeline.Panel:
    """The states of many things over time, one bar each. Each links to its evidence.

    `page` is the path of the evidence below the page of the recommender, with labels of the series in it.
    """
    selectors = [(code, f'{{status="{status}", {selector[1:]}') for status, code, _ in STATES]
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
        .data_links([links.evidence(page)])
        .with_target(query("A", linked(cases, labels), legend))
    )


def query(ref: str, expression: str, legend: str) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .ref_id(ref)
        .datasource(DATASOURCE)
        .expr(expression)
        .legend_format(legend or "__auto")
    )
