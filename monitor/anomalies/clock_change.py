"""Warns if the traffic follows a clock that is put back and forth, while the bands count in UTC."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from monitor.core.results import Result, Status
from monitor.history import reads
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.counts import Floats
from monitor.statistics.day_shape import NIGHT, NIGHT_MIDDLE, days_moved, hours_moved, quietest

log = logging.getLogger(__name__)

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
BEFORE: Final = timedelta(weeks=4)
AFTER: Final = timedelta(weeks=1)
_REACH: Final = timedelta(days=190)  # the change before the last one too
_REQUESTS: Final = Result(
    metric="volume", labels={"by": "requests"}, status=Status.NO_DATA, definition=""
)  # the name of the series alone
ZONES: Final = (
    "Europe/Berlin", "Europe/London", "Europe/Athens",
    "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles",
    "Australia/Sydney", "Pacific/Auckland", "America/Santiago", "Asia/Jerusalem", "Africa/Cairo",
)  # fmt: skip
"""Zones for each rule of summer time that many people live by."""


@dataclass(frozen=True, slots=True)
class ClockChange:
    """Clocks were put back (`hours` is 1: the day in UTC is later) or forward (-1).

    Attributes:
        moment: the hour in which the last zone changed.
        hours: by how much the day in UTC is later.
        zones: the hour of each zone, the best known zone first.
    """

    moment: datetime
    hours: int
    zones: Mapping[str, datetime]


def clock_changes(start: datetime, end: datetime, zones: Iterable[str] = ZONES) -> list[ClockChange]:
    """The changes by an hour in [start, end), oldest first. Those within a day count as one.

    >>> winter = clock_changes(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
    >>> [f"{one.moment:%m-%d %H} {next(iter(one.zones))}" for one in winter if one.hours == 1]
    ['10-25 01 Europe/Berlin', '10-29 21 Africa/Cairo', '11-01 09 America/New_York']
    """
    zones = tuple(zones)
    found = [(*change, zone) for zone in zones for change in _changes_of(ZoneInfo(zone), start, end)]
    groups: list[tuple[datetime, int, dict[str, datetime]]] = []
    for moment, hours, zone in sorted(found):
        group = next((g for g in groups if g[1] == hours and moment - g[0] < DAY), None)
        if group is None:
            groups.append((moment, hours, {zone: moment}))
        else:
            group[2][zone] = moment
    return [
        ClockChange(max(members.values()), hours, {zone: members[zone] for zone in zones if zone in members})
        for _, hours, members in groups
    ]


def _changes_of(zone: ZoneInfo, start: datetime, end: datetime) -> Iterable[tuple[datetime, int]]:
    """The hour of each change of a zone, and by how much the day in UTC is later then."""
    day = start
    while day < end:
        following = min(day + DAY, end)
        moved = _offset(zone, day) - _offset(zone, following)
        if abs(moved) == HOUR:
            hours = (following - day) // HOUR
            first = next(n for n in range(hours + 1) if _offset(zone, day + n * HOUR) != _offset(zone, day))
            yield day + first * HOUR, moved // HOUR
        day = following


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)


class ClockChangeCheck:
    """Looks once a day whether the daily shape of the requests moved at a clock change.

    Only for windows that divide an hour, and while `bands.timezone` is UTC. Belongs to the worker thread.
    """

    def __init__(self, settings: RecommenderSettings, store: Store) -> None:
        self._name, self._length, self._store = settings.name, settings.window, store
        bands = settings.bands
        self._wanted = bands is not None and bands.timezone == "UTC" and HOUR % self._length == timedelta(0)
        self._looked_at: datetime | None = None
        self._over: dict[datetime, bool] = {}  # changes with a whole week after: whether the shape moved
        self._note = ""

    def look(self, now: datetime) -> str:
        """The warning; empty if there is none.

        Raises:
            StoreError: the history cannot be read.
        """
        if self._wanted and (self._looked_at is None or abs(now - self._looked_at) >= DAY):
            before, self._note = self._note, self._read()
            self._looked_at = now
            if self._note and self._note != before:
                log.warning("%s: %s", self._name, self._note)
        return self._note

    def _read(self) -> str:
        with self._store.reading() as connection:
            newest = reads.newest_end(connection, self._name, EXPOSURE_CHECK)
        if newest is None:
            return ""
        known = clock_changes(_whole_hour(newest - _REACH), newest)
        moved = [change for change in known if self._has_moved(change, newest)]
        if not moved:
            return ""
        change = self._first_of(moved)
        zone = self._zone_of(change)
        day = change.zones[zone].astimezone(ZoneInfo(zone)).date()
        return (
            f"The daily shape of the requests moved by an hour on {day}, at the clock "
            f"change of {zone}, but `bands.timezone` is UTC. After each such change, mornings and evenings "
            "are compared with the wrong hour for weeks. Set `bands.timezone` to the zone of your users, as "
            f"{zone}."
        )

    def _has_moved(self, change: ClockChange, newest: datetime) -> bool:
        if change.moment not in self._over:
            found = hours_moved(*self._spans(change, AFTER)) == change.hours
            if newest < change.moment + AFTER:
                return found
            self._over[change.moment] = found
        return self._over[change.moment]

    def _first_of(self, moved: Sequence[ClockChange]) -> ClockChange:
        """The change that the newest move belongs to.

        In the weeks around a change, other zones change too. The right one is the first after which the shape
        has moved on most of the days up to the next one.
        """
        last = moved[-1]
        near = [one for one in moved if one.hours == last.hours and last.moment - one.moment < BEFORE]
        for one, following in pairwise(near):
            days = days_moved(*self._spans(one, min(following.moment - one.moment, AFTER)))
            if 2 * days.count(one.hours) > len(days):
                return one
        return near[-1]

    def _zone_of(self, change: ClockChange) -> str:
        """Of the zones with this change, the one in whose night there are the fewest requests."""
        _, after = self._spans(change, AFTER)
        days = after.reshape(-1, 24)
        start = change.moment.hour
        known = np.isfinite(days).any(axis=0)
        if not known.all():
            return next(iter(change.zones))
        first = quietest(np.roll(np.nanmean(days, axis=0), start))
        if first is None:
            return next(iter(change.zones))

        def distance(zone: str) -> float:
            local = first + NIGHT / 2 + _offset(ZoneInfo(zone), change.moment + DAY) / HOUR
            return abs((local - NIGHT_MIDDLE + 12) % 24 - 12)

        return min(change.zones, key=distance)

    def _spans(self, change: ClockChange, after: timedelta) -> tuple[Floats, Floats]:
        """The requests of each hour before and after a change; NaN for an hour without all of its windows."""
        start, end = change.moment - BEFORE, change.moment + after
        with self._store.reading() as connection:
            found = reads.values_of(connection, self._name, EXPOSURE_CHECK, _REQUESTS, start, end)
        size = (end - start) // HOUR
        sums, counts = np.zeros(size), np.zeros(size, dtype=np.int64)
        for window, value in found:
            if window.length == self._length:
                place = (window.start - start) // HOUR
                sums[place] += value
                counts[place] += 1
        hours = np.where(counts == HOUR // self._length, sums, np.nan)
        return hours[: BEFORE // HOUR], hours[BEFORE // HOUR :]


def _whole_hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
