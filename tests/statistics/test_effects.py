"""Differences of means and of ratios against scipy, against the definition unit by unit, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.effects import (
    Moments,
    RatioSums,
    normal_difference,
    ratio_delta,
    ratio_difference,
    ratio_within,
    welch,
)
from monitor.statistics.intervals import normal_mean

VALUES = st.lists(st.integers(-1000, 1000).map(lambda n: n / 8), min_size=2, max_size=30)
UNITS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 20)), min_size=2, max_size=40)


def moments(values):
    return Moments.of_sums(len(values), float(np.sum(values)), float(np.sum(np.square(values))))


def ratio_sums(units):
    x, y = np.asarray(units, float).T
    return RatioSums(len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y)


@given(control=VALUES, treatment=VALUES, confidence=st.sampled_from([0.8, 0.95, 0.99]))
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy's, where one side has no spread
def test_welch_agrees_with_scipy(control, treatment, confidence):
    assume(np.ptp(control) > 0 or np.ptp(treatment) > 0)
    found = welch(moments(control), moments(treatment), confidence)
    expected = stats.ttest_ind(treatment, control, equal_var=False)
    interval = expected.confidence_interval(confidence)
    assert found.difference == pytest.approx(np.mean(treatment) - np.mean(control), abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert found.df == pytest.approx(expected.df, rel=1e-6)
    assert found.interval == pytest.approx((interval.low, interval.high), rel=1e-6, abs=1e-6)


def test_a_difference_of_means_worked_by_hand():
    # 1, 2, 3, 4 and 2, 4, 6, 8, 10: variances 5/3 and 10, squared error 5/12 + 2.
    found = welch(moments([1, 2, 3, 4]), moments([2, 4, 6, 8, 10]))
    square = 5 / 12 + 2
    assert found.difference == 3.5
    assert found.df == pytest.approx(square**2 / ((5 / 12) ** 2 / 3 + 2**2 / 4))
    assert found.p == pytest.approx(2 * stats.t.sf(3.5 / math.sqrt(square), found.df))


@pytest.mark.parametrize(
    ("control", "treatment"),
    [
        (Moments(1, 2.0, 0.0), Moments(50, 2.0, 1.0)),
        (Moments(0, 0.0, 0.0), Moments(50, 2.0, 1.0)),
        (Moments(50, 2.0, 0.0), Moments(50, 3.0, 0.0)),
        (Moments(50, 2.0, 0.0), Moments(50, 2.0, 0.0)),
        (Moments(50, math.nan, 1.0), Moments(50, 2.0, 1.0)),
        (Moments(50, 2.0, math.inf), Moments(50, 2.0, 1.0)),
        (Moments(50, -math.inf, 1.0), Moments(50, 2.0, 1.0)),
        (Moments(50, 2.0, math.nan), Moments(50, 2.0, 1.0)),
    ],
)
def test_too_few_units_no_spread_or_nan_give_no_test(control, treatment):
    assert welch(control, treatment) is None


def test_equal_values_have_no_spread_despite_rounding():
    same = moments([0.1] * 3)
    assert same.variance == 0
    assert welch(same, moments([0.3] * 3)) is None
    shares = ratio_sums([(0.1 * n, n) for n in range(1, 8)])
    assert ratio_delta(shares).error == 0
    assert ratio_difference(shares, shares) is None


def test_moments_need_two_units():
    assert Moments.of_sums(1, 3.0, 9.0) is None
    assert Moments.of_sums(0, 0.0, 0.0) is None
    assert Moments.of_sums(5, math.inf, math.inf) is None
    assert moments([1, 2, 3, 4]) == (4, 2.5, pytest.approx(5 / 3))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_scale_of_the_values_does_not_change_p(scale):
    one, other = Moments(20, 1.0, 2.0), Moments(30, 2.0, 3.0)
    scaled = [Moments(g.n, g.mean * scale, g.variance * scale * scale) for g in (one, other)]
    assert welch(*scaled).p == pytest.approx(welch(one, other).p)
    assert welch(Moments(10**15, 1.0, 2.0), Moments(10**15, 1.0 + 1e-7, 3.0)).p == pytest.approx(
        2 * stats.norm.sf(math.sqrt(2)), rel=1e-4
    )


def test_negative_counts_and_variances_are_refused():
    good = Moments(5, 1.0, 1.0)
    for wrong in (Moments(-1, 1.0, 1.0), Moments(5, 1.0, -1.0)):
        with pytest.raises(ValueError, match="not negative"):
            welch(good, wrong)
    with pytest.raises(ValueError, match="not negative"):
        Moments.of_sums(-2, 1.0, 1.0)
    with pytest.raises(ValueError, match="not negative"):
        Moments.of_sums(2, 1.0, -1.0)
    with pytest.raises(ValueError, match="confidence"):
        welch(good, good, 95)
    with pytest.raises(ValueError, match="not negative"):
        ratio_delta(RatioSums(5, 1, 1, -1, 1, 1))
    with pytest.raises(ValueError, match="not negative"):
        ratio_delta(RatioSums(-5, 1, 1, 1, 1, 1))


@given(units=UNITS)
@settings(max_examples=150, deadline=None)
def test_the_delta_method_agrees_with_variances_and_covariance(units):
    x, y = np.asarray(units, float).T
    found = ratio_delta(ratio_sums(units))
    ratio = x.mean() / y.mean()
    covariance = np.cov(x, y)
    variance = (covariance[0, 0] - 2 * ratio * covariance[0, 1] + ratio**2 * covariance[1, 1]) / len(x)
    assert found.value == pytest.approx(ratio)
    assert found.error == pytest.approx(math.sqrt(max(0.0, variance)) / y.mean(), abs=1e-6)
    half = 1.959964 * found.error
    assert found.interval == pytest.approx((ratio - half, ratio + half), abs=1e-6 * (1 + half))


def test_the_delta_method_agrees_with_a_bootstrap_of_users_and_not_of_exposures():
    random = np.random.default_rng(3)
    taste, seen = random.beta(1, 9, 500), random.geometric(0.05, 500)
    clicks = random.binomial(seen, taste)
    found = ratio_delta(ratio_sums(list(zip(clicks, seen, strict=True))))
    draws = random.integers(0, 500, (4000, 500))
    drawn = clicks[draws].sum(axis=1) / seen[draws].sum(axis=1)
    assert found.error == pytest.approx(drawn.std(), rel=0.06)
    as_if_independent = math.sqrt(found.value * (1 - found.value) / seen.sum())
    assert found.error > 1.5 * as_if_independent


def test_a_ratio_with_denominators_of_1_is_a_mean():
    values = [0.5, 1.5, 4.0, 2.0]
    found = ratio_delta(ratio_sums([(v, 1) for v in values]))
    assert found.interval == pytest.approx(normal_mean(4, sum(values), sum(v * v for v in values)))


@pytest.mark.parametrize(
    "sums",
    [
        RatioSums(0, 0, 0, 0, 0, 0),
        RatioSums(1, 1, 2, 1, 4, 2),
        RatioSums(5, 0, 0, 0, 0, 0),
        RatioSums(5, math.inf, 5, math.inf, 9, math.inf),
        RatioSums(5, math.nan, 5, 1, 9, 1),
        RatioSums(5, 1e300, 1e-300, 1e300, 1e-300, 1),
        RatioSums(5, 1e-200, 2e-200, 0.0, 0.0, 0.0),  # the squares vanish
    ],
)
def test_no_denominator_too_few_units_or_nan_give_no_ratio(sums):
    assert ratio_delta(sums) is None
    assert ratio_within(sums) is None
    assert ratio_difference(RatioSums(3, 6, 12, 14, 50, 26), sums) is None


def test_a_difference_of_ratios_worked_by_hand():
    # 1/3, 2/4, 3/5 and 2/3, 3/4, 4/5: what is left over is -1/2, 0, 1/2 and -1/4, 0, 1/4.
    one, other = ratio_sums([(1, 3), (2, 4), (3, 5)]), ratio_sums([(2, 3), (3, 4), (4, 5)])
    error = math.sqrt(1.5 * 0.5 + 1.5 * 0.125) / 12
    found = ratio_difference(one, other)
    assert found.difference == pytest.approx(0.25)
    assert found.interval == pytest.approx((0.25 - 1.959964 * error, 0.25 + 1.959964 * error))
    assert found.p == pytest.approx(2 * stats.norm.sf(0.25 / error))
    assert found.df == math.inf
    turned = ratio_difference(other, one)
    assert (turned.difference, turned.p) == (-found.difference, found.p)
    assert normal_difference(ratio_delta(one), ratio_delta(other)) == found
