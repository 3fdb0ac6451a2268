"""Which runs a scoreboard is made of: healthy days, restarts, and incidents at some of their sizes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Self

from benchmarks.scoreboard.jobs import RUN_CODE, Job, digest
from benchmarks.scoreboard.worlds import DAYS, HELD_BACK, SEEDS, TUNED, Plan, drawn, plan
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES, Size
from monitor.simulate.world import HOUR, World

RESULTS: Final = Path(__file__).with_name("results.jsonl.gz")
DESIGN: Final = 3
"""Raised with other worlds or other runs: stored verdicts of another design do not count."""
LASTING: Final = {  # what each kind of check makes of an incident that lasts, each in one world
    "blacklist": 10,
    "lists_short": 11,
    "popularity_collapse": 5,
    "click_logging_broken": 10,
    "feature_default": 11,
}
RESTARTED: Final = 12
"""Hours for which a restart is watched at which nothing happens."""
_HELD_BACK_SIZES: Final[tuple[Size, ...]] = ("middle", "large")


@dataclass(frozen=True, slots=True)
class Planned:
    """The runs, by what they are for: each incident is compared with the healthy days of its world."""

    plans: Sequence[Plan]
    healthy: Sequence[Job]
    restarts: Sequence[Job]
    incidents: Sequence[Job]

    @classmethod
    def of(
        cls,
        world: Callable[[int], World] = drawn,
        *,
        seeds: Sequence[int] = SEEDS,
        days: float = DAYS,
        names: Sequence[str] = tuple(INCIDENTS),
        sizes: Sequence[Size] = (),
    ) -> Self:
        """All of them, or a part; with `sizes` each incident in each world at these, else at a `sampled` one.

        >>> whole = Planned.of()
        >>> len(whole.healthy), len(whole.restarts), len(whole.incidents) - 5 * len(INCIDENTS)
        (5, 5, 5)
        """
        plans = [plan(world(seed), days) for seed in seeds]
        return cls(
            plans,
            [Job(one) for one in plans],
            [Job(one, hours=min(RESTARTED, (one.ends - one.moments[0]) // HOUR)) for one in plans],
            _incidents(plans, names, sizes),
        )

    def code(self) -> str:
        """A digest of what runs them, as it lies there now."""
        return digest(RUN_CODE, self.plans[0].lasts)

    @property
    def jobs(self) -> list[Job]:
        return [*self.healthy, *self.restarts, *self.incidents]


def sampled(name: str, seed: int) -> Size:
    """The size at which an incident strikes in the world of a seed.

    Of the three worlds that are tuned on, each has another size; of the two that are held back, one has the
    middle and one the large size.

    >>> [sampled("blacklist", seed) for seed in SEEDS]
    ['small', 'middle', 'large', 'middle', 'large']
    """
    worlds, sizes = (HELD_BACK, _HELD_BACK_SIZES) if seed in HELD_BACK else (TUNED, SIZES)
    place = worlds.index(seed) if seed in worlds else seed
    return sizes[(in_order().index(name) + place) % len(sizes)]


@cache
def in_order(path: Path = RESULTS) -> tuple[str, ...]:
    """All incidents, those with stored verdicts first, so that a new one changes the size of no other."""
    ran: dict[str, object] = {}
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            ran = json.loads(next(lines))["sizes"]
    return (*ran, *(name for name in INCIDENTS if name not in ran))


def _incidents(plans: Sequence[Plan], names: Sequence[str], sizes: Sequence[Size]) -> list[Job]:
    """Every incident in every world, and those that last."""
    jobs = [
        Job(one, name, size, strike=one.strike_of(name))
        for name in names
        for one in plans
        for size in sizes or (sampled(name, one.world.seed),)
    ]
    return jobs + [
        Job(one, name, "large", strike=one.strike_of(name), lasting=True)
        for name in names
        for one in plans
        if LASTING.get(name) == one.world.seed and (not sizes or "large" in sizes)
    ]
