"""What the store keeps, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from monitor.history.counters import key
from monitor.history.logstate import IndexedFile
from monitor.history.record import CheckRun
from monitor.history.rows import MOST_EVIDENCE
from monitor.history.store import Store
from monitor.results import Result, Status, Window

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)
Dump = Callable[[Store], dict[str, list[Any]]]


def hour(number: int) -> Window:
    return Window.of(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number), timedelta(hours=1))


def rule(name: str, violations: int, samples: int = 100, **more: Any) -> Result:
    return Result(
        metric="rule",
        status=Status.VIOLATED if violations else Status.OK,
        definition="1",
        labels={"rule": name, "kind": "hard"},
        value=violations / samples,
        samples=samples,
        violations=violations,
        threshold=0.0,
        severity="critical",
        evidence=tuple({"item_id": f"i{n}", "place": n} for n in range(min(violations, 20))),
        **more,
    )


COVERAGE = Result(
    metric="coverage",
    status=Status.OK,
    definition="1",
    labels={"by": "pv"},
    value=1 / 3,
    samples=2**40,
    lower=0.1,
    upper=0.9000000000000001,
    bound="min",
    threshold=0.2,
)


def put(store: Store, results: list[Result], number: int = 0, fingerprint: str = "a", **more: Any) -> Any:
    given = {
        "recommender": "shop",
        "check": "rules",
        "rows": 100,
        "seconds": 0.5,
        "evaluated_at": NOON,
    } | more
    return store.record(window=hour(number), results=results, fingerprint=fingerprint, **given)


def counted(store: Store, name: str, **labels: str) -> float:
    return store.counters()[key(name, {"recommender": "shop", **labels})]


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


def test_running_a_window_twice_changes_nothing_at_all(store: Store, dump: Dump) -> None:
    put(store, [COVERAGE, rule("blacklist", 2)])
    before = dump(store)
    did = put(store, [rule("blacklist", 2), COVERAGE], evaluated_at=NOON + timedelta(hours=1), seconds=9.0)
    assert (did.first, did.corrected, did.changed) == (False, False, False)
    assert dump(store) == before


def test_a_correction_replaces_the_results_and_counts_once(store: Store) -> None:
    put(store, [COVERAGE, rule("blacklist", 2), rule("catalog", 5)])
    did = put(store, [rule("blacklist", 7), rule("catalog", 1)], fingerprint="b")
    assert (did.first, did.corrected) == (False, True)
    assert [one.result for one in store.results()] == [rule("blacklist", 7), rule("catalog", 1)]
    assert store.evaluated("shop")[0].revision == 1
    assert counted(store, "recsys_corrections_total") == 1
    assert counted(store, "recsys_rule_violations_total", rule="blacklist", kind="hard") == 2
    assert counted(store, "recsys_rule_violations_total", rule="catalog", kind="hard") == 5
    assert counted(store, "recsys_check_runs_total", check="rules", status="ok") == 1
    assert counted(store, "recsys_windows_total", status="violated") == 1


def test_a_correction_counts_the_violations_of_a_rule_that_was_not_violated_before(store: Store) -> None:
    put(store, [rule("blacklist", 0)])
    put(store, [rule("blacklist", 3)], fingerprint="b")
    assert counted(store, "recsys_rule_violations_total", rule="blacklist", kind="hard") == 3
    put(store, [rule("blacklist", 8)], fingerprint="c")
    assert counted(store, "recsys_rule_violations_total", rule="blacklist", kind="hard") == 3


def test_a_correction_that_makes_a_window_worse_counts_it_under_the_worse_status(store: Store) -> None:
    put(store, [rule("blacklist", 0)])
    assert counted(store, "recsys_windows_total", status="violated") == 0
    put(store, [rule("blacklist", 1)], fingerprint="b")
    put(store, [rule("blacklist", 0)], fingerprint="c")
    assert counted(store, "recsys_windows_total", status="violated") == 1
    assert counted(store, "recsys_windows_total", status="ok") == 1
    assert counted(store, "recsys_corrections_total") == 2


def test_other_results_on_the_same_data_are_no_correction(store: Store) -> None:
    put(store, [COVERAGE, rule("blacklist", 2)])
    did = put(store, [rule("blacklist", 2)])
    assert (did.changed, did.corrected) == (True, False)
    assert [one.result.metric for one in store.results()] == ["rule"]
    assert store.evaluated("shop")[0].revision == 0


def test_another_definition_stands_beside_the_old_one_and_in_front_of_it(store: Store, dump: Dump) -> None:
    put(store, [rule("blacklist", 2)])
    put(store, [rule("blacklist", 3)], definition="2")
    assert [one.definition for one in store.evaluated("shop")] == ["2"]
    assert [one.result.violations for one in store.results()] == [3]
    assert len(dump(store)["windows"]) == 2
    assert counted(store, "recsys_rule_violations_total", rule="blacklist", kind="hard") == 2
    put(store, [rule("blacklist", 2)], definition="1")
    assert [one.result.violations for one in store.results()] == [2]


def test_all_checks_of_a_window_recorded_together_count_one_window_and_one_correction(store: Store) -> None:
    def runs(violations: int) -> list[CheckRun]:
        return [
            CheckRun(check="rules", results=[rule("blacklist", violations)]),
            CheckRun(check="exposure", results=[COVERAGE], outcome="interrupted", status=Status.ERROR),
        ]

    for fingerprint, violations in [("a", 1), ("b", 2), ("b", 2)]:
        store.record_window(
            "shop", hour(0), runs(violations), fingerprint=fingerprint, rows=1, evaluated_at=NOON
        )
    assert counted(store, "recsys_windows_total", status="violated") == 1
    assert counted(store, "recsys_windows_total", status="error") == 0
    assert counted(store, "recsys_corrections_total") == 1
    assert counted(store, "recsys_check_runs_total", check="exposure", status="interrupted") == 1
    assert counted(store, "recsys_check_runs_total", check="rules", status="ok") == 1


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


HOSTILE = [
    "'; DROP TABLE results; --",
    "<script>alert(1)</script>",
    "a\0b",
    "\udce9",
    "ü\n\r\t\u2028",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=["sql", "html", "nul", "surrogate", "lines", "long"])
def test_whatever_a_log_holds_can_be_kept(store: Store, text: str) -> None:
    labels = {"dimension": "scene", "value": text}
    given = replace(COVERAGE, labels=labels, detail=text, evidence=({"item_id": text, text[:9]: [text]},))
    put(store, [given])
    (only,) = store.results()
    assert only.result.labels == labels
    (row,) = only.result.evidence
    assert row["item_id"][:500] == text[:500]
    assert len(row["item_id"]) <= 501
    put(store, [given])
    assert len(list(store.results())) == 1


def test_evidence_is_bounded_and_plain(store: Store) -> None:
    rows = tuple({"n": n, "ts": datetime(2026, 1, 1), "score": float("nan")} for n in range(1000))
    put(store, [replace(COVERAGE, evidence=rows)])
    (only,) = store.results()
    assert len(only.result.evidence) == MOST_EVIDENCE
    assert only.result.evidence[1] == {"n": 1, "ts": "2026-01-01T00:00:00Z", "score": "nan"}


def test_undefined_results_are_counted_and_slices_are_not_counted_twice(store: Store) -> None:
    undefined = Result(metric="gini", status=Status.UNDEFINED, definition="1")
    sliced = replace(undefined, labels={"dimension": "scene", "value": "home"})
    put(store, [undefined, sliced, rule("blacklist", 0)])
    assert counted(store, "recsys_undefined_total", metric="gini") == 1
    assert store.evaluated("shop")[0].status is Status.OK


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


def test_counters_only_rise_and_survive_a_restart(url: str) -> None:
    with Store.open(url) as store:
        store.bump("recsys_scheduler_runs_total", {"outcome": "missed", "recommender": "shop"}, 0)
        store.bump("recsys_scheduler_runs_total", {"recommender": "shop", "outcome": "missed"}, 2)
        with pytest.raises(ValueError, match="only rises"):
            store.bump("recsys_scheduler_runs_total", {"recommender": "shop"}, -1)
    with Store.open(url) as store:
        store.bump("recsys_scheduler_runs_total", {"recommender": "shop", "outcome": "missed"})
        assert store.counters() == {
            ("recsys_scheduler_runs_total", (("outcome", "missed"), ("recommender", "shop"))): 3.0
        }


def test_the_index_of_files_says_exactly_what_was_given_last(store: Store) -> None:
    one = IndexedFile(
        path="logs/a.parquet",
        size=10,
        modified="etag-1",
        rows=5,
        min_ts=NOON,
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


def test_retention_drops_old_windows_with_all_that_hangs_on_them(store: Store, dump: Dump) -> None:
    for number in range(130):
        put(store, [rule("blacklist", 1), rule(f"old{number % 7}" if number < 100 else "new", 1)], number)
    before = store.counters()
    assert store.drop_before(hour(120).end) == 120
    left = dump(store)
    assert len(left["windows"]) == 10
    assert len(left["results"]) == len(left["evidence"]) == 20
    assert {one.window for one in store.evaluated("shop")} == {hour(number) for number in range(120, 130)}
    assert store.counters() == before
    assert store.drop_before(hour(120).end) == 0


def test_retention_keeps_the_windows_that_may_be_judged_again_however_old_they_are(store: Store) -> None:
    for name in ("shop", "news"):
        for number in range(6):
            put(store, [COVERAGE], number, recommender=name)
    assert store.drop_before(hour(100).end, {"shop": hour(4).start, "gone": hour(0).start}) == 10
    assert [one.window for one in store.evaluated("shop")] == [hour(4), hour(5)]
    assert store.evaluated("news") == []


def test_retention_forgets_the_log_state_of_a_recommender_that_is_gone_but_not_of_a_live_one(
    store: Store,
) -> None:
    put(store, [COVERAGE], 0, recommender="gone")
    put(store, [COVERAGE], 500, recommender="shop")
    old = IndexedFile(path="a", size=1, modified="x", max_ts=hour(0).end)
    for name in ("gone", "shop"):
        store.replace_files(name, "exposures", [old], watermark=hour(0).end)
    store.drop_before(hour(100).end)
    assert (store.files("gone", "exposures"), store.watermarks("gone")) == ({}, {})
    assert list(store.files("shop", "exposures")) == ["a"]
    assert store.watermarks("shop") == {"exposures": hour(0).end}


def test_a_recording_that_fails_in_the_middle_leaves_nothing_behind(store: Store, dump: Dump) -> None:
    put(store, [COVERAGE])
    before = dump(store)
    broken = CheckRun(check="exposure", results=[replace(COVERAGE, samples="many")])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="many"):
        store.record_window(
            "shop",
            hour(0),
            [CheckRun(check="rules", results=[rule("blacklist", 3)]), broken],
            fingerprint="b",
            rows=1,
            evaluated_at=NOON,
        )
    assert dump(store) == before
