"""What became of each incident and of the healthy days, and where that misses the bar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.scoreboard.alerts import Episode, told
from benchmarks.scoreboard.config import JUDGED
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.messages import Labels, Message
from benchmarks.scoreboard.verdicts import Verdict
from monitor.checks.anomalies import FEEDBACK_CAUSES
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import Caught, Incident

MINUTE: Final = 60
HOUR: Final = 3600
WEEK: Final = 7 * 24 * HOUR
TICKETS_A_WEEK: Final = 1
HAZARDS: Final[Mapping[str, Mapping[Caught, str]]] = {
    "lists_stale": {
        Caught(
            "RecsysHardRuleViolated", rule="item_expired"
        ): "the time of an item in a frozen list runs out now "
        "and then, and an expired item has to page from one row on; what froze is a ticket, and comes apart"
    },
}
"""Alerts of another hazard that an incident brings with it and that has to be told by itself; and why."""
_OF_FEEDBACK: Final = frozenset(one.name for one in FEEDBACK_CAUSES)


@dataclass(frozen=True, slots=True)
class Catch:
    """Who was told of an incident: by which alert, how long after it struck, and how long that may take."""

    alert: str
    minutes: int
    allowed: int

    @property
    def in_time(self) -> bool:
        return self.minutes <= self.allowed


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What came after an incident that ended by itself: when the last alert resolved, and which did not."""

    minutes: int
    still: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One incident of one size in one world: what told of it, and what else fired beside it.

    `groups` are those of messages that tell of more than HAZARDS. `aftermath` is None where the incident
    lasts until the run ends, or nothing told of it.
    """

    job: Job
    catch: Catch | None
    beside: tuple[str, ...]
    groups: int
    messages: int
    aftermath: Aftermath | None = None

    @property
    def in_time(self) -> bool:
        """Whether it was caught as soon as it has to be."""
        return self.catch is not None and self.catch.in_time


@dataclass(frozen=True, slots=True)
class Health:
    """What the healthy days of one world gave: each page, and what each message of tickets told of."""

    job: Job
    weeks: float
    pages: tuple[str, ...]
    tickets: tuple[tuple[str, ...], ...]


def incident_of(job: Job) -> Incident:
    """The incident of a run."""
    found: Incident = INCIDENTS[job.incident]
    return found


def outcome(job: Job, verdict: Verdict) -> Outcome:
    """What a run shows, by all that is not ordinary."""
    fired = [
        one
        for one in verdict.episodes
        if one.severity in ("page", "ticket") and told(one.labels) not in verdict.ordinary
    ]
    matchers = incident_of(job).caught_by
    catching = [one for one in fired if any(each.fits(one.labels) for each in matchers)]
    names = {told(one.labels) for one in catching}
    return Outcome(
        job,
        _catch(job, catching, verdict.messages),
        tuple(dict.fromkeys(name for one in fired if (name := told(one.labels)) not in names)),
        len({(one.receiver, one.group) for one in verdict.messages if not _of_hazards(job, one)}),
        len(verdict.messages),
        _aftermath(job, fired),
    )


def _of_hazards(job: Job, message: Message) -> bool:
    """Whether all that a message tells of are hazards that the incident brings with it."""
    hazards = HAZARDS.get(job.incident, {})
    return all(any(each.fits(dict(labels)) for each in hazards) for labels in message.told)


def _catch(job: Job, catching: Sequence[Episode], messages: Sequence[Message]) -> Catch | None:
    """The first alert that a message told of; of those of one message, the one that fired first.

    An alert that is held back for as long as it fires tells nobody.
    """
    struck = int(job.begins.timestamp())
    sent: dict[Labels, float] = {}
    for message in messages:
        for labels in message.told:
            sent.setdefault(labels, message.moment)
    heard = [
        (moment, one)
        for one in catching
        if (moment := sent.get(tuple(sorted(one.labels.items())))) is not None and moment >= one.since
    ]
    found = [
        Catch(told(one.labels), int(moment - struck) // MINUTE, allowed(incident_of(job), one))
        for moment, one in sorted(heard, key=lambda pair: (pair[0], pair[1].since))
    ]
    return next((one for one in found if one.in_time), found[0] if found else None)


def allowed(incident: Incident, alert: Episode) -> int:
    """Within how many minutes an alert has to tell of an incident.

    Its windows, and as long as the last of them may be judged after its end. What rests on bands of actions
    is judged a window later, when the actions on what was shown have come.
    """
    late = HOUR if alert.labels.get("cause") in _OF_FEEDBACK else 0
    return (incident.windows * HOUR + late + int(JUDGED.total_seconds())) // MINUTE


def _aftermath(job: Job, fired: Sequence[Episode]) -> Aftermath | None:
    if job.over is None or not fired:
        return None
    over = int(job.over.timestamp())
    last = max((one.until for one in fired if one.until is not None), default=over)
    still = dict.fromkeys(told(one.labels) for one in fired if one.until is None)
    return Aftermath(max(0, last - over) // MINUTE, tuple(still))


def health(job: Job, verdict: Verdict) -> Health:
    """The pages and tickets of healthy days."""
    return Health(
        job,
        (job.ends - job.begins).total_seconds() / WEEK,
        tuple(told(one.labels) for one in verdict.episodes if one.severity == "page"),
        tuple(
            tuple(dict.fromkeys(told(dict(labels)) for labels in one.told))
            for one in verdict.messages
            if one.receiver != "page"
        ),
    )


def changed_by_restart(job: Job, restarted: Verdict, healthy: Verdict) -> tuple[str, ...]:
    """The alerts that begin to fire after a restart or in the same hours without it, and not in both.

    Of what fired before, the run that begins with the restart knows but a part.
    """
    since, end = int(job.begins.timestamp()), int(min(job.ends, job.plan.ends).timestamp()) - 1
    fired = [
        [one for one in verdict.episodes if one.fires_within(since, end)] for verdict in (restarted, healthy)
    ]
    begun = [{told(one.labels) for one in episodes if one.since > since} for episodes in fired]
    known = [{told(one.labels) for one in episodes} for episodes in fired]
    return tuple(sorted((begun[0] - known[1]) | (begun[1] - known[0])))


def missed(outcomes: Sequence[Outcome], healthy: Sequence[Health]) -> Iterator[str]:
    """Every way in which the bar is missed, one sentence each."""
    for one in outcomes:
        incident, size = incident_of(one.job), one.job.size
        has_to_be = size != "small" or incident.hard
        if has_to_be and size not in incident.unseen and not one.in_time:
            if one.catch is None:
                yield f"{one.job.name}: not caught"
            else:
                minutes, most = one.catch.minutes, one.catch.allowed
                yield f"{one.job.name}: caught only after {minutes} minutes, of {most} allowed"
        if one.groups > 1:
            yield f"{one.job.name}: {one.groups} groups of messages, not one"
        if one.aftermath is not None and one.aftermath.still:
            yield f"{one.job.name}: when it was long over, {', '.join(one.aftermath.still)} fired still"
    for days in healthy:
        if days.pages:
            yield f"{days.job.name}: {len(days.pages)} pages in healthy days"
        if len(days.tickets) > TICKETS_A_WEEK * days.weeks:
            tickets = f"{len(days.tickets)} tickets in {days.weeks:.1f} weeks"
            yield f"{days.job.name}: {tickets}, of one a week allowed"
