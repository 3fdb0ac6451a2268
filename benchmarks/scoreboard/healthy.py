"""What the monitor tells where nothing is wrong: in healthy days, and after a mere restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.scoreboard.alerts import Episode, told
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.verdicts import Verdict

WEEK: Final = 7 * 24 * 3600
TICKETS_A_WEEK: Final = 1
_SLACK: Final = 600  # seconds by which an alert may come sooner or later after a restart


@dataclass(frozen=True, slots=True)
class Health:
    """What the healthy days of one world gave.

    `fired` counts the episodes of each alert, in words and with its severity; `began` are the moments at
    which those that are tickets began, in seconds since 1970, and `sent` counts the messages with them.
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
        """Alerts that page, whether or not another one stood and spared the message."""
        return self._of("page")

    @property
    def tickets(self) -> int:
        """Alerts that are tickets; some may share a message, and some be over before there is one."""
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
        (told(one.labels), one.severity) for one in verdict.episodes if one.severity in ("page", "ticket")
    )
    began = tuple(float(one.since) for one in verdict.episodes if one.severity == "ticket")
    return Health(job, dict(fired), began, sum(one.receiver == "ticket" for one in verdict.messages))


def changed_by_restart(job: Job, restarted: Verdict, healthy: Verdict) -> tuple[str, ...]:
    """The alerts that begin to fire after a restart and not, at about the time, without it; or the reverse.

    Of what fired before, the run that begins with the restart knows but a part: what stands at its begin on
    one side alone may come on the other when it likes.
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
        stood, stands = (any(each.since <= since for each in some) for some in (mine, same))
        alike = any(abs(each.since - one.since) <= _SLACK for each in same)
        if one.since > since and not alike and not (stands and not stood):
            yield told(one.labels)


def missed(healthy: Sequence[Health]) -> Iterator[str]:
    """Every way in which healthy days miss the bar, one sentence each."""
    for days in healthy:
        if days.pages:
            yield f"{days.job.name}: {days.pages} of the alerts page"
        if days.worst_week > TICKETS_A_WEEK:
            yield f"{days.job.name}: {days.worst_week} tickets in seven days, one is allowed"
