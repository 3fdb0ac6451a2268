"""Which slices are missing: without rows at a time of day at which they usually have some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.bands.columns import Columns
from monitor.statistics.bands.seasonal_filter import DAYS, Moment
from monitor.statistics.counts import Floats

_OFTEN: Final = 0.5
"""A slice is missing if it had rows in this part of the windows at this time of day since its first one."""
_USUAL: Final = 3
"""An absence is usual after so many in a row at this time of this weekday."""
_WEEK: Final = 7 * 86_400.0

Bools = NDArray[np.bool_]


class Presence(Columns):
    """When each of m series had rows, by time of day and weekday."""

    _first: Floats  # seconds since 1970
    _there: NDArray[np.int32]
    _windows: NDArray[np.int32]
    _last: Floats  # when it had rows at this time of day
    _absent: NDArray[np.int32]  # times in a row, by weekday

    def __init__(self, slots: int) -> None:
        self._slots = slots
        super().__init__()

    def _fresh(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        n = self._slots
        return {
            "_first": ((), np.inf),
            "_there": ((n,), np.int32(0)),
            "_windows": ((n,), np.int32(0)),
            "_last": ((n,), -np.inf),
            "_absent": ((DAYS, n), np.int32(0)),
        }

    def missing(self, there: Bools, lost: Bools, moment: Moment, end: float) -> Bools:
        """Which series have no rows now, and usually have some at this time of day.

        A lost series is missing until it is back. Others are not if their absence is usual for the weekday:
        they were absent the last three times, and had rows on other days since.
        """
        often = self._there[moment.slot] >= np.maximum(_OFTEN * self._windows[moment.slot], 1)
        usual = self._absent[moment.weekday, moment.slot] >= _USUAL
        usual &= self._last[moment.slot] > end - _USUAL * _WEEK
        return np.asarray(~there & ~usual & (often | lost) & (self._first < end))

    def learn(self, there: Bools, known: Bools, moment: Moment, end: float) -> None:
        """Count a window, for the series of which it is known whether they have rows."""
        slot, weekday = moment.slot, moment.weekday
        self._first = np.where(there, np.minimum(self._first, end), self._first)
        counted = known & (self._first <= end)
        self._there[slot] += counted & there
        self._windows[slot] += counted
        self._last[slot] = np.where(there, end, self._last[slot])
        gone = np.where(there, 0, self._absent[weekday, slot] + 1)
        self._absent[weekday, slot] = np.where(counted, gone, self._absent[weekday, slot])
