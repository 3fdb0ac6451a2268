"""Work shared by several processes of this machine, for one command."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from typing import Any, Final

from monitor.engines.duckdb import Spread
from monitor.settings.engine import EngineSettings

FEWEST: Final = 500
"""Files that are worth the start of further processes: three seconds of work, or more."""
_AT_A_TIME: Final = 32


def most_processes(engine: EngineSettings) -> int:
    """How many processes a command may use: one a thread, and no more than `workers`."""
    return min(engine.threads or os.cpu_count() or 1, engine.processes)


def shared_by(processes: int) -> Spread | None:
    """The work of many files, shared by so many processes; None for a single one."""
    if processes < 2:
        return None

    def apply(function: Callable[[Any], Any], items: Sequence[Any]) -> Generator[Any]:
        context = multiprocessing.get_context("spawn")  # a copy of a process with threads may hang
        stop = context.Event()
        with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(stop,)) as pool:
            try:
                yield from pool.map(partial(_unless_stopped, function), items, chunksize=_AT_A_TIME)
            finally:
                stop.set()  # nobody waits for the rest

    return Spread(apply, FEWEST)


_stops: list[Event] = []  # the one of this process


def _begin(stop: Event) -> None:
    begin()
    _stops.append(stop)


def _unless_stopped(function: Callable[[Any], Any], item: Any) -> Any:
    return None if _stops[0].is_set() else function(item)


def begin() -> None:
    """Call this first in a process that helps a command: it ends with the command, not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command gets it too
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()


def _end_with_parent() -> None:
    """A command that was killed must not leave processes behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
