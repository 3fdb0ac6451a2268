"""Signals as a stream that the main thread reads, so that none is lost."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def arriving(*numbers: int) -> Iterator[Iterator[int]]:
    """Inside the block, these signals only appear in the iterator, which waits for the next one.

    Python runs a signal handler in the main thread, between two instructions. If the main thread has just
    begun to wait for a lock or a queue, the signal does not wake it. The wakeup descriptor works at once and
    in any thread: the interpreter writes the number of the signal to a socket, and the iterator reads it.

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
