"""What a scrape says of results: values, verdicts, slices."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from monitor.core.results import Status, Window
from monitor.history.snapshot import RecommenderState, Snapshot, Violation
from monitor.service.prometheus.exporter import Exporter
from monitor.service.prometheus.families import all_families
from tests.service import pictures
from tests.service.prometheus.scrapes import find, samples, scrape


def test_every_series_is_of_a_declared_family_with_exactly_its_labels():
    families = all_families()
    found = samples(scrape(pictures.full()))
    assert len(found) > 200
    for name, labels in found:
        assert {label for label, _ in labels} == set(families[name].labels), name


def test_help_and_type_are_those_of_the_table():
    lines = scrape(pictures.full()).splitlines()
    for line in lines:
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split(" ")
            assert kind == {"info": "gauge"}.get(all_families()[name].kind, all_families()[name].kind)
        if line.startswith("# HELP"):
            _, _, name, text = line.split(" ", 3)
            assert text == all_families()[name].help


def test_a_violated_rule_has_its_numbers_and_exactly_one_status():
    text = scrape(pictures.full())
    rule = {"recommender": "shop", "rule": "blacklist", "kind": "hard"}
    assert find(text, "recsys_rule_violation_ratio", **rule) == pytest.approx(9 / 11873)
    assert find(text, "recsys_rule_violation_lower_ratio", **rule) == 0.0004
    assert find(text, "recsys_rule_violation_upper_ratio", **rule) == 0.00143
    assert find(text, "recsys_rule_threshold_ratio", **rule) == 0
    assert find(text, "recsys_rule_window_violations", **rule) == 9
    assert find(text, "recsys_rule_samples", **rule) == 11873
    assert find(text, "recsys_rule_violations_total", **rule) == 17
    since = (pictures.LAST.start - 2 * pictures.HOUR).timestamp()
    assert find(text, "recsys_rule_since_timestamp_seconds", **rule) == since
    states = {s.value: find(text, "recsys_rule_status", status=s.value, **rule) for s in Status}
    assert states == dict.fromkeys(map(str, Status)) | {"violated": 1}


def test_a_rule_has_the_time_of_its_newest_violation_while_the_history_shows_it():
    state = next(one for one in pictures.full().recommenders if one.name == "shop")
    shown = next(one for one in state.series if one.result.labels.get("rule") == "blacklist")
    before = Window(pictures.LAST.start - 3 * pictures.HOUR, pictures.LAST.start - 2 * pictures.HOUR)
    for violation, moment in ((Violation(before, shown.result), before.start.timestamp()), (None, None)):
        only = replace(state, series=(replace(shown, violation=violation),))
        text = scrape(replace(pictures.full(), recommenders=(only,)))
        labels = {"recommender": "shop", "rule": "blacklist", "kind": "hard"}
        assert find(text, "recsys_rule_violated_timestamp_seconds", **labels) == moment


def test_the_status_of_a_rule_is_its_current_verdict_and_not_its_last_window():
    text = scrape(pictures.full())
    rule = {"recommender": "shop", "rule": "duplicate_item", "kind": "soft"}
    assert find(text, "recsys_rule_status", status="violated", **rule) == 1
    assert find(text, "recsys_rule_status", status="ok", **rule) is None


def test_a_metric_without_a_value_has_a_status_and_no_value():
    text = scrape(pictures.full())
    labels = {"recommender": "shop", "metric": "matthew_effect", "by": ""}
    assert find(text, "recsys_metric_status", status="no_data", **labels) == 1
    assert find(text, "recsys_metric_status", status="ok", **labels) is None
    assert "recsys_matthew_effect{" not in text


def test_no_series_is_nan_or_infinite():
    broken = pictures.metric("coverage", "pv", value=math.nan, lower=-math.inf, upper=math.inf, samples=3)
    snapshot = Snapshot(pictures.NOW, (RecommenderState("shop", series=(pictures.series(broken),)),))
    text = scrape(snapshot)
    assert "NaN" not in text
    assert "Inf" not in text
    assert find(text, "recsys_coverage_samples", recommender="shop", by="pv") == 3


def test_an_objective_has_its_own_status_and_other_metrics_have_none():
    text = scrape(pictures.full())
    pv = {"recommender": "shop", "metric": "coverage", "by": "pv"}
    assert find(text, "recsys_objective_status", status="violated", **pv) == 1
    assert find(text, "recsys_objective_status", status="undefined", **pv) is None
    assert find(text, "recsys_objective_status", status="ok", **{**pv, "by": "uv"}) is None


def test_an_undefined_objective_is_exported_as_no_data():
    result = pictures.metric("gini", status=Status.UNDEFINED, threshold=0.8, bound="max")
    snapshot = Snapshot(pictures.NOW, (RecommenderState("shop", series=(pictures.series(result),)),))
    labels = {"recommender": "shop", "metric": "gini", "by": ""}
    assert find(scrape(snapshot), "recsys_objective_status", status="no_data", **labels) == 1


def test_slices_are_families_of_their_own_and_have_no_status():
    text = scrape(pictures.full())
    home = {"recommender": "shop", "by": "pv", "dimension": "scene", "value": "home"}
    assert find(text, "recsys_slice_coverage_ratio", **home) == 0.9
    assert find(text, "recsys_slice_coverage_samples", **home) == 1000
    statuses = [labels for name, labels in samples(text) if name == "recsys_metric_status"]
    assert all("dimension" not in dict(labels) for labels in statuses)


def test_an_objective_on_a_slice_has_a_family_of_its_own():
    paid = {"dimension": "users.plan", "value": "paid"}
    free = {"dimension": "users.plan", "value": "free"}
    results = (
        pictures.metric("failure", "pv", value=0.2, threshold=0.1, bound="max", labels=paid,
                        status=Status.VIOLATED),
        pictures.metric("failure", "pv", value=0.05, threshold=0.1, bound="max", labels=free),
        pictures.metric("failure", "pv", value=0.1),
    )  # fmt: skip
    state = RecommenderState("shop", series=tuple(map(pictures.series, results)))
    text = scrape(Snapshot(pictures.NOW, (state,)))
    own = {"recommender": "shop", "metric": "failure", "by": "pv"}
    assert find(text, "recsys_slice_objective_status", status="violated", **own, **paid) == 1
    assert find(text, "recsys_slice_objective_status", status="ok", **own, **paid) is None
    assert find(text, "recsys_slice_objective_status", status="ok", **own, **free) == 1
    assert "recsys_objective_status{" not in text
    undefined = pictures.metric("gini", status=Status.UNDEFINED, threshold=0.8, bound="max", labels=paid)
    state = RecommenderState("shop", series=(pictures.series(undefined),))
    text = scrape(Snapshot(pictures.NOW, (state,)))
    gini = {"recommender": "shop", "metric": "gini", "by": ""}
    assert find(text, "recsys_slice_objective_status", status="no_data", **gini, **paid) == 1


def test_a_hostile_slice_value_comes_back_as_it_went_in():
    text = scrape(pictures.full())
    values = {
        dict(labels)["value"] for name, labels in samples(text) if name == "recsys_slice_coverage_ratio"
    }
    assert 'we"ird\\ \n<scene>' in values


def test_text_that_cannot_be_encoded_or_is_endless_does_not_break_the_scrape():
    result = pictures.metric(
        "coverage", "pv", value=1.0, labels={"dimension": "scene", "value": "\ud800" + "y" * 9000}
    )
    snapshot = Snapshot(pictures.NOW, (RecommenderState("shop", series=(pictures.series(result),)),))
    (value,) = [dict(labels)["value"] for name, labels in samples(scrape(snapshot)) if "slice" in name]
    assert len(value) == 256


def test_two_results_with_the_same_labels_give_one_series():
    one = pictures.series(pictures.metric("gini", value=0.1))
    snapshot = Snapshot(
        pictures.NOW,
        (RecommenderState("shop", series=(one, replace(one, check="rules"))),),
    )
    assert scrape(snapshot).count("recsys_gini{") == 1


def test_series_that_differ_in_a_further_label_export_the_worst_state():
    good = pictures.metric("gini", value=0.1, threshold=0.5, bound="max", labels={"k": "5"})
    bad = replace(good, labels={"k": "10"}, value=0.9, status=Status.VIOLATED)
    for results in ((good, bad), (bad, good)):
        state = RecommenderState("shop", series=tuple(pictures.series(one) for one in results))
        text = scrape(Snapshot(pictures.NOW, (state,)))
        labels = {"recommender": "shop", "metric": "gini", "by": ""}
        for name in ("recsys_objective_status", "recsys_metric_status"):
            assert find(text, name, status="violated", **labels) == 1
            assert find(text, name, status="ok", **labels) is None


def test_checks_of_two_logs_have_different_labels():
    text = scrape(pictures.full())
    rows = {"recommender": "shop", "metric": "log_rows"}
    assert find(text, "recsys_metric_status", by="exposures", status="late", **rows) is None
    assert find(text, "recsys_metric_status", by="feedback", status="late", **rows) == 1


def test_a_series_that_is_gone_from_the_snapshot_is_gone_from_the_scrape():
    pictured = [pictures.full(), replace(pictures.full(), recommenders=(pictures.news(),))]
    exporter = Exporter(lambda: pictured[0], version="1", url="u")
    assert b'recommender="shop"' in exporter.scrape()[0]
    pictured.pop(0)
    assert b'recommender="shop"' not in exporter.scrape()[0]
