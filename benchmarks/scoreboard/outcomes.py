"""What became of each incident: what told of it, how soon, and what else was told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.scoreboard.alerts import Episode, told
from benchmarks.scoreboard.config import JUDGED
from benchmarks.scoreboard.groups import paces
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.messages import Labels, Message, Pace
from benchmarks.scoreboard.verdicts import Verdict
from monitor.anomalies.causes import FEEDBACK_CAUSES
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import Caught, Incident

MINUTE: Final = 60
HOUR: Final = 3600
HAZARDS: Final[Mapping[str, Mapping[Caught, str]]] = {
    "lists_stale": {
        Caught(
            "RecsysHardRuleViolated", rule="item_expired"
        ): "the time of an item in a frozen list runs out now "
        "and then, and an expired item has to page from one row on; what froze is a ticket, and comes apart"
    },
}
"""Alerts of another hazard that an incident brings with it and that has to be told by itself; and why."""
LOOKS_BACK: Final[Mapping[str, Mapping[Caught, str]]] = {
    "lists_short": {
        Caught(
            "RecsysAnomaly", cause="other"
        ): "novelty looks back on the 24 hours before and the update rate by day on the day before: the "
        "incident is in them until the end of the day after it"
    },
}
"""Alerts on what looks back on a day, which an incident of days leaves firing for a day more; and why."""
_GROWS: Final = (  # tickets, and the page that they may become
    ("ticket", frozenset({"RecsysAnomaly", "RecsysDrift"})),
    ("page", frozenset({"RecsysAnomalySevere"})),
)
_OF_DAYS: Final = "RecsysDrift"
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

    @property
    def windows(self) -> int:
        """How many windows of an hour had ended since the incident struck."""
        return self.minutes * MINUTE // HOUR


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What came after an incident that ended by itself.

    `minutes` until the last alert resolved, and the alerts that were firing `still` when the run ended. Of
    those that began when it was over and had been told of, the ones that `paged`, and those with a ticket.
    """

    minutes: int
    still: tuple[str, ...]
    paged: tuple[str, ...] = ()
    ticketed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """One incident of one size in one world: what told of it, and what else fired `beside` it.

    `groups` are those of messages that tell of more than HAZARDS; tickets that become a page are of its
    group, and `grew` is after how many minutes. `pages` and `tickets` count messages.
    `again` are alerts of which a page told more than once, sooner than those that stand are repeated; where
    the incident is a lasting one, tickets as well. Of such a one `stood` are the catching alerts that fired
    when it ended, and `gap` the longest time between the first of them and its end in which none did, in
    minutes. `aftermath` is None where the incident stays until the run ends, or nothing told of it.
    """

    job: Job
    catch: Catch | None
    beside: tuple[str, ...]
    groups: int
    pages: int
    tickets: int
    again: tuple[str, ...] = ()
    stood: tuple[str, ...] = ()
    gap: int = 0
    aftermath: Aftermath | None = None
    grew: int | None = None

    @property
    def in_time(self) -> bool:
        """Whether it was caught as soon as it has to be."""
        return self.catch is not None and self.catch.in_time

    @property
    def has_to_be(self) -> bool:
        """Whether the bar asks that it is caught."""
        return has_to_be(self.job)


def incident_of(job: Job) -> Incident:
    """The incident of a run."""
    found: Incident = INCIDENTS[job.incident]
    return found


def has_to_be(job: Job) -> bool:
    """Whether the bar asks that the incident of a run is caught."""
    incident, size = incident_of(job), job.size
    return (size != "small" or incident.hard) and size not in incident.unseen


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
    beside = (f"{told(one.labels)}, {one.severity}" for one in fired if told(one.labels) not in names)
    messages = [*_not_ordinary(verdict)]
    pages = [one for one in messages if one.receiver == "page"]
    of_it = [one for one in messages if not _of_hazards(job, one)]
    grew = _grew(of_it)
    return Outcome(
        job,
        _catch(job, catching, messages),
        tuple(dict.fromkeys(beside)),
        len({(one.receiver, one.group) for one in of_it}) - (grew is not None),
        len(pages),
        len(messages) - len(pages),
        told_again(messages if job.lasting else pages, paces()),
        _stood(job, catching),
        _gap(job, catching),
        _aftermath(job, fired, messages),
        None if grew is None else int(grew - job.begins.timestamp()) // MINUTE,
    )


def _not_ordinary(verdict: Verdict) -> Iterator[Message]:
    """The messages without what is ordinary in them, if that leaves anything."""
    for one in verdict.messages:
        if left := tuple(labels for labels in one.told if told(dict(labels)) not in verdict.ordinary):
            yield replace(one, told=left)


def told_again(messages: Sequence[Message], paces: Mapping[str, Pace]) -> tuple[str, ...]:
    """The alerts of which two messages tell that are less than their route's `repeat_interval` apart.

    >>> alert = (("alertname", "A"),)
    >>> messages = [Message(moment, "page", (), (alert,)) for moment in (0.0, 300.0)]
    >>> [told_again(messages, {"page": Pace(30, 300, repeat)}) for repeat in (14_400, 300)]
    [('A',), ()]
    """
    last: dict[Labels, float] = {}
    again: dict[str, None] = {}
    for message in messages:
        repeat = paces[message.receiver].repeat
        for labels in message.told:
            if message.moment - last.get(labels, -repeat) < repeat:
                again[told(dict(labels))] = None
            last[labels] = message.moment
    return tuple(again)


