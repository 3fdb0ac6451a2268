"""The kept user-item pairs of each window."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from monitor.core.results import Window
from monitor.history.errors import Fault, StoreError
from monitor.history.kept import FrozenPairs, KeptPairs, ListedPairs
from tests.history.conftest import hour

LENGTH = timedelta(hours=1)
ROWS = [("u1", "a", 3), ("u2", 'it\'s "<x>"\n', 1), ("u2", None, 1)]


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("CREATE TEMP TABLE user_items (user_id VARCHAR, item_id VARCHAR, exposures BIGINT)")
    made.executemany("INSERT INTO user_items VALUES (?, ?, ?)", ROWS)
    return made


def pairs(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    return connection.table("user_items")


@pytest.fixture
def kept(tmp_path: Path) -> KeptPairs:
    return KeptPairs(tmp_path / "it's the state", "shop")


def read(paths: tuple[Path, ...]) -> list[tuple[object, ...]]:
    return duckdb.connect().read_parquet([str(path) for path in paths]).order("ALL").fetchall()


def test_the_pairs_of_a_window_come_back_with_their_counts(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection
) -> None:
    path = kept.keep(hour(0), pairs(connection))
    assert path.name == "20260101T000000Z_20260101T010000Z.parquet"
    assert read((path,)) == ROWS[:2]  # a row without an item is no pair


def test_a_window_that_is_kept_again_replaces_its_file(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection
) -> None:
    kept.keep(hour(0), pairs(connection))
    connection.execute("DELETE FROM user_items WHERE user_id = 'u1'")
    path = kept.keep(hour(0), pairs(connection))
    assert [row[0] for row in read((path,))] == ["u2"]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "fault"),
    [(errno.ENOSPC, Fault.FULL), (errno.EDQUOT, Fault.FULL), (errno.EIO, Fault.UNREACHABLE)],
)
def test_a_used_up_quota_is_a_full_disk(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch,
    number: int, fault: Fault,
) -> None:  # fmt: skip
    def refused(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(StoreError, match="cannot be kept") as caught:
        kept.keep(hour(0), pairs(connection))
    assert caught.value.fault is fault
    assert list(kept.folder.iterdir()) == []


def test_a_span_gives_its_kept_windows_oldest_first(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection
) -> None:
    for number in (1, 2, 4):
        kept.keep(hour(number), pairs(connection))
    span = kept.paths(hour(0).start, hour(4).end, LENGTH)
    assert list(span) == [hour(1), hour(2), hour(4)]
    assert len(read(tuple(span.values()))) == 6
    inside = kept.paths(hour(0).start + timedelta(minutes=5), hour(3).start, LENGTH)
    assert list(inside) == [hour(1), hour(2)]
    assert kept.paths(hour(0).start, hour(4).end, 2 * LENGTH) == {}
    assert kept.paths(hour(0).start, hour(0).start, LENGTH) == {}


@pytest.mark.parametrize("left", [0, 3, 100, -1])
def test_a_file_that_a_crash_cut_short_counts_as_missing(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection, left: int
) -> None:
    path = kept.keep(hour(0), pairs(connection))
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    assert kept.paths(hour(0).start, hour(0).end, LENGTH) == {}
    path.write_bytes(whole)
    assert kept.paths(hour(0).start, hour(0).end, LENGTH) == {hour(0): path}


def test_old_windows_and_old_leftovers_are_dropped(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection
) -> None:
    folder = kept.keep(hour(0), pairs(connection)).parent
    for number in (1, 2):
        kept.keep(hour(number), pairs(connection))
    (folder / "of somebody else.parquet").touch()
    for name, time in (("old.part", hour(0).start), ("new.part", hour(9).start)):
        (folder / name).touch()
        os.utime(folder / name, (time.timestamp(), time.timestamp()))
    assert kept.drop_before(hour(1).end) == 1
    assert sorted(path.name for path in folder.iterdir()) == [
        "20260101T010000Z_20260101T020000Z.parquet",
        "20260101T020000Z_20260101T030000Z.parquet",
        "new.part",
        "of somebody else.parquet",
    ]


def test_a_window_that_cannot_be_written_leaves_the_old_file(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    kept = KeptPairs(tmp_path, "shop")
    path = kept.keep(hour(0), pairs(connection))
    before = path.read_bytes()
    with pytest.raises(duckdb.Error):
        kept.keep(
            hour(0),
            connection.sql("SELECT error('no') AS user_id, 'a' AS item_id, 1 AS exposures"),
        )
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_a_store_error(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(StoreError, match="cannot be kept"):
        KeptPairs(tmp_path, "shop").keep(hour(0), pairs(connection))


@pytest.mark.parametrize("name", ["../shop", "", "a/b", "Shop", "a" * 64, "shop\n"])
def test_a_name_that_could_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a valid name"):
        KeptPairs(tmp_path, name)


def test_a_span_that_is_listed_once_knows_what_was_kept_or_forgotten_since(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 4):
        kept.keep(hour(number), pairs(connection))
    span = Window(hour(1).start, hour(3).end)
    listed = ListedPairs(kept, span, LENGTH)
    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", pytest.fail)
        assert list(listed.paths(span.start, span.end, LENGTH)) == [hour(1), hour(2)]
        assert list(listed.paths(hour(2).start, hour(9).end, LENGTH)) == [hour(2)]
        assert listed.paths(span.start, span.end, 2 * LENGTH) == {}
        listed.keep(hour(0), pairs(connection))
        listed.keep(hour(3), pairs(connection))
        listed.forget(hour(2))
        assert list(listed.paths(hour(0).start, hour(9).end, LENGTH)) == [hour(0), hour(1), hour(3)]
    assert list(kept.paths(hour(0).start, hour(9).end, LENGTH)) == [hour(0), hour(1), hour(3), hour(4)]


def test_what_writes_nothing_lists_nothing_new(
    kept: KeptPairs, connection: duckdb.DuckDBPyConnection
) -> None:
    frozen = FrozenPairs(kept.state, "shop")
    listed = ListedPairs(frozen, Window(hour(0).start, hour(3).end), LENGTH)
    listed.keep(hour(1), pairs(connection))
    assert listed.paths(hour(0).start, hour(3).end, LENGTH) == {}
