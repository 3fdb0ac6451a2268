"""Intervals of rates: their coverage, and how they are shown."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.scoreboard.rates import Share, Weekly, poisson


@pytest.mark.parametrize("mean", [0.5, 3.0, 20.0])
def test_the_interval_of_a_count_holds_its_rate_at_least_as_often_as_it_says(mean: float) -> None:
    counts, times = np.unique(np.random.default_rng(1).poisson(mean, 20_000), return_counts=True)
    found = [poisson(int(count), 2.0) for count in counts]
    covers = np.array([one.lower <= mean / 2 <= one.upper for one in found])
    assert (covers * times).sum() / times.sum() >= 0.947  # 0.95, less three standard errors


def test_nothing_seen_leaves_room_for_some() -> None:
    assert poisson(0, 1.0) == pytest.approx((0.0, 3.6889), abs=1e-4)
    assert poisson(0, 10.0).upper == pytest.approx(0.36889, abs=1e-5)
    assert poisson(0, 1.0, confidence=0.9).upper == pytest.approx(-np.log(0.05))


def test_many_events_give_almost_the_normal_interval() -> None:
    lower, upper = poisson(10_000, 1.0)
    assert (lower, upper) == pytest.approx((10_000 - 196, 10_000 + 196), abs=3)


def test_wrong_counts_and_times_are_refused() -> None:
    for count, time in ((-1, 1.0), (1, 0.0), (1, float("nan"))):
        with pytest.raises(ValueError, match="a rate needs"):
            poisson(count, time)


def test_rates_are_shown_with_their_intervals() -> None:
    assert str(Share.of([True, True, False])) == "2 of 3 (21 to 94 %)"
    assert str(Share.of([])) == "-"
    assert str(Weekly(30, 1.0)) == "30 (20 to 43 a week)"
    assert str(Weekly(2, 8.0)) == "2 (0.03 to 0.9 a week)"
