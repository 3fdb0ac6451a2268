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
from benchmarks.scoreboard.jobs import LASTS, Job
from benchmarks.scoreboard.outcomes import Outcome
from benchmarks.scoreboard.planned import RESTARTED
from benchmarks.scoreboard.rates import Share, Weekly
from benchmarks.scoreboard.worlds import DAYS, HELD_BACK, LEARNED, TUNED, Plan
from monitor import __version__
from monitor.simulate.incidents.incident import SIZES
from monitor.simulate.world import HOUR, World

PAGE: Final = ROOT / "docs" / "scoreboard.md"
_TEMPLATE: Final = Path(__file__).with_name("page.md")
_LONGEST: Final = 200  # characters of what went wrong
_SIDES: Final = (("tuned on", False), ("held back", True))


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
        "worlds": _worlds(found.plans),
        "shop": [_shop(found.plans)],
        "tuned": [_listed(TUNED)],
        "held_back": [_listed(HELD_BACK)],
        "learned": [f"{LEARNED}"],
        "days": [f"{DAYS}"],
        "restarted": [f"{RESTARTED}"],
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
    yield ""
    yield from _caught(found)
    yield ""
    yield from _false_alarms(found.healthy)
    if misses:
        yield "\nWhere the bar is missed:\n"
        yield from (f"- {one}" for one in misses)


def _caught(found: Content) -> Iterator[str]:
    """How many incidents of each size were reported in time, in each kind of worlds."""
    yield "| worlds | runs | how many | of those that had to be, reported in time | of all | failed |"
    yield "|---|---|---:|---|---|---:|"
    for worlds, held_back in _SIDES:
        for size in SIZES:
            runs = [one for one in found.outcomes if one.job.size == size and not one.job.lasting]
            lost = [job for job in found.failed if job.incident and job.size == size and not job.lasting]
            runs = [one for one in runs if one.job.plan.held_back is held_back]
            lost = [job for job in lost if job.plan.held_back is held_back]
            if held_back and not (runs or lost):
                continue
            must = sum(one.has_to_be for one in runs) + sum(map(outcomes.has_to_be, lost))
            in_time = Share(sum(one.in_time for one in runs if one.has_to_be), must)
            of_all = Share(sum(one.in_time for one in runs), len(runs) + len(lost))
            cells = (worlds, f"{size} incidents", of_all.n, in_time, of_all, len(lost))
            yield f"| {' | '.join(map(str, cells))} |"


def _false_alarms(healthy_days: Sequence[Health]) -> Iterator[str]:
    """The alerts of healthy days, in each kind of worlds."""
    yield "| worlds | healthy weeks | pages | tickets | most tickets in seven days |"
    yield "|---|---:|---|---|---:|"
    for worlds, held_back in _SIDES:
        some = [one for one in healthy_days if one.job.plan.held_back is held_back]
        weeks, worst = sum(one.weeks for one in some), max((one.worst_week for one in some), default=0)
        rates = (Weekly(sum(getattr(one, name) for one in some), weeks) for name in ("pages", "tickets"))
        cells = (f"{weeks:.1f}", *rates, worst) if some else ("not run",) * 4
        yield f"| {worlds} | {' | '.join(map(str, cells))} |"


def _config() -> Iterator[str]:
    yield "| key | here | default | why |"
    yield "|---|---|---|---|"
    for one in deviations():
        yield f"| `{one.key}` | {one.here} | {one.default} | {one.why} |"


def _worlds(plans: Sequence[Plan]) -> Iterator[str]:
    """What was drawn for each world."""
    yield "| world | begins | switched on | holidays | season | level steps | incidents begin |"
    yield "|---|---|---|---|---|---|---|"
    for one in plans:
        world: World = one.world
        seasons = (
            f"{each.first:%d %b}, {each.days} days: {each.level - 1:+.0%}, "
            f"{each.like_weekend:.0%} like a weekend"
            for each in world.seasons
        )
        cells = (
            f"{world.seed}{', held back' if one.held_back else ''}",
            f"{world.start:%a %d %b}",
            f"{one.switched_on:%a %d %b}",
            "; ".join(f"{day:%a %d %b}" for day in world.holidays),
            "; ".join(seasons),
            "; ".join(f"{each.at:%d %b %H:%M}: {each.change:+.1%}" for each in world.steps),
            "; ".join(f"{moment:%a %d %b %H:%M}" for moment in one.moments),
        )
        yield f"| {' | '.join(cell or '-' for cell in cells)} |"


def _shop(plans: Sequence[Plan]) -> str:
    world: World = plans[0].world
    scenes = ", ".join(f"{one.name} {one.requests_per_hour:g}" for one in world.scenes)
    exposures = sum(one.requests_per_hour for one in world.scenes) * world.length * 24
    days, learned = (one / timedelta(days=1) for one in (plans[0].lasts, plans[0].learned))
    return (
        f"Each world lasts {days:.3g} days, of which {learned:.3g} are only measured. It begins with "
        f"{world.users:,} users and {world.items:,} items, and shows lists of {world.length}: about "
        f"{exposures:,.0f} exposures a day. Mean requests an hour: {scenes}. A file is written every "
        f"{world.file_minutes} minutes."
    )


def _listed(seeds: Sequence[int]) -> str:
    return f"{', '.join(map(str, seeds[:-1]))} and {seeds[-1]}"


def _made(made: Made) -> Iterator[str]:
    yield f"On {made.day} with {', '.join(made.versions)}, on {made.cores} cores."
    if made.seconds is not None:
        yield f"  A simulated hour of a world took {made.seconds:.1f} seconds of the processor."
    yield f"  Digest of the code that ran: `{made.ran}`; of the code that judged: `{made.judged}`."


def _short(why: str) -> str:
    """The first line of an error, as code in Markdown."""
    line = (why.splitlines() or [""])[0]
    return "`" + line[:_LONGEST].replace("`", "'") + "`"
