"""The days of a platform, and the totals of one system on them: a value, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Self, TypeVar
from zoneinfo import ZoneInfo

import numpy as np

from monitor.core.results import Status, Window
from monitor.settings.platform import DEMAND, OWN, PlatformSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.counts import Floats

DAY: Final = timedelta(days=1)


def zone_of(settings: RecommenderSettings, platform: PlatformSettings) -> ZoneInfo:
    """The zone whose days are added up."""
    bands = settings.bands
    return ZoneInfo(platform.timezone or (bands.timezone if bands is not None else "UTC"))


def day_of(day: date, zone: ZoneInfo) -> Window:
    """A day of a zone as a span in UTC: 23 or 25 hours long where the clocks change.

    >>> day_of(date(2026, 3, 29), ZoneInfo("Europe/Berlin")).length
    datetime.timedelta(seconds=82800)
    """
    return Window(_midnight(day, zone), _midnight(day + DAY, zone))


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def last_day(moment: datetime, zone: ZoneInfo) -> date:
    """The last day that is over at a moment.

    >>> last_day(datetime(2026, 3, 29, 22, tzinfo=UTC), ZoneInfo("Europe/Berlin")).isoformat()
    '2026-03-29'
    """
    return moment.astimezone(zone).date() - DAY


def days_until(last: date, count: int) -> tuple[date, ...]:
    """So many days, the last one included, oldest first."""
    return tuple(last - number * DAY for number in reversed(range(count)))


@dataclass(frozen=True)
class Reading:
    """The totals of one system by day.

    Attributes:
        values: the total -> its value on each day; NaN without one.
        status: of each day: `ok`, or why a value is missing: `late`, `no_data` or `error`.
        why: the total -> what is wrong with it on each day; empty where all is well.
    """

    values: Mapping[str, Floats]
    status: tuple[Status, ...]
    why: Mapping[str, tuple[str, ...]]

    @classmethod
    def without(cls, totals: Sequence[str], count: int, status: Status, why: str) -> Self:
        """A reading in which no day has a value, for one reason."""
        values = {total: np.full(count, np.nan) for total in totals}
        return cls(values, (status,) * count, dict.fromkeys(totals, (why,) * count))

    def after(self, good: Self) -> Self:
        """A reading that failed, with what an earlier one of the same days has: it stays known.

        A day of which some totals were known is still late: the others may come.
        """
        settled = np.array([one is not Status.LATE for one in good.status])
        known = {total: settled | np.isfinite(series) for total, series in good.values.items()}
        begun = np.any(list(known.values()), axis=0)
        return type(self)(
            {total: np.where(known[total], good.values[total], mine) for total, mine in self.values.items()},
            _chosen(begun, good.status, self.status),
            {total: _chosen(known[total], good.why[total], mine) for total, mine in self.why.items()},
        )


_Of = TypeVar("_Of")


def _chosen(first: Iterable[bool], one: Sequence[_Of], other: Sequence[_Of]) -> tuple[_Of, ...]:
    return tuple(a if is_first else b for is_first, a, b in zip(first, one, other, strict=True))


@dataclass(frozen=True)
class DailyTotals:
    """The totals of all systems on the same days, oldest first; `own` are those of the recommender.

    `demand` says how many came on each day, if that is measured.
    """

    days: tuple[date, ...]
    own: Reading
    systems: Mapping[str, Reading]
    demand: Reading | None = None

    @property
    def readings(self) -> dict[str, Reading]:
        """All of them by name."""
        found = {OWN: self.own, **self.systems}
        return found if self.demand is None else {**found, DEMAND: self.demand}

    def between(self, first: int, stop: int) -> DailyTotals:
        """The days from one place up to another, which is not included."""

        def part(one: Reading) -> Reading:
            values = {total: series[first:stop] for total, series in one.values.items()}
            why = {total: texts[first:stop] for total, texts in one.why.items()}
            return Reading(values, one.status[first:stop], why)

        systems = {name: part(one) for name, one in self.systems.items()}
        demand = None if self.demand is None else part(self.demand)
        return DailyTotals(self.days[first:stop], part(self.own), systems, demand)
