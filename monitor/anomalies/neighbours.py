"""The past windows that a band uses: those of about the same time of day, and the latest ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.core.results import Window
from monitor.statistics.bands.past import FAR, NEAR

DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_SATURDAY, _SUNDAY = 5, 6

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Past windows by their ends, the latest first, and how each relates to the judged window.

    `age` is in days of local time. `near` is how many windows later its time of day is, FAR if that is more
    than NEAR. `same_day_type`: both on working days, or both on weekends and holidays.
    """

    ends: tuple[datetime, ...]
    age: npt.NDArray[np.float64]
    near: Ints
    same_weekday: Bools
    same_day_type: Bools

    def only(self, ends: Collection[datetime]) -> Neighbours:
        """The neighbours with one of these ends."""
        kept = np.array([end in ends for end in self.ends], dtype=np.bool_)
        return Neighbours(
            tuple(end for end, is_kept in zip(self.ends, kept, strict=True) if is_kept),
            self.age[kept],
            self.near[kept],
            self.same_weekday[kept],
            self.same_day_type[kept],
        )


def neighbours(
    window: Window,
    history: timedelta,
    latest: int,
    holidays: Collection[str] = (),
    zone: tzinfo = UTC,
) -> Neighbours:
    """The past windows of a band: five a day around this time, the `latest` ones, and the whole last day.

    Times of day, weekdays and holidays are those of the zone. After a clock change, the neighbour on an
    earlier day is the window at the same local time, to the nearest whole window: windows of an hour move by
    one, windows of four hours do not move. If a day lacks that time, it is the first window after the change.
    If a day has it twice, it is the first of the two.

    >>> hour = Window.of(datetime(2026, 1, 12, 10, tzinfo=UTC), timedelta(hours=1))  # a Monday
    >>> found = neighbours(hour, timedelta(days=7), latest=1)
    >>> [int(number) for number in found.near[:3]], bool(found.same_weekday[-2])
    ([-1, -2, 99], True)
    """
    length = window.length
    step, day = length // _MICROSECOND, DAY // _MICROSECOND
    partners = _partners(window, history, zone)
    # Four weeks with a clock put back are an hour longer; the last day still counts.
    reach = max(history // _MICROSECOND, int(partners[history // DAY]))
    back = np.arange(1, reach // step + 1, dtype=np.int64)
    distance = back * step
    whole_days = np.searchsorted((partners[:-1] + partners[1:]) / 2, distance)
    later = partners[whole_days] - distance
    steps = np.sign(later) * (-(-np.abs(later) // step))
    near = np.where(np.abs(steps) <= NEAR, steps, FAR)
    wanted = np.flatnonzero((near != FAR) | (back <= max(latest, DAY // length)))
    ends = tuple(window.end - number * length for number in back[wanted].tolist())
    now = weekday_of(_middle(window).astimezone(zone), holidays)
    days = np.array(
        [weekday_of((end - length / 2).astimezone(zone), holidays) for end in ends], dtype=np.int64
    )
    return Neighbours(
        ends,
        np.asarray(whole_days - later / day, dtype=np.float64)[wanted],
        near[wanted],
        days == now,
        (days >= _SATURDAY) == (now >= _SATURDAY),
    )


def _partners(window: Window, history: timedelta, zone: tzinfo) -> Ints:
    """How long ago it was the same local time, for each day back: microseconds, rounded to whole windows."""
    middle, length = _middle(window), window.length
    local = middle.astimezone(zone)
    found = [timedelta(0)]
    for days in range(1, history // DAY + 2):
        ago = middle - (local - days * DAY).astimezone(UTC)
        found.append(days * DAY + round((ago - days * DAY) / length) * length)
    return np.array([ago // _MICROSECOND for ago in found], dtype=np.int64)


def _middle(window: Window) -> datetime:
    """Most of a window lies in the local day of its middle, even for a UTC day far from Greenwich."""
    return window.start + window.length / 2


def weekday_of(moment: datetime, holidays: Collection[str]) -> int:
    """0 to 6; a holiday is like a Sunday."""
    return _SUNDAY if moment.strftime("%Y-%m-%d") in holidays else moment.weekday()
