"""What a scrape says of a snapshot."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as classic_families

from monitor.history.snapshot import RecommenderState, RuleInfo, Snapshot
from monitor.results import Kind, Status
from monitor.service.exporter import Exporter, SnapshotCollector, fit, snapshot_values
from monitor.service.families import all_families
from tests.service import pictures

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def scrape(snapshot: Snapshot, accept: str = "", **settings) -> str:
    collector = SnapshotCollector(lambda: snapshot, version="0.1.0", url="http://monitor.test", **settings)
    return Exporter(collector).scrape(accept)[0].decode()


def samples(text: str) -> dict[tuple[str, frozenset], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in classic_families(text)
        for sample in family.samples
    }


def find(text: str, name: str, **labels: str) -> float | None:
    return samples(text).get((name, frozenset(labels.items())))


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
    assert states == {"ok": 0, "violated": 1, "no_data": 0, "late": 0, "error": 0, "undefined": None}


def test_the_status_of_a_rule_is_its_standing_and_not_its_last_window():
    text = scrape(pictures.full())
    rule = {"recommender": "shop", "rule": "duplicate_item", "kind": "soft"}
    assert find(text, "recsys_rule_status", status="violated", **rule) == 1
    assert find(text, "recsys_rule_status", status="ok", **rule) == 0


def test_a_metric_without_a_value_has_a_status_and_no_value():
    text = scrape(pictures.full())
    labels = {"recommender": "shop", "metric": "matthew_effect", "by": ""}
    assert find(text, "recsys_metric_status", status="no_data", **labels) == 1
    assert find(text, "recsys_metric_status", status="ok", **labels) == 0
    assert "recsys_matthew_effect{" not in text


def test_no_series_is_nan_whatever_a_result_holds():
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


def test_an_objective_that_stands_at_undefined_is_exported_as_no_data():
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


def test_checks_of_two_logs_are_told_apart():
    text = scrape(pictures.full())
    rows = {"recommender": "shop", "metric": "log_rows"}
    assert find(text, "recsys_metric_status", by="exposures", status="ok", **rows) == 1
    assert find(text, "recsys_metric_status", by="feedback", status="late", **rows) == 1


def test_counters_of_every_known_rule_start_at_zero():
    text = scrape(pictures.empty())
    labels = {"recommender": "shop", "rule": "blacklist", "kind": "hard"}
    assert find(text, "recsys_rule_violations_total", **labels) == 0
    assert find(text, "recsys_windows_total", recommender="shop", status="violated") == 0
    assert find(text, "recsys_corrections_total", recommender="shop") == 0
    assert find(text, "recsys_scheduler_runs_total", recommender="shop", outcome="missed") == 0


def test_a_counter_of_a_rule_that_left_the_config_is_left_out_and_comes_back_with_it():
    key = ("recsys_rule_violations_total", (("kind", "hard"), ("recommender", "shop"), ("rule", "old")))
    counted = replace(pictures.empty(), counters={key: 7.0})
    labels = {"recommender": "shop", "rule": "old", "kind": "hard"}
    assert find(scrape(counted), "recsys_rule_violations_total", **labels) is None
    back = replace(counted, recommenders=(RecommenderState("shop", rules=(RuleInfo("old", Kind.HARD),)),))
    assert find(scrape(back), "recsys_rule_violations_total", **labels) == 7


def test_a_counter_of_a_rule_is_left_out_when_its_kind_changes_or_no_rule_is_left():
    key = ("recsys_rule_violations_total", (("kind", "hard"), ("recommender", "shop"), ("rule", "old")))
    for rules in ((RuleInfo("old", Kind.SOFT),), ()):
        state = RecommenderState("shop", rules=rules)
        text = scrape(Snapshot(pictures.NOW, (state,), counters={key: 7.0}))
        assert "7.0" not in text
    broken = RecommenderState("shop", error="its rules cannot be read")
    assert "7.0" in scrape(Snapshot(pictures.NOW, (broken,), counters={key: 7.0}))


def test_a_counter_that_this_version_does_not_know_is_left_out():
    assert "gone_in_this_version" not in scrape(pictures.full())


def test_the_monitor_says_how_it_is():
    text = scrape(pictures.full())
    assert find(text, "recsys_build_info", version="0.1.0") == 1
    assert find(text, "recsys_web_info", url="http://monitor.test") == 1
    assert find(text, "recsys_config_reload_success") == 1
    assert find(text, "recsys_recommender_error", recommender="video") == 1
    assert find(text, "recsys_recommender_error", recommender="shop") == 0
    assert find(text, "recsys_pending_windows", recommender="shop") == 1
    assert find(text, "recsys_log_skipped_files", recommender="shop", log="exposures") == 2
    assert find(text, "recsys_last_window_end_timestamp_seconds", recommender="shop") == (
        pictures.LAST.end.timestamp()
    )
    assert find(text, "recsys_last_window_end_timestamp_seconds", recommender="video") is None
    refused = scrape(replace(pictures.full(), config_error="wrong"))
    assert find(refused, "recsys_config_reload_success") == 0


def test_a_series_that_is_gone_from_the_snapshot_is_gone_from_the_scrape():
    pictured = [pictures.full(), replace(pictures.full(), recommenders=(pictures.news(),))]
    collector = SnapshotCollector(lambda: pictured[0], version="1", url="u")
    exporter = Exporter(collector)
    assert b'recommender="shop"' in exporter.scrape()[0]
    pictured.pop(0)
    assert b'recommender="shop"' not in exporter.scrape()[0]


def test_the_number_of_series_is_the_number_of_series():
    for snapshot in (pictures.full(), pictures.empty(), pictures.wide(50)):
        text = scrape(snapshot, series_limit=300)
        assert find(text, "recsys_series") == len(samples(text))


def test_above_the_limit_slices_go_first_whole_families_and_are_counted():
    snapshot = pictures.wide(300)
    everything = scrape(snapshot, series_limit=100_000)
    limited = scrape(snapshot, series_limit=700)
    assert find(everything, "recsys_series_dropped") == 0
    assert find(limited, "recsys_series") <= 700
    dropped = find(limited, "recsys_series_dropped")
    assert dropped == find(everything, "recsys_series") - find(limited, "recsys_series")
    gone = {name for name, _ in samples(everything)} - {name for name, _ in samples(limited)}
    assert gone
    assert all(name.startswith("recsys_slice_") for name in gone)
    assert limited == scrape(snapshot, series_limit=700)


def test_what_alerts_stand_on_is_kept_even_where_the_limit_cannot_be_met():
    text = scrape(pictures.full(), series_limit=100)
    assert find(
        text, "recsys_rule_status", recommender="shop", rule="blacklist", kind="hard", status="violated"
    )
    assert find(text, "recsys_series") > find(text, "recsys_series_limit")
    assert "recsys_gini{" not in text


def test_a_budget_leaves_out_the_largest_slices_first():
    values = snapshot_values(pictures.wide(20))
    small = values["recsys_slice_gini"] = {("shop", "scene", "a"): 1.0}
    total = sum(map(len, values.values()))
    assert fit(values, total - 1) == 24  # one of the families of coverage by scene: 20 and 4 slices
    assert values["recsys_slice_gini"] is small


@pytest.mark.parametrize(
    ("accept", "parse"),
    [
        ("", classic_families),
        pytest.param(
            OPENMETRICS,
            openmetrics_families,
        ),
    ],
)
def test_both_text_forms_can_be_parsed_and_say_the_same(accept, parse):
    parsed = list(parse(scrape(pictures.full(), accept)))
    found = {(s.name, frozenset(s.labels.items())): s.value for family in parsed for s in family.samples}
    assert found == samples(scrape(pictures.full()))


def test_openmetrics_is_given_to_whoever_asks_for_it():
    exporter = Exporter(SnapshotCollector(pictures.full, version="1", url="u"))
    body, content_type = exporter.scrape(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert exporter.scrape("*/*")[1].startswith("text/plain; version=0.0.4")


def _one_series_for_every_family() -> Snapshot:
    from monitor.metrics.catalogue import SPECS

    numbers = {"value": 0.5, "lower": 0.4, "upper": 0.6, "samples": 7}
    results = [pictures.metric(name, "x", **numbers) for name in SPECS]
    results += [
        pictures.metric(name, "x", labels={"dimension": "d", "value": "v"}, **numbers) for name in SPECS
    ]
    results.append(pictures.rule("all", Kind.SOFT, violations=1, **numbers))
    every = tuple(pictures.series(result) for result in results)
    return Snapshot(pictures.NOW, (replace(pictures.shop(), series=every),), config_loaded_at=pictures.NOW)


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(pictures.full, id="full"),
        pytest.param(pictures.empty, id="empty"),
        pytest.param(_one_series_for_every_family, id="every family"),
    ],
)
def test_promtool_finds_nothing_to_say_about_the_scrape(snapshot):
    promtool = shutil.which("promtool")
    if promtool is None:
        assert os.environ.get("CI") != "true", "promtool is missing: install the prometheus package"
        pytest.skip("promtool is missing: install the prometheus package to run this test")
    text = scrape(snapshot(), series_limit=100_000)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr + done.stdout) == (0, "")


def test_every_declared_family_can_be_exported():
    objective = pictures.series(pictures.metric("gini", value=0.1, threshold=0.5, bound="max"))
    (state,) = _one_series_for_every_family().recommenders
    snapshot = Snapshot(
        pictures.NOW,
        (replace(state, series=(objective, *state.series)),),
        counters={("recsys_store_errors_total", (("fault", "busy"),)): 1.0},
        config_loaded_at=pictures.NOW,
    )
    assert {name for name, _ in samples(scrape(snapshot, series_limit=100_000))} == set(all_families())
