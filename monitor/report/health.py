"""The health score of a recommender as one line, and its parts as rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from monitor.health.specs import HEALTH_PART, HEALTH_SCORE
from monitor.history.snapshot import Series
from monitor.report import rows
from monitor.report.views import HealthView


def health_view(series: Iterable[Series], now: datetime) -> HealthView | None:
    """The view of the score; None if the config has none, or no window has one yet."""
    of: dict[str, list[Series]] = {HEALTH_SCORE.name: [], HEALTH_PART.name: []}
    for one in series:
        if one.result.metric in of:
            of[one.result.metric].append(one)
    if not of[HEALTH_SCORE.name]:
        return None
    worst_first = sorted(of[HEALTH_PART.name], key=_worth)
    return HealthView(
        score=rows.metric_row(of[HEALTH_SCORE.name][0], now),
        parts=tuple(rows.metric_row(one, now) for one in worst_first),
    )


def _worth(series: Series) -> float:
    return -1.0 if series.result.value is None else series.result.value
