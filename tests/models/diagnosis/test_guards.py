"""What looks like a cause and is none: each guard against a wrong name, by itself."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from monitor.models.diagnosis.case import labelled, read_case
from monitor.models.diagnosis.diagnose import diagnose
from monitor.models.diagnosis.overfitting import overfitting
from monitor.models.diagnosis.population import moved_axes, population_shift
from monitor.models.diagnosis.pruned import pruned_features
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.diagnosis.scoring import Rescored
from monitor.models.diagnosis.skew import skew_of
from monitor.models.diagnosis.spikes import Spike, spike_of
from monitor.settings.models import DiagnosisSettings
from tests.models.diagnosis.cases import ROWS, as_served, drawn, scored
from tests.models.diagnosis.test_features import NOW, future, pairs_of
from tests.models.diagnosis.test_mix import mixed


def case_of(better, worse):
    settings = DiagnosisSettings()
    return read_case(
        "test_online", labelled(better), labelled(worse), None, None, None, settings, auc=0.8, gap=0.1
    )


def spike_in(better, worse, labels=None):
    both = [Sample(np.full(ROWS, 0.5), drawn(at)[1], {"f": one}) for at, one in enumerate((better, worse))]
    if labels is not None:
        both = [Sample(one.scores, y, one.features) for one, y in zip(both, labels, strict=True)]
    case = case_of(*both)
    return spike_of(case, case.columns["f"])


def test_the_rate_of_a_spike_is_a_share_of_the_other_rows():
    assert Spike(0.0, 0.2, 0.6).rate == pytest.approx(0.5)


@pytest.mark.parametrize(("before", "found"), [(0.1, True), (0.4, False)])
def test_missing_values_that_were_frequent_before_are_not_a_failed_lookup(before, found):
    values, chance = np.arange(ROWS) * 1.0, np.random.default_rng(0).random(ROWS)
    better, worse = (np.where(chance < rate, math.nan, values) for rate in (before, 0.6))
    assert (spike_in(better, worse) is not None) is found


@pytest.mark.parametrize("default", [True, False])
def test_a_frequent_text_is_a_default_only_if_its_rows_behave_like_all_rows(default):
    rng = np.random.default_rng(0)
    before = rng.choice(["a", "b", "c", "d"], ROWS, p=[0.3, 0.3, 0.2, 0.2]).astype(object)
    true = (
        before
        if default
        else rng.choice(["a", "b", "c", "d"], ROWS, p=[0.6, 0.17, 0.12, 0.11]).astype(object)
    )
    served = np.where(rng.random(ROWS) < 0.43, "a", true).astype(object) if default else true
    labels = [(rng.random(ROWS) < np.where(one == "a", 0.8, 0.2)).astype(float) for one in (before, true)]
    found = spike_in(before, served, labels)
    assert (found is not None) is default


@pytest.mark.parametrize("default", [True, False])
def test_a_flag_that_is_1_or_missing_can_be_a_default(default):
    rng = np.random.default_rng(0)
    before, true = (
        np.where(rng.random(ROWS) < rate, 1.0, math.nan) for rate in (0.4, 0.4 if default else 0.7)
    )
    served = np.where(rng.random(ROWS) < 0.5, 1.0, true) if default else true
    labels = [(rng.random(ROWS) < np.where(one == 1, 0.8, 0.2)).astype(float) for one in (before, true)]
    assert (spike_in(before, served, labels) is not None) is default


def test_a_value_of_the_same_time_is_not_stale():
    users = np.array(["a", "a"], dtype=object)
    column, sample = pairs_of([5.0, 4.0], [4.0, 5.0], times=np.ones(2), entities={"user_id": users})
    assert skew_of(column, Pairs(sample, {}), 1e-6).kind == "different"


def test_a_strong_feature_that_is_older_online_is_stale_and_not_from_the_future():
    test, online = as_served(*future(0, True)), as_served(*future(1, False))
    times = NOW + np.arange(ROWS)
    served = Sample(online.scores, online.labels, online.features, times, {"next": times - 900})
    joined = Pairs(served, {"next": future(1, True)[0]["next"]}, {"next": times - 60})
    found = diagnose("test_online", test, served, pairs=joined)
    assert (found[0].cause, found[0].features) == ("serving_skew", ("next",))
    assert found[0].evidence[0]["kind"] == "stale"


def test_a_rare_value_missing_online_is_not_pruned():
    rare = np.zeros(ROWS)
    rare[:3] = 1.0
    features, labels = drawn(0)
    case = case_of(
        as_served(features | {"rare": rare}, labels), as_served(features | {"rare": 0 * rare}, labels)
    )
    assert pruned_features(case, frozenset()).owned == frozenset()


def test_a_mix_without_rows_in_the_weighted_split_is_not_an_axis():
    assert moved_axes(case_of(mixed(0, 0.0), mixed(1, 0.5)), frozenset(), "better") == []
    assert moved_axes(case_of(mixed(0, 0.5), mixed(1, 0.0)), frozenset(), "worse") == []


def test_a_mix_with_too_few_rows_in_the_worse_split_explains_nothing():
    case = case_of(mixed(0, 0.2), mixed(1, 0.995))
    assert [axis.name for axis in moved_axes(case, frozenset(), "worse")] == ["segment"]
    assert population_shift(case, frozenset()).finding is None


def test_a_slice_that_is_a_feature_too_is_one_axis_and_has_one_owner():
    better, worse = (
        Sample(one.scores, one.labels, one.features | one.slices, slices=one.slices)
        for one in (mixed(0, 0.2), mixed(1, 0.8))
    )
    case = case_of(better, worse)
    assert [axis.name for axis in moved_axes(case, frozenset(), "worse")] == ["segment"]
    assert moved_axes(case, frozenset({"segment"}), "worse") == []


def drifted(**more):
    features, labels = drawn(1)
    noise = np.random.default_rng(3).normal(0, 3, ROWS)
    return Sample(scored(features | {"noise": noise}), labels, features, **more)


def test_older_test_rows_that_are_no_easier_explain_nothing():
    times = NOW + np.random.default_rng(6).permutation(ROWS)
    test, train = as_served(*drawn(0), times=times), as_served(*drawn(2), times=times - ROWS / 2)
    assert diagnose("test_online", test, drifted(), train=train) == ()


def test_a_feature_that_is_late_in_both_splits_explains_nothing():
    times = NOW + np.arange(ROWS)
    late = {"times": times, "feature_times": {"x": times + 5}}
    assert diagnose("test_online", as_served(*drawn(0), **late), drifted(**late)) == ()


def test_permuting_does_not_depend_on_the_order_of_the_log():
    case = case_of(as_served(*drawn(0)), as_served(*drawn(1)))
    order = np.random.default_rng(0).permutation(ROWS)
    shuffled = Sample(
        case.better.scores[order],
        case.better.labels[order],
        {name: values[order] for name, values in case.better.features.items()},
    )
    other = case_of(shuffled, case.worse)
    found, again = (
        Rescored(lambda rows: rows["x"], {"better": one.better, "worse": one.worse}, one.columns)
        for one in (case, other)
    )
    found, again = (one.without("better", ("x",)) for one in (found, again))
    for first, second in zip(found, again, strict=True):
        assert first[order].tolist() == second.tolist()


@pytest.mark.parametrize(
    ("won", "error", "share"),
    [(0.05, 0.01, 0.5), (0.05, 0.03, None), (0.014, 0.0, None), (0.016, 0.0, 0.16), (-0.05, 0.0, None)],
)
def test_a_share_is_given_if_it_is_large_enough_and_not_chance(won, error, share):
    case = case_of(as_served(*drawn(0)), as_served(*drawn(1)))
    assert case.gap == 0.1
    assert case.share(won, error) == (None if share is None else pytest.approx(share))


def test_overfitting_is_the_rest_of_the_gap():
    case = replace(case_of(as_served(*drawn(0)), as_served(*drawn(1))), pair="train_test")
    assert overfitting(case, 0.0).finding.share == pytest.approx(1.0)
    assert overfitting(case, 0.04).finding.share == pytest.approx(0.6)
    assert overfitting(case, 0.09).finding is None
