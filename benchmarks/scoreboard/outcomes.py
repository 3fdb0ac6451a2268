"""The outcome of each incident: which alert reported it, how soon, and what else fired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.scoreboard.alerts import Episode, alert_text
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
        ): "items in a frozen list expire from time to time, and one row with an expired item must page; "
        "the frozen list itself is a separate ticket"
    },
    "clock_skew": {
        Caught(
            "RecsysHardRuleViolated", rule="item_expired"
        ): "a row whose time is ahead may lie after the end of its item's time, and one such row must page; "
        "that the times are ahead is a separate ticket"
    },
}
"""Incident -> alerts of a further hazard that it causes and that must be reported too, with the reason."""
LOOKS_BACK: Final[Mapping[str, Mapping[Caught, str]]] = {
    "lists_short": {
        Caught(
            "RecsysAnomaly", cause="other"
        ): "novelty looks back 24 hours, and the update rate by day looks at the day before: both include "
        "the incident until the end of the next day"
    },
    "popularity_collapse": {
        Caught(
            "RecsysAnomaly", cause="few_items"
        ): "self-information compares with what was shown in the 24 hours before, which include the incident "
        "until the end of the next day"
    },
}
"""Incident -> alerts on metrics that look back a day and so fire a day longer, with the reason."""
_GROWS: Final = (  # tickets, and the page that they may become
    ("ticket", frozenset({"RecsysAnomaly", "RecsysDrift"})),
    ("page", frozenset({"RecsysAnomalySevere"})),
)
_OF_DAYS: Final = "RecsysDrift"
_OF_FEEDBACK: Final = frozenset(one.name for one in FEEDBACK_CAUSES)


@dataclass(frozen=True, slots=True)
class Catch:
    """The first report of an incident: the alert, the minutes since the incident began, and the limit."""

    alert: str
    minutes: int
    allowed: int

    @property
    def in_time(self) -> bool:
        return self.minutes <= self.allowed

    @property
    def windows(self) -> int:
        """The windows of an hour that ended between the begin of the incident and the report."""
        return self.minutes * MINUTE // HOUR


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What happened after an incident that ended by itself.

    Attributes:
        minutes: until the last alert resolved.
        still: the alerts that fired when the run ended.
        paged, ticketed: the alerts that began after the end, by receiver.
    """

    minutes: int
    still: tuple[str, ...]
    paged: tuple[str, ...] = ()
    ticketed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one incident of one size in one world.

    Attributes:
        catch: the first report; None if it was not reported.
        beside: the other alerts that fired.
        groups: groups of messages, without those that only have HAZARDS; a ticket that becomes a page
            belongs to the group of the page.
        pages, tickets: the number of messages.
        again: alerts that paged again before `repeat_interval`; in a lasting incident also tickets.
        stood: the naming alerts that fired at the end of a lasting incident.
        gap: the longest time, in minutes, in which none of them fired during a lasting incident.
        aftermath: None if the incident lasts until the run ends, or was not reported.
        grew: minutes until tickets became a page.
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
        return self.catch is not None and self.catch.in_time

    @property
    def has_to_be(self) -> bool:
        return has_to_be(self.job)


def incident_of(job: Job) -> Incident:
    incident: Incident = INCIDENTS[job.incident]
    return incident


def has_to_be(job: Job) -> bool:
    """Whether the incident of a run must be caught to meet the bar."""
    incident, size = incident_of(job), job.size
    return (size != "small" or incident.hard) and size not in incident.unseen


def outcome(job: Job, verdict: Verdict) -> Outcome:
    """The outcome of a run, without its ordinary alerts."""
    fired = [
        one
        for one in verdict.episodes
        if one.severity in ("page", "ticket") and alert_text(one.labels) not in verdict.ordinary
    ]
    matchers = incident_of(job).caught_by
    catching = [one for one in fired if any(each.fits(one.labels) for each in matchers)]
    names = {alert_text(one.labels) for one in catching}
    beside = (
        f"{alert_text(one.labels)}, {one.severity}" for one in fired if alert_text(one.labels) not in names
    )
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
        repeated_too_soon(messages if job.lasting else pages, paces()),
        _stood(job, catching),
        _gap(job, catching),
        _aftermath(job, fired, messages),
        None if grew is None else int(grew - job.begins.timestamp()) // MINUTE,
    )


