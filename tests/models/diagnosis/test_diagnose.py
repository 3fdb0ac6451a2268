"""The diagnosis where there is little to go by, and what holds whatever the arrays are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from monitor.models.diagnosis.diagnose import CAUSES, diagnose
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.settings.models import DiagnosisSettings
from tests.models.diagnosis.cases import ROWS, as_served, drawn
from tests.models.diagnosis.worlds import defaulted, leaked, pruned, stale, world

EMPTY = Sample(np.empty(0), np.empty(0), {})
LOOSE = DiagnosisSettings(
    least_gap=0.0, least_rows=2, confidence=0.51, least_share=0.01, mismatch=0.01, spike=0.01
)


def sample(rows=2000, signal=2.0, seed=0, **more):
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.4).astype(float)
    scores = 1 / (1 + np.exp(-rng.normal(signal * labels, 1)))
    return Sample(scores, labels, {"x": rng.normal(size=rows), "z": rng.normal(size=rows)}, **more)


GOOD, BAD = sample(), sample(signal=0.5, seed=1)


def test_an_unexplained_gap_is_overfitting_between_train_and_test_only():
    assert [one.cause for one in diagnose("train_test", GOOD, BAD)] == ["overfitting"]
    assert diagnose("test_online", GOOD, BAD) == ()


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (EMPTY, BAD),
        (GOOD, EMPTY),
        (EMPTY, EMPTY),
        (Sample(np.ones(1), np.ones(1), {}), BAD),
        (Sample(np.arange(9.0), np.ones(9), {}), BAD),
        (GOOD, Sample(np.arange(9.0), np.zeros(9), {})),
        (GOOD, Sample(np.full(2000, np.nan), GOOD.labels, {})),
        (GOOD, Sample(GOOD.scores, np.full(2000, 7.0), {})),
        (BAD, GOOD),
        (GOOD, GOOD),
    ],
)
def test_without_a_gap_no_cause_is_named(better, worse):
    assert diagnose("train_test", better, worse) == ()


def test_rows_without_score_or_label_are_left_out():
    more = np.r_[BAD.scores, np.nan, 0.5, 0.5], np.r_[BAD.labels, 1, np.nan, 2]
    features = {name: np.r_[values, 0, 0, 0] for name, values in BAD.features.items()}
    assert diagnose("train_test", GOOD, Sample(*more, features)) == diagnose("train_test", GOOD, BAD)


def test_a_gap_without_features_and_slices_still_has_findings():
    better, worse = (Sample(one.scores, one.labels, {}) for one in (GOOD, BAD))
    (found,) = diagnose("train_test", better, worse)
    assert (found.cause, found.share) == ("overfitting", 1.0)


def test_constant_scores_infinite_values_and_empty_features_break_nothing():
    features = {
        "x": np.full(2000, np.inf),
        "y": np.full(2000, np.nan),
        "t": np.full(2000, None, dtype=object),
    }
    better = Sample(GOOD.scores, GOOD.labels, GOOD.features | features)
    worse = Sample(np.full(2000, 0.5), BAD.labels, features | {"only here": np.arange(2000.0)})
    found = diagnose("test_online", better, worse, pairs=Pairs(worse, features))
    assert [one.cause for one in found] in ([], ["pruned_features"])
    assert all(one.share is None or 0 < one.share <= 1 for one in found)


def test_the_cause_that_costs_more_comes_first():
    def scenes(seed, moved, served):
        features, labels = drawn(seed)
        sample = as_served(features | served, labels)
        home = np.arange(len(sample)) % 2 == 0
        scores = np.where(home, expit(logit(sample.scores) + moved), sample.scores)
        names = np.where(home, "home", "search").astype(object)
        return Sample(scores, labels, sample.features, slices={"scene": names})

    test, zeros = scenes(0, 0.0, {}), {"x": np.zeros(ROWS)}
    mostly_pruned = diagnose("test_online", test, scenes(1, 1.0, zeros))
    mostly_moved = diagnose("test_online", test, scenes(1, 6.0, zeros))
    assert [one.cause for one in mostly_pruned] == ["pruned_features", "score_shift"]
    assert [one.cause for one in mostly_moved] == ["score_shift", "pruned_features"]


def test_an_array_of_another_length_is_refused():
    with pytest.raises(ValueError, match="feature 'x'"):
        Sample(np.zeros(3), np.zeros(3), {"x": np.zeros(2)})
    with pytest.raises(ValueError, match="labels"):
        Sample(np.zeros(3), np.zeros(2), {})
    with pytest.raises(ValueError, match="3 pairs, but 'x'"):
        Pairs(Sample(np.zeros(3), np.zeros(3), {}), {"x": np.zeros(2)})


@pytest.mark.parametrize("make", [leaked, defaulted, pruned])
def test_the_model_and_its_surrogate_find_the_same_cause(make):
    one = world(make, 1, 8000)
    found = diagnose(one.pair, one.better, one.worse, train=one.train, pairs=one.pairs, scorer=one.model)
    assert found[0].cause == one.cause
    assert found[0].share > 0.5
    assert found[0].features[0] in one.features
    assert "by the scoring function given, rank correlation with the log 1.00 on" in found[0].summary


def shuffled(one, seed):
    order = np.random.default_rng(seed).permutation(len(one))

    def taken(columns):
        return {name: values[order] for name, values in columns.items()}

    return order, Sample(
        one.scores[order],
        one.labels[order],
        taken(one.features),
        one.times[order],
        taken(one.feature_times),
        taken(one.slices),
        one.ids[order],
        taken(one.entities),
    )


@pytest.mark.parametrize("make", [leaked, stale, pruned])
def test_shares_do_not_depend_on_the_order_of_rows(make):
    one = world(make, 2, 8000)
    order, worse = shuffled(one.worse, 1)
    pairs = one.pairs and Pairs(
        worse,
        {name: values[order] for name, values in one.pairs.offline.items()},
        {name: values[order] for name, values in one.pairs.offline_times.items()},
    )
    before = diagnose(one.pair, one.better, one.worse, train=one.train, pairs=one.pairs)
    after = diagnose(one.pair, shuffled(one.better, 2)[1], worse, train=one.train, pairs=pairs)
    assert [(found.cause, found.features) for found in after] == [
        (found.cause, found.features) for found in before
    ]
    for first, second in zip(before, after, strict=True):
        assert second.share == pytest.approx(first.share, abs=1e-6)


NUMBER = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e-308]), st.floats(-3, 3)
)
TEXT = st.sampled_from(["a", "b", "<script>", None, "'; drop table x"])


@st.composite
def samples(draw):
    rows = draw(st.integers(0, 40))

    def column(of):
        return np.array(draw(st.lists(of, min_size=rows, max_size=rows)))

    def numbers():
        return column(NUMBER).astype(float)

    def words():
        return column(TEXT).astype(object)

    features = {"x": numbers(), "text": words()} | ({"extra": numbers()} if draw(st.booleans()) else {})
    labels = column(st.sampled_from([0.0, 1.0, 1.0, 0.0, math.nan])).astype(float)
    # Scores that follow the labels half of the time: a gap has to be there before causes are looked for.
    scores = labels + 0.3 * np.sin(np.arange(rows)) if draw(st.booleans()) else numbers()
    return Sample(
        scores, labels, features, numbers(), {"x": numbers()}, {"scene": words()}, words(), {"u": words()}
    )


@given(
    better=samples(), worse=samples(), train=samples(), pair=st.sampled_from(["train_test", "test_online"])
)
@settings(max_examples=60, deadline=None)
def test_shares_of_random_arrays_are_ordered_and_finite(better, worse, train, pair):
    pairs = Pairs(worse, {"x": np.roll(worse.features["x"], 1), "text": worse.features["text"]})
    found = diagnose(pair, better, worse, train=train, pairs=pairs, settings=LOOSE)
    shares = [one.share for one in found if one.share is not None]
    assert shares == sorted(shares, reverse=True)
    assert all(0 < one <= 1 for one in shares)
    assert len({one.cause for one in found}) == len(found)
    assert {one.cause for one in found} <= set(CAUSES)
    assert all(len(one.evidence) <= 20 and one.summary and one.advice for one in found)
