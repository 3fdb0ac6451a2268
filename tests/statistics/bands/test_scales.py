"""The scales: round trips, even noise, and unusable values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.statistics.bands.scales import (
    Scale,
    as_scales,
    from_scale,
    sampling_sd,
    smallest_sd,
    to_scale,
    usable,
)


def one(scale):
    return np.array([scale])


@given(p=st.floats(0, 1), n=st.one_of(st.just(float("nan")), st.integers(1, 10**9)))
@settings(max_examples=150, deadline=None)
def test_a_share_comes_back_from_its_scale(p, n):
    there = to_scale(np.array([p]), np.array([float(n)]), one(Scale.SHARE))
    assert from_scale(there, np.array([float(n)]), one(Scale.SHARE))[0] == pytest.approx(p, abs=1e-9)


@given(x=st.floats(0, 1e12))
@settings(max_examples=150, deadline=None)
def test_a_count_comes_back_from_its_scale(x):
    nothing = np.array([np.nan])
    there = to_scale(np.array([x]), nothing, one(Scale.COUNT))
    assert from_scale(there, nothing, one(Scale.COUNT))[0] == pytest.approx(x, rel=1e-6, abs=1e-6)


@given(x=st.floats(-1e300, 1e300))
def test_a_level_is_its_own_scale(x):
    nothing = np.array([np.nan])
    assert to_scale(np.array([x]), nothing, one(Scale.LEVEL)).tolist() == [x]
    assert from_scale(np.array([x]), nothing, one(Scale.LEVEL)).tolist() == [x]


@pytest.mark.parametrize("many", [20, 300, 5_000])
def test_the_sampling_sd_of_a_count_is_1_on_its_scale(many):
    rng = np.random.default_rng(1)
    draws = rng.poisson(many * np.exp(0.02 * rng.normal(size=40_000))).astype(float)
    on_scale = to_scale(draws, np.full(draws.size, np.nan), np.full(draws.size, Scale.COUNT))
    assert on_scale.std() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(("p", "n"), [(0.5, 50), (0.1, 200), (0.01, 3_000), (0.97, 400)])
def test_the_sampling_sd_of_a_share_does_not_depend_on_its_size(p, n):
    draws = np.random.default_rng(2).binomial(n, p, 40_000) / n
    samples, scales = np.full(draws.size, float(n)), np.full(draws.size, Scale.SHARE)
    expected = sampling_sd(samples[:1], scales[:1])[0]
    assert to_scale(draws, samples, scales).std() == pytest.approx(expected, rel=0.05)


def test_0_where_8_were_expected_is_not_impossible():
    nothing = np.full(2, np.nan)
    far = np.diff(to_scale(np.array([8.0, 0.0]), nothing, np.full(2, Scale.COUNT)))[0]
    assert far == pytest.approx(-4.56, abs=0.03)


def test_the_ends_of_a_share_and_of_a_count_are_kept():
    samples, shares = np.array([50.0, 50.0]), np.full(2, Scale.SHARE)
    assert from_scale(np.array([-1.0, 9.0]), samples, shares).tolist() == [0.0, 1.0]
    assert from_scale(np.array([-5.0]), samples[:1], one(Scale.COUNT)).tolist() == [0.0]


def test_values_outside_the_scale_infinite_or_without_samples_are_not_usable():
    values = np.array([-0.1, 1.1, np.inf, np.nan, 0.5, -1.0, np.inf, -np.inf, -7.0])
    samples = np.array([9.0, 9.0, 9.0, 9.0, 0.0, np.nan, np.nan, 5.0, 5.0])
    scales = np.array([Scale.SHARE] * 5 + [Scale.COUNT] * 2 + [Scale.LEVEL] * 2)
    assert usable(values, samples, scales).tolist() == [False] * 8 + [True]


def test_rounding_errors_beyond_the_ends_are_accepted():
    assert usable(np.array([1 + 1e-12, -1e-12]), np.full(2, 5.0), np.full(2, Scale.SHARE)).all()


def test_a_level_of_0_still_has_a_smallest_sd():
    assert smallest_sd(np.array([0.0, 1e-4, 1.0]), np.full(3, Scale.LEVEL)).tolist() == [1e-5, 1e-5, 0.01]


def test_the_smallest_sd_of_a_share_is_the_same_at_both_ends():
    found = smallest_sd(np.array([0.02, 0.98]), np.full(2, Scale.SHARE))
    assert found[0] == pytest.approx(found[1])
    # One percent of 0.02, that is 0.0002, on the scale of the arc sine.
    assert found[0] == pytest.approx(np.arcsin(np.sqrt(0.0202)) - np.arcsin(np.sqrt(0.02)), rel=0.01)


@pytest.mark.parametrize("scales", [[0, 3], [0], [[0, 1]]])
def test_unknown_scales_and_wrong_shapes_are_refused(scales):
    with pytest.raises(ValueError, match="scale"):
        as_scales(scales, 2)
