"""Where a window lies in the day and in the week of its users."""

from __future__ import annotations

from collections.abc import Container
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil
from typing import Final

from monitor.core.results import Window
from monitor.statistics.bands.seasonal_filter import SATURDAY, Moment

DAY: Final = timedelta(days=1)
_SUNDAY: Final = 6
_SHORTEST: Final = timedelta(minutes=15)  # times of day that are nearer than this are alike
_MORNING: Final = timedelta(hours=6)
_REFERENCE: Final = datetime(2001, 1, 1, tzinfo=UTC)


def slots(length: timedelta) -> int:
    """How many times of day are told apart: one a window, and no more than 96.

    >>> [slots(timedelta(hours=hours)) for hours in (1, 5, 168)], slots(timedelta(minutes=1))
    ([24, 5, 1], 96)
    """
    return max(1, ceil(DAY / max(length, _SHORTEST)))


def a_day(length: timedelta) -> int:
    """How many windows a day has, at least one.

    >>> a_day(timedelta(minutes=5)), a_day(timedelta(hours=5)), a_day(timedelta(days=7))
    (288, 5, 1)
    """
    return max(1, ceil(DAY / length))


def moment_of(window: Window, zone: tzinfo = UTC, days_off: Container[str] = ()) -> Moment:
    """The slot and the weekday of a window.

    Times of day, weekdays and holidays are those of the zone. After a clock change, windows of an hour move
    by a slot, so they stay at their local time; windows of four hours do not move. If a day has a local time
    twice, both windows have the same slot.

    A holiday follows a Sunday from six o'clock on. Its night may be that of a working day, or already that
    of a Sunday.

    >>> hour = Window.of(datetime(2026, 12, 25, 10, tzinfo=UTC), timedelta(hours=1))  # a Friday
    >>> moment_of(hour)
    Moment(slot=10, weekday=4, is_holiday=False, or_weekday=None)
    >>> moment_of(hour, days_off={"2026-12-25"})
    Moment(slot=10, weekday=6, is_holiday=True, or_weekday=None)
    >>> night = Window.of(datetime(2026, 12, 25, 2, tzinfo=UTC), timedelta(hours=1))
    >>> moment_of(night, days_off={"2026-12-25"})
    Moment(slot=2, weekday=4, is_holiday=True, or_weekday=6)
    """
    # Most of a window lies in the local day of its middle, even for a UTC day far from Greenwich.
    middle = window.start + window.length / 2
    local = middle.astimezone(zone)
    is_holiday = local.strftime("%Y-%m-%d") in days_off
    is_morning = (
        local.replace(tzinfo=None) - local.replace(tzinfo=None, hour=0, minute=0, second=0) >= _MORNING
    )
    slot = _slot(middle, window.length, zone)
    if not is_holiday:
        return Moment(slot, local.weekday())
    if is_morning or window.length >= DAY:
        return Moment(slot, _SUNDAY, is_holiday)
    return Moment(slot, local.weekday(), is_holiday, _SUNDAY)


def or_sunday(moment: Moment) -> Moment:
    """The same time of day, where a working day may be like a Sunday, as in the first days of a season.

    >>> or_sunday(Moment(slot=8, weekday=0)), or_sunday(Moment(slot=8, weekday=5)).or_weekday
    (Moment(slot=8, weekday=0, is_holiday=False, or_weekday=6), None)
    """
    return moment if moment.weekday >= SATURDAY else moment._replace(or_weekday=_SUNDAY)


def _slot(middle: datetime, length: timedelta, zone: tzinfo) -> int:
    count = slots(length)
    if DAY % length or length < _SHORTEST:
        local = middle.astimezone(zone).replace(tzinfo=None)
        since_midnight = local - local.replace(hour=0, minute=0, second=0, microsecond=0)
        return int(since_midnight // max(length, _SHORTEST)) % count
    # Counted in whole windows from a reference, so that a clock change moves all windows alike.
    usual = (_REFERENCE + length / 2).astimezone(zone).utcoffset() or timedelta(0)
    moved = (middle.astimezone(zone).utcoffset() or timedelta(0)) - usual
    whole = int(abs(moved) / length + 0.5 - 1e-9) * (1 if moved > timedelta(0) else -1)
    return int(((middle + usual - _REFERENCE) // length + whole) % count)


def weekday_of(moment: datetime, days_off: Container[str]) -> int:
    """0 to 6; a holiday is like a Sunday."""
    return _SUNDAY if moment.strftime("%Y-%m-%d") in days_off else moment.weekday()
