"""The settings of a simulated recommender: its scenes, users, shop and calendar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from monitor.simulate.unsteady import Season, Step, Weather

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Scene:
    """One place of the product where lists are shown.

    Args:
        name: its name in the logs.
        requests_per_hour: mean over a week without holidays, before growth and noise.
        night: requests in the quietest hour of a weekday / in the busiest.
        weekend: requests on a Saturday or Sunday / on a weekday.

    >>> Scene("home", 3300.0).night
    0.3

    Raises ValueError if a number is out of its range.
    """

    name: str
    requests_per_hour: float
    night: float = 0.3
    weekend: float = 1.2

    def __post_init__(self) -> None:
        if not (math.isfinite(self.requests_per_hour) and self.requests_per_hour >= 0):
            raise ValueError(f"requests_per_hour is finite and not negative, got {self.requests_per_hour}")
        if not 0 < self.night <= 1:
            raise ValueError(f"night lies in (0, 1], got {self.night}")
        if not (math.isfinite(self.weekend) and self.weekend > 0):
            raise ValueError(f"weekend is finite and above 0, got {self.weekend}")


@dataclass(frozen=True, slots=True)
class World:
    """All settings of a simulation. Equal worlds have byte-identical logs.

    The default is a shop with about a million exposures a day.

    >>> world = World(seed=1)
    >>> world.hour_of(world.start + 25 * HOUR)
    25

    Raises ValueError if its parts do not fit together.
    """

    seed: int = 1
    start: datetime = datetime(2026, 1, 5, tzinfo=UTC)
    """UTC midnight of the first day."""
    scenes: tuple[Scene, ...] = (Scene("home", 3300.0), Scene("detail", 650.0), Scene("search", 200.0, 0.2))
    users: int = 20_000
    """Returning users; the numbers of new users start here."""
    user_skew: float = 0.5
    """Zipf exponent of how often each of them comes."""
    new_users_per_hour: int = 60
    new_user_share: float = 0.03
    """Share of requests by users who first came within the last days."""
    items: int = 3_000
    """Items on the shelf at any time: each new item replaces an old one."""
    item_skew: float = 0.9
    """Zipf exponent of how attractive the items are."""
    length: int = 10
    """Items of a full list."""
    categories: tuple[str, ...] = ("books", "films", "games", "garden", "kitchen", "music", "sport", "toys")
    new_items_per_hour: float = 1.0
    blacklisted: int = 20
    """Items of the catalog that must never be shown."""
    expired: int = 100
    """Expired items that are still in the catalog."""
    growth: float = 0.01
    """Relative growth of requests from week to week."""
    holidays: tuple[date, ...] = (date(2026, 1, 19),)
    steps: tuple[Step, ...] = ()
    seasons: tuple[Season, ...] = ()
    """On a day of two seasons, both count."""
    weather: Weather | None = None
    retrain_days: int = 7
    arms: tuple[str, ...] = ("control", "treatment")
    arm_lift: float = 0.02
    """Relative increase of clicks in every arm but the first."""
    empty_share: float = 0.003
    """Share of requests that return nothing."""
    short_share: float = 0.01
    """Share of requests that return fewer items than `length`."""
    click_rate: float = 0.06
    """Approximate share of exposures with a click."""
    position_bias: float = 0.6
    """A click at position p is p ** position_bias times rarer than at position 1."""
    file_minutes: int = 15
    """A file of each log is delivered every so many minutes; divides 60."""
    oddities: bool = True
    """Whether deploys, retries, doubled files and late hours occur; they are not incidents."""

    def __post_init__(self) -> None:
        for wrong in self._mistakes():
            raise ValueError(wrong)
        # In a zone with summer time, an hour would be repeated.
        object.__setattr__(self, "start", self.start.astimezone(UTC))

    def _mistakes(self) -> list[str]:
        names = [scene.name for scene in self.scenes]
        shares = (self.new_user_share, self.empty_share, self.short_share)
        found = {
            "a world begins at midnight, UTC": self.start.utcoffset() != timedelta(0)
            or self.start.time() != time(),
            "the seed lies within 0 and 2 ** 64 - 1": not 0 <= self.seed < 2**64,
            "a world has scenes, and each has a name of its own": not names or len(set(names)) < len(names),
            "a world has arms, and each has a name of its own": not self.arms
            or len(set(self.arms)) < len(self.arms),
            "a world has categories, and each has a name of its own": not self.categories
            or len(set(self.categories)) < len(self.categories),
            "users and new_users_per_hour are 1 or more": min(self.users, self.new_users_per_hour) < 1,
            "the items on the shelf fill a list": not 1 <= self.length <= self.items,
            "new_items_per_hour is 0.001 or more, and not above a 24th of the items": not 0.001
            <= self.new_items_per_hour
            <= self.items / 24,
            "blacklisted and expired are not negative": min(self.blacklisted, self.expired) < 0,
            "shares lie within 0 and 1": not all(0 <= share <= 1 for share in shares)
            or self.empty_share + self.short_share > 1,
            "click_rate lies above 0 and is 0.25 at most": not 0 < self.click_rate <= 0.25,
            "skews, position_bias are finite and not negative": not all(
                math.isfinite(one) and one >= 0
                for one in (self.user_skew, self.item_skew, self.position_bias)
            ),
            "growth and arm_lift lie above -1": not (
                math.inf > self.growth > -1 and math.inf > self.arm_lift > -1
            ),
            "models are retrained every day or less often": self.retrain_days < 1,
            "file_minutes divides an hour": self.file_minutes < 1 or 60 % self.file_minutes != 0,
        }
        return [what for what, wrong in found.items() if wrong]

    def hour_of(self, moment: datetime) -> int:
        """The number of the hour that begins at this moment; 0 is the world's first.

        Raises ValueError if it is not a full hour, or before the start.
        """
        hour, rest = divmod(moment - self.start, HOUR)
        if rest or hour < 0:
            raise ValueError(f"{moment} is no full hour since {self.start}")
        return hour

    def moment(self, hour: int) -> datetime:
        """When an hour begins.

        >>> World().moment(25).isoformat()
        '2026-01-06T01:00:00+00:00'
        """
        return self.start + hour * HOUR
