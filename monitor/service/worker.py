"""The engines of a thread that judges, and how another thread waits for it or stops it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from monitor.judging.runtime import Runtime

log = logging.getLogger(__name__)

_INTERRUPT_EVERY_SECONDS = 0.2
_WINDOWS_PER_ENGINE = 30


class Worker:
    """The thread itself uses `runtime` and `drop_runtime`. Another thread calls `finish`."""

    def __init__(self, make: Callable[[], Runtime]) -> None:
        self._make = make
        self._runtime: Runtime | None = None
        self._busy = 0
        self._changed = threading.Condition()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """`finish` waits until the block ends, in whatever thread.

        Check the stop flag inside the block. `finish` waits for it, so no stop is missed.
        """
        with self._changed:
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def runtime(self) -> Runtime:
        """The engines. They are opened at the first call, and again after many windows.

        A DuckDB instance grows by about 0.25 MiB with each window, and frees that memory only when it is
        closed. Opening a new one takes a tenth of the time of a small window.
        """
        if self._runtime is not None and self._runtime.judged >= _WINDOWS_PER_ENGINE:
            self.drop_runtime()
        if self._runtime is None:
            self._runtime = self._make()
        return self._runtime

    def drop_runtime(self) -> None:
        """Close the engines, for example after an error left them in an unknown state."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            with suppress(Exception):
                runtime.close()

    def finish(self, grant: float, interrupt: float) -> bool:
        """Wait `grant` seconds for the current work, then interrupt it. True if it has ended."""
        if self._is_idle_within(grant):
            return True
        log.info("interrupting the current window")
        end = time.monotonic() + interrupt
        while time.monotonic() < end:  # repeatedly: an interrupt between two statements is lost
            runtime = self._runtime
            if runtime is not None:
                with suppress(Exception):  # it may be closing right now
                    runtime.interrupt()
            if self._is_idle_within(_INTERRUPT_EVERY_SECONDS):
                return True
        return False

    def _is_idle_within(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, seconds)
