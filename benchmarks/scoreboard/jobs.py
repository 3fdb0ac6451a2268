"""The runs that a scoreboard is made of, each a process' work and kept once it is done."""

from __future__ import annotations

import gc
import hashlib
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from benchmarks.scoreboard import checkpoints
from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.config import NAME, write_config
from benchmarks.scoreboard.operations import operation
from benchmarks.scoreboard.play import play
from benchmarks.scoreboard.watched import Watched
from benchmarks.scoreboard.worlds import Plan
from monitor.simulate.delivery import Delivery
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import Incident, Size
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR

_HERE: Final = "benchmarks/scoreboard"
RUN_CODE: Final = (
    "monitor",
    "rules/business",
    *(
        f"{_HERE}/{name}.py"
        for name in ("checkpoints", "config", "jobs", "operations", "play", "series", "watched", "worlds")
    ),
)
JUDGING_CODE: Final = (
    "rules/alerts",
    "deploy/alertmanager.yml",
    *(
        f"{_HERE}/{name}.py"
        for name in (
            "alerts",
            "groups",
            "inhibition",
            "messages",
            "openmetrics",
            "prometheus",
            "selectors",
            "verdicts",
        )
    ),
)
NOT_RUN: Final = (
    *(f"monitor/{name}/" for name in ("cli", "docs", "gate", "off_policy", "on_call", "report", "survey")),
    "monitor/service/web/",
)
"""What a run never asks: commands, and the pages, which show what was judged and change nothing of it."""
_SERIES: Final = "series.parquet"
_AFTER: Final = 2  # windows that a run goes on after an incident should have been caught
_OVER: Final = ("log_stops", "history_full")  # incidents that end by themselves, after `size` hours
_RECOVERS: Final = 4 * HOUR  # and how long they are watched from then on
LASTS: Final = 48 * HOUR
"""How long an incident stays that is to show what becomes of it in time, with a restart in its middle."""
_RESOLVES: Final = 12 * HOUR  # how long such a one is watched when it is over


@dataclass(frozen=True, slots=True)
class Job:
    """One run: the healthy days of a world, or from where they fork an incident of some size, or nothing.

    A fork is a restart. What comes of that alone is seen where nothing else happens, for so many `hours`. An
    incident begins at the moment number `strike` of its plan. It is watched until it should have been caught;
    one that is `lasting` until it is over.
    """

    plan: Plan
    incident: str = ""
    size: Size = "large"
    hours: int = 0
    strike: int = 0
    lasting: bool = False

    @property
    def name(self) -> str:
        seed = f"seed-{self.plan.world.seed}"
        if self.incident:
            return f"{self.incident}-{self.size}{'-lasting' if self.lasting else ''}-{seed}"
        return f"restart-{self.hours}h-{seed}" if self.hours else f"healthy-{seed}"

    @property
    def forked(self) -> bool:
        """Whether it begins where the healthy days fork."""
        return bool(self.incident or self.hours)

    @property
    def baseline(self) -> Job | None:
        """The run that says what an incident has no part in: the healthy days of its world."""
        return Job(self.plan) if self.incident else None

    @property
    def begins(self) -> datetime:
        """From when on its alerts count."""
        return self.plan.moments[self.strike] if self.forked else self.plan.switched_on

    @property
    def ends(self) -> datetime:
        if not self.incident:
            return self.begins + self.hours * HOUR if self.forked else self.plan.ends
        if self.lasting:
            return self.begins + LASTS + _RESOLVES
        incident: Incident = INCIDENTS[self.incident]
        caught = self.begins + (incident.windows + _AFTER) * HOUR
        over = self.over
        return caught if over is None else max(caught, over + _RECOVERS - (over - self.begins) % -HOUR)

    @property
    def over(self) -> datetime | None:
        """When the incident ends; None: it stays."""
        if self.lasting:
            return self.begins + LASTS
        if self.incident not in _OVER:
            return None
        incident: Incident = INCIDENTS[self.incident]
        return self.begins + incident.sizes[self.size] * HOUR

    def series(self, work: Path) -> Path:
        """Where its series are once it is done; those of a forked one go on from its fork's."""
        return work / f"{self.name}.parquet"

    def fork(self, work: Path) -> Path:
        """Where the healthy monitor is kept as it was at the moment at which this run begins."""
        return fork(self.plan, self.strike, work)


