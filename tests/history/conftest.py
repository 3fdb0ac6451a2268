"""A store of each kind: SQLite in a file, and a real PostgreSQL server of this test run's own."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import select

from monitor.history import schema
from monitor.history.store import Store
from monitor.results import Window

PASSWORD = "kept-to-itself"
_numbers = itertools.count()


def hour(number: int) -> Window:
    """The hour of this number since 2026-01-01."""
    return Window.of(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number), timedelta(hours=1))


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    places = (
        [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next((place for place in places if (place / "postgres").exists()), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server on a free loopback port; its URL without a database. PostgreSQL refuses to run as root."""
    binaries = _binaries()
    if binaries is None:
        reason = "PostgreSQL's initdb and postgres are not installed (Debian: apt-get install postgresql)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    who: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="recsys-monitor-postgres-"))
    password = folder / "password"
    password.write_text(PASSWORD)
    if who:
        shutil.chown(folder, **who)
        shutil.chown(password, **who)
    data, port = folder / "data", _free_port()
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "monitor", "-A", "scram-sha-256", "--pwfile", password,
         "-E", "UTF8", "--locale", "C", "--no-sync"],
        check=True, capture_output=True, cwd=folder, **who,
    )  # fmt: skip
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder,
             "-c", "fsync=off", "-c", "timezone=Asia/Tokyo"],
            stdout=log, stderr=log, cwd=folder, **who,
        )  # fmt: skip
    try:
        url = f"postgresql://monitor:{PASSWORD}@127.0.0.1:{port}"
        _wait_for(url, server, folder / "log")
        yield url
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(150):
        if server.poll() is not None:
            break
        try:
            psycopg.connect(f"{url}/postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.2)
    pytest.fail(f"PostgreSQL did not start: {log.read_text(errors='replace')}")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.sqlite"
    server: str = request.getfixturevalue("postgres_server")
    name = f"history_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server}/{name}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


@pytest.fixture
def dump() -> Callable[[Store], dict[str, list[Any]]]:
    """Everything in a store, in an order that does not depend on how it came there."""

    def read(store: Store) -> dict[str, list[Any]]:
        series, windows, results, evidence = schema.series, schema.windows, schema.results, schema.evidence
        hidden = {"id", "window_id", "series_id", "digest"}
        found: dict[str, list[Any]] = {}
        with store.reading() as connection:
            for table in (windows, schema.watermarks, schema.log_files, schema.counters):
                rows = connection.execute(select(*(c for c in table.c if c.name not in hidden)))
                found[table.name] = sorted((tuple(row) for row in rows), key=repr)
            for table in (results, evidence):
                columns = [c for c in table.c if c.name not in hidden]
                query = (
                    select(windows.c.recommender, windows.c.check_name, windows.c.window_start,
                           windows.c.definition, series.c.metric, series.c.labels, *columns)
                    .join_from(table, windows, windows.c.id == table.c.window_id)
                    .join(series, series.c.id == table.c.series_id)
                )  # fmt: skip
                found[table.name] = sorted((tuple(row) for row in connection.execute(query)), key=repr)
        return found

    return read
