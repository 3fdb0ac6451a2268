"""What belongs to the one thread that judges: its engines, and how others wait for it or stop it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from monitor.judging.runtime import Runtime

log = logging.getLogger(__name__)

_POKE_SECONDS = 0.2
_WINDOWS_AN_ENGINE = 30


class Worker:
    """`runtime`, `drop_runtime` and `at_work` are for the thread itself; `finish` is for whoever stops it."""

    def __init__(self, make: Callable[[], Runtime]) -> None:
        self._make = make
        self._runtime: Runtime | None = None
        self._idle = threading.Event()
        self._idle.set()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Until the block is left, `finish` waits for it.

        Whoever runs looks inside the block whether he is to stop: then he either sees it, or is waited for.
        """
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()

    def runtime(self) -> Runtime:
        """The engines, made in the thread's own time at the first call, and anew after many windows.

        A DuckDB instance grows by about 0.25 MiB with each window whose tables come and go, and gives that
        back only when it is closed. To make a new one takes as long as a tenth of a small window.
        """
        if self._runtime is not None and self._runtime.judged >= _WINDOWS_AN_ENGINE:
            self.drop_runtime()
        if self._runtime is None:
            self._runtime = self._make()
        return self._runtime

    def drop_runtime(self) -> None:
        """Throw away engines that nobody knows the state of; the next call for them makes new ones."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            with suppress(Exception):
                runtime.close()

    def finish(self, grant: float, interrupt: float) -> bool:
        """Let the work in hand end within `grant` seconds, else interrupt it; whether it has ended."""
        if self._idle.wait(grant):
            return True
        log.info("interrupting the current window")
        end = time.monotonic() + interrupt
        while time.monotonic() < end:  # again and again: an interrupt between two statements is lost
            runtime = self._runtime
            if runtime is not None:
                with suppress(Exception):  # it may be closing at this very moment
                    runtime.interrupt()
            if self._idle.wait(_POKE_SECONDS):
                return True
        return False
