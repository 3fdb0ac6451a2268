"""Jobs over several processes: the healthy days first, and what forks from a world once its fork is there."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

from benchmarks.scoreboard import kept
from benchmarks.scoreboard.jobs import Job, run

_JOBS_A_PROCESS: Final = 10  # then a new one takes over, so that no run suffers from what others left
SECONDS: Final = "seconds.jsonl"


def done(job: Job, work: Path) -> bool:
    """Whether a job was finished, now or before."""
    return job.series(work).exists()


def seconds(work: Path) -> dict[str, float]:
    """Name of each finished job -> seconds of the processor that a simulated hour took."""
    return dict(kept.read(work / SECONDS))


def work_on(jobs: Sequence[Job], work: Path, processes: int) -> Iterator[tuple[Job, str]]:
    """Do the jobs that are not done; each as it ends, with what went wrong, if anything did.

    What starts from a fork needs the healthy days of its world: without them it fails as they did. Where a
    worker is killed, new ones take over, and what was in hand is tried once more.
    """
    waiting = [job for job in jobs if not done(job, work)]
    killed: set[Job] = set()
    context = multiprocessing.get_context("spawn")  # a copy of a process with threads may hang
    while waiting:
        with ProcessPoolExecutor(processes, context, max_tasks_per_child=_JOBS_A_PROCESS) as pool:
            try:
                yield from _until_broken(pool, waiting, killed, work, processes)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _until_broken(
    pool: ProcessPoolExecutor, waiting: list[Job], killed: set[Job], work: Path, processes: int
) -> Iterator[tuple[Job, str]]:
    """As `work_on`, until nothing is `waiting` or the pool is broken."""
    running: dict[Future[float], Job] = {}
    broken = False
    while running or (waiting and not broken):
        ready = [job for job in waiting if not job.forked or job.fork(work).exists()]
        # No more than are worked on: the death of one fails all that the pool has been given.
        for job in ready[: 0 if broken else processes - len(running)]:
            try:
                running[pool.submit(run, job, work)] = job
            except BrokenProcessPool:
                broken = True
                break
            waiting.remove(job)
        if not running:
            if not broken:
                yield from ((job, "its healthy days are not there") for job in waiting)
                waiting.clear()
            return
        for future in wait(running, timeout=30, return_when=FIRST_COMPLETED).done:
            job = running.pop(future)
            if isinstance(future.exception(), BrokenProcessPool):
                broken = True
                if job not in killed:
                    killed.add(job)
                    waiting.insert(0, job)
                    continue
            yield _ended(job, future, work)


def _ended(job: Job, future: Future[float], work: Path) -> tuple[Job, str]:
    if (error := future.exception()) is not None:
        return job, f"{type(error).__name__}: {error}"
    kept.append(work / SECONDS, [job.name, future.result()])
    return job, ""