def _not_ordinary(verdict: Verdict) -> Iterator[Message]:
    """The messages without their ordinary alerts; messages with only such alerts are dropped."""
    for one in verdict.messages:
        if left := tuple(labels for labels in one.told if alert_text(dict(labels)) not in verdict.ordinary):
            yield replace(one, told=left)


def repeated_too_soon(messages: Sequence[Message], paces: Mapping[str, Pace]) -> tuple[str, ...]:
    """The alerts in two messages that are less than the `repeat_interval` of their route apart.

    >>> alert = (("alertname", "A"),)
    >>> messages = [Message(moment, "page", (), (alert,)) for moment in (0.0, 300.0)]
    >>> [repeated_too_soon(messages, {"page": Pace(30, 300, repeat)}) for repeat in (14_400, 300)]
    [('A',), ()]
    """
    last: dict[Labels, float] = {}
    again: dict[str, None] = {}
    for message in messages:
        repeat = paces[message.receiver].repeat
        for labels in message.told:
            if message.moment - last.get(labels, -repeat) < repeat:
                again[alert_text(dict(labels))] = None
            last[labels] = message.moment
    return tuple(again)


def _stood(job: Job, catching: Sequence[Episode]) -> tuple[str, ...]:
    if not job.lasting or job.over is None:
        return ()
    over = int(job.over.timestamp())
    return tuple(dict.fromkeys(alert_text(one.labels) for one in catching if one.fires(over)))


def _gap(job: Job, catching: Sequence[Episode]) -> int:
    """The longest time, in minutes, in which no naming alert of a lasting incident fired."""
    if not job.lasting or job.over is None or not catching:
        return 0
    ordered, ends, longest = sorted(catching, key=lambda one: one.since), int(job.over.timestamp()), 0
    over = ordered[0].since
    for one in ordered:
        longest = max(longest, min(one.since, ends) - over)
        over = max(over, one.until or ends)
    return max(longest, ends - over) // MINUTE


def _of_hazards(job: Job, message: Message) -> bool:
    """Whether all alerts of a message are known hazards of the incident."""
    hazards = HAZARDS.get(job.incident, {})
    return all(any(each.fits(dict(labels)) for each in hazards) for labels in message.told)


def _grew(messages: Sequence[Message]) -> float | None:
    """When tickets became a page; None if they did not, or if tickets followed the page."""
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
    """The first alert in a message; of several in one message, the one that fired first.

    An alert without a message does not count.
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
        Catch(alert_text(one.labels), int(moment - struck) // MINUTE, allowed(job, one))
        for moment, one in sorted(heard, key=lambda pair: (pair[0], pair[1].since))
    ]
    return next((one for one in found if one.in_time), found[0] if found else None)


def allowed(job: Job, alert: Episode) -> int:
    """The minutes within which an alert must report an incident.

    The incident's windows, plus the longest delay until a window is judged. Bands of actions are judged one
    window later, because the actions on the exposures come later. The small size of a hard incident has one
    row in each window, so it must be reported in the first one.
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
    still = dict.fromkeys(alert_text(one.labels) for one in fired if one.until is None)
    began = {tuple(sorted(one.labels.items())) for one in fired if one.since > over}
    anew: dict[str, dict[str, None]] = {"page": {}, "ticket": {}}
    for number, message in enumerate(messages):
        if message.moment > over and number:  # the first message reports the incident itself
            anew[message.receiver] |= {alert_text(dict(one)): None for one in message.told if one in began}
    minutes = max(0, last - over) // MINUTE
    return Aftermath(minutes, tuple(still), tuple(anew["page"]), tuple(anew["ticket"]))


def _is_of_days(job: Job, alert: str) -> bool:
    """Whether an alert looks at whole days, so it cannot resolve within hours."""
    return alert.partition(" ")[0] == _OF_DAYS or alert in map(str, LOOKS_BACK.get(job.incident, ()))


def missed(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """One sentence for each way in which incidents miss the bar."""
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
