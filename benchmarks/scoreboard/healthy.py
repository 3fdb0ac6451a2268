"""The alerts of healthy days, and of a restart without an incident."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.scoreboard.alerts import Episode, alert_text
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.verdicts import Verdict

WEEK: Final = 7 * 24 * 3600
TICKETS_A_WEEK: Final = 1
_SLACK: Final = 600  # seconds by which an alert may come sooner or later after a restart


@dataclass(frozen=True, slots=True)
class Health:
    """The alerts of the healthy days of one world.

    Attributes:
        fired: (alert, severity) -> number of episodes.
        began: when tickets began, in seconds since 1970.
        sent: the number of messages with tickets.
    """

    job: Job
    fired: dict[tuple[str, str], int]
    began: tuple[float, ...]
    sent: int = 0

    @property
    def weeks(self) -> float:
        return (self.job.ends - self.job.begins).total_seconds() / WEEK

    @property
    def pages(self) -> int:
        """Alerts that page, with or without a message of their own."""
        return self._of("page")

    @property
    def tickets(self) -> int:
        """Ticket alerts; some share a message, and some resolve before one is sent."""
        return self._of("ticket")

    @property
    def worst_week(self) -> int:
        """The most tickets that began in any seven days.

        >>> day, job = WEEK / 7, Job.__new__(Job)
        >>> Health(job, {}, (day, 7.5 * day, 8.5 * day)).worst_week
        2
        """
        weeks = (sum(since <= one < since + WEEK for one in self.began) for since in self.began)
        return max(weeks, default=0)

    def _of(self, severity: str) -> int:
        return sum(count for (_, one), count in self.fired.items() if one == severity)


def health(job: Job, verdict: Verdict) -> Health:
    """The pages and tickets of healthy days."""
    fired = Counter(
        (alert_text(one.labels), one.severity)
        for one in verdict.episodes
        if one.severity in ("page", "ticket")
    )
    began = tuple(float(one.since) for one in verdict.episodes if one.severity == "ticket")
    return Health(job, dict(fired), began, sum(one.receiver == "ticket" for one in verdict.messages))


def changed_by_restart(job: Job, restarted: Verdict, healthy: Verdict) -> tuple[str, ...]:
    """The alerts that begin after a restart, but not at about the same time without it; or the reverse.

    The restarted run does not know all that fired before it. So an alert that fires at its begin on one side
    only may begin at any time on the other.
    """
    since, end = int(job.begins.timestamp()), int(min(job.ends, job.plan.ends).timestamp()) - 1
    one, other = (
        [each for each in verdict.episodes if each.fires_within(since, end)]
        for verdict in (restarted, healthy)
    )
    return tuple(sorted({*_alone(one, other, since), *_alone(other, one, since)}))


def _alone(episodes: Sequence[Episode], others: Sequence[Episode], since: int) -> Iterator[str]:
    for one in episodes:
        mine, same = ([each for each in some if each.labels == one.labels] for some in (episodes, others))
        fired_here, fired_there = (any(each.since <= since for each in some) for some in (mine, same))
        alike = any(abs(each.since - one.since) <= _SLACK for each in same)
        if one.since > since and not alike and not (fired_there and not fired_here):
            yield alert_text(one.labels)


def missed(healthy: Sequence[Health]) -> Iterator[str]:
    """One sentence for each way in which healthy days miss the bar."""
    for days in healthy:
        if days.pages:
            yield f"{days.job.name}: {days.pages} of the alerts page"
        if days.worst_week > TICKETS_A_WEEK:
            yield f"{days.job.name}: {days.worst_week} tickets in seven days, one is allowed"
