"""How long a log may be silent, learned from the arrival times of its files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import numpy as np

HISTORY: Final = timedelta(days=14)
NEAR: Final = timedelta(hours=1)  # times of day this close count as the same
WEEK: Final = 7  # days, from which on one of them may be an outage
FEWEST: Final = 10  # arrivals, below which the pace is unknown
SHORTEST: Final = timedelta(minutes=30)  # of history, below which the pace is unknown
SLOW: Final = timedelta(minutes=90)  # for a slower log, only `max_wait` of the windows counts
QUICK: Final = timedelta(minutes=10)  # a log with shorter gaps pages after two further ones
PATIENCE: Final = timedelta(minutes=45)  # for a slower one: a batch 40 minutes late does not page

_DAY: Final = timedelta(days=1).total_seconds()
_MINUTE: Final = 60.0
_RECENT: Final = 9  # gaps, one fewer than arrivals

Arrival = tuple[datetime, datetime]  # when a file was written, and the newest row in it


def allowed_silence(arrivals: Iterable[Arrival], now: datetime, every: timedelta) -> timedelta | None:
    """The age of the newest row at which the log counts as stalled; None if the pace is unknown.

    It is the sum of the usual gap, the usual age of a row on arrival, two further gaps and the time between
    two looks. From gaps of `QUICK` on, `PATIENCE` replaces the two gaps, unless they are longer and not
    steady. Only files that bring newer rows count as arrivals, one a minute.

    The usual gap is the second longest of the days' longest gaps around the same time of day. So quiet nights
    count, and one outage in two weeks does not. Within the first week it is the longest of them, and within
    the first day the second longest gap of all.

    The pace is unknown if there are few arrivals, if most of the time lies in gaps longer than `SLOW`, or if
    rows are older than that on arrival.

    >>> from datetime import UTC
    >>> start = datetime(2026, 1, 1, tzinfo=UTC)
    >>> files = [start + timedelta(minutes=number) for number in range(120)]
    >>> allowed_silence([(one, one) for one in files], files[-1], every=timedelta(minutes=1))
    datetime.timedelta(seconds=240)
    """
    written, lags = _by_minute(arrivals, now)
    if len(written) < FEWEST or written[-1] - written[0] < SHORTEST.total_seconds():
        return None
    gaps = np.diff(written)
    lag = float(np.median(lags[-_RECENT:]))
    if max(_half_of_the_time(gaps), lag) > SLOW.total_seconds():
        return None
    days = _by_day(written, gaps, now.timestamp())
    recent = float(np.sort(gaps[-_RECENT:])[-2])
    usual = max(_usual(days), recent) if days else float(np.sort(gaps)[-2])
    patience = 2 * usual
    if usual >= QUICK.total_seconds():
        is_steady = usual <= 2 * np.median(gaps)
        patience = PATIENCE.total_seconds() if is_steady else max(patience, PATIENCE.total_seconds())
    return timedelta(seconds=round(usual + lag + patience)) + every


def _by_minute(arrivals: Iterable[Arrival], now: datetime) -> tuple[np.ndarray, np.ndarray]:
    """When newer rows arrived, in seconds, and the age of the newest row then; the last of each minute."""
    since = (now - HISTORY - timedelta(days=1)).timestamp()
    times = np.array([(at.timestamp(), row.timestamp()) for at, row in arrivals]).reshape(-1, 2)
    times = times[times[:, 0] >= since]
    times = times[np.lexsort((times[:, 1], times[:, 0]))]
    reached = np.maximum.accumulate(times[:, 1])
    moved = np.append(True, reached[1:] > reached[:-1])[: len(times)]
    written, reached = times[moved, 0], reached[moved]
    minute = written // _MINUTE
    last = np.append(minute[1:] != minute[:-1], True)[: len(written)]
    return written[last], np.maximum(written[last] - reached[last], 0.0)


def _half_of_the_time(gaps: np.ndarray) -> float:
    """The gap for which half of the time lies in longer gaps, so that no burst hides the wait after it."""
    ordered = np.sort(gaps)
    return float(ordered[np.searchsorted(np.cumsum(ordered), ordered.sum() / 2)])


def _by_day(written: np.ndarray, gaps: np.ndarray, now: float) -> list[float]:
    """The longest gap around this time of day, for each earlier day that the history covers."""
    found = []
    for day in range(1, HISTORY.days + 1):
        first, last = now - day * _DAY - NEAR.total_seconds(), now - day * _DAY + NEAR.total_seconds()
        if written[0] <= first and last <= written[-1]:
            start = np.searchsorted(written, first, "right") - 1
            end = np.searchsorted(written, last, "left")
            found.append(float(gaps[start:end].max()))
    return found


def _usual(days: list[float]) -> float:
    """The longest gap; from a week of days on, the second longest."""
    return sorted(days)[-2 if len(days) >= WEEK else -1]
