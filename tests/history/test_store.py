"""What the store keeps, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from monitor.core.results import MOST_EVIDENCE, Status
from monitor.core.text import encodable
from monitor.history.errors import Fault, StoreError
from monitor.history.logstate import IndexedFile
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import COVERAGE, NOON, put, rule


def test_what_was_recorded_is_read_back_to_the_last_digit(store: Store) -> None:
    given = [COVERAGE, rule("blacklist", 2, detail="two of them")]
    did = put(store, given)
    assert (did.first, did.corrected, did.changed) == (True, False, True)
    kept = list(store.results())
    assert [one.result for one in kept] == given
    assert {(one.recommender, one.check, one.window) for one in kept} == {("shop", "rules", hour(0))}
    (marker,) = store.evaluated("shop")
    assert (marker.fingerprint, marker.rows, marker.seconds, marker.evaluated_at) == ("a", 100, 0.5, NOON)
    assert (marker.status, marker.revision, marker.definition) == (Status.VIOLATED, 0, "1")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -np.inf])
def test_a_value_that_is_no_number_becomes_an_error_and_the_rest_is_kept(store: Store, wrong: float) -> None:
    put(store, [replace(COVERAGE, value=wrong), rule("blacklist", 0)], status=Status.OK)
    first, second = (one.result for one in store.results())
    assert (first.status, first.value, first.lower) == (Status.ERROR, None, None)
    assert "no number" in first.detail
    assert second == rule("blacklist", 0)
    assert store.evaluated("shop")[0].status is Status.ERROR


def test_one_series_given_twice_becomes_an_error(store: Store) -> None:
    put(store, [COVERAGE, replace(COVERAGE, value=0.5)])
    (only,) = store.results()
    assert (only.result.status, only.result.value) == (Status.ERROR, None)


def test_numpy_numbers_are_kept_as_numbers(store: Store) -> None:
    put(store, [replace(COVERAGE, value=np.float32(0.5), samples=np.int64(7))])
    (only,) = store.results()
    assert (only.result.value, only.result.samples) == (0.5, 7)


@pytest.mark.parametrize("damaged", [b"\0" * 50, zlib.compress(b"[half")])
def test_a_damaged_value_is_an_error_of_the_store(store: Store, damaged: bytes) -> None:
    put(store, [COVERAGE])
    with store._database.writing() as connection:
        connection.execute(text("UPDATE results SET content = :damaged"), {"damaged": damaged})
    with pytest.raises(StoreError, match="damaged") as caught:
        list(store.results())
    assert caught.value.fault is Fault.CORRUPT


HOSTILE = [
    "'; DROP TABLE results; --",
    "<script>alert(1)</script>",
    "a\0b",
    "\udce9",
    "ü\n\r\t\u2028",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=["sql", "html", "nul", "surrogate", "lines", "long"])
def test_hostile_text_from_a_log_can_be_stored(store: Store, text: str) -> None:
    labels = {"dimension": "scene", "value": text}
    given = replace(COVERAGE, labels=labels, detail=text, evidence=({"item_id": text, text[:9]: [text]},))
    put(store, [given])
    (only,) = store.results()
    assert only.result.labels == labels
    (row,) = only.result.evidence
    assert row["item_id"][:497] == encodable(text)[:497]
    assert len(row["item_id"]) <= 500
    put(store, [given])
    assert len(list(store.results())) == 1


def test_evidence_is_bounded_and_stored_as_json(store: Store) -> None:
    rows = tuple({"n": n, "ts": datetime(2026, 1, 1), "score": float("nan")} for n in range(1000))
    put(store, [replace(COVERAGE, evidence=rows)])
    (only,) = store.results()
    assert len(only.result.evidence) == MOST_EVIDENCE
    assert only.result.evidence[1] == {"n": 1, "ts": "2026-01-01T00:00:00Z", "score": "NaN"}


def test_a_window_without_any_result_is_no_data_and_never_ok(store: Store) -> None:
    put(store, [])
    assert store.evaluated("shop")[0].status is Status.NO_DATA


def test_evaluated_windows_are_found_by_range_and_check(store: Store) -> None:
    for number in range(6):
        put(store, [COVERAGE], number)
    put(store, [COVERAGE], 3, check="exposure")
    put(store, [COVERAGE], 3, recommender="news")
    found = store.evaluated("shop", "rules", start=hour(2).start, end=hour(4).end)
    assert [one.window for one in found] == [hour(2), hour(3), hour(4)]
    assert [one.check for one in store.evaluated("shop", start=hour(3).start, end=hour(3).end)] == [
        "exposure",
        "rules",
    ]


def test_the_export_pages_through_any_number_of_windows_in_order(store: Store) -> None:
    for number in reversed(range(230)):
        for name in ("shop", "news"):
            put(store, [replace(COVERAGE, value=float(number))], number, recommender=name)
    kept = list(store.results())
    assert [(one.recommender, one.window, one.result.value) for one in kept] == [
        (name, hour(number), float(number)) for name in ("news", "shop") for number in range(230)
    ]
    some = store.results(recommenders=["shop"], start=hour(100).start, end=hour(209).end)
    assert [one.result.value for one in some] == [float(number) for number in range(100, 210)]
    assert list(store.results(recommenders=[])) == []


def test_the_index_holds_exactly_the_files_given_last(store: Store) -> None:
    one = IndexedFile(
        path="logs/a.parquet",
        size=10,
        modified="etag-1",
        rows=5,
        max_ts=NOON,
        buckets={"0": [5, 9]},
    )
    bad = IndexedFile(
        path="logs/\udce9" + "x" * 4000, size=0, modified="", status="skipped", reason="not\0Parquet"
    )
    store.replace_files("shop", "exposures", [one, bad], watermark=NOON)
    assert store.files("shop", "exposures") == {
        one.path: one,
        bad.path: replace(bad, reason="not\ufffdParquet"),
    }
    assert store.watermarks("shop") == {"exposures": NOON}
    grown = replace(one, size=11, modified="etag-2")
    store.replace_files("shop", "exposures", [grown])
    assert store.files("shop", "exposures") == {grown.path: grown}
    assert store.files("shop", "feedback") == {}


def test_a_watermark_is_set_as_given(store: Store) -> None:
    store.set_watermark("shop", "feedback", NOON)
    store.set_watermark("shop", "feedback", NOON - timedelta(days=1))
    assert store.watermarks("shop") == {"feedback": NOON - timedelta(days=1)}
    assert store.watermarks("news") == {}


@pytest.mark.parametrize("folder", ["what?", "my%20shop", "a#b"])
def test_a_file_is_opened_in_its_folder_whatever_that_is_called(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    with Store.open(tmp_path / folder / "history.sqlite"):
        assert (tmp_path / folder / "history.sqlite").exists()
    assert [one.name for one in tmp_path.iterdir()] == [folder]
