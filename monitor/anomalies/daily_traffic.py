"""The requests of each day, to tell a drift of the traffic from one of what follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np

from monitor.anomalies.moments import DAY
from monitor.anomalies.past import Floats, PastWindow, SeriesName, aligned
from monitor.anomalies.series import WHOLE_REQUESTS, BandedSeries
from monitor.core.results import Window


def requests_by_day(
    windows: Sequence[PastWindow],
    names: Mapping[int, SeriesName],
    length: timedelta,
    starts: Sequence[datetime],
    *,
    least: float,
    quiet: Sequence[Window] = (),
) -> Floats:
    """The requests of a mean window of each day; NaN for a day with maintenance or too few windows.

    Args:
        windows: some of the past, in any order.
        names: what each series is.
        length: of a window.
        starts: of the days; whole days lie between them.
        least: the part of a day's windows that it needs.
        quiet: maintenance.
    """
    ids = [number for number, name in names.items() if BandedSeries.named(name) == WHOLE_REQUESTS]
    found = np.full(len(starts), np.nan)
    if not ids or not windows:
        return found
    requests = aligned(windows, np.array(ids[:1])).value[:, 0]
    place = {start: number for number, start in enumerate(starts)}
    of_day = np.array([place.get(_day(one.end - length, starts[0]), -1) for one in windows])
    there = np.isfinite(requests) & (of_day >= 0)
    count = np.bincount(of_day[there], minlength=len(starts))
    total = np.bincount(of_day[there], requests[there], minlength=len(starts))
    enough = (count > 0) & (count >= least * (DAY // length))
    found[enough] = total[enough] / count[enough]
    for number, start in enumerate(starts):
        if any(one.start < start + DAY and start < one.end for one in quiet):
            found[number] = np.nan
    return found


def _day(moment: datetime, begin: datetime) -> datetime:
    return begin + (moment - begin) // DAY * DAY
