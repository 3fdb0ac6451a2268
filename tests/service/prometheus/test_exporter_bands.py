"""What /metrics says of a metric against its own past: band, deviation, drift, causes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.core.results import Status
from monitor.history.snapshot import Snapshot, Violation
from tests.service import pictures
from tests.service.made import HOSTILE, metric, series
from tests.service.prometheus.test_exporter import find, samples, scrape

OF = {"metric": "failure", "by": "pv", "of": ""}
AT_K = {"metric": "ndcg", "by": "", "of": "event=click,k=10"}
HOME = OF | {"dimension": "scene", "value": "home"}
EXPECTED = metric("expected", labels=OF, value=0.02, lower=0.01, upper=0.03, samples=17)
DEVIATION = metric("deviation", labels=OF, value=-2.5, samples=17, threshold=6.1, bound="max")


def text_of(*results, standing=None) -> str:
    return scrape(shop_with(*(series(one, check="bands", standing=standing) for one in results)))


def shop_with(*shown) -> Snapshot:
    return Snapshot(taken_at=pictures.NOW, recommenders=(replace(pictures.shop(), series=shown),))


def names(text: str) -> set[str]:
    return {name for name, labels in samples(text)}


def test_a_band_has_three_gauges_and_its_samples_and_a_deviation_has_one_gauge():
    text = text_of(EXPECTED, DEVIATION)
    for family, value in (
        ("recsys_expected", 0.02),
        ("recsys_expected_lower", 0.01),
        ("recsys_expected_upper", 0.03),
        ("recsys_expected_samples", 17),
        ("recsys_deviation", -2.5),
    ):
        assert find(text, family, recommender="shop", **OF) == value
    assert "recsys_deviation_samples" not in names(text)


def test_further_labels_of_a_series_are_joined_in_one_label():
    text = text_of(EXPECTED, replace(EXPECTED, labels=AT_K, value=0.3))
    assert find(text, "recsys_expected", recommender="shop", **AT_K) == 0.3
    assert find(text, "recsys_expected", recommender="shop", **OF) == 0.02


def test_the_verdict_on_a_deviation_has_its_own_family():
    text = text_of(replace(DEVIATION, status=Status.VIOLATED, value=9.0))
    assert find(text, "recsys_deviation_status", recommender="shop", **OF, status="violated") == 1
    assert find(text, "recsys_deviation_status", recommender="shop", **OF, status="ok") is None
    forbidden = {"recsys_metric_status", "recsys_objective_status", "recsys_slice_objective_status"}
    assert not names(text) & forbidden


@pytest.mark.parametrize("name", ["expected", "deviation", "drift", "anomaly", "anomaly_severity"])
@pytest.mark.parametrize("status", [Status.VIOLATED, Status.NO_DATA, Status.ERROR, Status.LATE])
def test_results_of_bands_and_drifts_are_never_the_state_of_a_metric(name, status):
    given = OF | {"cause": "lists_empty"}
    whole = metric(name, status=status, labels=given, threshold=1.0, bound="max")
    sliced = replace(whole, labels=given | {"dimension": "scene", "value": "home"})
    text = text_of(whole, sliced)
    assert not [name for name in names(text) if name.endswith(("metric_status", "objective_status"))]


def test_the_gauge_stays_violated_until_the_violation_clears():
    text = text_of(DEVIATION, standing=Status.VIOLATED)
    assert find(text, "recsys_deviation_status", recommender="shop", **OF, status="violated") == 1


def test_only_violated_slices_have_a_state_and_all_slices_have_numbers():
    well = replace(DEVIATION, labels=HOME)
    off = replace(DEVIATION, labels=HOME | {"value": HOSTILE}, status=Status.VIOLATED, value=30.0)
    text = text_of(replace(EXPECTED, labels=HOME), well, off)
    assert find(text, "recsys_slice_expected", recommender="shop", **HOME) == 0.02
    assert find(text, "recsys_slice_deviation", recommender="shop", **HOME) == -2.5
    told = [dict(labels) for name, labels in samples(text) if name == "recsys_slice_deviation_status"]
    assert told == [
        OF | {"recommender": "shop", "dimension": "scene", "value": HOSTILE, "status": "violated"}
    ]
    assert "recsys_deviation_status" not in names(text)


def test_a_healthy_recommender_has_no_states_of_slices():
    text = text_of(replace(DEVIATION, labels=HOME))
    assert "recsys_slice_deviation_status" not in names(text)


def test_a_cause_has_gauges_of_its_series_its_verdict_and_its_severity():
    found = metric("anomaly", status=Status.VIOLATED, labels={"cause": "lists_empty"}, value=12.0, samples=90)
    quiet = metric("anomaly", labels={"cause": "traffic_lost"}, value=0.0, samples=90)
    much = metric("anomaly_severity", labels={"cause": "lists_empty"}, value=0.75)
    text = text_of(found, quiet, much)
    empty = {"recommender": "shop", "cause": "lists_empty"}
    assert find(text, "recsys_anomaly", **empty) == 12
    assert find(text, "recsys_anomaly_severity_ratio", **empty) == 0.75
    assert find(text, "recsys_anomaly_status", **empty, status="violated") == 1
    assert find(text, "recsys_anomaly_status", **empty, status="ok") is None
    lost = {"recommender": "shop", "cause": "traffic_lost"}
    assert find(text, "recsys_anomaly_status", **lost, status="ok") == 1
    assert find(text, "recsys_anomaly", **lost) == 0
    assert len([name for name, _ in samples(text) if name == "recsys_anomaly_status"]) == 2


def test_a_cause_that_is_excused_has_neither_a_verdict_nor_a_severity_and_the_others_have_both():
    def shown(cause, *, excused):
        found = metric("anomaly", status=Status.VIOLATED, labels={"cause": cause}, value=12.0, samples=90)
        much = metric("anomaly_severity", labels={"cause": cause}, value=0.75)
        return replace(series(found), excused=excused), series(much)  # a severity is never excused itself

    both = (*shown("lists_empty", excused=True), *shown("traffic_lost", excused=False))
    told = samples(scrape(shop_with(*both)))
    for family in ("recsys_anomaly_status", "recsys_anomaly_severity_ratio"):
        assert {dict(labels)["cause"] for name, labels in told if name == family} == {"traffic_lost"}
    assert {dict(labels)["cause"] for name, labels in told if name == "recsys_anomaly"} == {
        "lists_empty",
        "traffic_lost",
    }


def test_a_drift_has_its_number_and_its_verdict():
    slides = metric("drift", status=Status.VIOLATED, labels=OF, value=-8.25, threshold=5.0, bound="min")
    text = text_of(slides)
    assert find(text, "recsys_drift", recommender="shop", **OF) == -8.25
    assert find(text, "recsys_drift_status", recommender="shop", **OF, status="violated") == 1


def test_too_little_past_is_a_state_and_never_zero():
    young = replace(DEVIATION, status=Status.NO_DATA, value=None, detail="7 of 24 windows")
    text = text_of(replace(EXPECTED, status=Status.NO_DATA, value=None, lower=None, upper=None), young)
    assert find(text, "recsys_deviation_status", recommender="shop", **OF, status="no_data") == 1
    assert not names(text) & {"recsys_expected", "recsys_deviation", "recsys_expected_lower"}


WORST = HOME | {"value": HOSTILE, "measured": 0.5, "expected": 0.01, "deviation": 30.0}


def test_a_violated_cause_names_the_series_furthest_out_of_its_band_with_any_text():
    found = metric(
        "anomaly", status=Status.VIOLATED, labels={"cause": "lists_empty"}, value=2.0, evidence=(WORST, OF)
    )
    text = text_of(found)
    labels = {"recommender": "shop", "cause": "lists_empty"} | HOME | {"value": HOSTILE}
    assert find(text, "recsys_anomaly_worst", **labels) == 0.5
    assert find(text, "recsys_anomaly_worst_expected", **labels) == 0.01
    assert len([name for name, _ in samples(text) if name.startswith("recsys_anomaly_worst")]) == 2
    for quiet in (replace(found, status=Status.OK), replace(found, evidence=())):
        assert not [name for name in names(text_of(quiet)) if name.startswith("recsys_anomaly_worst")]


def test_a_violated_cause_keeps_the_series_of_its_last_violated_window():
    held = metric("anomaly", labels={"cause": "lists_empty"}, value=0.0)
    before = replace(held, status=Status.VIOLATED, evidence=(WORST,))
    kept = replace(series(held, standing=Status.VIOLATED), violation=Violation(pictures.LAST, before))
    text = scrape(shop_with(kept))
    labels = {"recommender": "shop", "cause": "lists_empty"} | HOME | {"value": HOSTILE}
    assert find(text, "recsys_anomaly_worst", **labels) == 0.5


def test_no_label_holds_a_sentence():
    said = "lists are short, and this is a sentence"
    names_ = ("anomaly", "drift", "substitution", "forecast_correlation", "deviation")
    of = OF | {"cause": "other", "target": "ctr", "role": "used", "total": "orders", "system": "search"}
    results = [metric(name, status=Status.VIOLATED, labels=of, value=1.0, detail=said) for name in names_]
    text = text_of(*results)
    assert len({name for name in names(text) if name.endswith("_status")}) == len(names_)
    assert said not in text


def test_the_series_that_no_cause_explains_are_counted_over_both_parts_of_a_window():
    of_lists = metric("anomaly", status=Status.OK, labels={"cause": "other"}, value=0.0)
    of_actions = metric("anomaly", status=Status.VIOLATED, labels={"cause": "other"}, value=3.0)
    text = text_of(of_lists, of_actions)
    other = {"recommender": "shop", "cause": "other"}
    assert find(text, "recsys_anomaly", **other) == 3
    assert find(text, "recsys_anomaly_status", **other, status="violated") == 1
