"""AUC and DeLong's interval against all pairs, against a bootstrap, and where there is little to go by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.auc import AucSums, auc_gap, auc_sums, delong_interval, delong_variance

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=2, max_size=40)


def by_pairs(scores, labels):
    """AUC and DeLong's variance from their definitions, over all pairs."""
    scores, labels = np.asarray(scores, float), np.asarray(labels)
    positive, negative = scores[labels == 1], scores[labels == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    v10, v01 = wins.mean(axis=1), wins.mean(axis=0)
    return wins.mean(), v10.var(ddof=1) / len(v10) + v01.var(ddof=1) / len(v01)


@given(rows=ROWS.filter(lambda rows: 2 <= sum(label for _, label in rows) <= len(rows) - 2))
@settings(max_examples=200, deadline=None)
def test_auc_and_its_variance_equal_those_over_all_pairs_with_ties_as_half(rows):
    scores, labels = zip(*rows, strict=True)
    auc, variance = by_pairs(scores, labels)
    found = auc_sums(scores, labels)
    assert found.auc == pytest.approx(auc, abs=1e-12)
    assert delong_variance(found) == pytest.approx(variance, abs=1e-12)
    positive, negative = ([s for s, label in rows if label == one] for one in (1, 0))
    u = stats.mannwhitneyu(positive, negative).statistic
    assert found.auc == pytest.approx(u / len(positive) / len(negative))


@given(rows=ROWS.filter(lambda rows: len({label for _, label in rows}) == 2))
@settings(max_examples=100, deadline=None)
def test_negated_scores_give_1_minus_auc_and_a_monotone_change_gives_the_same_auc(rows):
    scores, labels = zip(*rows, strict=True)
    found = auc_sums(scores, labels)
    turned = auc_sums([-s for s in scores], labels)
    assert turned.auc == pytest.approx(1 - found.auc)
    stretched = auc_sums([math.exp(s) - 7 for s in scores], np.asarray(labels, bool))
    assert stretched == pytest.approx(found)


def test_a_case_worked_by_hand():
    # Positives 0.35 and 0.8 against negatives 0.1 and 0.4: v10 = 1/2, 1; v01 = 0, 1/2 lost, so 1, 1/2 won.
    found = auc_sums([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    assert found[:5] == (2, 2, 0.75, 0.25 + 1, 1 + 0.25)
    assert delong_variance(found) == pytest.approx(0.125 / 2 + 0.125 / 2)


def test_infinite_scores_are_ranked():
    assert auc_sums([-math.inf, 0, math.inf, math.inf], [0, 0, 1, 0]).auc == pytest.approx(5 / 6)


@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_one_class_only_has_no_auc(labels):
    assert auc_sums([0.25, 0.75], labels) is None
    assert auc_sums([], []) is None


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ([0.1, math.nan], [0, 1], "NaN"),
        ([0.1, 0.2], [0, 2], "0 or 1"),
        ([0.1, 0.2], [0, math.nan], "0 or 1"),
        ([0.1, 0.2], [0], "1 labels"),
    ],
)
def test_nan_scores_and_other_labels_are_refused(scores, labels, said):
    with pytest.raises(ValueError, match=said):
        auc_sums(scores, labels)


@pytest.mark.parametrize(
    "sums",
    [
        AucSums(-1, 5, 0.5, 1, 1),
        AucSums(5, 5, 1.5, 1, 1),
        AucSums(5, 5, math.nan, 1, 1),
        AucSums(5, 5, 0.5, math.nan, 2),
        AucSums(5, 5, 0.5, 1.0, 2),  # less than 5 / 4
        AucSums(5, 5, 0.5, 2, 3.0),  # more than 5 / 2
    ],
)
def test_impossible_sums_of_placements_are_refused(sums):
    with pytest.raises(ValueError, match=r"negative|placements"):
        delong_interval(sums)


def test_one_row_of_a_class_has_an_auc_and_no_interval():
    found = auc_sums([0.1, 0.4, 0.35], [0, 0, 1])
    assert found.auc == 0.5
    assert delong_variance(found) is None
    assert delong_interval(found) is None
    assert auc_gap(found, AucSums(50, 200, 0.9, 41.0, 163.0)) is None
    assert delong_interval(AucSums(0, 3, 0.0, 0.0, 0.0)) is None


@pytest.mark.parametrize(("m", "n"), [(2, 2), (5, 9), (400, 300)])
def test_a_perfect_order_has_an_exact_interval_and_not_one_of_width_0(m, n):
    best = auc_sums(np.arange(m + n), [0] * n + [1] * m)
    lower, upper = delong_interval(best)
    assert (best.auc, upper) == (1.0, 1.0)
    assert lower ** min(m, n) == pytest.approx(0.025)
    worst = delong_interval(auc_sums(-np.arange(m + n), [0] * n + [1] * m))
    assert worst == (0.0, pytest.approx(1 - lower))


def test_tied_scores_have_an_auc_of_one_half_with_an_interval_of_width_0():
    tied = auc_sums([3] * 20, [0, 1] * 10)
    assert delong_interval(tied) == (pytest.approx(0.5), pytest.approx(0.5))
    assert delong_variance(tied) == 0.0


def test_huge_numbers_of_rows_are_handled():
    n = 10**15
    lower, upper = delong_interval(AucSums(n, n, 0.75, 0.6 * n, 0.6 * n))
    assert lower < 0.75 < upper
    assert upper - lower == pytest.approx(2 * 1.96 * math.sqrt(2 * 0.0375 / n), rel=1e-3)


@given(
    m=st.integers(2, 10**6),
    n=st.integers(2, 10**6),
    auc=st.floats(0, 1),
    spread=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
@settings(max_examples=200, deadline=None)
def test_intervals_hold_the_estimate_and_stay_within_their_range(m, n, auc, spread):
    squares = [k * (auc**2 + part * auc * (1 - auc)) for k, part in zip((m, n), spread, strict=True)]
    sums = AucSums(m, n, auc, *squares)
    lower, upper = delong_interval(sums)
    assert 0 <= lower <= auc + 1e-12
    assert auc - 1e-12 <= upper <= 1
    gap, (low, high) = auc_gap(sums, AucSums(50, 200, 0.9, 41.0, 163.0))
    assert -1 <= low <= gap + 1e-12
    assert gap - 1e-12 <= high <= 1


def test_delong_agrees_with_a_bootstrap():
    random = np.random.default_rng(12)
    positive, negative = random.normal(1.2, 1, 120).round(1), random.normal(0, 1.5, 200).round(1)
    sums = auc_sums(np.r_[positive, negative], np.r_[np.ones(120), np.zeros(200)])
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    drawn = [wins[random.integers(0, 120, 120)][:, random.integers(0, 200, 200)].mean() for _ in range(4000)]
    assert math.sqrt(delong_variance(sums)) == pytest.approx(np.std(drawn), rel=0.05)
    assert delong_interval(sums) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.008)


def test_the_gap_of_large_samples_has_the_sum_of_both_variances():
    one, other = AucSums(40_000, 90_000, 0.8, 27_000, 60_500), AucSums(30_000, 80_000, 0.78, 19_500, 51_000)
    gap, (lower, upper) = auc_gap(one, other)
    half = 1.959964 * math.sqrt(delong_variance(one) + delong_variance(other))
    assert gap == pytest.approx(0.02)
    assert (lower, upper) == (pytest.approx(gap - half, rel=0.01), pytest.approx(gap + half, rel=0.01))
    turned = auc_gap(other, one)
    assert turned.interval == (pytest.approx(-upper), pytest.approx(-lower))
