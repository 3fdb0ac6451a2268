"""The trends of a period that matter most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from monitor.anomalies.series import DIMENSION
from monitor.core.results import ResultKind, Status, Window
from monitor.report.trend import Timed, TimeSeries, Trend, gather, trend

MOST: Final = 24
_KINDS: Final = (ResultKind.METRIC, ResultKind.MODEL, ResultKind.HEALTH)


def trends_of(results: Iterable[Timed], span: Window) -> tuple[tuple[Trend, ...], int]:
    """The trends that matter most, and how many further series have values.

    Args:
        results: of the period.
        span: the period, which is the horizontal axis.
    """
    drawable = [
        one
        for one in gather(results).values()
        if one.newest.kind in _KINDS and DIMENSION not in one.results[0].result.labels and one.values
    ]
    first = sorted(drawable, key=rank)  # a stable sort: the order of the catalogue stays
    drawn = [shown for one in first[:MOST] if (shown := trend(one, span)) is not None]
    return tuple(drawn), max(0, len(first) - MOST)


def rank(series: TimeSeries) -> tuple[int, int, int]:
    """Violated series first, then those with an objective, then those with a band."""
    results = [one.result for one in series.results]
    violated = any(one.status is Status.VIOLATED for one in results) or bool(series.broken)
    judged = any(one.threshold is not None for one in results)
    return (-violated, -judged, -bool(series.expected))
