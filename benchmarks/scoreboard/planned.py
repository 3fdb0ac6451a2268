"""Which runs a scoreboard is made of: healthy days, restarts, and every incident at every size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Self

from benchmarks.scoreboard.jobs import RUN_CODE, Job, Plan, digest
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES, Size
from monitor.simulate.world import HOUR, World

SEEDS: Final = (1, 2, 3)
DAYS: Final = 30
WORLD: Final = World(file_minutes=30)
LASTING: Final = (  # what each kind of check makes of an incident that lasts: seen in the first world
    "blacklist", "lists_short", "popularity_collapse", "click_logging_broken", "feature_default",
)  # fmt: skip
STRIKES: Final = (  # of the first three seeds: a Tuesday's morning and night, a Saturday's evening
    timedelta(days=22, hours=10),
    timedelta(days=22, hours=3),
    timedelta(days=19, hours=20),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """The runs, by what they are for: each incident is compared with a restart at which nothing happens."""

    plans: Sequence[Plan]
    healthy: Sequence[Job]
    restarts: Sequence[Job]
    incidents: Sequence[Job]

    @classmethod
    def of(
        cls,
        world: World = WORLD,
        *,
        seeds: Sequence[int] = SEEDS,
        days: float = DAYS,
        names: Sequence[str] = tuple(INCIDENTS),
        sizes: Sequence[Size] = SIZES,
    ) -> Self:
        """All of them, or a part.

        >>> whole = Planned.of()
        >>> len(whole.healthy), len(whole.restarts), len(whole.incidents)
        (3, 3, 329)
        """
        plans = [plan(replace(world, seed=seed), days) for seed in seeds]
        incidents = _incidents(plans, names, sizes)
        restarts = list(dict.fromkeys(job.baseline for job in incidents if job.baseline is not None))
        return cls(plans, [Job(plan) for plan in plans], restarts, incidents)

    def code(self) -> str:
        """A digest of what runs them, as it lies there now."""
        first = self.plans[0]
        return digest(RUN_CODE, replace(first.world, seed=0), first.lasts, STRIKES)

    @property
    def jobs(self) -> list[Job]:
        return [*self.healthy, *self.restarts, *self.incidents]


def plan(world: World, days: float) -> Plan:
    """Incidents strike after three weeks or, of fewer days, with a quarter of the hours to come."""
    lasts, strikes = timedelta(hours=round(days * 24)), STRIKES[(world.seed - 1) % len(STRIKES)]
    return Plan(world, lasts, strikes if lasts > strikes else lasts * 3 // 4 // HOUR * HOUR)


def _incidents(plans: Sequence[Plan], names: Sequence[str], sizes: Sequence[Size]) -> list[Job]:
    """Every incident, and those that last, with a restart of its world that lasts as long as the longest."""
    jobs = [Job(plan, name, size) for name in names for size in sizes for plan in plans]
    jobs += [
        Job(plans[0], name, "large", lasting=True) for name in names if name in LASTING and "large" in sizes
    ]
    longest = max((job.ends - job.begins for job in jobs), default=HOUR) // HOUR
    return [replace(job, baseline=Job(job.plan, hours=longest)) for job in jobs]
