"""What a rule has judged, counted as its violations are: the two make the error budget of a soft rule."""

from __future__ import annotations

from dataclasses import replace

from monitor.core.results import Result, Status
from monitor.history.record import CheckRun
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import NOON, counted, put, rule


def soft(violations: int, samples: int = 100, status: Status = Status.OK) -> Result:
    labels = {"rule": "few_unknown", "kind": "soft"}
    return replace(rule("few_unknown", violations, samples), labels=labels, status=status, threshold=0.1)


def totals(store: Store, name: str = "few_unknown", kind: str = "soft") -> tuple[float, float]:
    found = ("recsys_rule_violations_total", "recsys_rule_judged_total")
    violations, judged = (counted(store, one, rule=name, kind=kind) for one in found)
    return violations, judged


def in_maintenance(store: Store, results: list[Result], number: int, fingerprint: str = "a") -> None:
    runs = [CheckRun(check="rules", results=results)]
    store.record_window(
        "shop", hour(number), runs, fingerprint=fingerprint, rows=1, evaluated_at=NOON, in_maintenance=True
    )


def test_the_rows_that_a_rule_has_judged_are_counted_over_the_windows_and_across_a_restart(url: str) -> None:
    with Store.open(url) as store:
        put(store, [soft(3), rule("blacklist", 0, 70)], 0)
        put(store, [soft(1, 50), rule("blacklist", 2, 30)], 1)
        assert totals(store) == (4, 150)
        assert totals(store, "blacklist", "hard") == (2, 100)
    with Store.open(url) as store:
        put(store, [soft(0, 10)], 2)
        assert totals(store) == (4, 160)


def test_a_window_without_rows_makes_both_known_at_zero(store: Store) -> None:
    put(store, [replace(soft(0), status=Status.NO_DATA, value=None, samples=None, violations=None)])
    assert totals(store) == (0, 0)


def test_a_window_judged_again_adds_only_the_increase(store: Store) -> None:
    put(store, [soft(3)])
    put(store, [soft(3)])
    assert totals(store) == (3, 100)
    put(store, [soft(5, 140)], fingerprint="b")
    assert totals(store) == (5, 140)
    put(store, [soft(1, 90)], fingerprint="c")  # a counter never falls
    assert totals(store) == (5, 140)


def test_a_window_that_was_violated_adds_nothing_when_it_is_corrected(store: Store) -> None:
    put(store, [soft(30, status=Status.VIOLATED)])
    put(store, [soft(60, 200, Status.VIOLATED)], fingerprint="b")
    assert totals(store) == (30, 100)


def test_in_maintenance_soft_rules_use_no_budget_and_hard_ones_count_as_usual(store: Store) -> None:
    in_maintenance(store, [soft(60, status=Status.VIOLATED), rule("blacklist", 2)], 0)
    assert totals(store) == (0, 0)
    assert totals(store, "blacklist", "hard") == (2, 100)
    in_maintenance(store, [soft(80, 200, Status.VIOLATED), rule("blacklist", 2)], 0, "b")
    put(store, [soft(1), rule("blacklist", 1)], 1)
    assert totals(store) == (1, 100)
    assert totals(store, "blacklist", "hard") == (3, 200)
    assert [one.result.violations for one in store.results() if one.result.labels["kind"] == "soft"] == [
        80,
        1,
    ]
