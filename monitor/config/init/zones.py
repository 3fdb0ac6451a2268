"""Finds the time zones of logs whose times carry no offset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from monitor.config.init.guess import GUESS
from monitor.metrics.feedback.time_shift import JoiningShift, shift_text

_HOUR = timedelta(hours=1)
_KNOWN = ("Asia/Kolkata", "Asia/Kathmandu", "Australia/Adelaide")  # preferred over others with their offset


def is_zone(shift: timedelta) -> bool:
    """Whether a time zone explains a shift of the times by this much.

    Delays of 45 or 90 minutes are common, but no zone has such an offset.

    >>> [is_zone(timedelta(minutes=minutes)) for minutes in (-300, 330, 45, 90)]
    [True, True, False, False]
    """
    return bool(shift) and bool(zone_of(shift) or zone_of(-shift))


def zone_of(offset: timedelta, moment: datetime | None = None) -> str | None:
    """A zone with this offset from UTC at a time: a fixed one for whole hours; None if there is none.

    >>> zone_of(timedelta(hours=5)), zone_of(timedelta(hours=-8)), zone_of(timedelta(0))
    ('Etc/GMT-5', 'Etc/GMT+8', 'UTC')
    >>> zone_of(timedelta(hours=5, minutes=30)), zone_of(timedelta(minutes=45))
    ('Asia/Kolkata', None)
    """
    hours, rest = divmod(offset, _HOUR)
    if not offset:
        return "UTC"
    if not rest and -12 <= hours <= 14:
        return f"Etc/GMT{-hours:+d}"
    at = moment or datetime(2026, 1, 1, tzinfo=UTC)
    fitting = [
        name
        for name in sorted(available_timezones())
        if "/" in name and at.astimezone(ZoneInfo(name)).utcoffset() == offset
    ]
    known = [name for name in fitting if name in _KNOWN]
    return next(iter(known + fitting), None)


_EASTERNMOST = 14


@dataclass(frozen=True, slots=True)
class Clock:
    """The times of a log.

    Attributes:
        naive: they carry no offset, so a zone in the config changes them.
        newest: the newest time, read as UTC.
        written: when the files were last changed.
    """

    naive: bool
    newest: datetime | None
    written: datetime

    @property
    def ahead(self) -> int:
        """The whole hours by which the newest time is later than its file was written; else 0."""
        if self.newest is None or self.newest <= self.written + timedelta(minutes=5):
            return 0
        hours = math.ceil((self.newest - self.written) / _HOUR)
        return hours if hours <= _EASTERNMOST else 0


@dataclass(frozen=True, slots=True)
class Zones:
    """The zone to write for each log, as (zone, why); None if the guess of UTC stays."""

    exposures: tuple[str, str] | None = None
    feedback: tuple[str, str] | None = None
    note: str = ""


def zones(exposures: Clock, feedback: Clock | None, shift: JoiningShift | None) -> Zones:
    """The zones of two logs, by when their files were written and by which shift makes actions join.

    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> clock = Clock(True, now, now)
    >>> zones(clock, clock, JoiningShift(100, 0.1, timedelta(hours=-5), 0.9)).feedback[0]
    'Etc/GMT-5'
    """
    east = exposures.ahead * _HOUR if exposures.naive else timedelta(0)
    by_file = f"{GUESS}: read as UTC, the newest time would be after its file was written"
    mine = _written(east, exposures, by_file)
    if feedback is None or shift is None:
        return Zones(mine, mine if feedback is not None and feedback.naive else None)
    joined = f"{shift.joined:.0%} of the actions join with these times, {shift.shifted:.0%} if shifted by"
    seen = f"{GUESS}: {joined} {shift_text(shift.shift)}"
    if feedback.naive:
        return Zones(mine, _written(east - shift.shift, feedback, seen))
    if exposures.naive:
        return Zones(_written(shift.shift, exposures, seen))
    return Zones(
        note=f"{joined} {shift_text(shift.shift)}; the times carry offsets, so `timezone` cannot correct "
        "them: correct the times in one of the logs"
    )


def _written(offset: timedelta, clock: Clock, why: str) -> tuple[str, str] | None:
    zone = zone_of(offset, clock.newest) if offset else None
    return (zone, f"{why}; this is UTC {shift_text(offset)}: write your own zone") if zone else None
