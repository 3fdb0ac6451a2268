"""The intervals against scipy, against what they promise, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.intervals import normal_mean, quantile, wilson, wilson_bounds


@given(
    n=st.integers(1, 10**9), share=st.floats(0, 1), confidence=st.sampled_from([0.8, 0.9, 0.95, 0.99, 0.999])
)
@settings(max_examples=200, deadline=None)
def test_wilson_agrees_with_scipy(n, share, confidence):
    hits = min(n, round(n * share))
    expected = stats.binomtest(hits, n).proportion_ci(confidence, method="wilson")
    found = wilson(hits, n, confidence)
    assert found.lower == pytest.approx(expected.low, abs=1e-12)
    assert found.upper == pytest.approx(expected.high, abs=1e-12)


@given(n=st.integers(1, 10**12), share=st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_wilson_stays_within_0_and_1_and_holds_the_share(n, share):
    hits = min(n, round(n * share))
    lower, upper = wilson(hits, n)
    assert 0 <= lower <= hits / n <= upper <= 1


def test_wilson_touches_the_edges_exactly():
    assert wilson(0, 7).lower == 0.0
    assert wilson(7, 7).upper == 1.0


def test_wilson_without_samples_has_no_interval():
    assert wilson(0, 0) is None
    lower, upper = wilson_bounds([0, 1], [0, 2])
    assert np.isnan(lower[0])
    assert np.isnan(upper[0])
    assert (lower[1], upper[1]) == wilson(1, 2)


def test_the_vectorised_form_agrees_with_the_scalar_one():
    hits, n = np.arange(0, 51), 50
    lower, upper = wilson_bounds(hits, n)
    assert [(low, high) for low, high in zip(lower, upper, strict=True)] == [wilson(int(k), n) for k in hits]


@pytest.mark.parametrize(("hits", "n"), [(-1, 10), (11, 10), (1, 0)])
def test_more_hits_than_trials_are_refused(hits, n):
    with pytest.raises(ValueError, match="0 <= hits <= n"):
        wilson(hits, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_confidence_outside_0_and_1_is_refused(confidence):
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile(confidence)


@pytest.mark.parametrize(("n", "p"), [(30, 0.2), (100, 0.05), (400, 0.5), (2000, 0.01), (60, 0.9)])
def test_wilson_holds_the_truth_in_93_to_97_of_100_samples(n, p):
    hits = np.random.default_rng(7).binomial(n, p, 40_000)
    lower, upper = wilson_bounds(hits, n)
    assert 0.93 <= np.mean((lower <= p) & (p <= upper)) <= 0.97


@pytest.mark.parametrize("draw", ["normal", "uniform", "exponential"])
def test_the_normal_interval_holds_the_truth_in_93_to_97_of_100_samples(draw):
    random = np.random.default_rng(11)
    truth = {"normal": 0.0, "uniform": 0.5, "exponential": 1.0}[draw]
    values = getattr(random, draw)(size=(10_000, 100))
    held = 0
    for n, total, squares in zip([100] * 10_000, values.sum(axis=1), (values**2).sum(axis=1), strict=True):
        lower, upper = normal_mean(n, total, squares)
        held += lower <= truth <= upper
    assert 0.93 <= held / 10_000 <= 0.97


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
@settings(max_examples=200, deadline=None)
def test_the_normal_interval_agrees_with_the_sample_variance(values):
    array = np.asarray(values)
    half = quantile(0.95) * math.sqrt(array.var(ddof=1) / len(array))
    lower, upper = normal_mean(len(array), math.fsum(array), math.fsum(array**2))
    # Sums of squares keep half the digits: the tolerance is the root of float64's, by the values' size.
    tolerance = 1e-7 * max(1.0, np.abs(array).max())
    assert lower == pytest.approx(array.mean() - half, abs=tolerance)
    assert upper == pytest.approx(array.mean() + half, abs=tolerance)


def test_one_value_has_no_interval_and_equal_values_have_one_of_width_0():
    assert normal_mean(0, 0.0, 0.0) is None
    assert normal_mean(1, 0.3, 0.09) is None
    lower, upper = normal_mean(3, 0.1 * 3, 0.01 * 3)
    assert lower == pytest.approx(0.1)
    assert upper == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("total", "squares"), [(math.inf, math.inf), (math.nan, 1.0), (1.0, math.inf), (-math.inf, math.inf)]
)
def test_sums_that_are_not_finite_give_no_interval(total, squares):
    assert normal_mean(5, total, squares) is None
