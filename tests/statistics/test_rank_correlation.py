"""Spearman's correlation: published and hand-computed cases, its interval and its test by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.rank_correlation import (
    holm,
    interval_of,
    mid_ranks,
    pairs_needed,
    partial_spearman,
    spearman,
)

NUMBERS = st.integers(-3, 3).map(float)


def test_a_published_case():
    """D. G. Bonett and T. A. Wright's interval beside the rho of a textbook: n = 10, rho = -29 / 165."""
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    found = spearman(iq, hours)
    assert found.rho == pytest.approx(-29 / 165)
    half = 1.959964 * math.sqrt((1 + (29 / 165) ** 2 / 2) / 7)
    assert found.interval == pytest.approx(
        (math.tanh(math.atanh(-29 / 165) - half), math.tanh(math.atanh(-29 / 165) + half)), abs=1e-6
    )


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=5, max_size=30))
def test_rho_and_p_are_those_of_scipy_ties_included(pairs):
    one, other = zip(*pairs, strict=True)
    found = spearman(one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
        return
    expected = stats.spearmanr(one, other)
    assert found.rho == pytest.approx(expected.statistic, abs=1e-12)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9)
    assert found.interval.lower <= found.rho <= found.interval.upper


@given(st.lists(NUMBERS, min_size=1, max_size=30))
def test_ranks_of_ties_are_their_average(values):
    assert mid_ranks(np.array(values)).tolist() == stats.rankdata(values).tolist()


def test_an_order_is_all_that_counts():
    one, other = [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5]
    assert spearman(one, other) == spearman(np.exp(one), [value**3 for value in other])
    assert spearman(one, [1e308, -math.inf, 0, 1, math.inf, 5]).rho == spearman(one, [5, 1, 2, 3, 6, 4]).rho


@pytest.mark.parametrize(("one", "other"), [([], []), ([1, 2, 3, 4], [1, 2, 3, 4]), ([1] * 9, range(9))])
def test_without_an_order_or_enough_pairs_there_is_none(one, other):
    assert spearman(list(one), list(other)) is None


def test_a_perfect_order_has_an_interval_up_to_1():
    found = spearman(range(20), range(20))
    assert found.rho == pytest.approx(1)
    assert 0.99 < found.interval.lower <= found.interval.upper <= 1
    assert found.p == 0


@pytest.mark.parametrize("wrong", [([1, 2, 3, 4, 5], [1, 2, 3, 4]), ([1, 2, 3, 4, math.nan], range(5))])
def test_wrong_pairs_are_an_error(wrong):
    with pytest.raises(ValueError, match=r"pairs have two values|NaN"):
        spearman(*wrong)


@pytest.mark.parametrize(("n", "rho"), [(25, 0.0), (60, 0.0), (60, 0.4), (200, 0.6)])
def test_the_interval_holds_the_truth_in_95_of_100_samples(n, rho):
    rng = np.random.default_rng(n)
    truth = 6 / math.pi * math.asin(rho / 2)  # Spearman's of a normal pair
    held = 0
    for _ in range(1500):
        one = rng.normal(size=n)
        other = rho * one + math.sqrt(1 - rho * rho) * rng.normal(size=n)
        lower, upper = spearman(one, other).interval
        held += lower <= truth <= upper
    assert 0.935 <= held / 1500 <= 0.975


def test_with_answers_of_five_values_the_test_is_wrong_in_5_of_100_samples():
    rng = np.random.default_rng(5)
    ps = [spearman(rng.normal(size=30), rng.integers(1, 6, 30)).p for _ in range(3000)]
    assert 0.04 <= np.mean(np.array(ps) < 0.05) <= 0.06


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_claims_what_its_steps_claim(ps):
    order = sorted(range(len(ps)), key=lambda number: ps[number])
    steps = [max(min(1.0, (len(ps) - j) * ps[order[j]]) for j in range(i + 1)) for i in range(len(ps))]
    found = holm(ps)
    assert [found[number] for number in order] == pytest.approx(steps)


def test_holm_keeps_the_order_in_which_it_is_asked():
    for ps in itertools.permutations([0.01, 0.02, 0.9]):
        expected = {0.01: 0.03, 0.02: 0.04, 0.9: 0.9}
        assert holm(ps) == pytest.approx([expected[p] for p in ps])


@pytest.mark.parametrize(
    ("rho", "negligible"), [(0.5, 0.1), (0.2, 0.1), (0.08, 0.1), (0.01, 0.1), (-0.3, 0.2)]
)
def test_the_pairs_needed_decide_and_one_tenth_fewer_do_not(rho, negligible):
    needed = pairs_needed(rho, negligible)

    def decides(n: int) -> bool:
        lower, upper = interval_of(rho, n)
        return lower > 0 or upper < 0 or (-negligible < lower and upper < negligible)

    assert decides(needed + 1)
    assert not decides(round(needed * 0.9))


def test_no_number_of_pairs_decides_at_the_edge():
    assert pairs_needed(1e-9, 1e-9) is None


def test_a_partial_correlation_with_one_value_held_is_that_of_the_textbook():
    rng = np.random.default_rng(2)
    size, one, other = rng.normal(size=(3, 80))
    one, other = one + size, other + 2 * size
    xy, xz, yz = (stats.spearmanr(a, b).statistic for a, b in ((one, other), (one, size), (other, size)))
    expected = (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))
    found = partial_spearman(one, other, [size])
    assert found.rho == pytest.approx(expected, abs=1e-12)
    assert found.n == 79
    assert found.interval == interval_of(found.rho, 79)


@pytest.mark.parametrize(("share", "before", "most_after"), [(0.5, 0.3, 0.04), (1.0, 0.6, 0.1)])
def test_little_is_left_of_values_that_depend_on_the_held_ones_alone(share, before, most_after):
    """Of strong relations a little is left: ranks of a sum are not the sum of ranks; docs/statistics.md."""
    rng = np.random.default_rng(12)
    whole, left = [], []
    for _ in range(800):
        first, second = rng.normal(size=(2, 60))
        one, other = (share * (first + second) + rng.normal(size=60) for _ in range(2))
        whole.append(spearman(one, other).rho)
        left.append(partial_spearman(one, other, [first, second]).rho)
    assert np.mean(whole) > before
    assert 0 <= np.mean(left) < most_after


@pytest.mark.parametrize(
    ("one", "held"), [(range(30), [range(30)]), ([1] * 30, [range(30)]), (range(6), [[3, 1, 2, 6, 5, 4]] * 2)]
)
def test_nothing_is_left_of_a_value_that_is_held(one, held):
    assert partial_spearman(list(one), [n * n % 7 for n in range(len(one))], held) is None


def test_holding_an_equal_value_changes_nothing_but_the_pairs():
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(2, 40))
    assert partial_spearman(one, other, [[5] * 40]).rho == pytest.approx(spearman(one, other).rho)
