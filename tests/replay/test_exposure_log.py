"""From a plan and a journal to the exposure log: the rows of every outcome, worked by hand."""

from __future__ import annotations

from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.replay.exposure_log import Marks, log_file, shown_path, write_log
from monitor.replay.journal import Journal
from monitor.replay.plan import plan_path, read_plan, write_plan
from monitor.replay.results import measured
from monitor.replay.templates import Templates
from monitor.settings.replay import TargetSettings

START = datetime(2026, 1, 5, 10)
HOSTILE = "a\"b' -- \x1b é"
MARKS = Marks("run-1", "it", "v7", True)


def planned(folder, users, **columns):
    """A plan of a request for each user."""
    table = pa.table(
        {
            "request_id": [f"r{n}" for n in range(len(users))],
            "user_id": users,
            "ts": pa.array([START] * len(users), pa.timestamp("us")),
            **columns,
        }
    )
    target = TargetSettings.model_validate(
        {"name": "it", "url": "http://127.0.0.1/", "body": {"user": "{{ user_id }}", "now": "{{ now }}"}}
    )
    return write_plan(
        plan_path(folder), iter(table.to_batches()), table.schema, tuple(columns), Templates(target)
    )


def record(number, status="ok", **fields):
    own = {"http_status": 200, "latency": 0.25, "attempts": 1, "replayed_at": 1_767_607_200.0, "items": []}
    own |= {"scores": None, "positions": None, "model": None, "detail": ""}
    return {"number": number, "status": status} | own | fields


def journalled(folder, begun, *records):
    with Journal(folder) as journal:
        journal.begin(begun)
        for one in records:
            journal.answer(one)


def rows(folder, *columns):
    names = ", ".join(columns) or "*"
    return duckdb.sql(f"SELECT {names} FROM read_parquet('{log_file(folder)}')").fetchall()


def test_each_outcome_has_its_rows_in_the_order_of_the_plan(tmp_path):
    planned(tmp_path, ["u0", "u1", "u2", "u3", "u4"])
    journalled(
        tmp_path,
        [0, 1, 2, 3],
        record(2, items=["a", "b"], scores=[0.5, None], positions=[7, 9], model="m1"),
        record(1),
        record(0, "timeout", http_status=None, detail="no answer within 5 s"),
    )
    assert write_log(tmp_path, MARKS) == log_file(tmp_path)
    assert rows(tmp_path, "request_id", "item_id", "position", "score", "status", "model", "detail") == [
        ("r0", None, None, None, "timeout", None, "no answer within 5 s"),
        ("r1", None, None, None, "ok", "v7", None),
        ("r2", "a", 7, 0.5, "ok", "m1", None),
        ("r2", "b", 9, None, "ok", "m1", None),
        ("r3", None, None, None, "interrupted", None, None),
    ]
    assert rows(tmp_path, "DISTINCT target", "version", "run", "now_passed") == [("it", "v7", "run-1", True)]
    assert rows(tmp_path, "latency", "attempts", "replayed_at::VARCHAR")[-1] == (None, None, None)
    assert rows(tmp_path, "epoch(replayed_at)")[0] == (1_767_607_200.0,)
    assert rows(tmp_path, "DISTINCT ts AT TIME ZONE 'UTC'") == [(START,)]


def test_items_of_a_list_are_compared_with_what_their_own_user_was_shown(tmp_path):
    planned(tmp_path, ["u0", "u1", None])
    pairs = {"user_id": ["u0", "u1", "u1"], "item_id": ["a", "b", HOSTILE]}
    pq.write_table(pa.table(pairs), shown_path(tmp_path))
    items = ["a", "b", HOSTILE]
    journalled(tmp_path, [0, 1, 2], *(record(number, items=items) for number in range(3)))
    write_log(tmp_path, MARKS)
    ever = [one[0] for one in rows(tmp_path, "ever_shown")]
    assert ever == [True, False, False, False, True, True, None, None, None]


def test_of_two_sessions_the_later_one_counts(tmp_path):
    planned(tmp_path, ["u0", "u1", "u2"])
    journalled(tmp_path, [0, 1, 2], record(0, "refused"), record(1, "refused"), record(2, items=["a"]))
    journalled(tmp_path, [0, 1], record(0, items=["b"]))
    write_log(tmp_path, MARKS)
    assert rows(tmp_path, "request_id", "status", "item_id") == [
        ("r0", "ok", "b"), ("r1", "interrupted", None), ("r2", "ok", "a"),
    ]  # fmt: skip