def digest(paths: Iterable[str], *more: object) -> str:
    """Changes with the tracked files below these paths, as they lie there, and with what else is given."""
    command = ["git", "ls-files", "-z", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    found = hashlib.sha256(repr(more).encode())
    for name in sorted(listed.split("\0")):
        path = ROOT / name
        if name and not name.startswith(NOT_RUN) and path.is_file():
            found.update(name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


def run(job: Job, work: Path, say: Callable[[str], None] | None = None) -> float:
    """Do a job and keep its series; the seconds of the processor that an hour of it took.

    The healthy days go on where they were, at the last midnight, if they were interrupted.
    """
    _settle(work / "monitor.log")
    say = say or (lambda text: print(text, file=sys.stderr, flush=True))
    live = work / f"live-{job.name}"
    shutil.rmtree(live, ignore_errors=True)
    try:
        return _forked(job, work, live) if job.forked else _healthy(job, work, live, say)
    finally:
        shutil.rmtree(live, ignore_errors=True)


def fork(plan: Plan, strike: int, work: Path) -> Path:
    """Where the healthy monitor is kept as it was at one of the moments at which incidents begin."""
    return work / f"fork-{plan.world.seed}-{strike}"


def _healthy(job: Job, work: Path, live: Path, say: Callable[[str], None]) -> float:
    """Measure the first days of a world, then switch everything on."""
    plan, midnight = job.plan, work / f"midnight-{job.plan.world.seed}"
    opens = plan.world.start + HOUR
    simulation, begin, recorded = Simulation(plan.world), opens, None
    if (reached := checkpoints.moment(midnight)) is not None:
        begin, recorded = reached, checkpoints.series(midnight)
        checkpoints.restore(midnight, live)
    else:
        write_config(live, plan.world, measured=opens < plan.switched_on)
    began, first = time.process_time(), begin
    with Watched(live, NAME, begin, recorded) as watched:
        for until, is_on in ((plan.switched_on, False), (job.ends, True)):
            if is_on and opens < begin == plan.switched_on:
                write_config(live, plan.world)
                watched.reload()
            for at in play(watched, simulation, begin, until, is_on=is_on):
                begin = at
                if at in plan.moments and is_on:
                    saved = fork(plan, plan.moments.index(at), work)
                    if not saved.exists():  # else runs may be at it already
                        checkpoints.save(watched, saved)
                if (at - plan.world.start) % timedelta(days=1) == timedelta(0):
                    watched.housekeeping()
                    checkpoints.save(watched, midnight)
                    spent = (time.process_time() - began) / max(1, (at - first) // HOUR)
                    day = (at - plan.world.start).days
                    say(f"{job.name}: {day} of {plan.lasts.days} days, {spent:.1f} s an hour")
        watched.recorded.write(job.series(work))
    shutil.rmtree(midnight, ignore_errors=True)
    return (time.process_time() - began) / max(1, (job.ends - first) // HOUR)


def _forked(job: Job, work: Path, live: Path) -> float:
    since = job.begins
    checkpoints.restore(job.fork(work), live)
    recorded = checkpoints.series(job.fork(work), newest=True)
    simulation, operations = Simulation(job.plan.world), []
    if job.incident:
        incident: Incident = INCIDENTS[job.incident]
        size = incident.sizes[job.size]
        struck = Struck(simulation, incident, size, since)
        simulation = Ended(struck, job.over) if job.lasting and job.over is not None else struck
        operations = [operation(incident, size, since)]
    restarts = [since + LASTS // 2] if job.lasting else []
    began = time.process_time()
    for begin, end in pairwise((since, *restarts, job.ends)):
        with Watched(live, NAME, begin, recorded) as watched:
            for _ in play(watched, simulation, begin, end, *operations):
                pass
    recorded.write(job.series(work))
    return (time.process_time() - began) / ((job.ends - job.begins) // HOUR)


class Ended(Simulation):
    """A simulation in which an incident is over: from that hour on nothing of it is in the logs."""

    def __init__(self, struck: Struck, over: datetime) -> None:
        super().__init__(struck.world)
        self._struck, self._over = struck, over

    def files(self, start: datetime) -> list[Delivery]:
        """The hour as it is delivered."""
        return self._struck.files(start) if start < self._over else super().files(start)


def _settle(log: Path) -> None:
    """What a process does once: log to a file, and leave what is loaded to itself."""
    if not logging.getLogger().handlers:
        logging.basicConfig(filename=log, level=logging.WARNING, format="%(asctime)s %(message)s")
    gc.collect()
    gc.freeze()
