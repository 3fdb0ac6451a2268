"""Totals from a real PostgreSQL and a real SQLite: what they give, and every way in which they fail."""

from __future__ import annotations

import itertools
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest

from monitor.core.results import Status
from monitor.platform.answers import Answer, QueryError
from monitor.platform.sql import _day, fetch_sql
from monitor.platform.systems import _Query
from monitor.settings.platform import SqlSystem

FIRST = date(2026, 3, 1)
DAYS = tuple(FIRST + timedelta(days=number) for number in range(3))
SHORT = timedelta(seconds=5)
UTC = ZoneInfo("UTC")
QUERY = "SELECT day, n AS orders FROM search WHERE day >= :first AND day < :last"
ROWS = [(FIRST - timedelta(days=1), 9), (DAYS[0], 5), (DAYS[1], 0), (DAYS[2] + timedelta(days=1), 8)]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    from tests.postgres import postgres

    with postgres() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind, with a table of totals."""
    if request.param == "sqlite":
        path = tmp_path / "shop 1#.sqlite"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE search (day TEXT, n INTEGER)")
            connection.executemany("INSERT INTO search VALUES (?, ?)", [(str(day), n) for day, n in ROWS])
        return f"sqlite:///{path}"
    server: str = request.getfixturevalue("postgres_server")
    name = f"platform_{next(_numbers)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(f"{server}/{name}") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE search (day DATE, n NUMERIC)")
        cursor.executemany("INSERT INTO search VALUES (%s, %s)", ROWS)
    return f"{server}/{name}"


def ask(
    url: str, query: str = QUERY, totals: tuple[str, ...] = ("orders",), timeout: timedelta = SHORT
) -> Answer:
    return fetch_sql(SqlSystem(url=url, query=query), totals, DAYS, UTC, timeout)


@pytest.mark.parametrize(
    ("value", "zone", "day"),
    [
        (DAYS[1], "Europe/Berlin", DAYS[1]),
        (datetime(2026, 3, 2), "Europe/Berlin", DAYS[1]),
        ("2026-03-02", "Europe/Berlin", DAYS[1]),
        ("2026-03-02 00:00:00", "Europe/Berlin", DAYS[1]),
        (datetime(2026, 3, 1, 23, tzinfo=UTC), "Europe/Berlin", DAYS[1]),
        (datetime(2026, 3, 2, 5, tzinfo=UTC), "America/New_York", DAYS[1]),
        ("2026-03-01T23:00:00+00:00", "Europe/Berlin", DAYS[1]),
        ("2026-03-02 00:00:00+01:00", "Europe/Berlin", DAYS[1]),
        (datetime(2026, 3, 2, tzinfo=UTC), "UTC", DAYS[1]),
        (datetime(2026, 3, 2, tzinfo=UTC), "Europe/Berlin", None),  # a day of UTC, or a date of the zone
        (datetime(2026, 3, 2, 12, tzinfo=UTC), "Europe/Berlin", None),
        ("2026-03-02T12:00:00+00:00", "UTC", None),
    ],
)
def test_a_time_with_an_offset_is_the_day_whose_midnight_it_is(value, zone, day):
    if day is not None:
        assert _day(value, ZoneInfo(zone)) == day
        return
    with pytest.raises(QueryError, match=f"is no midnight of {zone}, .* give `day` as a date"):
        _day(value, ZoneInfo(zone))


def test_the_days_of_the_span_have_their_values_and_a_0_is_a_0(url: str) -> None:
    found = ask(url).reading(("orders",), DAYS)
    assert found.values["orders"][:2].tolist() == [5.0, 0.0]
    assert math.isnan(found.values["orders"][2])
    assert found.status == (Status.OK, Status.OK, Status.LATE)


def test_a_query_without_the_bounds_gives_more_days_than_are_needed(url: str) -> None:
    found = ask(url, "SELECT day, n AS orders FROM search").reading(("orders",), DAYS)
    assert found.status == (Status.OK, Status.OK, Status.NO_DATA)


@pytest.mark.parametrize(
    "query",
    ["DELETE FROM search", "INSERT INTO search VALUES ('2026-03-03', 1)", "CREATE TABLE other (day TEXT)",
     "UPDATE search SET n = 7"],
)  # fmt: skip
def test_a_query_cannot_write(url: str, query: str) -> None:
    assert ask(url, query).error
    assert ask(url, "SELECT '2026-03-01' AS day, SUM(n) AS orders FROM search").values == {
        DAYS[0]: {"orders": 22}
    }


def test_a_slow_query_ends_at_its_timeout(url: str) -> None:
    slow = "SELECT '2026-03-01' AS day, pg_sleep(60) AS orders"
    if url.startswith("sqlite"):
        slow = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
            "SELECT '2026-03-01' AS day, COUNT(*) AS orders FROM n"
        )
    began = time.monotonic()
    found = ask(url, slow, timeout=timedelta(seconds=1))
    assert time.monotonic() - began < 20
    assert found.error.startswith("the query failed: ")
    assert set(found.reading(("orders",), DAYS).status) == {Status.ERROR}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT day, n FROM search", "the query gives no column orders; it gives 'day', 'n'"),
        ("SELECT n AS orders FROM search", "the query gives no column day"),
        (
            "SELECT '2026-03-01' AS day, 1 AS orders UNION ALL SELECT '2026-03-01', 2",
            "two rows of 2026-03-01",
        ),
        ("SELECT 'soon' AS day, 1 AS orders", "the day 'soon' is not a day"),
        ("SELECT day, n AS orders FROM search WHERE n > :least", "a parameter :least"),
        ("SELECT nothing FROM nowhere", "the query failed: "),
        ("SELEC", "the query failed: "),
    ],
)
def test_a_wrong_query_is_an_error_that_says_what_to_do(url: str, query: str, why: str) -> None:
    found = ask(url, query)
    assert why in found.error
    assert not found.values


def test_more_rows_than_days_can_be_are_refused(url: str) -> None:
    many = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) "
        "SELECT '2026-03-01' AS day, i AS orders FROM n"
    )
    assert "more than 1,000 rows" in ask(url, many).error


def test_a_time_counts_as_its_day(url: str) -> None:
    found = ask(url, "SELECT '2026-03-02 00:00:00' AS day, 4 AS orders")
    assert found.values == {DAYS[1]: {"orders": 4}}


def test_a_database_that_is_not_there_is_an_error_and_its_password_is_never_shown(tmp_path: Path) -> None:
    gone = ask(f"sqlite:///{tmp_path / 'none.sqlite'}")
    assert "unable to open" in gone.error
    assert not (tmp_path / "none.sqlite").exists()
    dead = ask("postgresql://me:hunter2-hunter2@127.0.0.1:1/shop", timeout=timedelta(seconds=2))
    assert dead.error.startswith("the query failed: ")
    assert "hunter2" not in dead.error


def test_the_running_day_of_an_older_answer_is_never_the_total_of_that_day(tmp_path: Path) -> None:
    path = tmp_path / "totals.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE search (day TEXT, n INTEGER)")
        rows = [(str(DAYS[0]), 900), (str(DAYS[1]), 1000), (str(DAYS[2]), 7)]  # the last day has just begun
        connection.executemany("INSERT INTO search VALUES (?, ?)", rows)
    everything = "SELECT day, n AS orders FROM search"
    query = _Query(("orders",), lambda _: ask(f"sqlite:///{path}", everything))
    now = datetime(2026, 3, 3, 0, 10)
    for asked in (DAYS[:2], DAYS[1:]):
        query.ask(asked, now, SHORT)
        assert query.running is not None
        query.running.wait(SHORT.total_seconds())
        found = query.reading(asked)
        path.unlink(missing_ok=True)  # the next night, the database is gone
        now += timedelta(days=1)
    assert found.values["orders"][0] == 1000.0
    assert math.isnan(found.values["orders"][1])
    assert found.status == (Status.OK, Status.ERROR)
