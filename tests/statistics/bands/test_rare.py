"""Rare hits of a share: by hand, against scipy's negative binomial, at the edges, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from monitor.statistics.bands.rare import ENOUGH, FEW, Rare, RareSums
from monitor.statistics.bands.spans import LONGEST, SPANS

SLOTS = 24
FADES = 1 - 1 / (28 * SLOTS)


def taught(shares, lists=60.0, *, slots=SLOTS):
    """Sums that learned these windows of one series, and then a span of windows that are not in them yet."""
    sums = RareSums(slots)
    sums.add(1)
    for share in [*shares, *[np.nan] * LONGEST]:
        sums.rare(np.array([share]), np.array([lists]), np.zeros(1))
        sums.learn(True)
    return sums


def asked(sums, share, lists=57.0, expected=0.0):
    """What is rare in a window after them."""
    return sums.rare(np.array([share]), np.array([lists]), np.array([expected])).of_window


def rare_of(side, seen, trials, noise, samples, hits):
    one = np.ones(1)
    return Rare(
        side * one, seen * one, trials * one, noise * one, samples * one, hits * one, usual=-side * one
    )


def test_a_tail_worked_by_hand():
    """Nothing in 28 windows of 60 lists: half a hit. Of 57 lists 11 are empty."""
    trials = sum(60 * FADES**ago for ago in range(28))
    found = asked(taught(np.zeros(28)), 11 / 57)
    assert found.trials[0] == pytest.approx(trials)
    assert (found.seen.tolist(), found.noise.tolist(), found.samples.tolist()) == ([0.5], [1.0], [57.0])
    assert found.hits[0] == pytest.approx(11)
    chance = stats.nbinom.sf(10, 0.5, trials / (trials + 57))
    assert found.deviation[0] == pytest.approx(stats.norm.isf(chance))
    assert asked(taught(np.zeros(28)), 0.0).deviation.tolist() == [0.0]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 40), st.floats(0.5, 60), st.floats(50, 1e5), st.integers(1, 2000), st.sampled_from([-1, 1])
)
def test_a_deviation_equals_the_tail_of_the_negative_binomial(hits, seen, trials, samples, side):
    samples = max(samples, hits)
    found = rare_of(side, seen, trials, 1.0, samples, hits if side > 0 else samples - hits)
    chance = stats.nbinom.sf(hits - 1, seen, trials / (trials + samples))
    want = side * max(0.0, -special.ndtri(chance))
    assert found.deviation[0] == pytest.approx(want, rel=1e-6, abs=1e-6)


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.5, 8), st.floats(0.5, 60), st.floats(50, 1e5), st.floats(1, 3), st.sampled_from([-1.0, 1.0])
)
def test_a_limit_has_the_asked_deviation(multiple, seen, trials, noise, side):
    limit = rare_of(side, seen, trials, noise, 200, 0).limit(np.array([multiple]))[0]
    there = rare_of(side, seen, trials, noise, 200, limit * 200)
    assert there.deviation[0] == pytest.approx(side * multiple, rel=1e-5, abs=1e-5)


def test_a_multiple_out_of_numeric_range_gives_an_infinite_limit():
    far = np.array([200.0])
    assert rare_of(1, 0.5, 1e4, 1, 50, 0).limit(far).tolist() == [np.inf]
    assert rare_of(-1, 0.5, 1e4, 1, 50, 0).limit(far).tolist() == [-np.inf]


def test_windows_that_differ_more_than_by_chance_reduce_the_deviation():
    """Ten hits, one in each of ten windows or all in one: the mean is nearly the same, the noise is not."""
    even, burst = np.zeros(28), np.zeros(28)
    even[10:20], burst[15] = 1 / 60, 10 / 60
    calm, wild = (asked(taught(one), 0.2) for one in (even, burst))
    assert calm.seen[0] == pytest.approx(wild.seen[0], rel=0.01)
    assert calm.noise[0] < 1.3
    assert wild.noise[0] > 3
    assert wild.deviation[0] < calm.deviation[0] / 2


def test_the_noise_by_hand():
    """Each window but the first differs from the mean of those before it, of half a hit and a list more."""
    sums = taught([0.0] * 9 + [6 / 60], slots=10**9)  # nothing fades
    squares = 0.0
    for before, hits in zip(range(1, 10), [0] * 8 + [6], strict=True):
        mean = 0.5 / (60 * before + 1)
        squares += (hits - 60 * mean) ** 2 / (60 * mean * (1 - mean))
    assert asked(sums, 0.0).noise[0] == pytest.approx(np.sqrt(squares / 9), rel=1e-4)


def test_the_expected_share_counts_if_it_is_above_the_past_mean():
    sums = taught(np.zeros(28))
    found = asked(sums, 0.0, expected=0.05)
    assert found.seen[0] / found.trials[0] == pytest.approx(0.05)
    mirrored = asked(taught(np.ones(28)), 1.0, expected=0.95)
    assert (mirrored.side[0], mirrored.seen[0] / mirrored.trials[0]) == (-1.0, pytest.approx(0.05))


@pytest.mark.parametrize(
    ("values", "lists", "now"),
    [
        pytest.param(np.full(28, 0.2), 60.0, 57.0, id="many"),
        pytest.param(np.zeros(ENOUGH - 1), 60.0, 57.0, id="a short past"),
        pytest.param(np.zeros(28), np.nan, 57.0, id="samples unknown"),
        pytest.param(np.zeros(28), 0.0, 57.0, id="no samples then"),
        pytest.param(np.zeros(28), 60.0, 0.0, id="no samples now"),
        pytest.param(np.zeros(28), 60.0, np.nan, id="samples now unknown"),
        pytest.param(np.full(28, np.nan), 60.0, 57.0, id="no values then"),
        pytest.param(np.zeros(0), 60.0, 57.0, id="no past"),
    ],
)
def test_rare_is_nan_if_nothing_is_rare(values, lists, now):
    found = asked(taught(values, lists), 0.5, now)
    assert np.isnan([found.deviation[0], found.limit(np.array([5.0]))[0]]).all()


def test_up_to_five_expected_hits_are_rare():
    sums = taught(np.full(40, 0.05), 100.0)
    mean = asked(sums, 0.0, 10.0)
    lists = FEW / (mean.seen / mean.trials)[0]
    few, many = (asked(sums, 0.0, now) for now in (lists - 0.1, lists + 0.1))
    assert (few.side.tolist(), np.isnan(many.side).tolist()) == ([1.0], [True])


@pytest.mark.parametrize("mirrored", [False, True])
def test_eleven_of_sixty_are_far_out_and_the_limit_agrees(mirrored):
    """A scene of sixty lists an hour; in most hours none is empty."""
    past = np.zeros(28)
    past[[3, 9, 17]] = 1 / 60
    sums, side = taught(1 - past if mirrored else past), -1 if mirrored else 1

    def seen(hits):
        return asked(sums, 1 - hits / 57 if mirrored else hits / 57, expected=float(mirrored))

    assert side * seen(11).deviation[0] > 7
    assert abs(seen(0).deviation[0]) < 1
    edge = seen(0).limit(np.array([6.0]))[0]
    hits = 57 * (1 - edge if mirrored else edge)
    assert 6 < hits < 11
    assert side * seen(hits).deviation[0] == pytest.approx(6, rel=1e-6)


def test_the_last_windows_are_not_in_the_sums_yet():
    """The first hours of an incident must not hide the others."""
    sums = taught(np.zeros(28))
    before = asked(sums, 0.0).trials[0]
    for hour in range(LONGEST):
        found = asked(sums, 0.2, 60.0)
        assert (found.seen.tolist(), found.trials[0]) == ([0.5], pytest.approx(before)), hour
        sums.learn(True)
    assert asked(sums, 0.2).seen[0] == 0.5
    sums.learn(True)
    assert asked(sums, 0.2).seen[0] == pytest.approx(12.5)


def test_the_longer_spans_add_their_windows():
    sums = taught(np.zeros(28))
    for hits in range(11):
        asked(sums, hits / 60, 60.0)
        sums.learn(True)
    found = sums.rare(np.array([11 / 60]), np.array([60.0]), np.zeros(1))
    assert found.hits[:, 0].tolist() == pytest.approx([sum(range(12 - span, 12)) for span in SPANS])
    assert found.samples[:, 0].tolist() == [60.0 * span for span in SPANS]


def test_what_may_not_be_learned_and_what_is_forgotten_comes_into_no_sum():
    for by_learning in (True, False):
        sums = taught(np.zeros(28))
        for _ in range(6):
            asked(sums, 0.2, 60.0)
            sums.learn(not by_learning)
        sums.forget_last(np.array([True]))
        spans = sums.rare(np.array([0.0]), np.array([60.0]), np.zeros(1))
        assert np.isfinite(spans.side[:, 0]).tolist() == [True, False, False, False, False]
        for _ in range(LONGEST + 1):
            asked(sums, np.nan)
            sums.learn(True)
        assert asked(sums, 0.0).seen.tolist() == [0.5]


def test_a_series_begins_anew_alone():
    sums = RareSums(SLOTS)
    sums.add(2)
    for _ in range(40):
        sums.rare(np.zeros(2), np.full(2, 60.0), np.zeros(2))
        sums.learn(True)
    sums.begin_anew([True, False])
    found = sums.rare(np.zeros(2), np.full(2, 60.0), np.zeros(2)).of_window
    assert np.isfinite(found.side).tolist() == [False, True]


def test_learning_without_a_window_is_refused():
    with pytest.raises(ValueError, match="judge a window"):
        taught(np.zeros(3)).learn(True)


@pytest.mark.parametrize("rate", [0.0005, 0.005, 0.03])
def test_chance_alone_gives_normal_deviations(rate):
    """Windows of 60 lists: how often is the next beyond two and three, and the mean of twelve?"""
    rng = np.random.default_rng(7)
    series = 20_000
    sums = RareSums(5)
    sums.add(series)
    lists = np.full(series, 60.0)
    for _ in range(140 + LONGEST):
        sums.rare(rng.binomial(60, rate, series) / 60, lists, np.zeros(series))
        sums.learn(True)
    spans = sums.rare(rng.binomial(60, rate, series) / 60, lists, np.zeros(series))
    few = np.isfinite(spans.side)
    assert few[0].mean() > 0.99
    for span in (0, -1):
        far = spans.deviation[span, few[span]]
        for multiple in (2.0, 3.0):
            assert (far >= multiple).sum() <= 1.15 * special.ndtr(-multiple) * far.size + 5


def test_to_have_none_of_what_is_rare_is_usual_where_few_are_expected():
    few = taught(np.full(60, 1 / 60))  # one hit in 60 samples
    assert asked(few, 0.0, 200.0).usual.tolist() == [-1.0]  # 3.3 would be expected
    assert np.isnan(asked(few, 0.0, 600.0).usual[0])  # 10 would be
    often = taught(np.full(60, 59 / 60))
    assert asked(often, 1.0, 200.0, expected=1.0).usual.tolist() == [1.0]


def test_what_never_came_is_not_missed_though_the_filter_expects_some():
    never = taught(np.zeros(60))
    assert asked(never, 0.0, 900.0, expected=0.01).usual.tolist() == [-1.0]
    assert np.isnan(asked(never, 0.0, 900.0, expected=0.01).side[0])
    young = taught(np.zeros(ENOUGH - 1))
    assert np.isnan(asked(young, 0.0).usual[0])
