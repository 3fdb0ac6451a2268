"""What the alerts said of finished runs: judged some at a time, and kept line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from benchmarks.scoreboard import kept
from benchmarks.scoreboard.alerts import Episode, read_alerts, told
from benchmarks.scoreboard.groups import alertmanager, messages
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.messages import Message
from benchmarks.scoreboard.openmetrics import Target
from benchmarks.scoreboard.prometheus import episodes
from benchmarks.scoreboard.series import Recorded

_BEFORE: Final = timedelta(hours=2)  # what fires already when an incident strikes is not its alert
_TOGETHER: Final = 12  # incidents that share a Prometheus; more would be a file of gigabytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """The alerts of a run, and the messages that they sent.

    `ordinary` are the alerts, in words, that an incident has no part in; they sent none of the messages.
    """

    name: str
    episodes: tuple[Episode, ...]
    messages: tuple[Message, ...]
    ordinary: frozenset[str] = frozenset()


class Verdicts:
    """The verdicts of a file, by the name of the run; those given by other alert rules do not count."""

    def __init__(self, path: Path, rules: str) -> None:
        self._path, self._rules = path, rules
        self._known: dict[str, Verdict] = {}
        for raw in kept.read(path):
            if raw.pop("rules") == rules:
                self._known[raw["name"]] = _verdict(raw)

    def __contains__(self, job: Job) -> bool:
        return job.name in self._known

    def __getitem__(self, job: Job) -> Verdict:
        return self._known[job.name]

    def judge(self, jobs: Iterable[Job], work: Path) -> Iterator[Verdict]:
        """Give each finished job its verdict, unless it has one; write it down; give it back.

        An incident is judged by what fires without it, so whatever it is compared with has its verdict first.
        """
        for together in _batches([job for job in jobs if job not in self]):
            for one in self._judged(together, work):
                self._known[one.name] = one
                raw = asdict(one) | {"rules": self._rules, "ordinary": sorted(one.ordinary)}
                kept.append(self._path, raw)
                yield one

    def _judged(self, jobs: Sequence[Job], work: Path) -> Iterator[Verdict]:
        fired = episodes([_target(job, work) for job in jobs], read_alerts())
        with alertmanager() as url:
            for job in jobs:
                found, since, end = fired[job.name], _seconds(job.begins), _seconds(job.ends)
                ordinary = frozenset[str]()
                if job.baseline is not None:
                    ordinary = ordinary_alerts(found, self[job.baseline].episodes, since, end)
                told_of = [one for one in found if one.severity == "none" or told(one.labels) not in ordinary]
                sent = messages(url, told_of, since, end)
                yield Verdict(job.name, tuple(found), tuple(sent), ordinary)


def ordinary_alerts(
    fired: Iterable[Episode], without: Iterable[Episode], since: int, end: int
) -> frozenset[str]:
    """What fired before an incident, or fires `without` it in the same time: it has no part in them."""
    return frozenset(told(one.labels) for one in fired if one.since <= since) | frozenset(
        told(one.labels) for one in without if one.fires_within(since, end)
    )


def _batches(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    """Runs of many days alone, and incidents some at a time after them."""
    yield from ([job] for job in jobs if not job.incident)
    incidents = [job for job in jobs if job.incident]
    for place in range(0, len(incidents), _TOGETHER):
        yield incidents[place : place + _TOGETHER]


def _target(job: Job, work: Path) -> Target:
    begins = job.begins - (_BEFORE if job.forked else timedelta(0))
    return Target(
        job.name, Recorded.read(job.series(work)), _seconds(begins) // 60 + 1, _seconds(job.ends) // 60
    )


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
