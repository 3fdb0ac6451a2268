"""What is said of features and scores: the worst first, bounded, and every state with its reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitor.core.results import Status
from monitor.models.feature_profile import Bins, FeatureProfile, compare
from monitor.models.feature_skew import FeatureSkew, Pairing, Skew
from monitor.models.feature_specs import (
    DISTANCES,
    FEATURE_SPECS,
    distance_results,
    score_results,
    skew_results,
)
from monitor.settings.metrics import MetricSettings
from monitor.settings.models import ModelSettings
from monitor.statistics.intervals import wilson

METRICS, MODELS = MetricSettings(), ModelSettings()
KEYS = ("request_id", "item_id")
PAIRED = Pairing(KEYS, 10, 10, pairs=10)


def of_skew(features, pairing=PAIRED, models=MODELS, **options):
    return list(skew_results(Skew(pairing, tuple(features), **options), METRICS, models, "m"))


def test_a_skew_has_a_ratio_an_interval_and_a_detail():
    wrong = FeatureSkew("age", 10, 1, 2, 3, stale=2, commonest="0", commonest_count=4)
    (found,) = of_skew([wrong])
    assert (found.metric, found.status, found.value, found.samples) == ("feature_skew", Status.OK, 0.6, 10)
    assert (found.lower, found.upper) == pytest.approx(wilson(6, 10))
    assert found.labels == {"model": "m", "feature": "age"}
    assert found.detail == (
        "6 of 10 pairs differ: 1 missing online, 2 missing offline, 3 different; "
        "4 of the wrong are '0' online; 2 of the wrong are older online"
    )


def test_a_feature_without_a_difference_has_ratio_0_and_no_detail():
    (found,) = of_skew([FeatureSkew("age", 10, 0, 0, 0, stale=0)])
    assert (found.status, found.value, found.lower, found.detail) == (Status.OK, 0, 0, "")


def test_the_worst_features_come_first_and_the_last_counts_the_others():
    features = [FeatureSkew(f"f{n}", 10, 0, 0, n) for n in (0, 3, 1, 2, 3)]
    found = of_skew([FeatureSkew("b", 10, 0, 0, 3), *features], models=ModelSettings(budget=2))
    assert [one.labels["feature"] for one in found] == ["b", "f3"]
    assert "not shown" not in found[0].detail
    assert found[1].detail.endswith("; 4 further features are not shown, of which 3 differ at all")


def test_rows_left_out_of_the_pairs_are_reported():
    pairing = Pairing(KEYS, 20, 20, pairs=10, unknown=1, ambiguous=2)
    (found,) = of_skew([FeatureSkew("age", 10, 0, 0, 0)], pairing)
    assert (
        found.detail == "2 keys are left out, being on one side more than once; 1 row has no value in a key"
    )


@pytest.mark.parametrize(
    ("pairing", "detail"),
    [
        (Pairing(KEYS, 0, 5), "no online row of the model"),
        (Pairing(KEYS, 5, 0), "no offline row of the model: log the same requests over again with the split"),
        (
            Pairing((), 5, 5),
            "no column to pair by: online and offline rows both need one of 'request_id', 'i",
        ),
        (
            Pairing(("request_id",), 5, 4, ambiguous=1),
            "no pair among 5 online and 4 offline rows: none share 'request_id'; 1 key is left out, being on",
        ),
    ],
)
def test_without_pairs_the_detail_says_what_is_missing(pairing, detail):
    (found,) = of_skew([FeatureSkew("age", 0, 0, 0, 0)], pairing)
    assert (found.status, found.value, found.labels) == (Status.NO_DATA, None, {"model": "m"})
    assert found.detail.startswith(detail)


def test_without_features_there_is_nothing_to_compare():
    (found,) = of_skew([])
    assert found.status is Status.NO_DATA
    found = list(distance_results([], METRICS, MODELS, "m"))
    assert [(one.status, one.labels["by"]) for one in found] == [(Status.NO_DATA, by) for by in DISTANCES]
    assert all("no feature" in one.detail for one in found)


def test_settings_that_change_the_metric_are_in_the_definition():
    skew = [FeatureSkew("age", 10, 0, 0, 0)]
    definitions = {
        of_skew(skew)[0].definition,
        of_skew(skew, tolerance=0.5)[0].definition,
        of_skew(skew, Pairing(("request_id",), 10, 10, pairs=10))[0].definition,
        of_skew(skew, models=ModelSettings(over=timedelta(hours=1)))[0].definition,
    }
    assert len(definitions) == 4
    assert of_skew(skew)[0].definition == of_skew(skew, models=ModelSettings(budget=3))[0].definition


def test_a_value_from_the_log_is_quoted_and_shortened_in_the_detail():
    odd = "a'\n\x1b[31m" + "x" * 500
    (found,) = of_skew([FeatureSkew("age", 10, 0, 0, 3, commonest=odd, commonest_count=3)])
    assert found.detail.isprintable()
    assert len(found.detail) < 200


NUMBER, TEXT = Bins("age", "number", edges=(1.0,)), Bins("city", "text", values=("a",))


def comparison(bins, before, after):
    return compare(FeatureProfile(bins, before, 2, "1", before[0]), FeatureProfile(bins, after, 1, "1", 9))


def test_the_farthest_features_come_first_each_with_every_distance():
    near = comparison(NUMBER, (5, 5, 0), (5, 5, 0))
    far = comparison(TEXT, (9, 0, 1), (0, 9, 1))
    found = list(distance_results([near, far], METRICS, ModelSettings(budget=1), "m"))
    assert [one.labels for one in found] == [{"by": by, "model": "m", "feature": "city"} for by in DISTANCES]
    values = dict(zip(DISTANCES, (one.value for one in found), strict=True))
    assert values["jensen_shannon"] == pytest.approx(far.jensen_shannon)
    assert values["psi"] == pytest.approx(far.psi)
    assert (found[2].status, values["ks"]) == (Status.UNDEFINED, None)
    assert found[0].detail == (
        "reference: 10% missing, 2 values, 90% '1'; online: 10% missing, 1 value, 90% '1'; "
        "1 further feature is nearer and not shown"
    )


def test_an_empty_side_is_no_data_and_named():
    empty = FeatureProfile(NUMBER, (0, 0, 0), 0)
    there = FeatureProfile(NUMBER, (1, 0, 0), 1, "1", 1)
    for sides, name in (((empty, there), "reference"), ((there, empty), "online")):
        found = list(distance_results([compare(*sides)], METRICS, MODELS, "m"))
        assert {(one.status, one.detail) for one in found} == {
            (Status.NO_DATA, f"no {name} row of the model")
        }
    found = list(score_results(compare(empty, there), METRICS, MODELS, "train_test", "m"))
    assert {(one.status, one.detail) for one in found} == {(Status.NO_DATA, "no train row of the model")}


def test_score_distances_are_given_for_each_pair_of_splits():
    moved = comparison(NUMBER, (5, 5, 0), (9, 1, 0))
    found = list(score_results(moved, METRICS, MODELS, "test_online", "m"))
    assert [one.labels for one in found] == [
        {"by": by, "pair": "test_online", "model": "m"} for by in DISTANCES
    ]
    assert found[2].value == pytest.approx(0.4)
    assert found[2].detail == "test: 0% missing, 2 values, 50% '1'; online: 0% missing, 1 value, 90% '1'"
    assert "over=" in found[0].definition
    train = next(score_results(moved, METRICS, MODELS, "train_test", "m"))
    assert "over=" not in train.definition


def test_every_spec_has_the_labels_of_its_results():
    results = [
        *of_skew([FeatureSkew("age", 10, 0, 0, 0)]),
        *distance_results([comparison(NUMBER, (5, 5, 0), (9, 1, 0))], METRICS, MODELS, "m"),
        *score_results(comparison(NUMBER, (5, 5, 0), (9, 1, 0)), METRICS, MODELS, "test_online", "m"),
    ]
    assert {one.metric for one in results} == set(FEATURE_SPECS)
    for one in results:
        spec = FEATURE_SPECS[one.metric]
        assert set(one.labels) == {*spec.labels, *(("by",) if spec.by else ())}
        assert not spec.by or one.labels["by"] in spec.by
