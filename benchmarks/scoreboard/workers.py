"""Jobs over several processes: the healthy days first, and the incidents of a world once it has its fork."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Final

from benchmarks.scoreboard.jobs import Job, fork, run

_JOBS_A_PROCESS: Final = 10  # then a new one takes over, so that no run suffers from what others left
_SECONDS: Final = "seconds.jsonl"


def done(job: Job, work: Path) -> bool:
    """Whether a job was finished, now or before."""
    return job.series(work).exists()


def seconds(work: Path) -> dict[str, float]:
    """Name of each finished job -> seconds of the processor that a simulated hour took."""
    path = work / _SECONDS
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return dict(json.loads(line) for line in lines)


def work_on(jobs: Sequence[Job], work: Path, processes: int) -> Iterator[tuple[Job, str]]:
    """Do the jobs that are not done; each as it ends, with what went wrong, if anything did.

    An incident needs the healthy days of its world: without them it fails as they did.
    """
    waiting = [job for job in jobs if not done(job, work)]
    running: dict[Future[float], Job] = {}
    context = multiprocessing.get_context("spawn")  # a copy of a process with threads may hang
    with ProcessPoolExecutor(processes, context, max_tasks_per_child=_JOBS_A_PROCESS) as pool:
        try:
            while waiting or running:
                ready = [job for job in waiting if not job.incident or fork(job.plan, work).exists()]
                for job in ready:  # healthy days first: others wait for them
                    running[pool.submit(run, job, work)] = job
                waiting = [job for job in waiting if job not in ready]
                if not running:
                    yield from ((job, "its healthy days are not there") for job in waiting)
                    return
                ended, _ = wait(running, timeout=30, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield _ended(running.pop(future), future, work)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ended(job: Job, future: Future[float], work: Path) -> tuple[Job, str]:
    if (error := future.exception()) is not None:
        return job, f"{type(error).__name__}: {error}"
    with (work / _SECONDS).open("a", encoding="utf-8") as file:
        file.write(json.dumps([job.name, future.result()]) + "\n")
    return job, ""
