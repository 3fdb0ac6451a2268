"""docs/scoreboard.md, written from the outcomes."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Final

from benchmarks.scoreboard.alerts import ROOT
from benchmarks.scoreboard.jobs import Plan
from benchmarks.scoreboard.outcomes import Health, Outcome, incident_of
from benchmarks.scoreboard.servers import version
from monitor import __version__
from monitor.simulate.incidents.incident import SIZES

PAGE: Final = ROOT / "docs" / "scoreboard.md"
_TEMPLATE: Final = Path(__file__).with_name("page.md")
_BAR: Final = (
    "The bar: every incident of middle and large size, and a hard one of any size, caught in time by an "
    "alert that names the cause; one group of messages for an incident; healthy days without a page, "
    "and with one ticket a week at most."
)


def write(
    plans: Sequence[Plan],
    outcomes: Sequence[Outcome],
    healthy: Sequence[Health],
    misses: Sequence[str],
    seconds: float,
    page: Path = PAGE,
) -> str:
    """Write the page; its text. `seconds`: of the processor, for a simulated hour."""
    parts = {
        "summary": _summary(outcomes, healthy, misses),
        "incidents": _incidents(outcomes),
        "beside": _beside(outcomes),
        "healthy": _healthy(healthy),
        "unseen": _unseen(outcomes),
        "strikes": [_span(plans[0])],
        "worlds": _worlds(plans),
        "versions": _versions(seconds),
    }
    text = Template(_TEMPLATE.read_text("utf-8")).substitute(
        {name: "\n".join(lines) for name, lines in parts.items()}
    )
    page.write_text(text, "utf-8")
    return text


def _summary(outcomes: Sequence[Outcome], healthy: Sequence[Health], misses: Sequence[str]) -> Iterator[str]:
    yield "| incidents | runs | caught in time |"
    yield "|---|---:|---:|"
    for size in SIZES:
        runs = [one for one in outcomes if one.job.size == size]
        yield f"| {size} | {len(runs)} | {sum(one.in_time for one in runs)} |"
    weeks = sum(one.weeks for one in healthy)
    pages, tickets = sum(len(one.pages) for one in healthy), sum(len(one.tickets) for one in healthy)
    yield f"\nHealthy: {weeks:.1f} weeks with {pages} pages and {tickets} tickets."
    yield f"\n{_BAR}\n"
    yield f"**The bar is missed in {len(misses)} points:**\n" if misses else "**The bar is met.**"
    yield from (f"- {one}" for one in misses)


def _incidents(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"| incident | {' | '.join(SIZES)} | smallest size caught | caught by | groups |"
    yield f"|---|{'---|' * len(SIZES)}---|---|---:|"
    for name, runs in _by_incident(outcomes):
        of_size = {size: [one for one in runs if one.job.size == size] for size in SIZES}
        caught = [size for size, some in of_size.items() if some and all(one.in_time for one in some)]
        alerts = Counter(alert for one in runs for alert in one.caught_by)
        cells = [
            name,
            *map(_cell, of_size.values()),
            caught[0] if caught else "-",
            ", ".join(alert for alert, _ in alerts.most_common()) or "-",
            str(max(one.groups for one in runs)),
        ]
        yield f"| {' | '.join(cells)} |"


def _by_incident(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    """The runs of each incident, in the order in which they were given."""
    for name in dict.fromkeys(one.job.incident for one in outcomes):
        yield name, [one for one in outcomes if one.job.incident == name]


def _cell(runs: Sequence[Outcome]) -> str:
    if not runs:
        return "not run"
    windows = [one.windows for one in runs if one.windows is not None]
    caught = f"{sum(one.in_time for one in runs)} of {len(runs)}"
    return f"{caught}, {max(windows)} w" if windows else caught


def _beside(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "| incident | beside what caught it, and in how many runs |"
    yield "|---|---|"
    for name, runs in _by_incident(outcomes):
        alerts = Counter(alert for one in runs for alert in one.beside)
        yield f"| {name} | {', '.join(f'{alert} {count}' for alert, count in alerts.most_common()) or '-'} |"


def _healthy(healthy: Sequence[Health]) -> Iterator[str]:
    yield "| world | weeks | pages | tickets | tickets a week |"
    yield "|---|---:|---:|---:|---:|"
    for one in healthy:
        tickets = len(one.tickets)
        name = one.job.name.removeprefix("healthy-")
        yield f"| {name} | {one.weeks:.1f} | {len(one.pages)} | {tickets} | {tickets / one.weeks:.2f} |"
    alerts = Counter(alert for one in healthy for some in (one.pages, *one.tickets) for alert in some)
    if alerts:
        yield ""
    yield from (f"- {alert}: {count}" for alert, count in alerts.most_common())


def _unseen(outcomes: Sequence[Outcome]) -> Iterator[str]:
    found = [
        f"- {name}, {size}: {why}"
        for name, runs in _by_incident(outcomes)
        for size, why in incident_of(runs[0].job).unseen.items()
    ]
    yield from found or ["Nothing of what was run."]


def _span(plan: Plan) -> str:
    days, rest = divmod(plan.fork.total_seconds(), 86400)
    return f"{days:.0f} days and {rest / 3600:.0f} hours"


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
