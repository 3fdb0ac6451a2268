"""Causes that lie in single features, each on rows whose score is known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from monitor.models.diagnosis.columns import read_column
from monitor.models.diagnosis.diagnose import diagnose
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.diagnosis.skew import skew_of
from tests.models.diagnosis.cases import ROWS, as_served, auc_of, drawn, scored

NOW = 1e9
TEST = as_served(*drawn(0))


def online_with(**served):
    """Online rows of which some features are served otherwise than they are, and what they are."""
    features, labels = drawn(1)
    return as_served(features | served, labels), features


def test_a_pruned_feature_is_named_with_its_share():
    online, _ = online_with(x=np.zeros(ROWS))
    (found,) = diagnose("test_online", TEST, online)
    assert (found.cause, found.features) == ("pruned_features", ("x",))
    broken = as_served(TEST.features | {"x": np.zeros(ROWS)}, TEST.labels)
    lost = auc_of(TEST) - auc_of(broken)
    assert found.share == pytest.approx(min(1, lost / (auc_of(TEST) - auc_of(online))), abs=0.05)
    assert found.evidence[0] == {
        "feature": "x",
        "worse": 0.0,
        "rows": ROWS,
        "auc_lost": pytest.approx(lost, abs=0.01),
    }


def test_a_feature_missing_online_is_pruned():
    features, labels = drawn(1)
    online = Sample(scored({"y": features["y"]}), labels, {"y": features["y"]})
    (found,) = diagnose("test_online", TEST, online)
    assert (found.cause, found.features, found.evidence[0]["worse"]) == ("pruned_features", ("x",), "absent")


def test_a_constant_by_chance_is_not_a_pruned_feature():
    rare = np.zeros(ROWS)
    rare[:3] = 1.0
    better = as_served(TEST.features | {"rare": rare}, TEST.labels)
    online, _ = online_with(x=np.random.default_rng(5).normal(size=ROWS), rare=np.zeros(ROWS))
    assert all("rare" not in found.features for found in diagnose("test_online", better, online))


def struck_by(value, rate=0.5):
    return np.where(np.random.default_rng(2).random(ROWS) < rate, value, drawn(1)[0]["x"])


@pytest.mark.parametrize("value", [-3.0, math.nan])
def test_a_default_is_seen_without_pairs_as_a_spike(value):
    online, _ = online_with(x=struck_by(value))
    (found,) = diagnose("test_online", TEST, online)
    assert (found.cause, found.features) == ("serving_skew", ("x",))
    assert found.share > 0.7
    assert found.evidence[0]["worse"] == pytest.approx(0.5, abs=0.03)
    assert found.evidence[0]["value"] == (None if math.isnan(value) else value)


def test_a_value_that_was_as_frequent_before_is_not_a_spike():
    half = np.where(np.arange(ROWS) % 2, -3.0, 0.0)
    better = as_served(TEST.features | {"flag": half}, TEST.labels)
    features, labels = drawn(1)
    noise = np.random.default_rng(3).normal(0, 3, ROWS)
    worse = Sample(scored(features | {"noise": noise}), labels, features | {"flag": half})
    assert diagnose("test_online", better, worse) == ()


@pytest.mark.parametrize(("value", "kind"), [(-3.0, "default"), (math.nan, "missing")])
def test_pairs_show_the_gain_of_the_correct_values(value, kind):
    online, right = online_with(x=struck_by(value))
    (found,) = diagnose("test_online", TEST, online, pairs=Pairs(online, right))
    assert (found.cause, found.features) == ("serving_skew", ("x",))
    won = auc_of(as_served(right, online.labels)) - auc_of(online)
    assert found.evidence[0]["auc_won"] == pytest.approx(won, abs=0.01)
    assert found.evidence[0]["kind"] == kind
    row = found.evidence[1]
    assert row["feature"] == "x"
    assert row["online"] == (None if kind == "missing" else value)
    assert row["offline"] in right["x"]


def test_pairs_that_agree_name_no_cause():
    online, right = online_with()
    noisy = Sample(np.random.default_rng(4).permutation(online.scores), online.labels, online.features)
    assert diagnose("test_online", TEST, noisy, pairs=Pairs(noisy, right)) == ()


def pairs_of(online, offline, **more):
    rows = len(online)
    sample = Sample(np.zeros(rows), np.zeros(rows), {"x": np.array(online)}, **more)
    return read_column("x", {"online": np.array(online), "offline": np.array(offline)}), sample


@pytest.mark.parametrize(
    ("online", "offline", "rate"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.0], [1.0 + 1e-9, 3.0], 0.5),
        ([math.nan, math.nan], [math.nan, 1.0], 0.5),
        ([math.inf, math.inf, -math.inf], [math.inf, -math.inf, 1e308], 2 / 3),
        ([1e308], [-1e308], 1.0),
        ([0.0, -0.0], [0.0, 0.0], 0.0),
    ],
)
def test_which_values_are_equal(online, offline, rate):
    column, sample = pairs_of(online, offline)
    assert skew_of(column, Pairs(sample, {}), 1e-6).rate == pytest.approx(rate)


def test_texts_must_be_identical():
    online, offline = (np.array(one, dtype=object) for one in (["a", "b", None, None], ["a", "c", None, "a"]))
    column, sample = pairs_of(online, offline)
    found = skew_of(column, Pairs(sample, {}), 0.5)
    assert (found.rate, found.wrong.tolist()) == (0.5, [False, True, False, True])


def test_a_value_that_the_same_user_had_before_is_stale():
    # The user a has 1, 2, 3 offline and is served what it had one row before; b is served what only a had.
    times, users = np.array([1.0, 2, 3, 4]), np.array(["a", "a", "a", "b"], dtype=object)
    column, sample = pairs_of([1.0, 1, 2, 2], [1.0, 2, 3, 9], times=times, entities={"user_id": users})
    found = skew_of(column, Pairs(sample, {}), 1e-6)
    assert (found.rate, found.kind) == (0.75, "different")  # 2 of the 3 are stale, fewer than nearly all
    column, sample = pairs_of([1.0, 1, 2, 9], [1.0, 2, 3, 9], times=times, entities={"user_id": users})
    assert skew_of(column, Pairs(sample, {}), 1e-6).kind == "stale"


def test_rows_without_a_user_are_not_of_one_user():
    times, online, offline = np.array([1.0, 2, 3, 4]), [1.0, 1, 2, 3], [1.0, 2, 3, 4]
    nobody, some = np.array([None] * 4, object), np.array(["a", None, None, "a"], object)
    for users in (nobody, some):
        column, sample = pairs_of(online, offline, times=times, entities={"user_id": users})
        assert skew_of(column, Pairs(sample, {}), 1e-6).kind == "different"
    known = np.array(["a", "b", None, "a", "b"], object)
    later = np.array([1.0, 2, 3, 4, 5])
    column, sample = pairs_of([1.0, 2, 9, 1, 2], [1.0, 2, 9, 3, 4], times=later, entities={"user_id": known})
    assert skew_of(column, Pairs(sample, {}), 1e-6).kind == "stale"


def test_a_value_that_comes_only_later_is_not_stale():
    times, users = np.array([1.0, 2]), np.array(["a", "a"], dtype=object)
    column, sample = pairs_of([5.0, 7.0], [4.0, 5.0], times=times, entities={"user_id": users})
    assert skew_of(column, Pairs(sample, {}), 1e-6).kind == "different"


def test_a_feature_whose_own_time_is_older_online_is_stale():
    column, sample = pairs_of([1.0, 2], [3.0, 4], feature_times={"x": np.array([1.0, 1])})
    assert skew_of(column, Pairs(sample, {}, {"x": np.array([2.0, 2])}), 1e-6).kind == "stale"


def future(seed, leaks):
    features, labels = drawn(seed)
    chance = np.random.default_rng(seed + 50).normal(0, 1, ROWS)
    return features | {"next": chance + (2.0 * labels if leaks else 0.0)}, labels


def test_a_feature_that_alone_predicts_the_label_is_from_the_future():
    test, online = as_served(*future(0, True)), as_served(*future(1, False))
    found = diagnose("test_online", test, online)
    assert (found[0].cause, found[0].features) == ("time_travel", ("next",))
    assert found[0].summary.startswith("'next' knows the future: ")
    assert found[0].advice.startswith("Join this feature as of the moment of the request, ")
    assert found[0].evidence[0]["auc_better"] > 0.9
    assert found[0].evidence[0]["auc_worse"] == pytest.approx(0.5, abs=0.03)


def test_a_feature_whose_own_time_is_after_the_event_is_from_the_future():
    # Too weak to be seen by what it tells alone.
    def weak(seed, leaks):
        features, labels = drawn(seed)
        chance = np.random.default_rng(seed + 50).normal(0, 1, ROWS)
        return features | {"next": chance + (0.7 * labels if leaks else 0.0)}, labels

    times = NOW + np.arange(ROWS)
    test = as_served(*weak(0, True), times=times, feature_times={"next": times + 60, "x": times - 60})
    online = as_served(*weak(1, False), times=times + ROWS, feature_times={"next": times + ROWS - 60})
    found = diagnose("test_online", test, online)
    assert (found[0].cause, found[0].features) == ("time_travel", ("next",))
    assert found[0].evidence[0] == {"feature": "next", "younger_than_event": 1.0}
    assert found[0].evidence[1]["feature_time"] - found[0].evidence[1]["event_time"] == 60
    undated = as_served(*weak(0, True), times=np.full(ROWS, np.nan), feature_times={"next": times})
    assert diagnose("test_online", undated, online) == ()


def test_times_of_the_offline_join_reveal_the_future():
    times = NOW + np.arange(ROWS)
    test, online = as_served(*future(0, True)), as_served(*future(1, False), times=times)
    joined = Pairs(online, {"next": future(1, True)[0]["next"]}, {"next": times + 60})
    found = diagnose("test_online", test, online, pairs=joined)
    assert (found[0].cause, found[0].features) == ("time_travel", ("next",))
    assert {"feature": "next", "younger_than_event": 1.0} in found[0].evidence


def test_old_test_rows_explain_the_lower_auc_of_newer_ones():
    features, labels = drawn(0)
    times = NOW + np.arange(ROWS)
    older = np.arange(ROWS) < ROWS // 2
    # The model has seen the neighbours of the older rows, and is right on nearly all of them.
    scores = np.where(older, scored(features) + labels, scored(features) + 0.5) / 2
    test = Sample(scores, labels, features, times)
    online = as_served(*drawn(1), times=times + ROWS)
    train = as_served(*drawn(2), times=times - ROWS // 2)
    found = diagnose("test_online", test, online, train=train)[0]
    assert (found.cause, found.features) == ("time_travel", ())
    assert found.share > 0.8
    assert found.evidence[0] == {"id": None, "event_time": NOW, "newest_train_time": train.times.max()}


def test_a_random_split_is_named_without_a_share_and_only_without_other_causes():
    times = NOW + np.random.default_rng(6).permutation(ROWS)
    train, test = as_served(*drawn(2), times=times), as_served(*drawn(0), times=times[::-1])
    features, labels = drawn(1)
    noise = np.random.default_rng(3).normal(0, 3, ROWS)
    drifted = Sample(scored(features | {"noise": noise}), labels, features, times + ROWS)
    (found,) = diagnose("test_online", test, drifted, train=train)
    assert (found.cause, found.share) == ("time_travel", None)
    pruned, _ = online_with(x=np.zeros(ROWS))
    assert [one.cause for one in diagnose("test_online", test, pruned, train=train)] == ["pruned_features"]
