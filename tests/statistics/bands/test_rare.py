"""Rare hits of a share: by hand, against scipy's negative binomial, at the edges, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from monitor.statistics.bands.band import band, deviation, limits
from monitor.statistics.bands.rare import ENOUGH, FEW, Rare, rare
from monitor.statistics.bands.scales import Scale
from tests.statistics.bands.band_worlds import past_of

NOW = np.array([57.0])


def _weeks(hits, lists=60, *, mirrored=False):
    """Four weeks of one window a day with so many hits each, and the share of the last of them."""
    shares = np.asarray(hits, np.float64)[:, None] / lists
    return past_of(1 - shares if mirrored else shares, np.full(shares.shape, float(lists)))


def test_a_tail_worked_by_hand():
    """Nothing in 28 windows of 60 lists: half a hit in 1680. Of 57 lists 11 are empty."""
    found = rare(np.zeros((28, 1)), np.full((28, 1), 60.0), np.zeros(1), NOW)
    assert (found.seen.tolist(), found.trials.tolist(), found.noise.tolist()) == ([0.5], [1680.0], [1.0])
    chance = stats.nbinom.sf(10, 0.5, 1680 / (1680 + 57))
    assert found.deviation(np.array([11 / 57])) == pytest.approx(stats.norm.isf(chance))
    assert found.deviation(np.array([0.0])).tolist() == [0.0]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 40), st.floats(0.5, 60), st.floats(50, 1e5), st.integers(1, 2000), st.sampled_from([-1, 1])
)
def test_a_deviation_equals_the_tail_of_the_negative_binomial(hits, seen, trials, samples, side):
    samples = max(samples, hits)
    one = np.ones(1)
    found = Rare(side * one, seen * one, trials * one, one, samples * one)
    chance = stats.nbinom.sf(hits - 1, seen, trials / (trials + samples))
    share = hits / samples if side > 0 else 1 - hits / samples
    want = side * max(0.0, -special.ndtri(chance))
    assert found.deviation(share * one)[0] == pytest.approx(want, rel=1e-6, abs=1e-6)


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.5, 8), st.floats(0.5, 60), st.floats(50, 1e5), st.floats(1, 3), st.sampled_from([-1.0, 1.0])
)
def test_a_limit_has_the_asked_deviation(multiple, seen, trials, noise, side):
    one = np.ones(1)
    found = Rare(side * one, seen * one, trials * one, noise * one, 200 * one)
    limit = found.limit(multiple * one)
    assert found.deviation(limit)[0] == pytest.approx(side * multiple, rel=1e-5, abs=1e-5)


def test_a_multiple_out_of_numeric_range_gives_an_infinite_limit():
    one = np.ones(1)
    assert Rare(one, 0.5 * one, 1e4 * one, one, 50 * one).limit(200 * one).tolist() == [np.inf]
    assert Rare(-one, 0.5 * one, 1e4 * one, one, 50 * one).limit(200 * one).tolist() == [-np.inf]


def test_windows_that_differ_more_than_by_chance_reduce_the_deviation():
    """Ten hits, one in each of ten windows or all in one: the mean is the same, the noise is not."""
    even, burst = np.zeros((28, 1)), np.zeros((28, 1))
    even[:10], burst[3] = 1 / 60, 10 / 60
    lists = np.full((28, 1), 60.0)
    calm, wild = (rare(one, lists, np.zeros(1), NOW) for one in (even, burst))
    assert (calm.seen.tolist(), wild.seen.tolist()) == ([10.5], [10.5])
    mean = 10.5 / 1680
    squares = (10 - 60 * mean) ** 2 + 27 * (60 * mean) ** 2
    assert wild.noise[0] == pytest.approx(np.sqrt(squares / (60 * mean * (1 - mean)) / 27))
    assert calm.noise.tolist() == [1.0]
    assert wild.deviation(np.array([0.2]))[0] < calm.deviation(np.array([0.2]))[0] / 2


def test_the_expected_share_counts_if_it_is_above_the_past_mean():
    past, lists = np.zeros((28, 1)), np.full((28, 1), 60.0)
    found = rare(past, lists, np.array([0.05]), NOW)
    assert found.seen[0] / found.trials[0] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("values", "lists", "now"),
    [
        pytest.param(np.full((28, 1), 0.2), 60.0, 57.0, id="many"),
        pytest.param(np.zeros((ENOUGH - 1, 1)), 60.0, 57.0, id="a short past"),
        pytest.param(np.zeros((28, 1)), np.nan, 57.0, id="samples unknown"),
        pytest.param(np.zeros((28, 1)), 0.0, 57.0, id="no samples then"),
        pytest.param(np.zeros((28, 1)), 60.0, 0.0, id="no samples now"),
        pytest.param(np.zeros((28, 1)), 60.0, np.nan, id="samples now unknown"),
        pytest.param(np.full((28, 1), np.nan), 60.0, 57.0, id="nothing left of the past"),
        pytest.param(np.zeros((0, 1)), 60.0, 57.0, id="no past"),
    ],
)
def test_rare_is_nan_if_nothing_is_rare(values, lists, now):
    found = rare(values, np.full(values.shape, lists), np.zeros(1), np.array([now]))
    assert np.isnan([found.deviation(np.array([0.5]))[0], found.limit(np.array([5.0]))[0]]).all()


def test_up_to_five_expected_hits_are_rare():
    past, lists = np.full((28, 1), 139.5 / 2800), np.full((28, 1), 100.0)  # 139.5 and a half in 2800
    few, many = (rare(past, lists, np.zeros(1), np.array([now])) for now in (FEW * 20 - 0.1, FEW * 20 + 0.1))
    assert (few.side.tolist(), np.isnan(many.side).tolist()) == ([1.0], [True])


@pytest.mark.parametrize("mirrored", [False, True])
def test_eleven_of_sixty_are_far_out_and_the_limit_agrees(mirrored):
    """A scene of sixty lists an hour; in most hours none is empty."""
    hits = np.zeros(28)
    hits[[3, 9, 17]] = 1
    found = band(_weeks(hits, mirrored=mirrored), Scale.SHARE, NOW)
    side = -1 if mirrored else 1

    def share(hits):
        return np.array([1 - hits / 57 if mirrored else hits / 57])

    by_scale = band(_weeks(np.full(28, 12), mirrored=mirrored), Scale.SHARE, NOW)
    assert np.isnan(by_scale.rare.side).all()
    assert side * deviation(found, share(11))[0] > 7
    assert abs(deviation(found, share(0))[0]) < 1
    lower, upper = limits(found, 6.0)
    edge = lower if mirrored else upper
    assert deviation(found, edge)[0] == pytest.approx(6 * side, rel=1e-6)
    assert min(share(9)[0], share(6)[0]) < edge[0] < max(share(9)[0], share(6)[0]), edge
    other = upper if mirrored else lower
    assert other[0] == pytest.approx(1.0 if mirrored else 0.0)


def test_the_hours_just_before_do_not_count_as_past_of_rare_hits():
    """The first hour of an incident must not hide the second one."""
    calm = np.zeros((28 * 3, 1))
    near, days = np.tile([-1, 0, 1], 28), np.repeat(np.arange(28), 3)
    keep = (days > 0) | (near == -1)
    struck = calm.copy()
    struck[(days == 0) & (near == -1)] = 0.2
    found = [
        band(
            past_of(one[keep], np.full((keep.sum(), 1), 60.0), days=days[keep], near=near[keep]),
            Scale.SHARE, NOW,
        ).rare
        for one in (calm, struck)
    ]  # fmt: skip
    assert found[0].seen.tolist() == found[1].seen.tolist() == [0.5]
    assert found[0].trials.tolist() == found[1].trials.tolist() == [27 * 3 * 60.0]


@pytest.mark.parametrize("rate", [0.0005, 0.005, 0.03])
def test_chance_alone_gives_normal_deviations(rate):
    """Four weeks of five windows a day, of 60 lists: how often is the next beyond two and three?"""
    rng = np.random.default_rng(7)
    series = 20_000
    past = rng.binomial(60, rate, (140, series)) / 60
    found = rare(past, np.full(past.shape, 60.0), np.zeros(series), np.full(series, 57.0))
    few = np.isfinite(found.side)
    far = found.deviation(rng.binomial(57, rate, series) / 57)[few]
    assert few.mean() > 0.99
    for multiple in (2.0, 3.0):
        assert (far >= multiple).mean() <= 1.15 * special.ndtr(-multiple) + 3 / series
