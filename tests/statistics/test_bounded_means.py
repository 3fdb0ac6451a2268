"""The interval of a mean of values within bounds: how often it holds, and what it never does.

The distributions are those of metrics by list and by user: mostly 0, all the same, two values, skewed.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.statistics.effects import RatioSums, ratio_delta, ratio_within
from monitor.statistics.intervals import bounded_mean, normal_mean, wilson, wilson_within

TRIES = 2000


def _precision(random, shape):
    return random.binomial(10, random.beta(0.3, 5, shape)) / 10


def _reciprocal_rank(random, shape):
    return (random.random(shape) < 0.3) / random.integers(1, 11, shape)


DRAWS = {  # name: (how to draw, the true mean)
    "zeros and ones, 0.5": (lambda r, s: (r.random(s) < 0.5) * 1.0, 0.5),
    "zeros and ones, 0.05": (lambda r, s: (r.random(s) < 0.05) * 1.0, 0.05),
    "0.2 in one of 20, else 0": (lambda r, s: (r.random(s) < 0.05) * 0.2, 0.01),
    "precision at 10": (_precision, 0.3 / 5.3),
    "reciprocal rank": (_reciprocal_rank, 0.3 * np.mean(1 / np.arange(1, 11))),
    "four fifths 0, the rest beta(2, 2)": (lambda r, s: (r.random(s) < 0.2) * r.beta(2, 2, s), 0.1),
    "beta(0.2, 2), near 0": (lambda r, s: r.beta(0.2, 2, s), 0.2 / 2.2),
    "beta(2, 0.1), near 1": (lambda r, s: r.beta(2, 0.1, s), 2 / 2.1),
    "uniform": (lambda r, s: r.random(s), 0.5),
    "0.4 or 0.6": (lambda r, s: 0.4 + 0.2 * (r.random(s) < 0.5), 0.5),
    "beta(50, 50), all near 0.5": (lambda r, s: r.beta(50, 50, s), 0.5),
}
SIZES = (2, 5, 10, 30, 100, 1000)


def coverage(name: str, n: int, interval=bounded_mean) -> float:
    """Of 100 intervals from n values, how many hold the true mean."""
    draw, truth = DRAWS[name]
    rows = draw(np.random.default_rng(7), (TRIES, n))
    sums = zip(rows.sum(axis=1), (rows**2).sum(axis=1), strict=True)
    found = [interval(n, float(total), float(squares)) for total, squares in sums]
    return 100 * float(np.mean([low - 1e-12 <= truth <= high + 1e-12 for low, high in found]))


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("n", SIZES)
def test_at_least_91_of_100_intervals_hold_the_true_mean(name, n):
    assert coverage(name, n) >= 91


@pytest.mark.parametrize("name", DRAWS)
def test_with_a_thousand_values_at_most_97_of_100_intervals_hold_the_true_mean(name):
    assert 93 <= coverage(name, 1000) <= 97


def test_the_normal_interval_fails_in_cases_where_this_one_holds():
    assert coverage("zeros and ones, 0.05", 30, normal_mean) < 80
    assert coverage("reciprocal rank", 10, normal_mean) < 80


values = st.lists(
    st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1), st.floats(0, 1e-12)), min_size=2, max_size=40
)


@given(values, st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.0, 2.0)]))
def test_the_interval_stays_in_its_bounds_holds_the_mean_and_has_a_width(numbers, bounds):
    low, high = bounds
    scaled = [low + (high - low) * one for one in numbers]
    total = sum(scaled)
    lower, upper = bounded_mean(len(scaled), total, sum(one * one for one in scaled), bounds)
    mean = total / len(scaled)
    assert low - 1e-12 <= lower <= mean <= upper <= high + 1e-12
    assert upper - lower > 0.5 / len(scaled)


@given(values, st.data())
def test_the_interval_of_a_weighted_mean_stays_in_its_bounds_too(numbers, data):
    weights = data.draw(st.lists(st.floats(0.1, 100), min_size=len(numbers), max_size=len(numbers)))
    x = [w * v for w, v in zip(weights, numbers, strict=True)]
    sums = RatioSums(
        len(x), sum(x), sum(weights), sum(v * v for v in x), sum(w * w for w in weights),
        sum(v * w for v, w in zip(x, weights, strict=True)),
    )  # fmt: skip
    lower, upper = ratio_within(sums)
    assert -1e-12 <= lower <= ratio_delta(sums).value <= upper <= 1 + 1e-12
    assert upper > lower


@given(st.integers(2, 2000), st.data())
def test_for_zeros_and_ones_the_interval_is_nearly_wilsons(n, data):
    hits = data.draw(st.integers(0, n))
    effective = n if hits in (0, n) else n * n / (n + 1)
    found = tuple(bounded_mean(n, hits, hits))
    assert found == pytest.approx(tuple(wilson_within(hits / n, effective, n - 1)))
    if n > 1000:
        assert found == pytest.approx(tuple(wilson(hits, n)), abs=2e-4)


def test_many_values_give_the_normal_interval():
    rows = np.random.default_rng(3).beta(2, 5, 100_000)
    sums = len(rows), float(rows.sum()), float((rows**2).sum())
    assert bounded_mean(*sums) == pytest.approx(normal_mean(*sums), abs=2e-5)


def test_equal_weights_give_the_mean_of_values():
    rows = np.random.default_rng(4).beta(1, 5, 25)
    total, squares = float(rows.sum()), float((rows**2).sum())
    assert ratio_within(RatioSums(25, total, 25, squares, 25, total)) == pytest.approx(
        bounded_mean(25, total, squares)
    )


def test_one_unit_that_outweighs_all_others_gives_the_whole_range():
    sums = RatioSums(3, 1e6, 1e6 + 2, 1e12, 1e12 + 2, 1e12)
    assert ratio_within(sums) == (0.0, 1.0)


def test_one_value_and_sums_that_are_not_finite_have_no_interval():
    assert bounded_mean(1, 0.5, 0.25) is None
    assert bounded_mean(3, float("inf"), 1.0) is None
    with pytest.raises(ValueError, match="lower bound"):
        bounded_mean(3, 1.0, 1.0, (1.0, 1.0))


def test_the_page_shows_the_measured_coverage():
    from tests.conftest import ROOT

    text = (ROOT / "docs" / "statistics.md").read_text("utf-8")
    for name in DRAWS:
        cells = " | ".join(f"{coverage(name, n):.0f}" for n in SIZES)
        assert f"| {name} | {cells} |" in text
