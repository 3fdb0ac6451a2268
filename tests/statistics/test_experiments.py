"""Is a split sound: against scipy, against enumeration, against the promise of the sequential test."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.chi_square import Method
from monitor.statistics.experiments import (
    anytime_shares,
    bucket_uniformity,
    layer_orthogonality,
    log_bayes_factors,
    sample_ratio_mismatch,
    sequential_split,
)

HALVES = np.array([0.5, 0.5])


@given(counts=st.lists(st.integers(50, 10**6), min_size=2, max_size=6), seed=st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_the_mismatch_test_agrees_with_scipy(counts, seed):
    weights = np.random.default_rng(seed).uniform(1, 3, len(counts))
    found = sample_ratio_mismatch(counts, weights)
    expected = stats.chisquare(counts, np.sum(counts) * weights / weights.sum())
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-300)
    assert found.method is Method.CHI_SQUARE


@pytest.mark.parametrize(
    ("counts", "split"), [([5, 0], [1, 1]), ([3, 1, 0], [2, 1, 1]), ([0, 2, 4], [1, 2, 3]), ([2, 2], [1, 9])]
)
def test_few_users_have_an_exact_p(counts, split):
    share = [weight / sum(split) for weight in split]
    total = sum(counts)

    def distance(outcome):
        return sum((n - total * s) ** 2 / (total * s) for n, s in zip(outcome, share, strict=True))

    by_sequence = 0.0
    for sequence in itertools.product(range(len(split)), repeat=total):
        outcome = [sequence.count(arm) for arm in range(len(split))]
        if distance(outcome) >= distance(counts) - 1e-9:
            by_sequence += math.prod(share[arm] for arm in sequence)
    found = sample_ratio_mismatch(counts, split)
    assert found.method is Method.EXACT
    assert found.p == pytest.approx(by_sequence, rel=1e-9)


def test_a_rare_arm_among_many_users_has_an_exact_p():
    found = sample_ratio_mismatch([99_990, 10], [99_999, 1])  # one user is expected in the second
    assert found.method is Method.EXACT
    assert found.p == pytest.approx(stats.binom.sf(9, 100_000, 1e-5), rel=1e-6)


def test_many_arms_of_few_users_have_a_simulated_p_that_repeats():
    counts = [9, 1, 3, 2, 4, 0, 3, 5, 2, 1]
    found = sample_ratio_mismatch(counts, [1] * 10)
    assert found.method is Method.SIMULATED
    assert found == sample_ratio_mismatch(counts, [1] * 10)
    # The chi-square distribution is near here, and not right.
    assert found.p == pytest.approx(stats.chi2.sf(found.statistic, 9), abs=0.01)
    assert sample_ratio_mismatch([0] * 9 + [40], [1] * 10).p == pytest.approx(1 / 100_001)


@pytest.mark.parametrize(
    ("users", "buckets", "method"),
    [(6, 18, Method.EXACT), (2, 300, Method.SIMULATED), (1, 10_000, Method.SIMULATED)],
)
def test_few_users_in_many_buckets_take_little_memory(users, buckets, method):
    tracemalloc.start()
    try:
        found = bucket_uniformity([1] * users + [0] * (buckets - users))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 150e6
    assert (found.method, found.p) == (method, pytest.approx(1.0))  # nothing is more even than one in each


def test_a_simulated_p_is_near_the_exact_one():
    found = bucket_uniformity([2] + [0] * 299)
    assert found.method is Method.SIMULATED
    assert found.p == pytest.approx(1 / 300, rel=0.3)  # the second user meets the first


@pytest.mark.parametrize(
    ("counts", "split"), [([0, 0], [1, 1]), ([7], [1]), ([], []), ([0, 0, 0], [0.2, 0.3, 0.5])]
)
def test_no_users_or_a_single_arm_give_no_test(counts, split):
    assert sample_ratio_mismatch(counts, split) is None
    assert anytime_shares(counts, split) is None
    assert bucket_uniformity(counts) is None


@pytest.mark.parametrize(
    ("counts", "split", "said"),
    [
        ([-1, 5], [1, 1], "not negative"),
        ([math.nan, 5], [1, 1], "finite"),
        ([math.inf, 5], [1, 1], "finite"),
        ([2.5, 5], [1, 1], "whole"),
        ([[1, 2]], [1, 1], "dimension"),
        ([1, 5], [1, 0], "above 0"),
        ([1, 5], [1, math.nan], "above 0"),
        ([1, 5], [1, 1, 1], "2 counts"),
    ],
)
def test_invalid_counts_and_splits_are_refused(counts, split, said):
    for test in (sample_ratio_mismatch, sequential_split, anytime_shares):
        with pytest.raises(ValueError, match=said):
            test(counts, split)


def test_huge_counts_are_handled():
    even = sample_ratio_mismatch([5 * 10**14, 5 * 10**14], [1, 1])
    assert (even.statistic, even.p) == (0.0, 1.0)
    odd = sample_ratio_mismatch([5 * 10**14 + 10**9, 5 * 10**14 - 10**9], [1e300, 1e300])
    assert (odd.statistic, odd.p) == (pytest.approx(4000.0), 0.0)
    assert layer_orthogonality([[10**15, 1], [1, 10**15]]).cramers_v == pytest.approx(1.0)


def test_buckets_are_compared_with_equal_shares():
    counts = [90, 110, 105, 95]
    assert bucket_uniformity(counts).p == pytest.approx(stats.chisquare(counts).pvalue)
    assert bucket_uniformity([3] * 1000).p == 1.0
    assert bucket_uniformity([3] * 15).method is Method.SIMULATED  # too few users to count buckets together


def test_a_broken_hash_of_many_buckets_has_a_very_small_p():
    random = np.random.default_rng(5)
    counts = random.multinomial(3000, np.tile([0.25, 0.75], 500) / 500)
    found = bucket_uniformity(counts)
    assert found.p < 1e-12  # of 5,000 simulated draws none is as far, and p could not be below 2e-4
    assert bucket_uniformity(random.permutation(counts)) == found
    assert bucket_uniformity(np.sort(counts)) == found  # the empty ones first


@pytest.mark.parametrize(("users", "buckets"), [(60, 120), (200, 120), (2000, 1000)])
def test_an_even_hash_of_many_buckets_alarms_as_rarely_as_p_says(users, buckets):
    random, even = np.random.default_rng(7), np.ones(buckets) / buckets
    found = []
    for _ in range(1000):
        counts = random.multinomial(users, even)
        # Who counts the buckets that are in a log knows of the others only how many there are.
        seen = counts[counts > 0]
        found.append(bucket_uniformity([*seen, *[0] * (buckets - len(seen))]).p)
    assert 0.05 < np.mean(np.array(found) < 0.1) < 0.2
    assert np.mean(np.array(found) < 0.01) < 0.025


@given(table=st.lists(st.lists(st.integers(30, 10**5), min_size=3, max_size=3), min_size=2, max_size=4))
@settings(max_examples=60, deadline=None)
def test_orthogonality_agrees_with_scipy(table):
    found = layer_orthogonality(table)
    expected = stats.chi2_contingency(table, correction=False)
    assert found.test.statistic == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    assert found.test.df == expected.dof
    if expected.expected_freq.min() >= 5:
        assert found.test.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-300)
    assert found.cramers_v == pytest.approx(stats.contingency.association(table), abs=1e-9)


def test_a_sparse_table_has_a_p_with_fixed_margins():
    table = [[7, 1], [2, 5]]
    found = layer_orthogonality(table).test
    # Fisher's test orders tables by probability; of 2 x 2 with margins 8, 7 and 9, 6 that is the same order.
    assert found.method is Method.SIMULATED
    assert found.p == pytest.approx(stats.fisher_exact(table).pvalue, abs=0.005)


@pytest.mark.parametrize("table", [[[0, 0], [0, 0]], [[5, 5]], [[5, 0], [7, 0]], [[5, 5], [0, 0]]])
def test_a_table_of_one_arm_gives_no_test(table):
    assert layer_orthogonality(table) is None


def test_arms_without_a_user_are_left_out():
    assert layer_orthogonality([[30, 20, 0], [20, 30, 0], [0, 0, 0]]) == layer_orthogonality(
        [[30, 20], [20, 30]]
    )


def plain_log_bayes_factor(counts, share, concentration):
    prior = [concentration * s for s in share]
    gammas = sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(prior, counts, strict=True))
    likelihood = sum(n * math.log(s) for n, s in zip(counts, share, strict=True))
    return gammas + math.lgamma(concentration) - math.lgamma(concentration + sum(counts)) - likelihood


@given(
    counts=st.lists(st.integers(0, 10_000), min_size=3, max_size=3),
    concentration=st.sampled_from([0.5, 3.0, 1000.0, 20_000.0]),
)
@settings(max_examples=200, deadline=None)
def test_the_bayes_factor_agrees_with_the_plain_formula(counts, concentration):
    share = np.array([0.2, 0.3, 0.5])
    found = float(log_bayes_factors(np.array(counts, float), share, concentration))
    assert found == pytest.approx(plain_log_bayes_factor(counts, share, concentration), abs=1e-6)


def test_the_bayes_factor_keeps_digits_that_the_plain_formula_loses():
    # Two arms and a uniform prior: 2^N / ((N + 1) C(N, N/2)), by Stirling sqrt(pi N / 2) / (N + 1).
    users = 10**15
    found = sequential_split([users // 2, users // 2], [1, 1], concentration=2.0).log_bayes_factor
    exact = 0.5 * math.log(math.pi * users / 2) - math.log(users + 1)
    assert found == pytest.approx(exact, abs=1e-9)
    # 10^8 users off the middle: C(N, N/2 + d) is C(N, N/2) exp(-2 d^2 / N) there.
    counts = [users // 2 + 10**8, users // 2 - 10**8]
    found = sequential_split(counts, [1, 1], concentration=2.0).log_bayes_factor
    assert found == pytest.approx(exact + 20, abs=1e-6)
    assert abs(plain_log_bayes_factor([users // 2] * 2, [0.5, 0.5], 2.0) - exact) > 0.5


def test_the_sequential_p_starts_at_1_and_never_rises():
    assert sequential_split([0, 0], [1, 1]) == (pytest.approx(0.0, abs=1e-12), 1.0)
    low = sequential_split([700, 500], [1, 1])
    assert low.p < 1e-3
    later = sequential_split([10_500, 10_300], [1, 1], low.p)
    assert later.p == low.p
    assert later.log_bayes_factor < 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        sequential_split([1, 1], [1, 1], math.nan)
    with pytest.raises(ValueError, match="concentration"):
        sequential_split([1, 1], [1, 1], concentration=0)


def looks(experiments=800, users=2000, share=0.5, seed=4):
    """Cumulated users per arm after each user, by experiment."""
    first = np.cumsum(np.random.default_rng(seed).random((experiments, users)) < share, axis=1)
    return np.stack([first, np.arange(1, users + 1) - first], axis=-1).astype(float)


def test_a_look_after_every_user_keeps_sequential_alarms_below_alpha_and_breaks_chi_square():
    counts = looks()
    factors = log_bayes_factors(counts, HALVES)
    for alpha in (0.05, 0.2):
        assert np.mean(factors.max(axis=1) >= -math.log(alpha)) <= alpha
    total = counts.sum(axis=-1)
    enough = total >= 10
    chi_square = (counts[..., 0] - counts[..., 1]) ** 2 / total
    alarms = np.mean(np.any(enough & (chi_square > stats.chi2.isf(0.05, 1)), axis=1))
    assert alarms > 0.4  # of experiments whose split is as intended
    one = counts[0, -1]
    assert sample_ratio_mismatch(one, [1, 1]).statistic == pytest.approx(chi_square[0, -1])


def test_the_sequential_test_finds_a_broken_split():
    factors = log_bayes_factors(looks(200, 2000, 0.57), HALVES)
    assert np.mean(factors.max(axis=1) >= math.log(100)) > 0.95


def test_anytime_intervals_hold_the_truth_at_all_looks_together():
    counts = looks(60, 800, 0.5, seed=8)[:, 9::50]
    missed = 0
    for experiment in counts:
        found = [anytime_shares(look, [0.6, 0.4])[0] for look in experiment]
        missed += any(not low <= 0.5 <= high for low, high in found)
    assert missed / len(counts) <= 0.05


@pytest.mark.parametrize("counts", [[0, 40], [3, 37], [10**6, 10**6 + 999], [1, 0]])
def test_anytime_intervals_end_where_the_bayes_factor_passes_its_limit(counts):
    for arm, (lower, upper) in enumerate(anytime_shares(counts, [1, 1], concentration=2.0)):
        n, total = counts[arm], sum(counts)
        assert 0 <= lower <= n / total <= upper <= 1
        for end in {lower, upper} - {0.0, 1.0}:
            # The marginal probability under a uniform prior, 1 / ((N + 1) C(N, n)), over that of the end.
            marginal = -math.log(total + 1) - (
                math.lgamma(total + 1) - math.lgamma(n + 1) - math.lgamma(total - n + 1)
            )
            at_end = n * math.log(end) + (total - n) * math.log1p(-end)
            assert marginal - at_end == pytest.approx(math.log(20), abs=1e-4)
