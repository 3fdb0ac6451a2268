"""Ctrl-C ends a command, also if a library turns it into another error on the way.

DuckDB ends a statement with a RuntimeError, and a check would report that as its error and go on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_asked = threading.Event()


@contextmanager
def noticing() -> Iterator[None]:
    """Remember Ctrl-C while the block runs. A process that ignores it goes on to do so."""
    _asked.clear()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _notice)
    try:
        yield
        end_if_asked()
    finally:
        if signal.getsignal(signal.SIGINT) is _notice:
            signal.signal(signal.SIGINT, before)


def end_if_asked() -> None:
    """Raise KeyboardInterrupt if there was a Ctrl-C; call it before a result is used."""
    if _asked.is_set():
        raise KeyboardInterrupt


def was_asked() -> bool:
    """Whether there was a Ctrl-C, which another exception may hide."""
    return _asked.is_set()


def _notice(number: int, frame: FrameType | None) -> None:
    _asked.set()
    signal.default_int_handler(number, frame)
