"""Time zones by their distance from UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

_HOUR = timedelta(hours=1)
_KNOWN = ("Asia/Kolkata", "Asia/Kathmandu", "Australia/Adelaide")  # of several zones the best known one


def is_zone(shift: timedelta) -> bool:
    """Whether times that are off by this much can be those of another zone.

    Delays of 45 or 90 minutes are common, and no zone is so far from UTC.

    >>> [is_zone(timedelta(minutes=minutes)) for minutes in (-300, 330, 45, 90)]
    [True, True, False, False]
    """
    return bool(shift) and bool(zone_of(shift) or zone_of(-shift))


def zone_of(offset: timedelta, moment: datetime | None = None) -> str | None:
    """A zone that is so far east of UTC at a time: a fixed one for whole hours; None where there is none.

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
