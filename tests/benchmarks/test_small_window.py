"""A small window must not get dearer: processor time beside statements by hand, in one run."""

from __future__ import annotations

from pathlib import Path

from benchmarks.small_window import WORSE, Cost, complaint, kept, measure


def test_a_small_window_costs_at_most_half_as_much_again_as_in_the_run_that_was_kept(tmp_path: Path) -> None:
    cost = measure(tmp_path, windows=8)
    assert cost.windows == 8
    assert cost.own > cost.by_hand > 0
    assert complaint(cost, kept()) == ""


def test_a_window_that_got_dearer_is_named_with_both_ratios() -> None:
    dear = Cost(own=1.0, by_hand=0.05, ratio=1.01 * WORSE * kept(), windows=8)
    assert f"more than {WORSE} times the kept ratio of {kept():.1f}" in complaint(dear, kept())
