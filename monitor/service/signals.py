"""Signals as a stream that the main thread reads, so that none is lost and none waits for another."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def arriving(*numbers: int) -> Iterator[Iterator[int]]:
    """Until the block is left, these signals do nothing but come out of the iterator, which waits for them.

    Python runs a signal's handler in the main thread, and only between two of its instructions: a main thread
    that has just begun to wait for a lock or a queue is not woken by it. So the interpreter's own handler,
    which runs at once and in whichever thread, writes the number to a socket, and this reads it.

    >>> with arriving(signal.SIGUSR1) as signals:
    ...     signal.raise_signal(signal.SIGUSR1)
    ...     next(signals) == signal.SIGUSR1
    True
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield _read(reading, numbers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        reading.close()
        writing.close()


def _read(reading: socket.socket, numbers: tuple[int, ...]) -> Iterator[int]:
    while True:
        yield from (number for number in reading.recv(64) if number in numbers)
