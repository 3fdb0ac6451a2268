"""Medians of many series at once against the plain ones, and the robust spread."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.statistics.bands.medians import median, median_of_the_others, spread, spread_of_most

numbers = st.lists(st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6)), max_size=9)


@given(numbers)
@settings(max_examples=150, deadline=None)
def test_a_median_skips_missing_values(values):
    there = [value for value in values if value == value]
    found = float(median(np.array([values]))[0]) if values else float(median(np.empty((1, 0)))[0])
    assert found == pytest.approx(statistics.median(there), rel=1e-12) if there else np.isnan(found)


@given(numbers)
@settings(max_examples=150, deadline=None)
def test_the_median_of_the_others_leaves_out_exactly_one_value(values):
    found = median_of_the_others(np.array([values], dtype=np.float64).reshape(1, -1))[0]
    for place, one in enumerate(found):
        others = [value for n, value in enumerate(values) if n != place and value == value]
        assert one == pytest.approx(statistics.median(others), rel=1e-12) if others else np.isnan(one)


def test_the_median_of_the_others_of_equal_values_is_that_value():
    assert median_of_the_others(np.array([2.0, 2.0, 2.0])).tolist() == [2.0, 2.0, 2.0]


def test_the_spread_of_normal_residuals_is_their_standard_deviation():
    draws = np.random.default_rng(11).normal(0, 3, (400, 100))
    found = spread(draws)
    assert found.mean() == pytest.approx(3, rel=0.02)
    assert found.std() / 3 < 0.09  # of the plain standard deviation it is 0.071, of the MAD 0.117


@pytest.mark.parametrize(("n", "widest"), [(8, 1.12), (15, 1.06), (40, 1.04)])
def test_few_residuals_do_not_make_the_spread_small(n, widest):
    found = spread(np.random.default_rng(12).normal(size=(4000, n)))
    assert 0.96 < np.sqrt((found**2).mean()) < widest


def test_a_third_of_outliers_widens_the_spread_by_a_bounded_factor():
    draws = np.random.default_rng(13).normal(size=(200, 90))
    draws[:, :30] = 1e9
    assert spread(draws).max() < 4.5


def test_outliers_do_not_count_in_spread_of_most():
    draws = np.random.default_rng(14).normal(size=(400, 90))
    assert spread_of_most(draws).mean() == pytest.approx(1, rel=0.03)
    draws[:, :12] = 1e9
    assert spread_of_most(draws).mean() == pytest.approx(1, rel=0.05)
    assert spread(draws).mean() > 1.3


def test_if_most_residuals_are_0_the_others_still_count():
    assert spread(np.array([[0.0, 0.0, 0.0, 0.0, 1.0]]))[0] > 0.2
    assert spread(np.array([[0.0] * 5]))[0] == 0.0


def test_the_spread_of_no_residual_is_nan_and_of_one_its_size():
    found = spread(np.array([[np.nan, np.nan], [2.0, np.nan]]))
    assert np.isnan(found[0])
    assert found[1] >= 2.0
    assert np.isnan([spread(np.empty((1, 0)))[0], spread_of_most(np.full((1, 2), np.nan))[0]]).all()
