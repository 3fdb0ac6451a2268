"""Links: from board to board, and from a series to its page on the monitor that exported it."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as shapes

TAG: Final = "recsys-monitor"
RECOMMENDER_BOARD: Final = "recsys-recommender"
_OF_FILTERS: Final = (
    "var-datasource=${datasource}&${job:queryparam}&${instance:queryparam}&${__url_time_range}"
)


def label(name: str) -> str:
    """The value of a label of the series, as a part of a path.

    >>> label("rule")
    '${__field.labels.rule:percentencode}'
    """
    return f"${{__field.labels.{name}:percentencode}}"


def evidence(path: str, title: str = "Evidence") -> dashboard.DashboardLink:
    """A link to a page of the recommender, on the monitor whose address is the label `url` of the series."""
    base = "${__field.labels.url:raw}/recommenders/" + label("recommender")
    return dashboard.DashboardLink(title).url(base + path).target_blank(True)


def of_recommender() -> tuple[dashboard.DashboardLink, ...]:
    """Links of a series that has a recommender, and no address: to its board, and to its page."""
    name = label("recommender")
    board = f"/d/{RECOMMENDER_BOARD}?var-recommender={name}&{_OF_FILTERS}"
    return (
        dashboard.DashboardLink("Board of this recommender").url(board),
        dashboard.DashboardLink("Page of this recommender")
        .url("${monitor:raw}/recommenders/" + name)
        .target_blank(True),
    )


def of_board() -> tuple[dashboard.DashboardLink, ...]:
    """The links above a board: all other boards, with the same time and variables, and the status page."""
    return (
        dashboard.DashboardLink("Recommenders")
        .type(shapes.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .keep_time(True)
        .include_vars(True),
        dashboard.DashboardLink("Status page")
        .type(shapes.DashboardLinkType.LINK)
        .url("${monitor:raw}/")
        .icon("external link")
        .tooltip("The page of the monitor, with evidence and runbooks")
        .target_blank(True),
    )
