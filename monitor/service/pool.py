"""The threads that run the scheduled turns, one for each judge. A recommender mostly stays on one of them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from apscheduler.executors.pool import BasePoolExecutor
from apscheduler.job import Job

PATIENCE: Final = 5.0
"""Seconds that a turn waits for the judge that knows its recommender. Then any free one takes it."""


@dataclass(slots=True)
class _Task:
    """A turn that waits; `of` is its recommender, None for what belongs to none."""

    of: str | None
    call: Callable[[], Any]
    since: float
    future: Future[Any] = field(default_factory=Future)


class TurnPool:
    """So many threads that take the waiting turns, the one that waits longest first.

    A recommender stays with the thread that had its last turn: the judge of that thread has its file index
    and its statements at hand. If that thread is busy for longer than `PATIENCE`, another one takes the
    recommender over, so that a slow log delays no other. Two turns of one recommender never run at once.

    Args:
        size: the number of threads.
        clock: counts seconds.
    """

    def __init__(self, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.size = size
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: list[_Task] = []
        self._place_of: dict[str, int] = {}
        self._running: dict[int, str | None] = {}  # place -> the recommender whose turn it runs
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._own = threading.local()

    @property
    def place(self) -> int | None:
        """The number of the calling thread, from 0; None if it is not of this pool."""
        return getattr(self._own, "place", None)

    def submit(self, call: Callable[..., Any], job: Job, *more: Any) -> Future[Any]:
        """Let a thread run the job. Its first argument is the recommender, if it is the turn of one."""
        task = _Task(job.args[0] if job.args else None, partial(call, job, *more), self._clock())
        with self._changed:
            self._waiting.append(task)
            self._start()
            self._changed.notify_all()
        return task.future

    def shutdown(self, wait: bool = True) -> None:  # noqa: ARG002 - the interface of a pool
        """Start no further turn. Those that run are not waited for."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def next(self, place: int) -> tuple[_Task | None, float]:
        """The turn that the thread of this number takes now; else None, and how long it must wait at most."""
        now, wait = self._clock(), math.inf
        for number, task in enumerate(self._waiting):
            if task.of is not None:
                if task.of in self._running.values():
                    continue
                owner = self._place_of.get(task.of, place)
                if owner != place:
                    left = task.since + PATIENCE - now
                    if owner not in self._running:
                        continue  # it is free, and takes it itself
                    if left > 0:
                        wait = min(wait, left)
                        continue
                self._place_of[task.of] = place
            self._running[place] = task.of
            return self._waiting.pop(number), 0.0
        return None, wait

    def _start(self) -> None:
        while len(self._threads) < self.size:
            place = len(self._threads)
            thread = threading.Thread(target=self._work, args=[place], name=f"turns-{place}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self, place: int) -> None:
        self._own.place = place
        while True:
            with self._changed:
                task, wait = self.next(place)
                while task is None and not self._is_closed:
                    self._changed.wait(None if wait == math.inf else wait)
                    task, wait = self.next(place)
                if task is None or self._is_closed:
                    return
                self._changed.notify_all()  # another thread may now take what this one would have taken
            try:
                found = task.call()
            except BaseException as error:
                task.future.set_exception(error)
            else:
                task.future.set_result(found)
            with self._changed:
                del self._running[place]
                self._changed.notify_all()


class TurnExecutor(BasePoolExecutor):  # type: ignore[misc] # APScheduler has no types
    """APScheduler's way into the pool."""

    def __init__(self, pool: TurnPool) -> None:
        super().__init__(pool)
