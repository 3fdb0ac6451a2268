"""What became of each incident and of the healthy days, and where that misses the bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.verdicts import Verdict
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import Incident

HOUR: Final = 3600
WEEK: Final = 7 * 24 * HOUR
TICKETS_A_WEEK: Final = 1
_OWN: Final = ("recommender", "instance", "job", "severity")  # labels that say nothing of what happened


@dataclass(frozen=True, slots=True)
class Outcome:
    """One incident of one size in one world: what told of it, and when.

    `windows` is how many windows of the part that judges it had gone by, the one in which it struck as the
    first; None where nothing told of it. `beside` is what else fired.
    """

    job: Job
    caught_by: tuple[str, ...]
    windows: int | None
    beside: tuple[str, ...]
    groups: int

    @property
    def in_time(self) -> bool:
        """Whether it was caught within as many windows as it has to be."""
        return self.windows is not None and self.windows <= incident_of(self.job).windows


@dataclass(frozen=True, slots=True)
class Health:
    """What the healthy days of one world gave: each page, and the tickets that one message tells together."""

    job: Job
    weeks: float
    pages: tuple[str, ...]
    tickets: tuple[tuple[str, ...], ...]


def incident_of(job: Job) -> Incident:
    """The incident of a run."""
    found: Incident = INCIDENTS[job.incident]
    return found


def outcome(job: Job, verdict: Verdict, healthy: Verdict) -> Outcome:
    """What a run shows. What fired before, or fires in the same hours without the incident, shows nothing."""
    since, end = int(job.begins.timestamp()), int(job.ends.timestamp())
    ordinary = {told(one) for one in healthy.episodes if _within(one, since, end)}
    ordinary |= {told(one) for one in verdict.episodes if one.since <= since}
    fired = [one for one in verdict.episodes if told(one) not in ordinary]
    fired = [one for one in fired if one.severity in ("page", "ticket")]
    matchers = incident_of(job).caught_by
    catching = [one for one in fired if any(each.fits(one.labels) for each in matchers)]
    first = min((one.since for one in catching), default=None)
    caught_by = dict.fromkeys(told(one) for one in catching)
    beside = dict.fromkeys(told(one) for one in fired if one not in catching)
    return Outcome(
        job,
        tuple(caught_by),
        None if first is None else windows_until(first - since, incident_of(job)),
        tuple(beside),
        len(verdict.groups),
    )


def windows_until(seconds: int, incident: Incident) -> int:
    """The number of the window whose judgement was due so long after the incident struck, from 1 on.

    What rests on actions alone is judged once the actions of the hour after have come.
    """
    waits = HOUR if incident.feedback is not None and incident.lists is None else 0
    return max(1, (seconds - waits) // HOUR)


def health(job: Job, verdict: Verdict) -> Health:
    """The pages and tickets of healthy days. Tickets that stand at the same time are one message."""
    pages = [one for one in verdict.episodes if one.severity == "page"]
    tickets: list[list[Episode]] = []
    until = -1.0
    for one in verdict.episodes:
        if one.severity != "ticket":
            continue
        if one.since > until:
            tickets.append([])
        tickets[-1].append(one)
        until = max(until, float("inf") if one.until is None else one.until)
    return Health(
        job,
        (job.ends - job.begins).total_seconds() / WEEK,
        tuple(map(told, pages)),
        tuple(tuple(dict.fromkeys(map(told, together))) for together in tickets),
    )


def told(episode: Episode) -> str:
    """An alert in a few words: its name, and what its labels say of what happened.

    >>> told(Episode({"alertname": "RecsysWindowLate", "recommender": "a", "severity": "ticket"}, 0, None))
    'RecsysWindowLate'
    >>> told(Episode({"alertname": "RecsysAnomaly", "cause": "few_items"}, 0, None))
    'RecsysAnomaly (few_items)'
    """
    labels = [
        value for name, value in sorted(episode.labels.items()) if name not in (*_OWN, "alertname") and value
    ]
    return f"{episode.name} ({', '.join(labels)})" if labels else episode.name


def _within(episode: Episode, since: int, end: int) -> bool:
    return episode.since <= end and (episode.until is None or episode.until > since)


def missed(outcomes: Sequence[Outcome], healthy: Sequence[Health]) -> Iterator[str]:
    """Every way in which the bar is missed, one sentence each."""
    for one in outcomes:
        incident, size = incident_of(one.job), one.job.size
        has_to_be = size != "small" or incident.hard
        if has_to_be and size not in incident.unseen and not one.in_time:
            when = "not caught" if one.windows is None else f"caught only after {one.windows} windows"
            yield f"{one.job.name}: {when}, of {incident.windows} allowed"
        if one.groups > 1:
            yield f"{one.job.name}: {one.groups} groups of messages, not one"
    for days in healthy:
        if days.pages:
            yield f"{days.job.name}: {len(days.pages)} pages in healthy days"
    weeks, tickets = sum(one.weeks for one in healthy), sum(len(one.tickets) for one in healthy)
    if tickets > TICKETS_A_WEEK * weeks:
        yield f"healthy days: {tickets} tickets in {weeks:.1f} weeks, of one a week allowed"
