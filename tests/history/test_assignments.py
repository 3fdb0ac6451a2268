"""The kept users and arms of experiments."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from monitor.core.results import Window
from monitor.experiments.assignments import KeptAssignments, forget_others
from monitor.history.errors import StoreError
from tests.history.conftest import hour

HOUR = timedelta(hours=1)


def keep(kept: KeptAssignments, number: int, *pairs: tuple[str, str]) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE found (user_id VARCHAR, arm VARCHAR, first BIGINT)")
    for user, arm in pairs:
        connection.execute("INSERT INTO found VALUES (?, ?, ?)", [user, arm, number])
    kept.keep(hour(number), connection.table("found"))


def read(kept: KeptAssignments, hours: int) -> list[tuple[str, str, int]]:
    connection = duckdb.connect()
    paths = kept.files(Window(hour(0).start, hour(hours).start), HOUR, connection)
    if not paths:
        return []
    rows = connection.read_parquet([str(path) for path in paths], union_by_name=True)
    return kept.added_up(rows).order("ALL").fetchall()


def test_each_user_and_arm_comes_back_once_with_the_first_window(tmp_path: Path) -> None:
    kept = KeptAssignments(tmp_path, "arm")
    for number in reversed(range(30)):
        keep(kept, number, ("u", "a"), (f"u{number}", "b"), ("u", "b" if number > 20 else "a"))
    found = read(kept, 30)
    assert len(found) == 32
    assert {("u", "a", 0), ("u", "b", 21), ("u7", "b", 7)} <= set(found)
    assert len(list((kept.folder / "sums").iterdir())) == 1  # of the one day that is over
    assert ("u29", "b", 29) not in read(kept, 29)


def test_a_window_that_is_kept_again_counts_anew_in_the_sum_of_its_day(tmp_path: Path) -> None:
    kept = KeptAssignments(tmp_path, "arm")
    for number in range(24):
        keep(kept, number, ("u", "a"))
    assert read(kept, 24) == [("u", "a", 0)]
    keep(kept, 0, ("v", "b"), ("v", "b"))
    assert read(kept, 24) == [("u", "a", 1), ("v", "b", 0)]
    kept.forget(hour(0))
    assert read(kept, 24) == [("u", "a", 1)]


def test_a_column_has_a_folder_of_its_own_whatever_it_is_called(tmp_path: Path) -> None:
    kept = {name: KeptAssignments(tmp_path, name) for name in ("arm", "../../x", "a/b", "", "a\0b")}
    assert len({one.folder for one in kept.values()}) == 5
    assert {one.folder.parent for one in kept.values()} == {tmp_path / "arms"}
    keep(kept["a\0b"], 0, ("u", 'it\'s "<x>"\n\0'))
    assert read(kept["a\0b"], 1) == [("u", 'it\'s "<x>"\n\0', 0)]


def test_columns_read_under_other_names_are_kept_apart(tmp_path: Path) -> None:
    plain = KeptAssignments(tmp_path, "arm")
    assert plain.folder == KeptAssignments(tmp_path, "arm", {"arm": "arm", "item_id": "sku"}).folder
    assert plain.folder != KeptAssignments(tmp_path, "arm", {"arm": "variant"}).folder
    assert plain.folder != KeptAssignments(tmp_path, "arm", {"user_id": "visitor"}).folder


def test_columns_that_no_experiment_names_are_forgotten(tmp_path: Path) -> None:
    one, other = KeptAssignments(tmp_path, "one"), KeptAssignments(tmp_path, "other")
    for kept in (one, other):
        keep(kept, 0, ("u", "a"))
    forget_others(tmp_path, [other])
    assert (read(one, 1), read(other, 1)) == ([], [("u", "a", 0)])
    forget_others(tmp_path / "nothing", [])


def test_windows_before_the_start_are_dropped_with_their_sums(tmp_path: Path) -> None:
    kept = KeptAssignments(tmp_path, "arm")
    for number in range(26):
        keep(kept, number, (f"u{number}", "a"))
    assert len(read(kept, 26)) == 26
    assert kept.drop_before(hour(25).start) == 24
    assert read(kept, 26) == [("u24", "a", 24), ("u25", "a", 25)]
    kept.drop_before(hour(25).start + timedelta(days=9))
    assert list((kept.folder / "sums").iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "arms").write_text("in the way")
    with pytest.raises(StoreError, match="the users of an experiment in a window cannot be kept"):
        keep(KeptAssignments(tmp_path, "arm"), 0, ("u", "a"))
