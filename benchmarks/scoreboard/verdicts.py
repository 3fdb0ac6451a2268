"""What the alerts said of finished runs: judged some at a time, and kept line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, Final

from benchmarks.scoreboard import checkpoints, kept
from benchmarks.scoreboard.alerts import Episode, alert_text, read_alerts
from benchmarks.scoreboard.groups import alertmanager, messages
from benchmarks.scoreboard.jobs import Job
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

    def judge(self, jobs: Iterable[Job], work: Path, at_once: int = 1) -> Iterator[tuple[Job, str]]:
        """Give each finished job its verdict, unless it has one; give it back, with what went wrong, if so.

        An incident is judged by what fires without it, so whatever it is compared with has its verdict first.
        Most of the work is done by other programs: so many batches are judged `at_once`.
        """
        waiting = [job for job in jobs if job not in self]
        batches = (
            [[job] for job in waiting if not job.incident],
            list(_batches([job for job in waiting if job.incident])),
        )
        for some in batches:
            with ThreadPoolExecutor(at_once) as pool:
                for found in pool.map(lambda together: self._judged(together, work), some):
                    for job, verdict in found:
                        if isinstance(verdict, Verdict):
                            self._keep(verdict)
                        yield job, "" if isinstance(verdict, Verdict) else verdict

    def _judged(self, jobs: Sequence[Job], work: Path) -> list[tuple[Job, Verdict | str]]:
        """The verdicts of jobs that share a Prometheus; instead of one, what went wrong."""
        alerts = read_alerts()
        known = selectors(alert.expr for alert in alerts)
        try:
            fired = episodes([_target(job, work, known) for job in jobs], alerts)
        except _FAULTS as error:
            return [(job, _why(error)) for job in jobs]
        found: list[tuple[Job, Verdict | str]] = []
        for job in jobs:
            try:
                found.append((job, self._verdict(job, fired[job.name])))
            except _FAULTS as error:
                found.append((job, _why(error)))
        return found

    def _verdict(self, job: Job, fired: Sequence[Episode]) -> Verdict:
        since, end, ordinary = _seconds(job.begins), _seconds(job.ends), frozenset[str]()
        if job.baseline is not None:
            if job.baseline not in self:
                raise LookupError(f"there is no verdict of {job.baseline.name} to compare it with")
            ordinary = ordinary_alerts(fired, self[job.baseline].episodes, since, end)
        with alertmanager() as url:  # of its own, so that none begins with what another left
            sent = messages(url, fired, since, end)
        return Verdict(job.name, tuple(fired), tuple(sent), ordinary)

    def _keep(self, one: Verdict) -> None:
        self._known[one.name] = one
        kept.append(self._path, asdict(one) | {"rules": self._rules, "ordinary": sorted(one.ordinary)})


def ordinary_alerts(
    fired: Iterable[Episode], without: Iterable[Episode], since: int, end: int
) -> frozenset[str]:
    """What fired before an incident, or fires `without` it in the same time: it has no part in them."""
    return frozenset(alert_text(one.labels) for one in fired if one.since <= since) | frozenset(
        alert_text(one.labels) for one in without if one.fires_within(since, end)
    )


def _batches(incidents: Sequence[Job]) -> Iterator[Sequence[Job]]:
    for place in range(0, len(incidents), _TOGETHER):
        yield incidents[place : place + _TOGETHER]


def _target(job: Job, work: Path, known: Mapping[str, Sequence[Selector]]) -> Target:
    """A run as Prometheus sees it: the series of it that some alert reads."""
    begins = job.begins - (_BEFORE if job.forked else timedelta(0))

    def wanted(key: Key) -> bool:
        return lookback(known, key[0], dict(key[1])) is not None

    recorded = Recorded.read(job.series(work), wanted)
    if job.forked:
        recorded = recorded.after(checkpoints.series(job.fork(work), wanted))
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
