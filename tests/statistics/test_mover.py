"""Differences from two intervals: published cases, properties, and how often they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.intervals import wilson
from monitor.statistics.mover import Estimate, difference, samples_needed


def share(hits: int, n: int) -> Estimate:
    interval = wilson(hits, n)
    assert interval is not None
    return Estimate(hits / n, *interval)


# R. G. Newcombe, Statistics in Medicine 17 (1998), table II, method 10: first share less second share.
NEWCOMBE = [
    ((56, 70), (48, 80), (0.0524, 0.3339)),
    ((9, 10), (3, 10), (0.1705, 0.8090)),
    ((6, 7), (2, 7), (0.0582, 0.8062)),
    ((5, 56), (0, 29), (-0.0381, 0.1926)),
    ((0, 10), (0, 20), (-0.1611, 0.2775)),
    ((0, 10), (0, 10), (-0.2775, 0.2775)),
    ((10, 10), (0, 20), (0.6791, 1.0)),
    ((10, 10), (0, 10), (0.6075, 1.0)),
]


@pytest.mark.parametrize(("first", "second", "published"), NEWCOMBE)
def test_the_published_intervals_of_two_shares(first, second, published) -> None:
    assert difference(share(*second), share(*first)) == pytest.approx(published, abs=5e-5)


def test_symmetric_intervals_add_up_by_their_squares() -> None:
    found = difference(Estimate(10.0, 7.0, 13.0), Estimate(12.0, 8.0, 16.0))
    assert found == pytest.approx((2 - 5, 2 + 5))


def test_more_comparisons_make_it_wider() -> None:
    a, b = Estimate(0.0, -1.0, 1.0), Estimate(0.0, -1.0, 1.0)
    of_ten = difference(a, b, comparisons=10)
    wider = stats.norm.isf(0.05 / 10 / 2) / stats.norm.isf(0.05 / 2)
    assert of_ten.upper == pytest.approx(math.sqrt(2) * wider)
    assert of_ten.lower == pytest.approx(-of_ten.upper)


values = st.floats(-1e6, 1e6)
halves = st.floats(0, 1e6)
estimates = st.builds(
    lambda value, below, above: Estimate(value, value - below, value + above), values, halves, halves
)


@given(estimates, estimates, st.integers(1, 1000))
def test_it_contains_the_difference_and_turns_with_the_sides(a, b, comparisons) -> None:
    found, turned = difference(a, b, comparisons=comparisons), difference(b, a, comparisons=comparisons)
    assert found.lower <= b.value - a.value <= found.upper
    assert (found.lower, found.upper) == pytest.approx((-turned.upper, -turned.lower), abs=1e-6)


def test_exact_values_have_an_exact_difference() -> None:
    assert difference(Estimate(3.0, 3.0, 3.0), Estimate(5.0, 5.0, 5.0)) == (2.0, 2.0)


@pytest.mark.parametrize(
    "bad",
    [
        Estimate(math.nan, 0, 1), Estimate(0.5, -math.inf, 1), Estimate(0.5, 0, math.nan), Estimate(2, 0, 1),
        Estimate(-1, 0, 1),
    ],
)  # fmt: skip
def test_an_interval_is_finite_and_contains_its_value(bad) -> None:
    for pair in ((bad, share(1, 2)), (share(1, 2), bad)):
        with pytest.raises(ValueError, match="contains its value"):
            difference(*pair)


def test_there_is_a_comparison() -> None:
    with pytest.raises(ValueError, match="one comparison or more"):
        difference(share(1, 2), share(1, 2), comparisons=0)


@pytest.mark.parametrize(("one", "other", "n"), [(0.02, 0.05, 400), (0.03, 0.01, 500), (0.5, 0.6, 60)])
def test_it_holds_the_true_difference_in_about_95_of_100(one, other, n) -> None:
    rng = np.random.default_rng(3)
    pairs = zip(rng.binomial(n, one, 3000), rng.binomial(n, other, 3000), strict=True)
    held = [
        found.lower <= other - one <= found.upper
        for a, b in pairs
        for found in [difference(share(int(a), n), share(int(b), n))]
    ]
    assert 0.935 < np.mean(held) < 0.985


def test_the_published_interval_of_two_paired_shares() -> None:
    """D. G. Altman and others, Statistics with Confidence (2000), table 6.2: 14, 5, 0 and 22 pairs."""
    both, first, second, neither = 14, 5, 0, 22
    n = both + first + second + neither
    product = both * neither - first * second - n / 2  # Newcombe's correction of phi
    phi = product / math.sqrt((both + first) * (second + neither) * (both + second) * (first + neither))
    found = difference(share(both + second, n), share(both + first, n), correlation=phi)
    assert found == pytest.approx((0.011, 0.226), abs=5e-4)


def test_a_correlation_narrows_the_interval_and_an_opposed_one_widens_it() -> None:
    a, b = Estimate(0.5, 0.4, 0.6), Estimate(0.6, 0.5, 0.7)
    widths = [
        found.upper - found.lower
        for r in (-1.0, 0.0, 0.5, 1.0)
        for found in [difference(a, b, correlation=r)]
    ]
    assert widths == pytest.approx([0.4, 0.2 * math.sqrt(2), 0.2, 0.0])
    for wrong in (1.1, -1.1, math.nan):
        with pytest.raises(ValueError, match="within -1 and 1"):
            difference(a, b, correlation=wrong)


@pytest.mark.parametrize("comparisons", [1, 40])
@pytest.mark.parametrize(("one", "other"), [(0.1, 0.13), (0.02, 0.03), (0.5, 0.46)])
def test_so_many_samples_decide_in_about_80_of_100_cases(one, other, comparisons) -> None:
    pilot = [share(round(2000 * p), 2000) for p in (one, other)]
    n = samples_needed(*pilot, (2000, 2000), abs(other - one), comparisons=comparisons)
    rng = np.random.default_rng(7)
    decided = 0
    for a, b in zip(*(rng.binomial(n, p, 1000) for p in (one, other)), strict=True):
        lower, upper = difference(share(a, n), share(b, n), comparisons=comparisons)
        decided += lower > 0 or upper < 0
    assert 760 <= decided <= 850


def test_sides_of_other_sizes_need_as_many_as_equal_ones() -> None:
    def needed(a: int, b: int) -> int | None:
        return samples_needed(share(a // 10, a), share(b // 8, b), (a, b), 0.02)

    assert needed(1000, 100_000) == pytest.approx(needed(100_000, 100_000), rel=0.1)


def test_a_share_of_0_needs_far_fewer_since_its_interval_falls_with_the_samples() -> None:
    needed = samples_needed(share(0, 20), share(0, 20), (20, 20), 0.002, power=0.5)
    lower, upper = difference(share(0, needed), share(0, needed))
    assert max(-lower, upper) == pytest.approx(0.002, rel=0.2)
    assert needed < 5000


def test_the_same_users_need_fewer() -> None:
    half = Estimate(0.5, 0.4, 0.6)
    alone, paired = (samples_needed(half, half, (100, 100), 0.05, correlation=r) for r in (0.0, 0.75))
    assert (alone, paired) == (1635, 409)


def test_no_sample_and_no_distance_decide_nothing() -> None:
    half = Estimate(0.5, 0.4, 0.6)
    assert samples_needed(half, half, (0, 100), 0.1) is None
    assert samples_needed(half, half, (100, 100), 0.0) is None
    assert samples_needed(half, half, (100, 100), math.nan) is None
    assert samples_needed(half, half, (100, 100), 1e-9) is None  # more than anybody has
    exact = Estimate(0.5, 0.5, 0.5)
    assert samples_needed(exact, exact, (100, 100), 0.1) == 1
    for power in (0.4, 1.0, math.nan):
        with pytest.raises(ValueError, match="a power"):
            samples_needed(half, half, (100, 100), 0.1, power=power)
