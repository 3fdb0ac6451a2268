"""The check of bands on windows with a made-up past."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.anomalies.band_check import MEASURED, NAME, OF_FEEDBACK
from monitor.anomalies.series import BandedSeries
from monitor.core.results import Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.metrics.catalogue import SPECS
from monitor.settings.bands import BandSettings
from monitor.statistics.bands.scales import Scale
from tests.anomalies.banded import (
    HOUR,
    NOW,
    SHOP,
    START,
    WITH_THREE_WEEKS,
    a_check,
    causes,
    changed,
    judge,
    judge_hours,
    measured,
    result_of,
    run_of,
    store_hour,
    usual_hour,
)


@pytest.fixture
def store(three_weeks):
    return three_weeks


@pytest.fixture(scope="module")
def with_clicks_file(three_weeks_file, tmp_path_factory):
    """Three weeks with the clicks of their hours."""
    folder = tmp_path_factory.mktemp("with_clicks")
    path = shutil.copytree(three_weeks_file.parent, folder, dirs_exist_ok=True) / three_weeks_file.name
    with Store.open(path) as store:
        for number in range(NOW):
            clicks = measured("action_volume", 300.0 + number % 7, event="click")
            store_hour(store, number, [clicks], check=OF_FEEDBACK)
    return path


@pytest.fixture
def with_clicks(with_clicks_file, tmp_path):
    shutil.copytree(with_clicks_file.parent, tmp_path, dirs_exist_ok=True)
    with Store.open(tmp_path / with_clicks_file.name) as store:
        WITH_THREE_WEEKS.add(store)
        yield store


def test_a_usual_hour_is_ok_and_has_an_expected_value(store):
    store_hour(store, NOW, usual_hour(NOW))
    run = judge(store, a_check(), NOW)
    expected = result_of(run, "expected", metric="volume", by="requests", dimension="")
    season = 3200 * (1 + 0.5 * 0.5)  # sin of ten hours of a day is 0.5
    assert expected.value == pytest.approx(season, rel=0.03)
    assert expected.lower < season < expected.upper
    assert expected.samples > 100
    assert abs(result_of(run, "deviation", metric="volume", by="requests", dimension="").value) < 4
    assert run.status is Status.OK
    assert causes(run) == []


def test_a_loss_of_a_third_is_an_anomaly_in_the_second_hour(store):
    def lost(number):
        usual = {(one.metric, one.labels.get("value", "")): one.value for one in usual_hour(number)}
        return {key: round(value * 0.66) for key, value in usual.items() if key[0] == "volume"}

    runs = judge_hours(store, a_check(), lost, 3)
    assert [causes(run) for run in runs][1:] == [["traffic_lost"]] * 2
    anomaly = result_of(runs[1], "anomaly", cause="traffic_lost")
    assert anomaly.detail.startswith("fewer requests than at this time of the week")
    assert [row["metric"] for row in anomaly.evidence] == ["volume"] * len(anomaly.evidence)
    assert result_of(runs[1], "anomaly_severity", cause="traffic_lost").value == pytest.approx(0.34, abs=0.04)
    assert result_of(runs[1], "anomaly", cause="scene_lost").status is Status.OK


def test_all_lists_empty_is_an_anomaly_at_once(store):
    run = judge_hours(store, a_check(), lambda _: {("failure", ""): 0.9}, 1)[0]
    assert causes(run) == ["lists_empty"]
    assert result_of(run, "anomaly_severity", cause="lists_empty").value == pytest.approx(0.895, abs=0.005)


def test_a_few_empty_lists_of_a_small_scene_are_an_anomaly_in_the_second_hour(store):
    """Eight of a hundred lists, where one is in two hours; on the scale of shares that is within the band."""
    evening = 22 * 24 + 17
    runs = judge_hours(store, a_check(), lambda _: {("failure", "search"): 0.08}, 2, evening)
    assert [causes(run) for run in runs] == [[], ["lists_empty"]]
    deviation = result_of(runs[1], "deviation", metric="failure", value="search")
    band = result_of(runs[1], "expected", metric="failure", value="search")
    assert 0.03 < band.upper < 0.12
    assert deviation.value > 5


def test_the_volume_of_a_scene_without_rows_is_0(store):
    gone = {("volume", "search"): None, ("failure", "search"): None}
    run = judge_hours(store, a_check(), lambda _: gone, 2)[1]
    assert causes(run) == ["scene_lost"]
    row = result_of(run, "anomaly", cause="scene_lost").evidence[0]
    assert (row["dimension"], row["value"], row["measured"]) == ("scene", "search", 0.0)


def test_a_scene_is_not_missing_if_it_may_be_part_of_other_or_nothing_was_measured(store):
    rest = measured("volume", 10.0, 10, by="requests", dimension="scene", value="other")
    store_hour(store, NOW, [*changed(usual_hour(NOW), {("volume", "search"): None}), rest])
    run = judge(store, a_check(), NOW)
    assert all(
        one.labels.get("value") != "search" for one in run.results if one.labels.get("metric") == "volume"
    )
    store_hour(store, NOW + 1, [measured("volume", None, by="requests")])
    run = judge(store, a_check(), NOW + 1)
    assert causes(run) == []
    assert result_of(run, "deviation", metric="volume").status is Status.NO_DATA
    assert result_of(run, "anomaly", cause="scene_lost").status is Status.NO_DATA


def test_a_rise_from_0_below_a_thousandth_is_ignored(store):
    for number in range(NOW - 60, NOW):
        store_hour(store, number, [*usual_hour(number), measured("unknown_category", 0.0)], version="z")
    check = a_check()
    found = []
    for back, share in enumerate((1e-6, 9e-4, 9e-4, 0.02, 0.02)):
        store_hour(store, NOW + back, [*usual_hour(NOW + back), measured("unknown_category", share)])
        found.append(causes(judge(store, check, NOW + back)))
    assert found == [[], [], [], ["catalog_changed"], ["catalog_changed"]]


@pytest.mark.parametrize(
    ("metric", "scale"),
    [
        ("unknown_category", Scale.SHARE),
        ("top_user_share", Scale.SHARE),
        ("failure", Scale.SHARE),
        ("other_events", Scale.COUNT),
        ("ndcg", Scale.LEVEL),  # its interval says more than its number of lists
        ("gini", Scale.LEVEL),
    ],
)
def test_each_metric_has_its_scale(metric, scale):
    assert BandedSeries(metric, "", "").scale is scale


def test_six_metrics_are_counts():
    assert {name for name, spec in SPECS.items() if spec.scale is Scale.COUNT} == {
        "volume", "action_volume", "catalog_items", "coverage_unknown_items", "actions_without_item",
        "other_events",
    }  # fmt: skip


def test_the_past_starts_again_at_a_known_change(store):
    at = (START + NOW * HOUR).isoformat()
    check = a_check(changes=[{"at": at, "what": "model m7", "metrics": ["gini"]}])

    def values_of(number):
        return {("gini", ""): 0.8} | ({("failure", ""): 0.9} if number == NOW + 5 else {})

    runs = judge_hours(store, check, values_of, 26)
    assert [place for place, run in enumerate(runs) if causes(run)] == [5]
    first = result_of(runs[0], "deviation", metric="gini")
    assert first.status is Status.NO_DATA
    assert first.detail == "0 past windows can be used; a band needs 24 over a day"
    assert result_of(runs[-1], "expected", metric="gini").value == pytest.approx(0.8, abs=0.001)
    assert result_of(runs[0], "deviation", metric="volume", dimension="").status is Status.OK
    detail = result_of(runs[5], "anomaly", cause="lists_empty").detail
    assert detail.endswith("; model m7 since 2026-03-24 10:00 UTC")


def test_after_a_change_of_all_metrics_only_the_earlier_anomaly_is_ok(store):
    check = a_check()
    judge_hours(store, check, lambda _: {("gini", ""): 0.9}, 2)
    at = (START + (NOW + 2) * HOUR).isoformat()
    check = a_check(changes=[{"at": at, "what": "new home page"}])
    runs = judge_hours(store, check, lambda _: {("failure", ""): 0.9}, 3, first=NOW + 2)
    for run in runs:
        found = {one.labels["cause"]: one.status for one in run.results if one.metric == "anomaly"}
        assert found.pop("few_items") is Status.OK
        assert set(found.values()) == {Status.NO_DATA}
        assert run.status is Status.NO_DATA
    for number in range(NOW + 5, NOW + 30):
        store_hour(store, number, changed(usual_hour(number), {("gini", ""): None}), version="n")
    later = judge_hours(store, check, lambda _: {}, 1, first=NOW + 30)[0]
    assert (
        result_of(later, "deviation", metric="gini").status is Status.NO_DATA
    )  # it learns; no anomaly waits for it
    assert result_of(later, "anomaly", cause="few_items").status is Status.NO_DATA


def test_a_late_metric_has_a_band_and_no_deviation(store):
    late = [
        measured(one.metric, one.value, one.samples, **one.labels)
        if one.metric != "gini"
        else measured("gini", None)
        for one in usual_hour(NOW)
    ]
    store_hour(store, NOW, late)
    run = judge(store, a_check(), NOW)
    assert result_of(run, "expected", metric="gini").status is Status.OK
    assert result_of(run, "deviation", metric="gini").status is Status.NO_DATA


def test_values_of_another_definition_are_no_past(store):
    other = next(one for one in usual_hour(NOW) if one.metric == "gini")
    store_hour(store, NOW, [measured("gini", other.value, other.samples)])
    with_past = result_of(judge(store, a_check(), NOW), "expected", metric="gini")
    assert with_past.samples > 100
    store_hour(store, NOW, [replace(other, definition="2")], version="b")
    assert result_of(judge(store, a_check(), NOW), "expected", metric="gini").samples == 0


def test_metrics_and_slices_outside_the_settings_have_no_band(store):
    store_hour(store, NOW, usual_hour(NOW))
    run = judge(store, a_check(sliced=["failure"], without=["gini"]), NOW)
    named = {
        (one.labels["metric"], one.labels.get("dimension", ""))
        for one in run.results
        if one.metric == "deviation"
    }
    assert named == {("volume", ""), ("failure", ""), ("failure", "scene")}


def test_average_popularity_has_no_band_unless_without_is_empty(store):
    store_hour(store, NOW, [measured("average_popularity", 8000.0, 400), measured("gini", 0.6, 400)])
    named = {one.labels.get("metric") for one in judge(store, a_check(), NOW).results} - {None}
    assert named == {"gini"}
    named = {one.labels.get("metric") for one in judge(store, a_check(without=[]), NOW).results} - {None}
    assert named == {"gini", "average_popularity"}


def test_the_first_window_ever_is_no_data_with_a_reason(tmp_path):
    with Store.open(tmp_path / "new.db") as store:
        store_hour(store, 0, usual_hour(0))
        run = judge(store, a_check(), 0)
        assert {one.status for one in run.results} | {run.status} == {Status.NO_DATA}
        assert {one.detail for one in run.results if one.metric == "expected"} == {
            "0 past windows can be used; a band needs 24 over a day"
        }
        store_hour(store, 1, usual_hour(1))
        second = result_of(judge(store, a_check(), 1), "expected", metric="gini")
        assert second.detail == "1 past window can be used; a band needs 24 over a day"


def test_the_reason_names_a_whole_day_of_short_windows(tmp_path):
    window = Window(START, START + timedelta(minutes=5))
    run = CheckRun(check=MEASURED[NAME], results=[measured("gini", 0.6, 400)], outcome="ok")
    with Store.open(tmp_path / "new.db") as store:
        store.record_window(SHOP, window, [run], fingerprint="", rows=1, evaluated_at=window.end)
        found = result_of(run_of(a_check(), store, window), "expected", metric="gini")
        assert found.detail == "0 past windows can be used; a band needs 288 over a day"


@pytest.mark.parametrize(
    ("failing", "status", "detail"),
    [
        pytest.param(0.9, Status.OK, "follows from lists_empty; ", id="nearly all lists are empty"),
        pytest.param(0.1, Status.VIOLATED, "fewer actions on what was shown", id="a tenth of them is"),
    ],
)  # fmt: skip
def test_a_cause_in_the_exposures_explains_as_large_a_loss_in_the_feedback(
    with_clicks, failing, status, detail
):
    shown, clicked = a_check(), a_check(OF_FEEDBACK)
    results = []
    for number in (NOW, NOW + 1):
        store_hour(with_clicks, number, changed(usual_hour(number), {("failure", ""): failing}))
        of_lists = judge(with_clicks, shown, number)
        store_hour(with_clicks, number, [measured("action_volume", 20.0, event="click")], check=OF_FEEDBACK)
        results.append(result_of(judge(with_clicks, clicked, number), "anomaly", cause="clicks_lost"))
    assert causes(of_lists) == ["lists_empty"]
    assert results[1].status is status
    assert results[1].detail.startswith(detail)


def test_a_lost_scene_in_the_exposures_does_not_explain_a_loss_in_all_feedback(with_clicks):
    shown, clicked = a_check(), a_check(OF_FEEDBACK)
    for number in (NOW, NOW + 1):
        store_hour(with_clicks, number, changed(usual_hour(number), {("volume", "search"): 0.0}))
        of_lists = judge(with_clicks, shown, number)
        store_hour(with_clicks, number, [measured("action_volume", 20.0, event="click")], check=OF_FEEDBACK)
        of_clicks = judge(with_clicks, clicked, number)
    assert causes(of_lists) == ["scene_lost"]
    assert causes(of_clicks) == ["clicks_lost"]
    assert result_of(of_clicks, "anomaly_severity", cause="clicks_lost").value == pytest.approx(
        0.93, abs=0.01
    )


def test_the_detail_of_an_anomaly_names_a_new_model(store):
    for number in range(NOW - 30, NOW + 2):
        model = "m1" if number < NOW - 3 else "m2"
        by_model = measured("volume", 3000.0, 3000, by="requests", dimension="model", value=model)
        store_hour(
            store,
            number,
            [*changed(usual_hour(number), {("gini", ""): 0.9} if number >= NOW else {}), by_model],
            version="m",
        )
    check = a_check()
    runs = [judge(store, check, number) for number in (NOW, NOW + 1)]
    assert result_of(runs[1], "anomaly", cause="few_items").detail.endswith(
        "; model m2 serves most since 2026-03-24 07:00 UTC"
    )
    assert causes(runs[1]) == ["few_items"]


@pytest.mark.parametrize(
    ("dimension", "banded"),
    [("scene", True), ("country", True), ("model", False), ("arm", False), ("user_activity", False),
     ("item_popularity", False), ("new_item", False), ("hour", False), ("weekday", False)],
)  # fmt: skip
def test_the_volume_of_a_slice_has_a_band_if_the_slice_is_a_part_of_the_traffic(dimension, banded):
    volume = BandedSeries("volume", "requests", "", dimension, "x")
    assert volume.is_banded(BandSettings()) is banded
    assert BandedSeries("failure", "pv", "", dimension, "x").is_banded(BandSettings())


def test_a_hostile_slice_name_is_stored_unchanged(store):
    name = "'); DROP TABLE series; --<script>"
    for number in range(NOW - 40, NOW + 2):
        share = 0.9 if number >= NOW else 0.001 * (number % 3)
        odd = measured("failure", share, 500, by="pv", dimension="scene", value=name)
        store_hour(store, number, [*usual_hour(number), odd], version="h")
    check = a_check()
    runs = [judge(store, check, number) for number in (NOW, NOW + 1)]
    assert result_of(runs[1], "anomaly", cause="lists_empty").evidence[0]["value"] == name


def test_a_count_of_0_with_status_no_data_is_a_loss(store):
    for number in (NOW, NOW + 1):
        nothing = replace(measured("volume", 0.0, 0, by="requests"), status=Status.NO_DATA)
        store_hour(store, number, [nothing])
    check = a_check()
    run = [judge(store, check, number) for number in (NOW, NOW + 1)][1]
    assert causes(run) == ["traffic_lost"]
    assert result_of(run, "anomaly_severity", cause="traffic_lost").value == 1.0
