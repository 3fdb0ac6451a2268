"""What the alerts said of finished runs: judged some at a time, and kept line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.scoreboard.alerts import Episode, read_alerts
from benchmarks.scoreboard.groups import Group, alertmanager, notified
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.openmetrics import Target
from benchmarks.scoreboard.prometheus import episodes
from benchmarks.scoreboard.series import Recorded

_BEFORE: Final = timedelta(hours=2)  # what fires already when an incident strikes is not its alert
_TOGETHER: Final = 12  # runs that share a Prometheus; more would be a file of gigabytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """The alerts of a run, and the groups that sent a message once the incident had begun."""

    name: str
    episodes: tuple[Episode, ...]
    groups: tuple[Group, ...]


class Verdicts:
    """The verdicts of a file, by the name of the run; those given by other alert rules do not count."""

    def __init__(self, path: Path, rules: str) -> None:
        self._path, self._rules = path, rules
        self._known: dict[str, Verdict] = {}
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            raw = json.loads(line)
            if raw.pop("rules") == rules:
                self._known[raw["name"]] = _verdict(raw)

    def __contains__(self, job: Job) -> bool:
        return job.name in self._known

    def __getitem__(self, job: Job) -> Verdict:
        return self._known[job.name]

    def judge(self, jobs: Iterable[Job], work: Path) -> Iterator[Verdict]:
        """Give each finished job its verdict, unless it has one; write it down; give it back."""
        wanted = iter([job for job in jobs if job not in self])
        while together := list(islice(wanted, _TOGETHER)):
            for one in _judged(together, work):
                self._known[one.name] = one
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"rules": self._rules, **asdict(one)}) + "\n")
                yield one


def _judged(jobs: Sequence[Job], work: Path) -> Iterator[Verdict]:
    targets = [_target(job, work) for job in jobs]
    fired = episodes(targets, read_alerts())
    with alertmanager() as url:
        for job in jobs:
            found = fired[job.name]
            since = int(job.begins.timestamp())
            groups = notified(url, found, since) if job.incident else set()
            yield Verdict(job.name, tuple(found), tuple(sorted(groups)))


def _target(job: Job, work: Path) -> Target:
    begins = job.begins - (_BEFORE if job.incident else timedelta(0))
    return Target(job.name, Recorded.read(job.series(work)), _minute(begins) + 1, _minute(job.ends))


def _minute(moment: datetime) -> int:
    return int(moment.timestamp()) // 60


def _verdict(raw: dict[str, Any]) -> Verdict:
    groups = tuple((receiver, tuple((k, v) for k, v in labels)) for receiver, labels in raw["groups"])
    return Verdict(raw["name"], tuple(Episode(**one) for one in raw["episodes"]), groups)
