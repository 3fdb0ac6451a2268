"""The tables of docs/scoreboard.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from benchmarks.scoreboard.healthy import Health
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.outcomes import HAZARDS, LOOKS_BACK, Aftermath, Outcome, has_to_be
from benchmarks.scoreboard.rates import Share, Weekly
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES, Caught, Size

_NOTHING: Final = "No such run."


@dataclass(frozen=True, slots=True)
class Runs:
    """The outcomes of incidents that do not last, and the failed runs."""

    outcomes: Sequence[Outcome]
    failed: Sequence[Job]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], failed: Mapping[Job, str]) -> Self:
        return cls(
            [one for one in outcomes if not one.job.lasting],
            [job for job in failed if job.incident and not job.lasting],
        )

    def names(self) -> list[str]:
        jobs = (*(one.job for one in self.outcomes), *self.failed)
        return list(dict.fromkeys(job.incident for job in jobs))

    def runs(self, name: str) -> list[Outcome]:
        return [one for one in self.outcomes if one.job.incident == name]

    def sized(self, name: str, size: Size) -> list[Outcome]:
        return [one for one in self.runs(name) if one.job.size == size]

    def required(self, name: str) -> Share:
        """Of the runs that had to be reported in time, those that were."""
        must = [one.in_time for one in self.runs(name) if one.has_to_be]
        failed = [job for job in self.failed if job.incident == name and has_to_be(job)]
        return Share(sum(must), len(must) + len(failed))

    def failures(self, name: str, size: Size) -> int:
        return sum((job.incident, job.size) == (name, size) for job in self.failed)


def incidents(all_runs: Runs) -> Iterator[str]:
    """One row for each incident: its result at each size, the reporting alerts, and the messages."""
    yield (
        f"| incident | {' | '.join(SIZES)} | from which size on | had to be reported in time, and was "
        "| reported by, in how many runs | groups | pages | tickets |"
    )
    yield f"|---|{'---|' * len(SIZES)}---|---|---|---:|---:|---:|"
    for name in all_runs.names():
        runs = all_runs.runs(name)
        alerts = Counter(one.catch.alert for one in runs if one.catch is not None and one.in_time)
        cells = [
            _linked(name),
            *(_cell(all_runs, name, size) for size in SIZES),
            _smallest(all_runs, name),
            str(all_runs.required(name)),
            _counted(alerts),
            *(str(max((getattr(one, count) for one in runs), default=0)) for count in _COUNTS),
        ]
        yield f"| {' | '.join(cells)} |"


_COUNTS: Final = ("groups", "pages", "tickets")


def _linked(name: str) -> str:
    return f"[{name}](incidents.md#{name})"


def _counted(alerts: Counter[str]) -> str:
    return "; ".join(f"{_plain(alert)}: {count}" for alert, count in alerts.most_common()) or "-"


def _plain(text: str) -> str:
    """The text, escaped for a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _cell(all_runs: Runs, name: str, size: Size) -> str:
    runs, failed = all_runs.sized(name, size), all_runs.failures(name, size)
    knob = f"{INCIDENTS[name].sizes[size]:g}: "
    if not runs and not failed:
        return f"{knob}not run"
    caught = [one.catch for one in runs if one.catch is not None]
    late, never = sum(not one.in_time for one in caught), len(runs) - len(caught)
    parts = [f"{len(caught) - late} of {len(runs) + failed}"]
    if in_time := [one for one in caught if one.in_time]:
        slowest = max(in_time, key=lambda one: one.minutes)
        parts.append(f"{slowest.minutes} min ({slowest.windows})")
    if late:
        parts.append(f"{late} late, {max(one.minutes for one in caught if not one.in_time)} min")
    parts += [f"{count} {word}" for count, word in ((never, "never"), (failed, "failed")) if count]
    return knob + ", ".join(parts)


def _smallest(all_runs: Runs, name: str) -> str:
    """The smallest size from which all runs were caught."""
    smallest = "-"
    for size in reversed(SIZES):
        runs = all_runs.sized(name, size)
        if all_runs.failures(name, size) or not all(one.in_time for one in runs):
            break
        smallest = size if runs else smallest
    return smallest


def beside(all_runs: Runs) -> Iterator[str]:
    """The alerts that fired beside those that name the cause."""
    yield "| incident | alert, page or ticket: in how many of its runs |"
    yield "|---|---|"
    for name in all_runs.names():
        alerts = Counter(alert for one in all_runs.runs(name) for alert in one.beside)
        yield f"| {name} | {_counted(alerts)} |"


