"""Causes that lie in which rows there are and how their scores stand to each other; and what is then left."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression

from monitor.models.diagnosis.diagnose import diagnose
from monitor.models.diagnosis.overfitting import calibration_slope
from monitor.models.diagnosis.population import raked
from monitor.models.diagnosis.sample import Sample
from monitor.models.diagnosis.score_shift import mapped_onto
from tests.models.diagnosis.cases import ROWS, as_served, drawn


def mixed(seed, hard, names=("easy", "hard")):
    """Two segments: labels follow the features in the first, and hardly in the second."""
    rng = np.random.default_rng(seed)
    (features, clear), (_, dim) = drawn(seed, slope=2.0), drawn(seed, slope=0.1)
    first = rng.random(ROWS) >= hard
    segment = np.where(first, *names).astype(object)
    return as_served(features, np.where(first, clear, dim), slices={"segment": segment})


def test_another_mix_of_slices_explains_the_gap():
    (found,) = diagnose("test_online", mixed(0, 0.2), mixed(1, 0.8))
    assert (found.cause, found.features) == ("population_shift", ("segment",))
    assert found.share > 0.85
    values = {row["value"]: row for row in found.evidence if "value" in row}
    assert values["hard"]["better"] == pytest.approx(0.2, abs=0.03)
    assert values["hard"]["worse"] == pytest.approx(0.8, abs=0.03)


def test_a_value_that_the_better_split_never_had_has_an_unknown_share():
    (found,) = diagnose("test_online", mixed(0, 0.0), mixed(1, 1.0))
    assert (found.cause, found.share, found.features) == ("population_shift", None, ("segment",))
    assert found.evidence[0] == {"column": "segment", "never_seen": 1.0, "examples": "hard"}


def test_new_rows_beside_old_ones_cost_what_is_gained_without_them():
    (found,) = diagnose("test_online", mixed(0, 0.0), mixed(1, 0.5))
    assert (found.cause, found.features) == ("population_shift", ("segment",))
    assert found.share > 0.85


def test_rare_values_of_a_slice_are_reported_together():
    better, worse = mixed(0, 0.2), mixed(1, 0.8)
    rng = np.random.default_rng(7)
    few = [f"s{at}" for at in range(60)]
    cut = [
        Sample(
            one.scores,
            one.labels,
            one.features,
            slices={
                "segment": np.where(one.slices["segment"] == "easy", "easy", rng.choice(few, ROWS)).astype(
                    object
                )
            },
        )
        for one in (better, worse)
    ]
    (found,) = diagnose("test_online", *cut)
    assert found.cause == "population_shift"
    assert {"easy", "(others)"} <= {row["value"] for row in found.evidence if "value" in row}


def test_a_mix_that_moves_without_harm_explains_nothing():
    better, worse = mixed(0, 0.2, ("a", "b")), mixed(1, 0.2, ("a", "b"))
    other = np.where(np.random.default_rng(3).random(ROWS) < 0.8, "c", "d").astype(object)
    even = np.where(np.arange(ROWS) % 2, "c", "d").astype(object)
    better = Sample(better.scores, better.labels, {}, slices={"scene": even})
    noisy = worse.scores + np.random.default_rng(4).normal(0, 0.3, ROWS)
    worse = Sample(noisy, worse.labels, {}, slices={"scene": other})
    assert diagnose("test_online", better, worse) == ()


@pytest.mark.parametrize("hard", [0.5, 0.9])
def test_features_that_all_become_less_predictive_are_not_from_the_future(hard):
    # Their rows have changed, or users have: strong features are no leak where the weak ones lose as much.
    better, worse = mixed(0, 0.0), mixed(1, hard)
    unsliced = [Sample(one.scores, one.labels, one.features) for one in (better, worse)]
    assert diagnose("test_online", *unsliced) == ()
    overlapping = diagnose("test_online", mixed(0, 0.1), worse)
    assert [found.cause for found in overlapping] == ["population_shift"]


def test_raking_meets_all_margins():
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 3, 5000).astype(np.uint16), rng.integers(0, 2, 5000).astype(np.uint16)]
    targets = [np.array([0.2, 0.5, 0.3]), np.array([0.8, 0.2])]
    weights = raked(list(zip(codes, targets, strict=True)))
    for one, target in zip(codes, targets, strict=True):
        assert np.bincount(one, weights) / weights.sum() == pytest.approx(target, abs=0.002)


def test_an_empty_bin_loses_its_share_and_weights_are_bounded():
    codes = np.r_[np.zeros(999), [1]].astype(np.uint16)
    weights = raked([(codes, np.array([0.1, 0.6, 0.3]))])
    assert weights[0] == pytest.approx(0.1 * 1000 / 999)
    assert weights[-1] == 50.0


def scenes(seed, move):
    features, labels = drawn(seed)
    home = np.random.default_rng(seed).random(ROWS) < 0.5
    sample = as_served(features, labels, slices={"scene": np.where(home, "home", "search").astype(object)})
    scores = special.expit(np.where(home, move(special.logit(sample.scores)), special.logit(sample.scores)))
    return Sample(scores, labels, features, slices=sample.slices)


def test_scores_of_one_scene_that_moved_against_the_others_explain_the_gap():
    (found,) = diagnose("test_online", scenes(0, lambda logit: logit), scenes(1, lambda logit: logit + 3))
    assert (found.cause, found.features) == ("score_shift", ("scene",))
    assert found.share > 0.9
    row = next(row for row in found.evidence if row["value"] == "home")
    assert row["auc_worse"] == pytest.approx(row["auc_better"], abs=0.05)
    assert row["psi"] > 0.25
    assert row["rank_worse"] > row["rank_better"]


def test_a_shift_of_all_scores_changes_no_auc():
    better, worse = scenes(0, lambda logit: logit), scenes(1, lambda logit: logit)
    moved = Sample(worse.scores**3, worse.labels, worse.features, slices=worse.slices)
    assert diagnose("test_online", better, moved) == diagnose("test_online", better, worse) == ()


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [math.inf, -math.inf, 0.0], [1.0, 1.0, 5.0]])
def test_mapping_keeps_order_and_ties(values):
    found = mapped_onto(np.array(values), np.array([10.0, 20, 30]))
    assert (
        np.unique(found, return_inverse=True)[1].tolist()
        == np.unique(values, return_inverse=True)[1].tolist()
    )
    assert 10 <= found.min() <= found.max() <= 30


def test_overfitting_has_figures_of_train_and_test():
    rng = np.random.default_rng(0)
    features, labels = drawn(0)
    train = Sample(np.where(labels == 1, 0.9, 0.1) + rng.normal(0, 0.02, ROWS), labels, features)
    _, others = drawn(1)
    sure = np.where(rng.random(ROWS) < 0.7, others, 1 - others)
    test = Sample(np.where(sure == 1, 0.9, 0.1) + rng.normal(0, 0.02, ROWS), others, drawn(1)[0])
    (found,) = diagnose("train_test", train, test)
    assert (found.cause, found.share, found.features) == ("overfitting", 1.0, ())
    of_train, of_test = found.evidence
    assert (of_train["split"], of_test["split"]) == ("train", "test")
    assert of_train["slope"] is None  # without a mistake on train there is no slope
    assert of_test["slope"] == pytest.approx(math.log(0.7 / 0.3) / math.log(9), abs=0.05)
    assert of_test["log_loss"] > of_train["log_loss"]
    assert "more certain than they should be" in found.summary


def test_scores_outside_0_and_1_have_no_log_loss():
    rng = np.random.default_rng(0)
    labels = (rng.random(ROWS) < 0.5).astype(float)
    train = Sample(10 * rng.normal(labels, 0.3), labels, {})
    test = Sample(10 * rng.normal(labels, 2.0), labels, {})
    (found,) = diagnose("train_test", train, test)
    assert set(found.evidence[0]) == {"split", "rows", "auc"}


def test_the_calibration_slope_matches_logistic_regression():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 3000)
    labels = (rng.random(3000) < special.expit(0.6 * logits - 0.5)).astype(float)
    expected = LogisticRegression(C=1e9).fit(logits[:, None], labels).coef_[0, 0]
    assert calibration_slope(logits, labels) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        (np.ones(50), np.arange(50) % 2),
        (np.arange(-5.0, 5), np.arange(10) >= 5),
        (np.arange(5.0), np.ones(5)),
    ],
)
def test_there_is_no_slope_if_none_is_finite(logits, labels):
    assert calibration_slope(logits, np.asarray(labels, float)) is None
