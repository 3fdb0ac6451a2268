"""Many windows of one recommender, judged by several processes at once; for `check` and `backfill`.

A small window keeps one core busy, mostly with planning its queries, so threads of one engine gain little.
Each process has its own engine and judges a few windows in a row. The results come back in the order of the
windows, and this process alone writes them to the history.

No window needs the verdict of another, but it needs the pairs of users and items of those before it. So all
pairs are stored first, and the results are those of one process. The users of experiments are not stored so:
with experiments one process judges all.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from monitor.cli import share
from monitor.cli.one_off import OneOff
from monitor.config.checks.check import Checked
from monitor.core.errors import ExpectedError
from monitor.core.redaction import keep_secrets_of, known_secrets
from monitor.core.results import Window
from monitor.history.kept import FrozenPairs, KeptPairs
from monitor.judging.evaluate import Evaluation, Evaluator
from monitor.judging.runtimes import open_runtime
from monitor.logs.index import FileEntry
from monitor.logs.listing import Unlisted
from monitor.logs.losses import Loss
from monitor.settings.config import Config
from monitor.window.earlier import keep_pairs
from monitor.window.together import MOST_WINDOWS

FEWEST: Final = 48
"""Windows for each process; with fewer, its start and its first plans cost more than it saves."""
MOST_ROWS: Final = 500_000
"""Exposures of a mean window; the queries of a larger one keep all cores busy by themselves."""
_DAY: Final = timedelta(days=1)
_TASK: Final = MOST_WINDOWS  # windows judged in a row by one process
_AHEAD: Final = 2  # tasks that wait for each process


class WorkerDied(ExpectedError):
    """A process that judged windows is gone."""

    hint = (
        "The operating system may have stopped it for lack of memory. With engine.threads: 1, or a smaller "
        "engine.memory, the windows are judged by one process."
    )


@dataclass(frozen=True, slots=True)
class _Indexed:
    """What the look at a log found, for processes that shall not look again."""

    entries: tuple[FileEntry, ...]
    losses: tuple[Loss, ...]
    unlisted: tuple[Unlisted, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class _Job:
    """All that a process needs to judge windows of a recommender."""

    config: Config
    checked: Checked
    salt: str
    state: Path  # all processes share the kept files in it
    scratch: Path
    logs: Mapping[str, _Indexed]
    secrets: Mapping[str, str]
    now: datetime
    watched_since: datetime | None
    for_history: bool


def judge_span(
    config: Config,
    checked: Checked,
    judging: OneOff,
    windows: Sequence[Window],
    now: datetime,
    *,
    salt: str,
    watched_since: datetime | None = None,
    for_history: bool = False,
    in_memory: bool = False,
) -> Iterator[Evaluation]:
    """As `OneOff.judge`, by as many processes as the windows and the cores ask for.

    Logs `in_memory` are judged by this process: another one would need a copy of them.

    Raises:
        WorkerDied: a process ended before its windows were judged.
    """
    processes = 1 if in_memory else _processes(config, judging, windows)
    if processes < 2:
        yield from judging.judge(windows, now, watched_since=watched_since, for_history=for_history)
        return
    job = _Job(
        config=_shared_by(config, processes),
        checked=checked,
        salt=salt,
        state=judging.evaluator.kept.state,
        scratch=judging.scratch,
        logs={
            name: _Indexed(tuple(log.entries.values()), tuple(log.losses.values()), log.unlisted, log.error)
            for name, log in judging.evaluator.source.logs.items()
        },
        secrets=known_secrets(),
        now=now,
        watched_since=watched_since,
        for_history=for_history,
    )
    context = multiprocessing.get_context("spawn")  # a copy of a process with threads may hang
    stop = context.Event()
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(job, stop)) as pool:
        try:
            for future in [pool.submit(_keep, task) for task in _tasks(_to_keep(judging, windows))]:
                future.result()
            tasks = deque(_tasks(windows))
            running: deque[Future[list[Evaluation]]] = deque()
            while tasks or running:
                while tasks and len(running) < processes * (1 + _AHEAD):
                    running.append(pool.submit(_judge, tasks.popleft()))
                yield from running.popleft().result()
        except BrokenProcessPool as error:
            raise WorkerDied("a process that judged windows has ended before it was done") from error
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _tasks(windows: Sequence[Window]) -> Iterator[Sequence[Window]]:
    return (windows[first : first + _TASK] for first in range(0, len(windows), _TASK))


def _to_keep(judging: OneOff, windows: Sequence[Window]) -> list[Window]:
    """The windows whose pairs must be stored: those to judge, and those before them that are not yet."""
    source, settings = judging.evaluator.source, judging.evaluator.settings
    since = min(windows).start - max(settings.metrics.history, 2 * _DAY)
    before = {one for one in source.exposures.windows() if since <= one.start and one.end <= max(windows).end}
    stored = judging.evaluator.kept.paths(since, max(windows).end, settings.window)
    return sorted({*windows, *(before - stored.keys())})


def _processes(config: Config, judging: OneOff, windows: Sequence[Window]) -> int:
    """How many processes are worth their start."""
    log = judging.evaluator.source.main
    rows = sum(log.rows(window) for window in windows)
    settings = judging.evaluator.settings
    one_does = settings.experiments or settings.logs.exposures is None or config.engine.kind != "duckdb"
    if one_does or rows > MOST_ROWS * len(windows):
        return 1
    return min(share.most_processes(config.engine), len(windows) // FEWEST)


def _threads(config: Config) -> int:
    return config.engine.threads or os.cpu_count() or 1


def _shared_by(config: Config, processes: int) -> Config:
    """The config for each of so many processes: they share the cores and the memory."""
    engine = config.engine.model_copy(
        update={"threads": max(1, _threads(config) // processes), "memory": config.engine.shared(processes)}
    )
    return config.model_copy(update={"engine": engine})


class _Worker:
    """The state of one of the processes: its engine, and whether it shall stop."""

    def __init__(self, job: _Job, stop: Event) -> None:
        self._job, self._stop = job, stop
        runtime = open_runtime(job.config.engine, job.scratch / f"spill-{os.getpid()}")
        frozen = FrozenPairs(job.state, job.checked.settings.name)
        evaluator = Evaluator(job.checked.settings, job.checked.rules, frozen, job.salt, in_a_row=True)
        self._once = OneOff(runtime, evaluator, job.scratch)
        for name, found in job.logs.items():
            log = self._once.evaluator.source.logs[name]
            log.restore(found.entries, found.losses)
            log.unlisted, log.error = found.unlisted, found.error

    def keep(self, windows: Sequence[Window]) -> None:
        """Store the pairs of these windows."""
        engine, source = self._once.runtime.engine, self._once.evaluator.source
        kept = KeptPairs(self._job.state, self._job.checked.settings.name)
        if not self._stop.is_set():
            keep_pairs(engine, source, kept, windows)
            source.release(engine)

    def judge(self, windows: Sequence[Window]) -> list[Evaluation]:
        found: list[Evaluation] = []
        judged = self._once.judge(
            windows,
            self._job.now,
            watched_since=self._job.watched_since,
            for_history=self._job.for_history,
        )
        for evaluation in judged:
            found.append(evaluation)
            if self._stop.is_set():
                break  # the command was interrupted, and nobody waits for the rest
        return found


_workers: list[_Worker] = []  # the one of this process


def _begin(job: _Job, stop: Event) -> None:
    share.begin()
    keep_secrets_of(job.secrets)
    _workers.append(_Worker(job, stop))


def _keep(windows: Sequence[Window]) -> None:
    _workers[0].keep(windows)


def _judge(windows: Sequence[Window]) -> list[Evaluation]:
    return _workers[0].judge(windows)
