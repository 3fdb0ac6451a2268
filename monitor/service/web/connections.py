"""Limits of the web server's connections: their number, and the time that each may take."""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 256
_SHARE_OF_DESCRIPTORS: Final = 4  # a quarter; the rest is for the log files, the history and the engine
_MOST_ENDING: Final = 16
REQUEST_SECONDS: Final = 10.0
"""Time for a client to send its request, from the first byte or from the connection on."""
ANSWER_SECONDS: Final = 60.0
"""Time for an answer, until the client has read it."""
IDLE_SECONDS: Final = 5
"""Time that a connection stays open for the next request."""


class LimitedListener(socket.socket):
    """A listening socket with a bounded number of open connections.

    If there are too many, a new connection closes the oldest one, so a client that only holds connections
    cannot lock out others. Connections in their TLS handshake count too.
    """

    def __init__(self, listener: socket.socket) -> None:
        """Take over a listening socket."""
        super().__init__(fileno=listener.detach())
        self._connections: list[socket.socket] = []
        self._ending: list[socket.socket] = []
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.most = MOST_CONNECTIONS
        if soft != resource.RLIM_INFINITY:
            self.most = max(4, min(MOST_CONNECTIONS, soft // _SHARE_OF_DESCRIPTORS))

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection. Closes the oldest one if there are too many.

        Raises:
            BlockingIOError: closed connections are still open in asyncio, which closes them and tries again.
        """
        self._ending = _still_open(self._ending)
        if len(self._ending) >= _MOST_ENDING:
            raise BlockingIOError
        connection, address = super().accept()
        self._connections = [*_still_open(self._connections), connection]
        if len(self._connections) > self.most:
            oldest = self._connections.pop(0)
            with suppress(OSError):  # its client may have closed it by now
                oldest.shutdown(socket.SHUT_RDWR)
            self._ending.append(oldest)
        return connection, address


def _still_open(connections: list[socket.socket]) -> list[socket.socket]:
    return [one for one in connections if one.fileno() >= 0]


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit for each request and each answer."""

    _timer: asyncio.TimerHandle | None = None
    _phase = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._enter("asking", REQUEST_SECONDS)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._after_event()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self._enter("idle", None)  # uvicorn closes an idle connection by itself
        else:  # the client has already sent its next request
            self._after_event()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter("lost", None)
        super().connection_lost(exc)

    def _after_event(self) -> None:
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:
            self._enter("asking", REQUEST_SECONDS)
        else:
            self._enter("answering", ANSWER_SECONDS)

    def _enter(self, phase: str, seconds: float | None) -> None:
        """Start the time limit of a phase. More bytes in the same phase do not prolong it."""
        if phase == self._phase:
            return
        self._phase = phase
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
