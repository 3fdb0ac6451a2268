"""Writes docs/scoreboard.md from the outcomes."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from string import Template
from typing import Final, Self

from benchmarks.scoreboard import healthy, outcomes, tables
from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.config import JUDGED, deviations
from benchmarks.scoreboard.healthy import Health
from benchmarks.scoreboard.jobs import LASTS, Job, Plan
from benchmarks.scoreboard.outcomes import Outcome
from monitor import __version__
from monitor.simulate.incidents.incident import SIZES
from monitor.simulate.world import HOUR, World

PAGE: Final = ROOT / "docs" / "scoreboard.md"
_TEMPLATE: Final = Path(__file__).with_name("page.md")
_LONGEST: Final = 200  # characters of what went wrong


@dataclass(frozen=True, slots=True)
class Made:
    """How a scoreboard was made.

    Attributes:
        ran, judged: digests of the code that ran and of the code that judged.
        versions: the programs with their versions.
        day, cores: the date, and the number of cores.
        seconds: processor seconds for a simulated hour, if known.
    """

    ran: str
    judged: str
    versions: Sequence[str]
    day: str
    cores: int
    seconds: float | None = None

    @classmethod
    def now(cls, ran: str, judged: str, servers: Sequence[str], seconds: Collection[float]) -> Self:
        programs = (f"recsys-monitor {__version__}", f"Python {platform.python_version()}", *servers)
        day, cores = datetime.now(UTC).date().isoformat(), os.cpu_count() or 1
        return cls(ran, judged, programs, day, cores, fmean(seconds) if seconds else None)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of the page.

    Attributes:
        restarts: for each restart, the alerts that fire only with it or only without it.
        failed: each failed run, with the reason.
        left: the number of runs without a verdict.
        other_code: whether some runs were made by another version of the code.
    """

    plans: Sequence[Plan]
    outcomes: Sequence[Outcome]
    healthy: Sequence[Health]
    restarts: Mapping[Job, Sequence[str]]
    failed: Mapping[Job, str]
    made: Made
    left: int = 0
    other_code: bool = False

    @property
    def misses(self) -> list[str]:
        """One sentence for each way in which the bar is missed."""
        return [
            *(f"{job.name}: the run failed: {_short(why)}" for job, why in self.failed.items()),
            *outcomes.missed(self.outcomes),
            *healthy.missed(self.healthy),
            *(f"{job.name}: changes {', '.join(alerts)}" for job, alerts in self.restarts.items() if alerts),
        ]


def write(found: Content, page: Path = PAGE) -> str:
    """Write the page and return its text."""
    all_runs = tables.Runs.of(found.outcomes, found.failed)
    parts: dict[str, Iterator[str] | Sequence[str]] = {
        "summary": _summary(found),
        "incidents": tables.incidents(all_runs),
        "beside": tables.beside(all_runs),
        "hazards": tables.hazards(all_runs),
        "grew": tables.grew(all_runs),
        "lasting": tables.lasting(found.outcomes),
        "looks_back": tables.looks_back(found.outcomes),
        "aftermath": tables.aftermath(found.outcomes),
        "healthy": tables.healthy(found.healthy, [one for one in found.failed if not one.forked]),
        "restarts": tables.restarts(found.restarts),
        "unseen": tables.unseen(all_runs),
        "config": _config(),
        "judged": [f"{JUDGED / timedelta(minutes=1):g}"],
        "lasts": [f"{LASTS // HOUR}"],
        "strikes": [_strikes(found.plans)],
        "worlds": [_worlds(found.plans)],
        "made": _made(found.made),
    }
    text = Template(_TEMPLATE.read_text("utf-8")).substitute(
        {name: "\n".join(lines) for name, lines in parts.items()}
    )
    page.write_text(text, "utf-8")
    return text


def _summary(found: Content) -> Iterator[str]:
    if found.other_code:
        yield "**These runs are from different versions of the code.**\n"
    misses = found.misses
    if misses:
        yield f"**The bar is missed {len(misses)} times; see below.**"
    elif found.left:
        yield "**Nothing misses the bar so far.**"
    else:
        yield "**The bar is met.**"
    if found.left:
        yield f"\n{found.left} runs have no verdict yet."
    yield "\n| runs | how many | had to be reported in time | were, of those | were, of all | failed |"
    yield "|---|---:|---:|---:|---:|---:|"
    for size in SIZES:
        runs = [one for one in found.outcomes if one.job.size == size and not one.job.lasting]
        failed = [job for job in found.failed if job.incident and job.size == size and not job.lasting]
        must = [one for one in runs if one.has_to_be]
        in_time, all_in_time = (sum(one.in_time for one in some) for some in (must, runs))
        has_to = len(must) + sum(map(outcomes.has_to_be, failed))
        row = (f"{size} incidents", len(runs) + len(failed), has_to, in_time, all_in_time, len(failed))
        yield f"| {' | '.join(map(str, row))} |"
    yield "\n| healthy | pages | tickets | most of them in seven days |"
    yield "|---|---:|---:|---:|"
    weeks = sum(one.weeks for one in found.healthy)
    pages, tickets = (sum(getattr(one, name) for one in found.healthy) for name in ("pages", "tickets"))
    worst = max((one.worst_week for one in found.healthy), default="-")
    cells = (pages, tickets, worst) if found.healthy else ("not run",) * 3
    yield f"| {weeks:.1f} weeks | {' | '.join(map(str, cells))} |"
    if misses:
        yield "\nWhere the bar is missed:\n"
        yield from (f"- {one}" for one in misses)


def _config() -> Iterator[str]:
    yield "| key | here | default | why |"
    yield "|---|---|---|---|"
    for one in deviations():
        yield f"| `{one.key}` | {one.here} | {one.default} | {one.why} |"


def _strikes(plans: Sequence[Plan]) -> str:
    return ", ".join(
        f"{one.strikes:%A %H:%M} UTC (world {one.world.seed}, after {one.fork / timedelta(days=1):.1f} days)"
        for one in plans
    )


def _worlds(plans: Sequence[Plan]) -> str:
    world: World = plans[0].world
    scenes = ", ".join(f"{one.name} {one.requests_per_hour:g}" for one in world.scenes)
    exposures = sum(one.requests_per_hour for one in world.scenes) * world.length * 24
    seeds = ", ".join(str(one.world.seed) for one in plans)
    return (
        f"Worlds of {plans[0].lasts / timedelta(days=1):g} days, by seed: {seeds}. Each begins with "
        f"{world.users:,} users and {world.items:,} items, and shows lists of {world.length}: about "
        f"{exposures:,.0f} exposures a day. Mean requests an hour: {scenes}. A file is written every "
        f"{world.file_minutes} minutes. Holidays, which the config names: "
        f"{', '.join(str(one) for one in world.holidays) or 'none'}."
    )


def _made(made: Made) -> Iterator[str]:
    yield f"On {made.day} with {', '.join(made.versions)}, on {made.cores} cores."
    if made.seconds is not None:
        yield f"  A simulated hour of a world took {made.seconds:.1f} seconds of the processor."
    yield f"  Digest of the code that ran: `{made.ran}`; of the code that judged: `{made.judged}`."


def _short(why: str) -> str:
    """The first line of an error, as code in Markdown."""
    line = (why.splitlines() or [""])[0]
    return "`" + line[:_LONGEST].replace("`", "'") + "`"
