"""The variables of the boards: where the series come from, and which recommender and slice are shown."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as shapes

from grafana.panels import DATASOURCE, OURS, SCRAPED

Variable = dashboard.DatasourceVariable | dashboard.QueryVariable

_SLICED: Final = "recsys_slice_volume"
"""Every recommender with slices has this family."""


def source() -> tuple[Variable, ...]:
    """The data source, the job and the instance of the monitor, and the address of its page."""
    return (
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        _values("job", "Job", "recsys_build_info", any_value=".+"),
        _values("instance", "Instance", 'recsys_build_info{job=~"$job"}', any_value=".+"),
        _query("monitor", "Monitor", f"recsys_web_info{SCRAPED}", "url").hide(
            shapes.VariableHide.HIDE_VARIABLE
        ),
    )


def recommenders() -> Variable:
    """Any number of recommenders."""
    series = f"recsys_recommender_error{SCRAPED}"
    return _values("recommender", "Recommender", series, any_value=".*")


def one_recommender() -> Variable:
    """One at first. It takes several, because a link from another board may bring "All": a variable of one
    value would then match all names in a row, which no series has.
    """
    series = f"recsys_recommender_error{SCRAPED}"
    return _query("recommender", "Recommender", series, "recommender").multi(True)


def experiments() -> Variable:
    return _values("experiment", "Experiment", f"recsys_experiment_status{OURS}", any_value=".*")


def slices() -> tuple[Variable, ...]:
    """The column by which the traffic is sliced, and values of it."""
    of_dimension = f'{_SLICED}{{dimension=~"$dimension", {OURS[1:]}'
    return (
        # Of several values, because Grafana escapes only these: a column may be called `price (EUR)`.
        _query("dimension", "Slice by", f"{_SLICED}{OURS}", "dimension").multi(True),
        # A value comes from the log and may hold line breaks, which `.` alone does not match.
        _values("slice", "Slice", of_dimension, any_value="(?s:.*)", label="value"),
    )


def _query(name: str, title: str, series: str, label: str) -> dashboard.QueryVariable:
    """The values that a label has in these series."""
    return (
        dashboard.QueryVariable(name)
        .label(title)
        .datasource(DATASOURCE)
        .query(f"label_values({series}, {label})")
        .refresh(shapes.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(shapes.VariableSort.ALPHABETICAL_ASC)
    )


def _values(
    name: str, title: str, series: str, *, any_value: str, label: str = ""
) -> dashboard.QueryVariable:
    """The same, of which one chooses several or all."""
    return (
        _query(name, title, series, label or name)
        .multi(True)
        .include_all(True)
        .all_value(any_value)
        .current(shapes.VariableOption(text="All", value="$__all", selected=True))
    )
