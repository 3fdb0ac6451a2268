"""Queries in threads of their own: a slow or dead system delays nobody.

A query that is over in a moment is used at once. A slower one goes on in its thread, and a later turn takes
its answer. A thread that is stuck beyond the timeout is given up, and the next query waits until it ends:
each system has one thread at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from monitor.core.http_access import sentence
from monitor.platform.answers import Answer

PATIENCE: Final = 2.0
"""Seconds for which a turn waits for all its queries together."""
_GRACE: Final = 5.0  # seconds beyond the timeout for what a driver does at its end


class Fetching:
    """One query in its own thread."""

    def __init__(self, work: Callable[[], Answer], timeout: timedelta) -> None:
        self._timeout = timeout.total_seconds()
        self._began = time.monotonic()
        self._answer: Answer | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="platform query", daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Answer]) -> None:
        try:
            self._answer = work()
        except Exception as error:  # a driver may raise anything; the thread must leave an answer
            self._answer = Answer(error=f"the query failed: {sentence(error)}")

    def wait(self, seconds: float) -> None:
        """Wait so long for the answer, at most."""
        self._thread.join(max(0.0, seconds))

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def answer(self) -> Answer | None:
        """The answer; an error if it takes longer than the timeout; None while it may still come."""
        if self._answer is not None:
            return self._answer
        if time.monotonic() - self._began > self._timeout + _GRACE:
            return Answer(error=f"no answer within {self._timeout:g} s")
        return None


def all_answers(running: list[Fetching], patience: float) -> None:
    """Wait until all have an answer, or for so many seconds."""
    end = time.monotonic() + patience
    for one in running:
        one.wait(end - time.monotonic())