def hazards(all_runs: Runs) -> Iterator[str]:
    """The hazards that incidents cause and that must be reported by themselves."""
    yield from _reasons(all_runs.names(), HAZARDS)


def looks_back(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The alerts that fire a day longer than lasting incidents."""
    names = dict.fromkeys(one.job.incident for one in outcomes if one.job.lasting)
    yield from _reasons(names, LOOKS_BACK)


def _reasons(names: Iterable[str], known: Mapping[str, Mapping[Caught, str]]) -> list[str]:
    lines = [f"- {name}: {alert}: {why}" for name in names for alert, why in known.get(name, {}).items()]
    return lines or [_NOTHING]


def grew(all_runs: Runs) -> Iterator[str]:
    """The runs in which a ticket became a page."""
    runs = [one for one in all_runs.outcomes if one.grew is not None]
    yield from [f"- {one.job.name}: after {one.grew} minutes" for one in runs] or [_NOTHING]


def lasting(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The outcomes of lasting incidents."""
    runs = [one for one in outcomes if one.job.lasting]
    if not runs:
        yield _NOTHING
        return
    yield (
        "| incident | messages: pages | tickets | repeated too often | fired until it ended | resolved after "
        "| new after its end |"
    )
    yield "|---|---:|---:|---|---|---|---|"
    for one in runs:
        after = one.aftermath
        resolved = (
            "-"
            if after is None
            else f"still: {_listed(after.still)}"
            if after.still
            else f"{after.minutes} min"
        )
        cells = (
            _linked(one.job.incident),
            one.pages,
            one.tickets,
            *map(_listed, (one.again, one.stood)),
            resolved,
            _new_alerts(after),
        )
        yield f"| {' | '.join(map(str, cells))} |"


def _listed(alerts: Sequence[str]) -> str:
    return "; ".join(map(_plain, alerts)) or "-"


def _new_alerts(after: Aftermath | None) -> str:
    """The alerts that began after the end, each with its receiver."""
    if after is None:
        return "-"
    return _listed([*(f"{one}, page" for one in after.paged), *(f"{one}, ticket" for one in after.ticketed)])


def aftermath(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The aftermath of incidents that end by themselves."""
    ended = [(one, one.aftermath) for one in outcomes if one.aftermath and not one.job.lasting]
    if not ended:
        yield "No reported incident of these runs ends by itself."
        return
    yield "| run | minutes until the last alert resolved | still firing when the run ended | new alerts |"
    yield "|---|---:|---|---|"
    for one, after in ended:
        minutes = "-" if after.still else str(after.minutes)
        yield f"| {one.job.name} | {minutes} | {_listed(after.still)} | {_new_alerts(after)} |"


def healthy(worlds: Sequence[Health], failed: Sequence[Job]) -> Iterator[str]:
    """The alerts of healthy days, by world and by name."""
    yield "| world | weeks | pages | tickets | most of them in seven days | messages with tickets |"
    yield "|---|---:|---|---|---:|---:|"
    for one in worlds:
        cells = (
            one.job.plan.world.seed,
            f"{one.weeks:.1f}",
            Weekly(one.pages, one.weeks),
            Weekly(one.tickets, one.weeks),
            one.worst_week,
            one.sent,
        )
        yield f"| {' | '.join(map(str, cells))} |"
    yield from (f"| {job.plan.world.seed} | failed | - | - | - | - |" for job in failed)
    alerts = sum((Counter(one.fired) for one in worlds), Counter[tuple[str, str]]())
    if alerts:
        yield ""
    yield from (f"- {alert}, {severity}: {count}" for (alert, severity), count in alerts.most_common())


def restarts(changed: Mapping[Job, Sequence[str]]) -> Iterator[str]:
    """The alerts that fire only with or only without a restart."""
    for job, alerts in changed.items():
        yield f"- world {job.plan.world.seed}, {job.hours} hours: {_listed(alerts) if alerts else 'nothing'}"
    if not changed:
        yield _NOTHING


def unseen(all_runs: Runs) -> Iterator[str]:
    """The sizes that were not reported in time in every world, with the reason if they cannot be seen."""
    yield "| incident | size | reported in time | why |"
    yield "|---|---|---|---|"
    for name in all_runs.names():
        incident = INCIDENTS[name]
        for size in SIZES:
            runs = all_runs.sized(name, size)
            in_time = Share.of(one.in_time for one in runs)
            if in_time.hits < in_time.n or (size in incident.unseen and runs):
                why = incident.unseen.get(size, "-")
                number = f"{size}: {incident.sizes[size]:g}"
                yield f"| {name} | {number} ({incident.knob}) | {in_time} | {why} |"