@pytest.mark.parametrize("numbers", [[1, 2], [2**62, -5]])
def test_ids_keep_their_type_and_hostile_names_and_values_stay_what_they_are(tmp_path, numbers):
    planned(tmp_path, numbers, **{HOSTILE: ["x", HOSTILE], "select": [1.5, None]})
    journalled(tmp_path, [0, 1], record(0, items=[HOSTILE] * 2), record(1, "garbage", detail=HOSTILE))
    write_log(tmp_path, Marks(HOSTILE, HOSTILE, HOSTILE, False))
    table = pq.read_table(log_file(tmp_path))
    assert table["user_id"].to_pylist() == [numbers[0], numbers[0], numbers[1]]
    assert table[HOSTILE].to_pylist() == ["x", "x", HOSTILE]
    assert table["select"].to_pylist() == [1.5, 1.5, None]
    assert table["item_id"].to_pylist() == [HOSTILE, HOSTILE, None]
    assert set(table["run"].to_pylist()) == set(table["version"].to_pylist()) == {HOSTILE}


def test_kept_columns_may_have_the_names_of_the_journal(tmp_path):
    names = ("place", "items", "scores", "positions", "session", "shown")
    planned(tmp_path, ["u0"], **{name: [name] for name in names})
    journalled(tmp_path, [0], record(0, items=["a", "b"], scores=[0.5, 0.25]))
    write_log(tmp_path, MARKS)
    assert rows(tmp_path, "item_id", "score", *names) == [("a", 0.5, *names), ("b", 0.25, *names)]


def test_nothing_sent_is_no_log(tmp_path):
    planned(tmp_path, ["u0"])
    Journal(tmp_path).close()
    assert write_log(tmp_path, MARKS) is None
    assert not log_file(tmp_path).exists()


def test_the_log_is_replaced_as_a_whole(tmp_path):
    planned(tmp_path, ["u0", "u1"])
    journalled(tmp_path, [0], record(0, items=["a"]))
    write_log(tmp_path, MARKS)
    journalled(tmp_path, [1], record(1, items=["b"]))
    write_log(tmp_path, MARKS)
    assert [one.name for one in log_file(tmp_path).parent.iterdir()] == ["exposures.parquet"]
    assert rows(tmp_path, "item_id") == [("a",), ("b",)]


def test_a_plan_is_read_without_what_is_settled_and_numbers_requests_that_can_be_written(tmp_path):
    found = planned(tmp_path, ["u0", "u1", "u2"])
    assert (found.requests, found.unwritten) == (3, 0)
    read = list(read_plan(plan_path(tmp_path), without={1}))
    assert [(one.number, one.user) for one in read] == [(0, "u0"), (2, "u2")]
    assert read[0].values == {"user_id": "u0", "now": "2026-01-05T10:00:00Z"}


@pytest.mark.parametrize("name", ["a[b]", "a*", "status=1", "model=m0"])
def test_a_run_reads_its_own_files_whatever_its_folder_is_called(tmp_path, name):
    folder, beside = tmp_path / name / "run", tmp_path / "ab" / "run"
    for number, one in enumerate((folder, beside)):
        one.mkdir(parents=True)
        planned(one, [f"u{number}"])
        journalled(one, [0], record(0, items=[f"i{number}"], model="m1"))
    log = write_log(folder, MARKS)
    found = pq.ParquetFile(log).read().select(["user_id", "item_id", "status", "model"]).to_pylist()
    assert found == [{"user_id": "u0", "item_id": "i0", "status": "ok", "model": "m1"}]
    assert measured(log).statuses == {"ok": 1}


def test_an_answer_of_many_megabytes_is_read_as_well(tmp_path):
    planned(tmp_path, ["u0", "u1", "u2"])
    items = [f"{place:0999}" for place in range(36_000)]
    journalled(tmp_path, [0, 1, 2], *(record(number, items=items) for number in range(3)))
    write_log(tmp_path, MARKS)
    assert rows(tmp_path, "count(*)", "min(length(item_id))") == [(108_000, 999)]
