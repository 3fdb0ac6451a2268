"""AUC under weights against all pairs, and its errors against DeLong's and a bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.models.diagnosis.area import Ranking, change, mixed_area
from monitor.statistics.auc import auc_sums, delong_variance

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 3)), min_size=2, max_size=30)


def by_pairs(scores, labels, weights):
    scores, weights, positive = np.asarray(scores, float), np.asarray(weights, float), np.asarray(labels) == 1
    wins = (scores[positive][:, None] > scores[~positive]) + 0.5 * (
        scores[positive][:, None] == scores[~positive]
    )
    each = weights[positive][:, None] * weights[~positive]
    return (wins * each).sum() / each.sum() if each.sum() > 0 else None


@given(rows=ROWS)
@settings(max_examples=200, deadline=None)
def test_a_weighted_auc_is_that_of_all_pairs(rows):
    scores, labels, weights = zip(*rows, strict=True)
    found, expected = Ranking(scores, labels).area(weights), by_pairs(scores, labels, weights)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.auc == pytest.approx(expected)
        assert found.influence.sum() == pytest.approx(0, abs=1e-9)


def test_without_weights_auc_and_variance_match_the_check():
    rng = np.random.default_rng(1)
    labels = (rng.random(3000) < 0.3).astype(float)
    scores = (rng.normal(labels, 1)).round(1)
    found, sums = Ranking(scores, labels).area(), auc_sums(scores, labels)
    assert found.auc == pytest.approx(sums.auc, abs=1e-12)
    assert float(found.influence @ found.influence) == pytest.approx(delong_variance(sums), rel=0.01)


def test_the_error_of_a_change_is_that_of_a_bootstrap():
    rng = np.random.default_rng(2)
    labels = (rng.random(1500) < 0.4).astype(float)
    scores = rng.normal(labels, 1)
    other = scores + rng.normal(0, 1, 1500)
    lost, error = change(Ranking(scores, labels).area(), Ranking(other, labels).area())
    draws = []
    for _ in range(300):
        at = rng.integers(0, 1500, 1500)
        first, second = (Ranking(one[at], labels[at]).area().auc for one in (scores, other))
        draws.append(first - second)
    assert lost == pytest.approx(np.mean(draws), abs=0.003)
    assert error == pytest.approx(np.std(draws), rel=0.2)


def test_mixed_versions_are_the_mean_over_random_draws():
    rng = np.random.default_rng(3)
    labels = (rng.random(400) < 0.5).astype(float)
    scores, broken = rng.normal(labels, 1), np.zeros(400)
    mixed = mixed_area([scores, broken], [0.7, 0.3], labels)
    lots = [Ranking(np.where(rng.random(400) < 0.3, broken, scores), labels).area().auc for _ in range(500)]
    assert mixed.auc == pytest.approx(np.mean(lots), abs=0.004)
    assert mixed.influence.shape == (400,)


@pytest.mark.parametrize("labels", [[1, 1, 1], [0, 0, 0]])
def test_one_class_has_no_auc(labels):
    assert Ranking([1, 2, 3], labels).area() is None
    assert mixed_area([np.arange(3.0)], [1.0], labels) is None


def test_no_rows_have_no_auc_and_a_class_without_weight_has_none():
    assert Ranking([], []).area() is None
    assert Ranking([1, 2], [0, 1]).area([1, 0]) is None


def test_infinite_scores_are_ranked_and_nan_is_refused():
    assert Ranking([-np.inf, 0, np.inf], [0, 0, 1]).area().auc == 1
    with pytest.raises(ValueError, match="NaN"):
        Ranking([np.nan, 1], [0, 1])
