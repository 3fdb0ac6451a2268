"""Guesses the time zone of the users, for the bands: from the night of the log, or from this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from tzlocal import get_localzone_name

from monitor.config.init.guess import GUESS
from monitor.config.pace import Pace
from monitor.statistics.day_shape import NIGHT, NIGHT_MIDDLE, quietest

_HOUR: Final = timedelta(hours=1)
_SPAN: Final = timedelta(days=2)  # the shortest log whose night is believed
_REQUESTS: Final = 500  # the fewest
_AROUND: Final = 1.5  # hours between the quietest hours of a log and NIGHT_MIDDLE, at most
_NAMED: Final = 3
_ZONES: Final = {
    "Europe/Berlin": "DE", "Europe/London": "GB", "Europe/Istanbul": "TR", "Africa/Lagos": "NG",
    "Africa/Abidjan": "CI",
    "America/New_York": "US", "America/Chicago": "US", "America/Los_Angeles": "US", "America/Denver": "US",
    "America/Sao_Paulo": "BR", "America/Argentina/Buenos_Aires": "AR", "America/Halifax": "CA",
    "America/Anchorage": "US", "Pacific/Honolulu": "US", "Asia/Dubai": "AE", "Asia/Kolkata": "IN",
    "Asia/Karachi": "PK", "Asia/Dhaka": "BD", "Asia/Jakarta": "ID", "Asia/Shanghai": "CN",
    "Asia/Tokyo": "JP", "Australia/Sydney": "AU", "Pacific/Auckland": "NZ",
}  # fmt: skip
"""Zones with many users and their countries, around the world so that every night has one. Of two that fit
equally, the first is proposed."""


@dataclass(frozen=True, slots=True)
class ZoneGuess:
    """A zone to write, where it comes from, and a country in it."""

    zone: str
    why: str

    @property
    def country(self) -> str:
        """The country of the zone; DE as an example if it is not known."""
        return _ZONES.get(self.zone, "DE")


def guess_zone(pace: Pace | None, log_zone: str | None, machine: str | None) -> ZoneGuess:
    """The zone of the users.

    Most people sleep from 2 to 6 o'clock. So the four quietest hours of a log leave three or four offsets
    from UTC. The zone of this machine is proposed if it has one of them, else one in which many people live.

    Args:
        pace: the requests of the log by hour; None if it could not be read.
        log_zone: the zone in which times without an offset are read; None if they have one.
        machine: the zone of this machine; None if it says nothing about the users.

    >>> night = (3, 1, 1, 1, 3) + 19 * (20,)
    >>> first = datetime(2026, 1, 5, tzinfo=ZoneInfo("UTC"))
    >>> pace = Pace(4000, timedelta(days=10), "", True, first, first + timedelta(days=10), night)
    >>> guess_zone(pace, None, None).zone, guess_zone(pace, None, "Europe/Paris").zone
    ('Europe/Berlin', 'Europe/Paris')
    """
    if log_zone not in (None, "UTC"):
        return ZoneGuess(str(log_zone), f"{GUESS}: the zone of the log's times; write the zone of your users")
    night, at = _night(pace), pace.last if pace is not None else None
    if night is None or at is None:
        if machine is None:
            return ZoneGuess("UTC", "the default; write the zone of your users, as Europe/Berlin")
        return ZoneGuess(machine, f"{GUESS}: the zone of this machine; write the zone of your users")
    seen = f"the fewest requests are from {night:02}:00 to {(night + NIGHT) % 24:02}:00 UTC"
    if log_zone is not None and _fits("UTC", night, at):
        return ZoneGuess(
            "UTC",
            f"{seen}, and the times carry no offset; if they are local, keep UTC, else write the zone of "
            "your users",
        )
    if machine is not None and _fits(machine, night, at):
        return ZoneGuess(machine, f"{GUESS}: the zone of this machine, and {seen}, its night; check it")
    fitting = sorted(
        (zone for zone in _ZONES if _fits(zone, night, at)),
        key=lambda zone: int(_distance(zone, night, at)),  # half an hour decides nothing
    )
    places = _listed(fitting[:_NAMED])
    return ZoneGuess(fitting[0], f"{GUESS}: {seen}, the night of {places}; write the zone of your users")


def machine_zone() -> str | None:
    """The zone of this machine; None if it is unknown, or UTC, as on most servers."""
    try:
        name = get_localzone_name()
    except (LookupError, ValueError, OSError):  # a broken TZ or /etc/localtime
        return None
    is_place = "/" in name and not name.startswith("Etc/")
    return name if is_place and name in available_timezones() else None


def _night(pace: Pace | None) -> int | None:
    """The first of the four quietest hours, in UTC; None if the log shows no night."""
    if pace is None or pace.first is None or pace.last is None or not pace.hours:
        return None
    if pace.span < _SPAN or pace.requests < _REQUESTS:
        return None
    whole = (pace.last - pace.first.replace(minute=0, second=0, microsecond=0)) // _HOUR + 1
    first = pace.first.hour
    # How often each hour of the day lies in the log: it hardly ends at the time of day at which it began.
    times = [whole // 24 + ((hour - first) % 24 < whole % 24) for hour in range(24)]
    return quietest([rows / often for rows, often in zip(pace.hours, times, strict=True)])


def _fits(zone: str, night: int, at: datetime) -> bool:
    return _distance(zone, night, at) <= _AROUND


def _distance(zone: str, night: int, at: datetime) -> float:
    """The hours between the middle of these quiet hours, in a zone, and the usual middle of the night."""
    offset = at.astimezone(ZoneInfo(zone)).utcoffset() or timedelta(0)
    local = night + NIGHT / 2 + offset / _HOUR
    return abs((local - NIGHT_MIDDLE + 12) % 24 - 12)


def _listed(zones: Sequence[str]) -> str:
    return zones[0] if len(zones) == 1 else f"{', '.join(zones[:-1])} or {zones[-1]}"
