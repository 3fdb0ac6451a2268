"""docs/scoreboard.md, written from the outcomes."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Final

from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.config import JUDGED, deviations
from benchmarks.scoreboard.jobs import Job, Plan
from benchmarks.scoreboard.outcomes import HAZARDS, Health, Outcome, missed
from benchmarks.scoreboard.servers import version
from monitor import __version__
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES, Size

PAGE: Final = ROOT / "docs" / "scoreboard.md"
_TEMPLATE: Final = Path(__file__).with_name("page.md")
_BAR: Final = (
    "The bar: every incident of middle and large size, and a hard one of any size, told in time by an alert "
    "that names the cause; one group of messages for an incident; what is over resolves; a restart changes "
    "nothing; healthy days without a page, and in each world with one ticket a week at most."
)


@dataclass(frozen=True, slots=True)
class Found:
    """All that the page tells.

    `restarts`: for each restart, the alerts that fire because of it, or no longer. `failed`: each run that
    did not end well, with why. `seconds`: of the processor, for a simulated hour. `other_code`: whether some
    of the runs were made by other code than there is now.
    """

    plans: Sequence[Plan]
    outcomes: Sequence[Outcome]
    healthy: Sequence[Health]
    restarts: Mapping[Job, Sequence[str]]
    failed: Mapping[Job, str]
    seconds: float
    other_code: bool = False

    @property
    def misses(self) -> list[str]:
        """Every way in which the bar is missed."""
        return [
            *(f"{job.name}: the run failed: {why}" for job, why in self.failed.items()),
            *missed(self.outcomes, self.healthy),
            *(f"{job.name}: changes {', '.join(alerts)}" for job, alerts in self.restarts.items() if alerts),
        ]

    def by_incident(self) -> Iterator[tuple[str, dict[Size, list[Outcome]]]]:
        """The outcomes of each incident and size, in the order in which they were given."""
        failed = (job.incident for job in self.failed if job.incident)
        for name in dict.fromkeys((*(one.job.incident for one in self.outcomes), *failed)):
            runs = [one for one in self.outcomes if one.job.incident == name]
            yield name, {size: [one for one in runs if one.job.size == size] for size in SIZES}

    def failures(self, name: str, size: Size) -> int:
        """How many runs of an incident and size failed."""
        return sum((job.incident, job.size) == (name, size) for job in self.failed)


def write(found: Found, page: Path = PAGE) -> str:
    """Write the page; its text."""
    parts = {
        "summary": _summary(found),
        "incidents": _incidents(found),
        "beside": _beside(found),
        "hazards": _hazards(found),
        "aftermath": _aftermath(found),
        "healthy": _healthy(found),
        "unseen": _unseen(found),
        "config": _config(),
        "judged": [f"{JUDGED / timedelta(minutes=1):g}"],
        "strikes": [_strikes(found.plans)],
        "worlds": _worlds(found.plans),
        "versions": _versions(found.seconds),
    }
    text = Template(_TEMPLATE.read_text("utf-8")).substitute(
        {name: "\n".join(lines) for name, lines in parts.items()}
    )
    page.write_text(text, "utf-8")
    return text


def _summary(found: Found) -> Iterator[str]:
    if found.other_code:
        yield "**Not of one piece: not all of these runs were made by the code as it is now.**\n"
    yield "| incidents | runs | caught in time | failed |"
    yield "|---|---:|---:|---:|"
    for size in SIZES:
        runs = [one for one in found.outcomes if one.job.size == size]
        failed = sum(bool(job.incident) and job.size == size for job in found.failed)
        yield f"| {size} | {len(runs) + failed} | {sum(one.in_time for one in runs)} | {failed} |"
    weeks = sum(one.weeks for one in found.healthy)
    pages, tickets = (
        sum(len(one.pages) for one in found.healthy),
        sum(len(one.tickets) for one in found.healthy),
    )
    yield f"\nHealthy: {weeks:.1f} weeks with {pages} pages and {tickets} tickets."
    yield f"\n{_BAR}\n"
    misses = found.misses
    yield f"**The bar is missed in {len(misses)} points:**\n" if misses else "**The bar is met.**"
    yield from (f"- {one}" for one in misses)


def _incidents(found: Found) -> Iterator[str]:
    yield f"| incident | {' | '.join(SIZES)} | smallest size caught | told by | groups | messages |"
    yield f"|---|{'---|' * len(SIZES)}---|---|---:|---:|"
    for name, of_size in found.by_incident():
        runs = [one for some in of_size.values() for one in some]
        alerts = Counter(one.catch.alert for one in runs if one.catch is not None and one.in_time)
        cells = [
            name,
            *(_cell(some, found.failures(name, size)) for size, some in of_size.items()),
            _smallest(found, name, of_size),
            ", ".join(alert for alert, _ in alerts.most_common()) or "-",
            str(max((one.groups for one in runs), default=0)),
            str(max((one.messages for one in runs), default=0)),
        ]
        yield f"| {' | '.join(cells)} |"


def _cell(runs: Sequence[Outcome], failed: int) -> str:
    if not runs and not failed:
        return "not run"
    minutes = [one.catch.minutes for one in runs if one.catch is not None]
    told = [f"{sum(one.in_time for one in runs)} of {len(runs) + failed}"]
    told += [f"{max(minutes)} min"] if minutes else []
    return ", ".join(told + ([f"{failed} failed"] if failed else []))


def _smallest(found: Found, name: str, of_size: Mapping[Size, Sequence[Outcome]]) -> str:
    """The smallest size from which on everything that was run was caught."""
    smallest = "-"
    for size, runs in reversed([*of_size.items()]):
        if found.failures(name, size) or not all(one.in_time for one in runs):
            break
        smallest = size if runs else smallest
    return smallest


def _beside(found: Found) -> Iterator[str]:
    yield "| incident | beside what is named there, and in how many runs |"
    yield "|---|---|"
    for name, of_size in found.by_incident():
        alerts = Counter(alert for runs in of_size.values() for one in runs for alert in one.beside)
        yield f"| {name} | {', '.join(f'{alert} {count}' for alert, count in alerts.most_common()) or '-'} |"


def _hazards(found: Found) -> Iterator[str]:
    lines = [
        f"- {name}: {alert}: {why}"
        for name, _ in found.by_incident()
        for alert, why in HAZARDS.get(name, {}).items()
    ]
    yield from lines or ["Nothing of what was run."]


def _aftermath(found: Found) -> Iterator[str]:
    ended = [(one, one.aftermath) for one in found.outcomes if one.aftermath is not None]
    if not ended:
        yield "Nothing of what was run and told ends by itself."
        return
    yield "| run | minutes from the end to when the last alert resolved | still firing when the run ended |"
    yield "|---|---:|---|"
    for one, after in ended:
        yield f"| {one.job.name} | {after.minutes} | {', '.join(after.still) or '-'} |"


def _healthy(found: Found) -> Iterator[str]:
    yield "| world | weeks | pages | tickets | tickets a week |"
    yield "|---|---:|---:|---:|---:|"
    for one in found.healthy:
        tickets = len(one.tickets)
        name = one.job.name.removeprefix("healthy-")
        yield f"| {name} | {one.weeks:.1f} | {len(one.pages)} | {tickets} | {tickets / one.weeks:.2f} |"
    alerts = Counter(alert for one in found.healthy for some in (one.pages, *one.tickets) for alert in some)
    if alerts:
        yield ""
    yield from (f"- {alert}: {count}" for alert, count in alerts.most_common())


def _unseen(found: Found) -> Iterator[str]:
    lines = [
        f"- {name}, {size}: {why}"
        for name, _ in found.by_incident()
        for size, why in INCIDENTS[name].unseen.items()
    ]
    yield from lines or ["Nothing of what was run."]


def _config() -> Iterator[str]:
    yield "| key | here | default | why |"
    yield "|---|---|---|---|"
    for one in deviations():
        yield f"| `{one.key}` | {one.here} | {one.default} | {one.why} |"


def _strikes(plans: Sequence[Plan]) -> str:
    return ", ".join(
        f"{plan.strikes:%A %H:%M} (seed {plan.world.seed}, day {plan.fork.days})" for plan in plans
    )


def _worlds(plans: Sequence[Plan]) -> Iterator[str]:
    world = plans[0].world
    scenes = ", ".join(f"{one.name} {one.requests_per_hour:g}" for one in world.scenes)
    seeds = ", ".join(str(one.world.seed) for one in plans)
    yield (
        f"Worlds of {plans[0].lasts / timedelta(days=1):g} days, with the seeds {seeds}; lists of "
        f"{world.length} items; requests an hour in the mean: {scenes}."
    )


def _versions(seconds: float) -> Iterator[str]:
    yield (
        f"On {datetime.now(UTC).date().isoformat()} with recsys-monitor {__version__}, Python "
        f"{platform.python_version()}, {version('prometheus')} and "
        f"{version('prometheus-alertmanager', 'alertmanager')}, on {os.cpu_count()} cores. "
        f"A simulated hour of a world took {seconds:.1f} seconds of the processor."
    )
