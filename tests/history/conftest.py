"""A store of each kind: SQLite in a file, and a real PostgreSQL server of this test run's own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import select

from monitor.core.results import Window
from monitor.history import schema
from monitor.history.packing import FIELDS, SIGNAL, unpack
from monitor.history.store import Store

_numbers = itertools.count()


def hour(number: int) -> Window:
    """The hour of this number since 2026-01-01."""
    return Window.of(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number), timedelta(hours=1))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server for all tests of this folder; its URL without a database."""
    from tests.postgres import postgres  # not at the top: the tests on SQLite start no program

    with postgres() as server:
        yield server.url


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
            of_window = select(
                windows.c.recommender, windows.c.check_name, windows.c.window_start, windows.c.definition
            )
            named = {
                number: tuple(row)
                for number, *row in connection.execute(select(series.c.id, series.c.metric, series.c.labels))
            }
            packed = of_window.add_columns(results.c.content).join(
                results, windows.c.id == results.c.window_id
            )
            found["results"] = sorted(
                (
                    (*window, *named[number], *row)
                    for *window, content in connection.execute(packed)
                    for stored in [unpack(content)]
                    for number, *row in zip(
                        stored.series, *(stored.column(name) for name in (SIGNAL, *FIELDS)), strict=True
                    )
                ),
                key=repr,
            )
            for table in (schema.signals, evidence):
                columns = [c for c in table.c if c.name not in hidden]
                query = (
                    of_window.add_columns(series.c.metric, series.c.labels, *columns)
                    .join(table, windows.c.id == table.c.window_id)
                    .join(series, series.c.id == table.c.series_id)
                )
                found[table.name] = sorted((tuple(row) for row in connection.execute(query)), key=repr)
        return found

    return read
