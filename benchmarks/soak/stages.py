"""The stages in which a process of the daemon can be killed, in memory that the killer shares.

Each process has a small file with one byte for each of its threads: the number of the thread's stage. The
bytes are written without a system call, so a process that is stopped shows where it stopped.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

START: Final = "start"
INDEX: Final = "index the logs"
TOGETHER: Final = "several windows in one pass"
READ: Final = "read rows"
RULES: Final = "rules"
METRICS: Final = "metrics"
PAIRS: Final = "write kept pairs"
HISTORY: Final = "write the history"
PUBLISH: Final = "publish"
COUNTERS: Final = "write counters"
HOUSEKEEPING: Final = "housekeeping"
LEASES: Final = "renew the leases"
TURN: Final = "rest of a turn"
STOP: Final = "stop"
IDLE: Final = "idle"

OF_THE_DAEMON: Final = (START, PUBLISH, COUNTERS, HOUSEKEEPING, STOP, IDLE)
OF_A_JUDGE: Final = (START, INDEX, TOGETHER, READ, RULES, METRICS, PAIRS, HISTORY, TURN, IDLE)
STAGES: Final = (
    START, INDEX, TOGETHER, READ, RULES, METRICS, PAIRS, HISTORY, TURN, PUBLISH, COUNTERS, HOUSEKEEPING,
    LEASES, STOP, IDLE,
)  # fmt: skip

FOLDER: Final = "SOAK_STAGES"  # the variable of the environment that names the folder of the files
_THREADS: Final = 64


def expected(history: str) -> tuple[str, ...]:
    """The stages that a run with this history has."""
    return tuple(one for one in STAGES if one != LEASES or history == "postgresql")


class Marks:
    """The stages of this process, by thread."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_THREADS))
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), _THREADS)
        self._next = count()
        self._own = threading.local()

    def put(self, stage: str | None) -> None:
        """Note the stage of the calling thread; None if it is idle."""
        self._bytes[self._slot()] = 0 if stage is None else 1 + STAGES.index(stage)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """After the block, the thread is in the stage that it was in before."""
        slot = self._slot()
        before = self._bytes[slot]
        try:
            yield
        finally:
            self._bytes[slot] = before

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        """The block is this stage."""
        with self.kept():
            self.put(stage)
            yield

    def _slot(self) -> int:
        slot: int | None = getattr(self._own, "slot", None)
        if slot is None:
            slot = self._own.slot = next(self._next) % _THREADS
        return slot


def stages_of(folder: Path, pid: int) -> frozenset[str]:
    """The stages of a process, of all its threads. It is idle if no thread is in a stage."""
    try:
        numbers = set((folder / str(pid)).read_bytes()) - {0}
    except FileNotFoundError:
        return frozenset({START})  # it has not noted anything yet
    return frozenset(STAGES[number - 1] for number in numbers) or frozenset({IDLE})
