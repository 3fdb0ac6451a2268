"""Which past windows say something about a window: those of the same time of day, and the latest ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.results import Window
from monitor.statistics.past import FAR, NEAR

DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_SATURDAY, _SUNDAY = 5, 6

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Past windows by their ends, the latest first, and how each is related to the window at hand.

    `age` in days; `near` is how many windows its time of day is later, FAR where it is more than NEAR apart;
    `same_day_type` tells working days from weekends and holidays.
    """

    ends: tuple[datetime, ...]
    age: npt.NDArray[np.float64]
    near: Ints
    same_weekday: Bools
    same_day_type: Bools

    def only(self, ends: Collection[datetime]) -> Neighbours:
        """Those of them that have one of these ends."""
        kept = np.array([end in ends for end in self.ends], dtype=np.bool_)
        return Neighbours(
            tuple(end for end, is_kept in zip(self.ends, kept, strict=True) if is_kept),
            self.age[kept],
            self.near[kept],
            self.same_weekday[kept],
            self.same_day_type[kept],
        )


def neighbours(window: Window, history: timedelta, latest: int, holidays: Collection[str] = ()) -> Neighbours:
    """The windows of the past that a band is made of: at most five a day, and the `latest` ones.

    >>> from datetime import UTC
    >>> hour = Window.of(datetime(2026, 1, 12, 10, tzinfo=UTC), timedelta(hours=1))  # a Monday
    >>> found = neighbours(hour, timedelta(days=7), latest=1)
    >>> [int(number) for number in found.near[:4]], bool(found.same_weekday[-2])
    ([-1, -2, 2, 1], True)
    """
    length = window.length
    back = np.arange(1, history // length + 1, dtype=np.int64)
    step, day = length // _MICROSECOND, DAY // _MICROSECOND
    earlier = (back * step) % day
    later = np.where(earlier <= day // 2, -earlier, day - earlier)
    steps = np.sign(later) * (-(-np.abs(later) // step))
    near = np.where(np.abs(steps) <= NEAR, steps, FAR)
    wanted = (near != FAR) | (back <= latest)
    back, near = back[wanted], near[wanted]
    ends = tuple(window.end - int(number) * length for number in back)
    now = _weekday(window.start, holidays)
    days = np.array([_weekday(end - length, holidays) for end in ends], dtype=np.int64)
    return Neighbours(
        ends,
        np.asarray(back * (length / DAY), dtype=np.float64),
        near,
        days == now,
        (days >= _SATURDAY) == (now >= _SATURDAY),
    )


def _weekday(start: datetime, holidays: Collection[str]) -> int:
    return _SUNDAY if start.strftime("%Y-%m-%d") in holidays else start.weekday()
