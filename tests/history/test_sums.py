"""Few files hold what many windows hold, and never anything else."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.results import Window
from monitor.history.kept import KeptPairs
from monitor.history.sums import Sums

DAY = datetime(2026, 1, 1, tzinfo=UTC)
MINUTES = timedelta(minutes=10)


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@pytest.fixture
def kept(tmp_path: Path) -> KeptPairs:
    return KeptPairs(tmp_path, "shop")


def window(number: int) -> Window:
    return Window(DAY + number * MINUTES, DAY + (number + 1) * MINUTES)


def keep(kept: KeptPairs, connection: duckdb.DuckDBPyConnection, number: int, rows: list[tuple]) -> None:
    values = ", ".join(f"('{user}', '{item}', {count})" for user, item, count in rows)
    relation = connection.sql(f"SELECT * FROM (VALUES {values}) AS t(user_id, item_id, exposures)")
    kept.keep(window(number), relation)


def held(paths: list[Path], connection: duckdb.DuckDBPyConnection) -> Counter:
    total: Counter = Counter()
    for user, item, count in connection.read_parquet([str(path) for path in paths]).fetchall():
        total[user, item] += count
    return total


def test_whole_hours_and_days_become_one_file_each(kept, connection):
    for number in range(6 * 30):
        keep(kept, connection, number, [("u", f"i{number % 7}", 1)])
    span = Window(DAY, DAY + timedelta(hours=26, minutes=20))
    files = Sums(kept).files(span, MINUTES, connection)
    assert [path.parent.name for path in files] == ["sums"] * 3 + ["shop"] * 2
    assert sum(held(files, connection).values()) == 26 * 6 + 2


def test_a_window_that_is_kept_again_changes_its_sum(kept, connection):
    for number in range(6):
        keep(kept, connection, number, [("u", "a", 1)])
    span = Window(DAY, DAY + timedelta(hours=1))
    assert held(Sums(kept).files(span, MINUTES, connection), connection) == {("u", "a"): 6}
    keep(kept, connection, 3, [("u", "b", 5)])
    (path,) = Sums(kept).files(span, MINUTES, connection)
    assert held([path], connection) == {("u", "a"): 5, ("u", "b"): 5}


def test_a_window_that_comes_late_is_added_to_its_sum(kept, connection):
    for number in (0, 1, 2):
        keep(kept, connection, number, [("u", "a", 1)])
    span = Window(DAY, DAY + timedelta(hours=1))
    before = Sums(kept).files(span, MINUTES, connection)
    keep(kept, connection, 4, [("u", "a", 1)])
    (path,) = Sums(kept).files(span, MINUTES, connection)
    assert held([path], connection) == {("u", "a"): 4}
    assert not before[0].exists()


def test_a_sum_that_a_crash_has_cut_short_is_made_again(kept, connection):
    for number in range(6):
        keep(kept, connection, number, [("u", "a", 1)])
    span = Window(DAY, DAY + timedelta(hours=1))
    (path,) = Sums(kept).files(span, MINUTES, connection)
    path.write_bytes(path.read_bytes()[:20])
    assert held(Sums(kept).files(span, MINUTES, connection), connection) == {("u", "a"): 6}


def test_a_period_that_the_span_only_touches_is_not_added_up(kept, connection):
    for number in range(12):
        keep(kept, connection, number, [("u", "a", 1)])
    span = Window(DAY + MINUTES, DAY + timedelta(hours=1, minutes=50))
    assert held(Sums(kept).files(span, MINUTES, connection), connection) == {("u", "a"): 10}


def test_windows_of_a_day_have_nothing_to_add_up(kept, connection):
    day = Window(DAY, DAY + timedelta(days=1))
    relation = connection.sql("SELECT 'u' AS user_id, 'a' AS item_id, 1 AS exposures")
    path = kept.keep(day, relation)
    assert Sums(kept).files(day, day.length, connection) == [path]


def test_a_clock_that_was_set_back_hides_no_window_that_was_kept_again(kept, connection):
    for number in range(6):
        keep(kept, connection, number, [("u", "a", 1)])
    span = Window(DAY, DAY + timedelta(hours=1))
    Sums(kept).files(span, MINUTES, connection)
    keep(kept, connection, 3, [("u", "a", 5)])
    path = kept.paths(window(3).start, window(3).end, MINUTES)[window(3)]
    os.utime(path, (0, 0))
    assert held(Sums(kept).files(span, MINUTES, connection), connection) == {("u", "a"): 10}


def test_a_forgotten_window_is_removed_from_its_sum(kept, connection):
    for number in range(6):
        keep(kept, connection, number, [("u", f"i{number}", 1)])
    span = Window(DAY, DAY + timedelta(hours=1))
    Sums(kept).files(span, MINUTES, connection)
    kept.forget(window(2))
    kept.forget(window(2))
    assert ("u", "i2") not in held(Sums(kept).files(span, MINUTES, connection), connection)


def test_a_sum_that_was_being_written_at_a_crash_is_dropped_once_it_is_old(kept, connection):
    for number in range(6):
        keep(kept, connection, number, [("u", "a", 1)])
    (path,) = Sums(kept).files(Window(DAY, DAY + timedelta(hours=1)), MINUTES, connection)
    old, new = path.with_name("x.parquet.7.part"), path.with_name("y.parquet.8.part")
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    Sums(kept).drop_before(DAY)
    assert (old.exists(), new.exists(), path.exists()) == (False, True, True)


def test_old_sums_are_dropped(kept, connection):
    for number in range(12):
        keep(kept, connection, number, [("u", "a", 1)])
    span = Window(DAY, DAY + timedelta(hours=2))
    first, second = Sums(kept).files(span, MINUTES, connection)
    Sums(kept).drop_before(DAY + timedelta(hours=1, seconds=1))
    assert not first.exists()
    assert second.exists()


@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, 200), max_size=40), st.integers(0, 100), st.integers(1, 100))
def test_a_span_holds_exactly_its_windows(tmp_path_factory, numbers, start, length):
    connection = duckdb.connect()
    kept = KeptPairs(tmp_path_factory.mktemp("state"), "shop")
    for number in numbers:
        keep(kept, connection, number, [("u", f"i{number}", 1)])
    span = Window(window(start).start, window(start + length).start)
    files = Sums(kept).files(span, MINUTES, connection)
    wanted = {("u", f"i{number}"): 1 for number in numbers if start <= number < start + length}
    assert (held(files, connection) if files else {}) == wanted
