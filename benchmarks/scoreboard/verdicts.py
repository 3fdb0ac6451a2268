"""What the alerts said of finished runs: judged some at a time, and kept line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, Final

from benchmarks.scoreboard import checkpoints, kept
from benchmarks.scoreboard.alerts import Episode, alert_text, read_alerts
from benchmarks.scoreboard.groups import alertmanager, messages
from benchmarks.scoreboard.jobs import Job, fork
from benchmarks.scoreboard.messages import Message
from benchmarks.scoreboard.openmetrics import Target
from benchmarks.scoreboard.prometheus import episodes
from benchmarks.scoreboard.selectors import Selector, lookback, selectors
from benchmarks.scoreboard.series import Key, Recorded

_BEFORE: Final = timedelta(hours=2)  # what fires already when an incident strikes is not its alert
_TOGETHER: Final = 12  # incidents that share a Prometheus; more would be a file of gigabytes
_FAULTS: Final = (ArithmeticError, LookupError, OSError, RuntimeError, ValueError, SubprocessError)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The alerts of a run, and the messages that they sent.

    `ordinary` are the alerts, in words, that an incident has no part in; the messages tell of them, too, as
    they may keep a group waiting, or hold another alert back.
    """

    name: str
    episodes: tuple[Episode, ...]
    messages: tuple[Message, ...]
    ordinary: frozenset[str] = frozenset()


class Verdicts:
    """The verdicts of a file, by the name of the run; those given by other alert rules do not count."""

    def __init__(self, path: Path, rules: str) -> None:
        self._path, self._rules = path, rules
        self._known = {raw["name"]: _verdict(raw) for raw in kept.read(path) if raw["rules"] == rules}

    def __contains__(self, job: Job) -> bool:
        return job.name in self._known

    def __getitem__(self, job: Job) -> Verdict:
        return self._known[job.name]

    def judge(self, jobs: Iterable[Job], work: Path) -> Iterator[tuple[Job, str]]:
        """Give each finished job its verdict, unless it has one; give it back, with what went wrong, if so.

        An incident is judged by what fires without it, so whatever it is compared with has its verdict first.
        """
        alerts = read_alerts()
        known = selectors(alert.expr for alert in alerts)
        for together in _batches([job for job in jobs if job not in self]):
            try:
                fired = episodes([_target(job, work, known) for job in together], alerts)
            except _FAULTS as error:
                yield from ((job, _why(error)) for job in together)
                continue
            for job in together:
                try:
                    self._keep(job, fired[job.name])
                except _FAULTS as error:
                    yield job, _why(error)
                else:
                    yield job, ""

    def _keep(self, job: Job, fired: Sequence[Episode]) -> None:
        since, end, ordinary = _seconds(job.begins), _seconds(job.ends), frozenset[str]()
        if job.baseline is not None:
            if job.baseline not in self:
                raise LookupError(f"there is no verdict of {job.baseline.name} to compare it with")
            ordinary = ordinary_alerts(fired, self[job.baseline].episodes, since, end)
        with alertmanager() as url:  # of its own, so that none begins with what another left
            sent = messages(url, fired, since, end)
        one = Verdict(job.name, tuple(fired), tuple(sent), ordinary)
        self._known[job.name] = one
        kept.append(self._path, asdict(one) | {"rules": self._rules, "ordinary": sorted(ordinary)})


def ordinary_alerts(
    fired: Iterable[Episode], without: Iterable[Episode], since: int, end: int
) -> frozenset[str]:
    """What fired before an incident, or fires `without` it in the same time: it has no part in them."""
    return frozenset(alert_text(one.labels) for one in fired if one.since <= since) | frozenset(
        alert_text(one.labels) for one in without if one.fires_within(since, end)
    )


def _batches(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    """Runs of many days alone, and incidents some at a time after them."""
    yield from ([job] for job in jobs if not job.incident)
    incidents = [job for job in jobs if job.incident]
    for place in range(0, len(incidents), _TOGETHER):
        yield incidents[place : place + _TOGETHER]


def _target(job: Job, work: Path, known: Mapping[str, Sequence[Selector]]) -> Target:
    """A run as Prometheus sees it: the series of it that some alert reads."""
    begins = job.begins - (_BEFORE if job.forked else timedelta(0))

    def wanted(key: Key) -> bool:
        return lookback(known, key[0], dict(key[1])) is not None

    recorded = Recorded.read(job.series(work), wanted)
    if job.forked:
        recorded = recorded.after(checkpoints.series(fork(job.plan, work), wanted))
    return Target(job.name, recorded, _seconds(begins) // 60 + 1, _seconds(job.ends) // 60)


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _verdict(raw: dict[str, Any]) -> Verdict:
    return Verdict(
        raw["name"],
        tuple(Episode(**one) for one in raw["episodes"]),
        tuple(
            Message(one["moment"], one["receiver"], _pairs(one["group"]), tuple(map(_pairs, one["told"])))
            for one in raw["messages"]
        ),
        frozenset(raw["ordinary"]),
    )


def _pairs(raw: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in raw)
