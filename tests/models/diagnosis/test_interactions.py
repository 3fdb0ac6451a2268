"""Worlds with interactions, categories and rare positives: the right name and an honest share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import special

from monitor.models.diagnosis.diagnose import diagnose
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.diagnosis.spikes import spike_of
from monitor.statistics.auc import auc_gap, auc_sums
from tests.models.diagnosis import interactions as worlds
from tests.models.diagnosis.cases import ROWS, as_served, auc_of, drawn
from tests.models.diagnosis.test_guards import case_of

ROW_COUNT = 5000
OF_EVERY_MODEL = [
    (make, (0, kind, ROW_COUNT))
    for kind in worlds.MODELS
    for make in (worlds.constant, worlds.defaulted, worlds.missing, worlds.unequal, worlds.swapped)
]
OF_ONE_MODEL = [
    (worlds.constant, (1, "forest", 12_000, "all", 0.02)),
    (worlds.unequal, (1, "boosting", 12_000, "all", 0.02)),
    (worlds.defaulted, (0, "logistic", 4000, "cancer")),
    (worlds.defaulted, (0, "forest", 4000, "wine")),
    (worlds.scene_scores, (0, "forest", ROW_COUNT)),
    (worlds.overfitted, (0, "forest", ROW_COUNT)),
    (worlds.leaked, (0, "boosting", ROW_COUNT)),
    *((worlds.tenfold, (0, kind, ROW_COUNT)) for kind in worlds.MODELS),
]
WITH_SHARE = [*OF_EVERY_MODEL, *OF_ONE_MODEL]


@cache
def verdict(make, arguments):
    """What the world is, and what is said of it."""
    world = make(*arguments)
    return world, diagnose(world.pair, world.better, world.worse, train=world.train, pairs=world.pairs)


def gap_of(world):
    return auc_gap(*(auc_sums(one.scores, one.labels) for one in (world.better, world.worse)))


@pytest.mark.parametrize(("make", "arguments"), WITH_SHARE)
def test_the_planted_cause_comes_first_and_its_share_is_close_to_the_true_one(make, arguments):
    world, found = verdict(make, arguments)
    assert gap_of(world).interval.lower > 0.01
    assert found[0].cause == world.cause
    assert set(found[0].features) >= set(world.features[:1])
    error = found[0].share - world.share
    assert error < 0.15, "a share is too large"
    if found[0].bound != "at least":
        assert error > -0.2, "a share is too small and does not say so"


def test_shares_of_all_worlds_are_right_in_the_median():
    errors = [found[0].share - world.share for world, found in (verdict(*one) for one in WITH_SHARE)]
    assert abs(float(np.median(errors))) < 0.05


@pytest.mark.parametrize("kind", worlds.MODELS)
def test_a_healthy_world_has_no_gap_and_no_cause(kind):
    for seed in range(3):
        world, found = verdict(worlds.healthy, (seed, kind, ROW_COUNT))
        assert gap_of(world).interval.lower <= 0.02
        assert found == ()


def test_both_swapped_features_are_named_with_where_their_values_are():
    _, found = verdict(worlds.swapped, (0, "boosting", ROW_COUNT))
    assert set(found[0].features) == {"taste", "fresh"}
    assert {row["feature"]: row["own_values_in"] for row in found[0].evidence if "feature" in row} == {
        "taste": "fresh",
        "fresh": "taste",
    }
    assert "population_shift" not in [one.cause for one in found]


def test_swapped_texts_are_found_as_well():
    rng = np.random.default_rng(0)

    def rows(served):
        a = rng.choice(np.array(["x", "y"], object), ROWS, p=[0.7, 0.3])
        b = rng.choice(np.array(["x", "y"], object), ROWS, p=[0.2, 0.8])
        labels = (rng.random(ROWS) < special.expit(3.0 * (a == "x") + (b == "x") - 2)).astype(float)
        got = {"a": b, "b": a} if served else {"a": a, "b": b}
        return Sample(special.expit(3.0 * (got["a"] == "x") + (got["b"] == "x") - 2), labels, got)

    found = diagnose("test_online", rows(False), rows(True))
    assert (found[0].cause, set(found[0].features)) == ("serving_skew", {"a", "b"})
    assert found[0].share > 0.8


@pytest.mark.parametrize("kind", worlds.MODELS)
def test_a_category_that_grew_tenfold_is_a_population_shift_and_not_a_default(kind):
    _, found = verdict(worlds.tenfold, (0, kind, ROW_COUNT))
    assert [one.cause for one in found] == ["population_shift"]
    assert found[0].features == ("country",)


def test_a_default_that_is_also_a_rare_category_is_still_a_default():
    _, test, online, model = worlds.base(0, "boosting", ROW_COUNT)
    struck = np.random.default_rng(0).random(ROW_COUNT) < 0.5
    right = online["features"]
    served = right | {"country": np.where(struck, "LU", right["country"]).astype(object)}
    case = case_of(test, worlds.sample_of(online, model, served=served))
    found = spike_of(case, case.columns["country"])
    assert found is not None
    assert case.columns["country"].plain(found.value) == "LU"


@pytest.mark.parametrize("kind", worlds.MODELS)
def test_rows_with_new_values_are_not_a_leak(kind):
    world, found = verdict(worlds.moved, (0, kind, ROW_COUNT))
    assert gap_of(world).interval.lower > 0.05
    assert "time_travel" not in [one.cause for one in found]
    assert (found[0].cause, found[0].share) == ("population_shift", None)
    assert found[0].features[0] == "lat"
    assert found[0].evidence[0] == {
        "column": "lat",
        "never_seen": 1.0,
        "examples": found[0].evidence[0]["examples"],
    }
    assert "unknown" in found[0].summary


def test_the_advice_for_a_leak_that_is_constant_online_is_not_to_serve_it_again():
    _, found = verdict(worlds.constant_leak, (0, "forest", ROW_COUNT))
    assert (found[0].cause, found[0].features) == ("pruned_features", ("session_length",))
    assert found[0].advice.startswith("First check when 'session_length' is known")
    assert "cannot be served" in found[0].advice
    assert found[0].summary.startswith("'session_length' varies in the better split and not in the worse")
    assert [row["auc_alone_in_better"] > 0.75 for row in found[0].evidence if "auc_alone_in_better" in row]
    _, honest = verdict(worlds.constant, (0, "forest", ROW_COUNT))
    assert honest[0].summary.startswith("'taste', 'affinity' vary in the better split and not in the worse")
    assert honest[0].advice == "Serve these features again, or train a model without them."


def test_the_evidence_has_the_fidelity_on_each_split():
    _, found = verdict(worlds.unequal, (0, "boosting", ROW_COUNT))
    row = found[0].evidence[-1]
    assert row["measured_by"] == "a surrogate of the scores"
    assert row["measure"] == "R2"
    assert 0.8 < row["the pairs"] < 1
    assert row["share"] == ("exact" if row["the pairs"] >= 0.9 else "about")


def blurred(noise):
    """The model hears noise besides its features, so that no surrogate can follow all of its scores."""
    parts = []
    for seed in (0, 1):
        features, labels = drawn(seed)
        served = features if seed == 0 else features | {"x": np.zeros(ROWS)}
        own = as_served(served, labels)
        heard = np.random.default_rng(seed + 70).normal(0, noise, ROWS)
        parts.append(Sample(special.expit(special.logit(own.scores) + heard), labels, own.features))
    return parts


@pytest.mark.parametrize(
    ("noise", "bound", "words"),
    [
        (0.0, "", " 100% of the gap"),
        (0.55, "about", "about 9"),
        (1.2, "at least", "at least "),
        (4.0, "", "unknown"),
    ],
)
def test_a_share_says_how_poor_the_fidelity_is(noise, bound, words):
    found = diagnose("test_online", *blurred(noise))
    assert (found[0].cause, found[0].features, found[0].bound) == ("pruned_features", ("x",), bound)
    assert words in found[0].summary
    assert (found[0].share is None) is (noise == 4.0)


def two_causes(of_x, of_y):
    """x is constant online and joined nowhere; y is at a default, and pairs have its right values."""

    def score(features):
        return special.expit(of_x * features["x"] + of_y * features["y"])

    rows = 12_000
    parts = []
    for seed in (0, 1):
        features, _ = drawn(seed, rows)
        labels = (np.random.default_rng(seed + 9).random(rows) < score(features)).astype(float)
        parts.append((features, labels))
    (test, test_labels), (right, labels) = parts
    served = {
        "x": np.zeros(rows),
        "y": np.where(np.random.default_rng(5).random(rows) < 0.9, -2.0, right["y"]),
    }
    online = Sample(score(served), labels, served)
    better = Sample(score(test), test_labels, test)
    gap = auc_of(better) - auc_of(online)

    def true_share(name):
        repaired = Sample(score(served | {name: right[name]}), labels, served)
        return (auc_of(repaired) - auc_of(online)) / gap

    found = diagnose("test_online", better, online, pairs=Pairs(online, {"y": right["y"]}))
    return found, true_share("x"), true_share("y")


@pytest.mark.parametrize(("of_x", "of_y"), [(1.6, 1.0), (1.2, 1.4), (1.0, 1.6)])
def test_causes_with_and_without_pairs_are_ranked_by_one_measure(of_x, of_y):
    found, x, y = two_causes(of_x, of_y)
    shares = {one.cause: one.share for one in found}
    assert shares["pruned_features"] == pytest.approx(x, abs=0.1)
    assert shares["serving_skew"] == pytest.approx(y, abs=0.1)
    assert (found[0].cause == "pruned_features") is (x > y)


def hidden(**more):
    """A gap that x explains, beside further features of the two splits."""
    features, labels = drawn(0)
    others, its_labels = drawn(1)
    better = as_served(features, labels)
    worse = as_served(others | {"x": np.zeros(ROWS)}, its_labels)
    extra = {name: one for name, (one, _) in more.items()}, {name: one for name, (_, one) in more.items()}
    return (
        Sample(better.scores, labels, better.features | extra[0]),
        Sample(worse.scores, its_labels, worse.features | extra[1]),
    )


def test_a_new_value_is_named_beside_the_cause_of_the_gap():
    rng = np.random.default_rng(0)
    known = rng.choice(np.array(["a", "b"], object), ROWS)
    new = np.where(rng.random(ROWS) < 0.2, "c", rng.choice(np.array(["a", "b"], object), ROWS)).astype(object)
    other = np.where(rng.random(ROWS) < 0.2, "d", new).astype(object)
    found = diagnose("test_online", *hidden(city=(known, other)))
    assert [(one.cause, one.share is None) for one in found] == [
        ("pruned_features", False),
        ("population_shift", True),
    ]
    assert found[1].features == ("city",)
    assert found[1].evidence[0]["never_seen"] == pytest.approx(0.36, abs=0.03)


def test_an_infinite_value_that_training_had_too_is_not_new():
    rng = np.random.default_rng(0)
    better, worse = (np.where(rng.random(ROWS) < 0.2, -np.inf, rng.random(ROWS)) for _ in range(2))
    assert [one.cause for one in diagnose("test_online", *hidden(log=(better, worse)))] == ["pruned_features"]


def test_names_that_are_new_in_every_split_are_not_evidence():
    better, worse = (np.array([f"{side}{at}" for at in range(ROWS)], object) for side in ("a", "b"))
    assert [one.cause for one in diagnose("test_online", *hidden(name=(better, worse)))] == [
        "pruned_features"
    ]


def test_a_constant_is_named_even_if_its_share_is_unknown():
    rng = np.random.default_rng(3)
    features, labels = drawn(0)
    others, its_labels = drawn(1)
    noise = rng.normal(0, 2, ROWS)
    better = Sample(special.expit(features["x"]), labels, features | {"flag": rng.normal(size=ROWS)})
    worse = Sample(special.expit(others["x"] + noise), its_labels, others | {"flag": np.zeros(ROWS)})
    (found,) = diagnose("test_online", better, worse)
    assert (found.cause, found.share, found.features) == ("pruned_features", None, ("flag",))
    assert "share of the gap is unknown" in found.summary


def test_a_feature_that_differs_on_every_pair_is_named_even_if_its_share_is_unknown():
    rng = np.random.default_rng(3)
    features, labels = drawn(0)
    others, its_labels = drawn(1)
    better = Sample(special.expit(features["x"]), labels, features)
    noisy = special.expit(others["x"] + rng.normal(0, 2, ROWS))
    worse = Sample(noisy, its_labels, others | {"y": rng.permutation(others["y"])})
    (found,) = diagnose("test_online", better, worse, pairs=Pairs(worse, others))
    assert (found.cause, found.share, found.features) == ("serving_skew", None, ("y",))
    assert found.evidence[0]["mismatch"] > 0.99
