"""Recording a window once, twice and anew: what is replaced, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.core.results import Result, Status
from monitor.history.counters import key
from monitor.history.record import CheckRun
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import COVERAGE, NOON, Dump, counted, put, rule


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


def test_results_of_a_new_definition_are_kept_beside_the_old_ones_and_shown_instead(
    store: Store, dump: Dump
) -> None:
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


def test_undefined_results_are_counted_and_slices_are_not_counted_twice(store: Store) -> None:
    undefined = Result(metric="gini", status=Status.UNDEFINED, definition="1")
    sliced = replace(undefined, labels={"dimension": "scene", "value": "home"})
    put(store, [undefined, sliced, rule("blacklist", 0)])
    assert counted(store, "recsys_undefined_total", metric="gini") == 1
    assert store.evaluated("shop")[0].status is Status.OK


def test_a_violated_metric_that_becomes_undefined_is_counted_as_undefined(store: Store) -> None:
    put(store, [replace(COVERAGE, status=Status.VIOLATED, value=0.1)])
    put(store, [replace(COVERAGE, status=Status.UNDEFINED, value=None)], fingerprint="b")
    assert counted(store, "recsys_undefined_total", metric="coverage") == 1


def test_the_undefined_results_of_a_metric_stay_known_at_zero_once_a_window_lacks_the_metric(
    store: Store,
) -> None:
    put(store, [Result(metric="gini", status=Status.OK, definition="1", value=0.5)])
    assert counted(store, "recsys_undefined_total", metric="gini") == 0
    later = CheckRun(check="exposure", results=[rule("blacklist", 0)])
    store.record_window("shop", hour(1), [later], fingerprint="a", rows=1, evaluated_at=NOON)
    assert counted(store, "recsys_undefined_total", metric="gini") == 0


def test_counters_only_rise_and_survive_a_restart(url: str) -> None:
    missed = key("recsys_scheduler_runs_total", {"recommender": "shop", "outcome": "missed"})
    with Store.open(url) as store:
        store.bump_all({key("recsys_scheduler_runs_total", {"outcome": "missed", "recommender": "shop"}): 0})
        store.bump_all({missed: 2})
        with pytest.raises(ValueError, match="only rises"):
            store.bump_all({missed: -1})
    with Store.open(url) as store:
        store.bump_all({missed: 1})
        assert store.counters() == {
            ("recsys_scheduler_runs_total", (("outcome", "missed"), ("recommender", "shop"))): 3.0
        }


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
