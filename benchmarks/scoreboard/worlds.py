"""The worlds of the scoreboard, drawn from seeds: their calendar, and when incidents strike."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from monitor.simulate.unsteady import Season, Step, Weather
from monitor.simulate.world import HOUR, World

TUNED: Final = (5, 10, 11)
"""The seeds of the worlds that you may look at while you change the monitor."""
HELD_BACK: Final = (13, 14)
"""The seeds of the worlds that are never looked at while tuning: only a whole scoreboard runs them.

Whoever changes the monitor because of one of them draws a new seed in its place.
"""
SEEDS: Final = (*TUNED, *HELD_BACK)
DAYS: Final = 25
LEARNED: Final = 16
"""The days in which a world's metrics are only measured, before rules, models and bands are switched on."""
STRIKES: Final = 8
"""The moments of a world at which incidents begin; each incident has one of them."""
LONGEST: Final = 75 * HOUR
"""The healthy days last so long after the last of these moments: an incident is compared with them."""
HOLIDAYS: Final = 2
STEPS: Final = 2
STEP: Final = (0.04, 0.12)
"""The size of a level step, up or down."""
SEASON_DAYS: Final = (7, 14)
SEASON: Final = (0.08, 0.2)
"""How far the level of a season is from that of other days, up or down."""
LIKE_WEEKEND: Final = (0.3, 0.7)

_QUIET: Final = 9  # of the hours that count, the first of so many parts has no incident: a day
_YEAR: Final = 364
_CALENDAR, _STRIKES, _WHICH = 1, 2, 3  # purposes of random numbers
_SATURDAY: Final = 5
_EDGE: Final = 2  # the first and last days of a world, in which no change begins


@dataclass(frozen=True, slots=True)
class Plan:
    """What the runs of a world have in common.

    Attributes:
        lasts: the length of its healthy days.
        strikes: how far in them incidents begin, in order.
        learned: how far in them rules, models and bands are switched on.
    """

    world: World
    lasts: timedelta
    strikes: tuple[timedelta, ...]
    learned: timedelta = timedelta(0)

    @property
    def held_back(self) -> bool:
        """Whether nobody may look at this world while tuning."""
        return self.world.seed in HELD_BACK

    @property
    def moments(self) -> tuple[datetime, ...]:
        """When incidents begin, in order."""
        return tuple(self.world.start + one for one in self.strikes)

    @property
    def switched_on(self) -> datetime:
        """When rules, models and bands are switched on, and alerts begin to count."""
        # Nobody watches a recommender that has not shown anything yet.
        return self.world.start + max(self.learned, HOUR)

    @property
    def ends(self) -> datetime:
        return self.world.start + self.lasts

    def strike_of(self, incident: str) -> int:
        """At which of the moments an incident begins in this world."""
        rng = np.random.default_rng([self.world.seed, _WHICH, zlib.crc32(incident.encode())])
        return int(rng.integers(len(self.strikes)))


def drawn(seed: int) -> World:
    """The world of a seed: it begins on any day of a year, with steps, a season, holidays and weather.

    >>> world = drawn(1)
    >>> len(world.steps), len(world.seasons), len(world.holidays), world.weather
    (2, 1, 2, Weather(sd=0.067, memory=0.95))
    >>> drawn(1) == world
    True
    """
    rng = np.random.default_rng([seed, _CALENDAR])
    start = World().start + timedelta(days=int(rng.integers(_YEAR)))
    days = [start + timedelta(days=number) for number in range(_EDGE, DAYS - _EDGE)]
    working = [one.date() for one in days if one.weekday() < _SATURDAY]
    holidays = [working[number] for number in sorted(rng.choice(len(working), HOLIDAYS, replace=False))]
    hours = sorted(int(one) for one in rng.integers(_EDGE * 24, (DAYS - _EDGE) * 24, STEPS))
    steps = [Step(start + hour * HOUR, _off(rng, STEP)) for hour in hours]
    shortest, longest = SEASON_DAYS
    season = Season(
        days[int(rng.integers(len(days)))].date(),
        int(rng.integers(shortest, longest + 1)),
        round(1 + _off(rng, SEASON), 3),
        round(float(rng.uniform(*LIKE_WEEKEND)), 2),
    )
    return World(
        seed=seed,
        start=start,
        file_minutes=30,
        holidays=tuple(holidays),
        steps=tuple(steps),
        seasons=(season,),
        weather=Weather(),
    )


def plan(world: World, days: float) -> Plan:
    """The healthy days of a world and the moments of incidents, at any hour; a short world learns less."""
    hours = round(days * 24)
    learned = hours * LEARNED // DAYS
    first = learned + max(1, (hours - learned) // _QUIET)
    last = max(first, hours - LONGEST // HOUR)
    rng = np.random.default_rng([world.seed, _STRIKES])
    struck = first + rng.choice(last - first + 1, min(STRIKES, last - first + 1), replace=False)
    strikes = tuple(int(hour) * HOUR for hour in sorted(struck))
    return Plan(world, hours * HOUR, strikes, learned * HOUR)


def _off(rng: np.random.Generator, sizes: tuple[float, float]) -> float:
    """A change of one of these sizes, up or down."""
    return round(float(rng.uniform(*sizes)) * (1 if rng.random() < 0.5 else -1), 3)