def _stood(job: Job, catching: Sequence[Episode]) -> tuple[str, ...]:
    if not job.lasting or job.over is None:
        return ()
    over = int(job.over.timestamp())
    return tuple(dict.fromkeys(told(one.labels) for one in catching if one.fires(over)))


def _gap(job: Job, catching: Sequence[Episode]) -> int:
    """Of an incident that lasts: the longest time in which nothing that names it fired, in minutes."""
    if not job.lasting or job.over is None or not catching:
        return 0
    ordered, ends, longest = sorted(catching, key=lambda one: one.since), int(job.over.timestamp()), 0
    over = ordered[0].since
    for one in ordered:
        longest = max(longest, min(one.since, ends) - over)
        over = max(over, one.until or ends)
    return max(longest, ends - over) // MINUTE


def _of_hazards(job: Job, message: Message) -> bool:
    """Whether all that a message tells of are hazards that the incident brings with it."""
    hazards = HAZARDS.get(job.incident, {})
    return all(any(each.fits(dict(labels)) for each in hazards) for labels in message.told)


def _grew(messages: Sequence[Message]) -> float | None:
    """When tickets on what is unlike its past became a page that says how much is gone, and were no more."""
    by = {receiver: [one for one in messages if one.receiver == receiver] for receiver, _ in _GROWS}
    if not (by["ticket"] and by["page"]):
        return None
    first, last = min(one.moment for one in by["page"]), max(one.moment for one in by["ticket"])
    known = all(
        dict(labels)["alertname"] in names
        for receiver, names in _GROWS
        for one in by[receiver]
        for labels in one.told
    )
    return first if known and last < first else None


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
        Catch(told(one.labels), int(moment - struck) // MINUTE, allowed(job, one))
        for moment, one in sorted(heard, key=lambda pair: (pair[0], pair[1].since))
    ]
    return next((one for one in found if one.in_time), found[0] if found else None)


def allowed(job: Job, alert: Episode) -> int:
    """Within how many minutes an alert has to tell of an incident.

    Its windows, and as long as the last of them may be judged after its end. What rests on bands of actions
    is judged a window later, when the actions on what was shown have come. Where one row is enough, the
    small size has one in each window, and it is the first that has to be told.
    """
    incident = incident_of(job)
    windows = 1 if incident.hard and job.size == "small" else incident.windows
    late = HOUR if alert.labels.get("cause") in _OF_FEEDBACK else 0
    return (windows * HOUR + late + int(JUDGED.total_seconds())) // MINUTE


def _aftermath(job: Job, fired: Sequence[Episode], messages: Sequence[Message]) -> Aftermath | None:
    if job.over is None or not fired:
        return None
    over = int(job.over.timestamp())
    last = max((one.until for one in fired if one.until is not None), default=over)
    still = dict.fromkeys(told(one.labels) for one in fired if one.until is None)
    began = {tuple(sorted(one.labels.items())) for one in fired if one.since > over}
    anew: dict[str, dict[str, None]] = {"page": {}, "ticket": {}}
    for number, message in enumerate(messages):
        if message.moment > over and number:  # the first of all tells of the incident itself
            anew[message.receiver] |= {told(dict(one)): None for one in message.told if one in began}
    minutes = max(0, last - over) // MINUTE
    return Aftermath(minutes, tuple(still), tuple(anew["page"]), tuple(anew["ticket"]))


def _is_of_days(job: Job, alert: str) -> bool:
    """Whether an alert looks at whole days, and so cannot end in hours."""
    return alert.partition(" ")[0] == _OF_DAYS or alert in map(str, LOOKS_BACK.get(job.incident, ()))


def missed(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Every way in which incidents miss the bar, one sentence each."""
    for one in outcomes:
        name = one.job.name
        if one.has_to_be and not one.in_time:
            if one.catch is None:
                yield f"{name}: not caught"
            else:
                minutes, most = one.catch.minutes, one.catch.allowed
                yield f"{name}: caught only after {minutes} minutes, of {most} allowed"
        if one.groups > 1:
            yield f"{name}: {one.groups} groups of messages, not one"
        if one.again:
            yield f"{name}: repeated too soon: {', '.join(one.again)}"
        if one.job.lasting and not one.stood:
            yield f"{name}: no alert that names it still fired when it ended"
        elif one.gap:
            yield f"{name}: for {one.gap} minutes, no alert that names it fired"
        if one.aftermath is not None:
            if still := [alert for alert in one.aftermath.still if not _is_of_days(one.job, alert)]:
                yield f"{name}: long after its end, {', '.join(still)} still fired"
            if one.aftermath.paged:
                yield f"{name}: after its end, {', '.join(one.aftermath.paged)} paged again"
