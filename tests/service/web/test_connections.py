"""Clients that hold connections, or send and read too slowly, against the real daemon on loopback."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.service.web import connections
from monitor.service.web.connections import MOST_CONNECTIONS
from tests.processes import exposures, get, land, monitor, wait_for

HELD = 1_500
SECONDS = 3.0  # the limits of the daemons below: with those of users the tests would take minutes
IMPATIENT = (
    f"import monitor.service.web.connections as c; c.REQUEST_SECONDS = c.ANSWER_SECONDS = {SECONDS}; "
    "from monitor.cli.app import main; main()"
)
CONFIG = {
    "recommenders": [{"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}, "window": "1m"}]
}


@contextmanager
def descriptors(soft: int) -> Iterator[None]:
    """A limit of open files for this process, and for those that it starts in the block."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def open_files(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def hold(stack: ExitStack, port: int, first_bytes: bytes = b"") -> socket.socket:
    one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
    if first_bytes:
        one.sendall(first_bytes)
    return one


def test_idle_connections_neither_block_clients_nor_use_up_the_open_files(
    tmp_path: Path, held: ExitStack
) -> None:
    (tmp_path / "logs").mkdir()
    at = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=5)
    land(tmp_path / "logs" / "1.parquet", exposures(at, 50))
    with ExitStack() as started:
        with descriptors(1024):
            one = started.enter_context(monitor(tmp_path, CONFIG))
        assert one.running is not None
        process = one.running.process.pid
        wait_for("the file", one.has("recsys_log_files", recommender="shop", log="exposures"))
        before = open_files(process)
        slow = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
        for number in range(HELD):
            hold(held, one.port, slow if number % 3 == 0 else b"")
        assert open_files(process) < before + MOST_CONNECTIONS + 20
        for _ in range(20):
            assert get(f"{one.url}/-/healthy")[0] == 200
            assert one.value("recsys_log_files", recommender="shop", log="exposures") == 1
        wait_for("the end of the held connections", lambda: open_files(process) < before + 20)
        assert one.running.output.count("\n") < 100


def test_a_request_that_never_ends_is_ended(tmp_path: Path, held: ExitStack) -> None:
    (tmp_path / "logs").mkdir()
    with monitor(tmp_path, CONFIG, start=False) as one:
        one.start(code=IMPATIENT)
        drip = hold(held, one.port, b"GET / HTTP/1.1\r\n")
        body = hold(held, one.port, b"POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n")
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() < began + SECONDS + 10:
                drip.sendall(b"X: y\r\n")  # slowly, but always something
                time.sleep(0.2)
        assert SECONDS - 1 < time.monotonic() - began < SECONDS + 5
        body.settimeout(15)
        with suppress(ConnectionError):
            while body.recv(4096):  # an answer may come first
                pass
        with pytest.raises(ConnectionError):
            send_on(body)


def test_the_limits_of_a_request_and_its_answer() -> None:
    assert (connections.REQUEST_SECONDS, connections.ANSWER_SECONDS) == (10, 60)


def send_on(connection: socket.socket) -> None:
    for _ in range(50):
        connection.sendall(b"x" * 100)
        time.sleep(0.1)


def test_a_client_that_does_not_read_its_answer_is_closed(tmp_path: Path, held: ExitStack) -> None:
    (tmp_path / "logs").mkdir()
    with monitor(tmp_path, CONFIG, start=False) as one:
        process = one.start(code=IMPATIENT).process.pid
        before = open_files(process)
        for _ in range(20):
            hold(held, one.port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        assert get(f"{one.url}/-/healthy")[0] == 200
        wait_for("the end of these clients", lambda: open_files(process) <= before + 2)
