"""What the check of bands says of windows against a made-up past."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.checks.band_settings import BandSettings
from monitor.checks.band_windows import neighbours
from monitor.checks.bands import NAME, OF_FEEDBACK, BandCheck
from monitor.history.store import Store
from monitor.results import Status, Window
from tests.checks.banded import HOUR, SHOP, START, causes, changed, hour, judge, measured, of, put, usual_hour

NOW = 22 * 24 + 10  # ten o'clock of a Tuesday, after three weeks and a day


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    """The file of a store with three weeks of measured hours."""
    path = tmp_path_factory.mktemp("past") / "history.db"
    with Store.open(path) as store:
        for number in range(NOW):
            put(store, number, usual_hour(number))
    return path


@pytest.fixture
def store(past, tmp_path):
    for file in past.parent.glob("history.db*"):
        shutil.copy(file, tmp_path)
    with Store.open(tmp_path / past.name) as store:
        yield store


def a_check(name: str = NAME, **settings: object) -> BandCheck:
    return BandCheck(SHOP, name, BandSettings.model_validate(settings))


def hours_of(store, check, values_of, count, first=NOW):
    """Measure and judge hours in a row; `values_of` gives the values that are not as usual."""
    runs = []
    for number in range(first, first + count):
        put(store, number, changed(usual_hour(number), values_of(number)))
        runs.append(judge(store, check, number))
    return runs


def test_a_usual_hour_is_ok_and_tells_what_was_expected(store):
    put(store, NOW, usual_hour(NOW))
    run = judge(store, a_check(), NOW)
    expected = of(run, "expected", metric="volume", by="requests", dimension="")
    season = 3200 * (1 + 0.5 * 0.5)  # sin of ten hours of a day is 0.5
    assert expected.value == pytest.approx(season, rel=0.03)
    assert expected.lower < season < expected.upper
    assert expected.samples > 100
    assert abs(of(run, "deviation", metric="volume", by="requests", dimension="").value) < 4
    assert run.status is Status.OK
    assert causes(run) == []
    assert "same weekday" in expected.detail


def test_a_loss_of_a_third_is_an_anomaly_at_the_second_hour(store):
    def lost(number):
        usual = {(one.metric, one.labels.get("value", "")): one.value for one in usual_hour(number)}
        return {key: round(value * 0.66) for key, value in usual.items() if key[0] == "volume"}

    runs = hours_of(store, a_check(), lost, 3)
    assert [causes(run) for run in runs][1:] == [["traffic_lost"]] * 2
    told = of(runs[1], "anomaly", cause="traffic_lost")
    assert told.detail.startswith("fewer requests than at this time of the week")
    assert [row["metric"] for row in told.evidence] == ["volume"] * len(told.evidence)
    assert of(runs[1], "anomaly_severity", cause="traffic_lost").value == pytest.approx(0.34, abs=0.04)
    assert of(runs[1], "anomaly", cause="scene_lost").status is Status.OK


def test_all_lists_empty_is_an_anomaly_at_once(store):
    run = hours_of(store, a_check(), lambda _: {("failure", ""): 0.9}, 1)[0]
    assert causes(run) == ["lists_empty"]
    assert of(run, "anomaly_severity", cause="lists_empty").value == pytest.approx(0.895, abs=0.005)


def test_a_scene_without_a_row_is_missed_with_0(store):
    gone = {("volume", "search"): None, ("failure", "search"): None}
    run = hours_of(store, a_check(), lambda _: gone, 2)[1]
    assert causes(run) == ["scene_lost"]
    row = of(run, "anomaly", cause="scene_lost").evidence[0]
    assert (row["dimension"], row["value"], row["measured"]) == ("scene", "search", 0.0)


def test_a_scene_is_not_missed_while_others_share_its_name_or_nothing_was_measured(store):
    rest = measured("volume", 10.0, 10, by="requests", dimension="scene", value="other")
    put(store, NOW, [*changed(usual_hour(NOW), {("volume", "search"): None}), rest])
    run = judge(store, a_check(), NOW)
    assert all(
        one.labels.get("value") != "search" for one in run.results if one.labels.get("metric") == "volume"
    )
    put(store, NOW + 1, [measured("volume", None, by="requests")])
    run = judge(store, a_check(), NOW + 1)
    assert causes(run) == []
    assert of(run, "deviation", metric="volume").status is Status.NO_DATA
    assert of(run, "anomaly", cause="scene_lost").status is Status.NO_DATA


def test_an_incident_of_days_neither_becomes_the_past_nor_ends(store):
    check = a_check()
    runs = hours_of(store, check, lambda _: {("gini", ""): 0.9}, 30)
    assert all(causes(run) == ["few_items"] for run in runs[1:])
    before, after = (of(run, "expected", metric="gini") for run in (runs[0], runs[-1]))
    assert after.value == pytest.approx(before.value, abs=0.005)
    assert after.upper < 0.7
    end = hours_of(store, check, lambda _: {}, 1, first=NOW + 30)[0]
    assert causes(end) == []


def test_a_restart_in_an_incident_changes_nothing(store):
    check = a_check()
    going_on = [judge_usual(store, check, number, 0.9) for number in range(NOW, NOW + 4)]
    anew = [a_check().run(store, hour(number)) for number in range(NOW, NOW + 4)]
    assert [run.results for run in anew] == [run.results for run in going_on]


def judge_usual(store, check, number, gini):
    put(store, number, changed(usual_hour(number), {("gini", ""): gini}))
    return judge(store, check, number)


def test_between_the_bounds_an_anomaly_goes_on_but_none_begins(store):
    check = a_check()
    band = of(judge_usual(store, check, NOW, 0.6), "expected", metric="gini")
    sd_above = (band.upper - band.value) * 0.75  # above 0.6 of the bound, below the bound
    near = [judge_usual(store, check, NOW + 1 + back, band.value + sd_above) for back in range(3)]
    assert [causes(run) for run in near] == [[]] * 3
    far = [judge_usual(store, check, NOW + 4 + back, 0.9) for back in range(2)]
    again = [judge_usual(store, check, NOW + 6 + back, band.value + sd_above) for back in range(3)]
    assert [causes(run) for run in (*far[1:], *again)] == [["few_items"]] * 4
    assert causes(judge_usual(store, check, NOW + 9, band.value)) == []


def test_a_known_change_begins_the_past_anew(store):
    at = (START + NOW * HOUR).isoformat()
    check = a_check(changes=[{"at": at, "what": "model m7", "metrics": ["gini"]}])

    def values_of(number):
        return {("gini", ""): 0.8} | ({("failure", ""): 0.9} if number == NOW + 5 else {})

    runs = hours_of(store, check, values_of, 26)
    assert [place for place, run in enumerate(runs) if causes(run)] == [5]
    first = of(runs[0], "deviation", metric="gini")
    assert first.status is Status.NO_DATA
    assert first.detail == "0 windows of the past can be used, and 24 make a band"
    assert of(runs[-1], "expected", metric="gini").value == pytest.approx(0.8, abs=0.001)
    assert of(runs[0], "deviation", metric="volume", dimension="").status is Status.OK
    told = of(runs[5], "anomaly", cause="lists_empty").detail
    assert told.endswith("; model m7 since 2026-03-24 10:00 UTC")


def test_windows_of_maintenance_are_no_past(store):
    quiet = [Window(START + 15 * 24 * HOUR, START + 16 * 24 * HOUR)]
    put(store, NOW, usual_hour(NOW))
    check = a_check()
    with_it = of(judge(store, check, NOW), "expected", metric="gini").samples
    assert of(judge(store, check, NOW, quiet), "expected", metric="gini").samples == with_it - 5


def test_an_anomaly_goes_on_through_maintenance_and_after_it(store):
    check = a_check(least_change=0)
    far = [judge_usual(store, check, NOW + back, 0.9) for back in range(2)]
    band = of(far[1], "expected", metric="gini")
    nearer = band.value + (band.upper - band.value) * 0.95  # holds an anomaly up, begins none
    quiet = [Window(hour(NOW + 2).start, hour(NOW + 5).end)]
    for number in range(NOW + 2, NOW + 7):
        put(store, number, changed(usual_hour(number), {("gini", ""): nearer}))
    runs = [judge(store, check, number, quiet) for number in range(NOW + 2, NOW + 7)]
    assert [causes(run) for run in (far[1], *runs)] == [["few_items"]] * 6


def test_what_is_late_has_a_band_and_no_verdict(store):
    late = [
        measured(one.metric, one.value, one.samples, **one.labels)
        if one.metric != "gini"
        else measured("gini", None)
        for one in usual_hour(NOW)
    ]
    put(store, NOW, late)
    run = judge(store, a_check(), NOW)
    assert of(run, "expected", metric="gini").status is Status.OK
    assert of(run, "deviation", metric="gini").status is Status.NO_DATA


def test_another_definition_is_another_series(store):
    other = next(one for one in usual_hour(NOW) if one.metric == "gini")
    put(store, NOW, [measured("gini", other.value, other.samples)])
    with_past = of(judge(store, a_check(), NOW), "expected", metric="gini")
    assert with_past.samples > 100
    put(store, NOW, [replace(other, definition="2")], version="b")
    assert of(judge(store, a_check(), NOW), "expected", metric="gini").samples == 0


def test_what_is_not_asked_for_has_no_band(store):
    put(store, NOW, usual_hour(NOW))
    run = judge(store, a_check(sliced=["failure"], without=["gini"]), NOW)
    named = {
        (one.labels["metric"], one.labels.get("dimension", ""))
        for one in run.results
        if one.metric == "deviation"
    }
    assert named == {("volume", ""), ("failure", ""), ("failure", "scene")}


def test_what_counts_the_days_before_has_no_band_unless_asked_for(store):
    put(store, NOW, [measured("average_popularity", 8000.0, 400), measured("gini", 0.6, 400)])
    named = {one.labels.get("metric") for one in judge(store, a_check(), NOW).results} - {None}
    assert named == {"gini"}
    named = {one.labels.get("metric") for one in judge(store, a_check(without=[]), NOW).results} - {None}
    assert named == {"gini", "average_popularity"}


def test_the_first_window_of_all_is_told_to_learn(tmp_path):
    with Store.open(tmp_path / "new.db") as store:
        put(store, 0, usual_hour(0))
        run = judge(store, a_check(), 0)
        assert {one.status for one in run.results} == {Status.NO_DATA}
        assert {one.detail for one in run.results if one.metric == "expected"} == {
            "0 windows of the past can be used, and 24 make a band"
        }


def test_a_cause_of_the_exposures_explains_one_of_the_feedback(store):
    for number in range(NOW):
        put(store, number, [measured("action_volume", 300.0 + number % 7, event="click")], of=OF_FEEDBACK)
    shown, clicked = a_check(), a_check(OF_FEEDBACK)
    told = []
    for number, failing in ((NOW, 0.9), (NOW + 1, 0.9)):
        put(store, number, changed(usual_hour(number), {("failure", ""): failing}))
        judge(store, shown, number)
        put(store, number, [measured("action_volume", 20.0, event="click")], of=OF_FEEDBACK)
        told.append(of(judge(store, clicked, number), "anomaly", cause="clicks_lost"))
    assert told[1].status is Status.OK
    assert told[1].detail.startswith("follows from lists_empty; ")


def test_a_new_model_is_told_beside_an_anomaly(store):
    for number in range(NOW - 30, NOW + 2):
        model = "m1" if number < NOW - 3 else "m2"
        by_model = measured("volume", 3000.0, 3000, by="requests", dimension="model", value=model)
        put(
            store,
            number,
            [*changed(usual_hour(number), {("gini", ""): 0.9} if number >= NOW else {}), by_model],
            version="m",
        )
    check = a_check()
    runs = [judge(store, check, number) for number in (NOW, NOW + 1)]
    assert of(runs[1], "anomaly", cause="few_items").detail.endswith(
        "; model m2 serves most since 2026-03-24 07:00 UTC"
    )
    assert causes(runs[1]) == ["few_items"]


def test_a_hostile_name_of_a_slice_is_kept_as_it_is(store):
    name = "'); DROP TABLE series; --<script>"
    for number in range(NOW - 40, NOW + 2):
        share = 0.9 if number >= NOW else 0.001 * (number % 3)
        odd = measured("failure", share, 500, by="pv", dimension="scene", value=name)
        put(store, number, [*usual_hour(number), odd], version="h")
    check = a_check()
    runs = [judge(store, check, number) for number in (NOW, NOW + 1)]
    assert of(runs[1], "anomaly", cause="lists_empty").evidence[0]["value"] == name


def test_days_that_have_no_hours_are_windows_as_well(tmp_path):
    day = Window(START + timedelta(days=40), START + timedelta(days=41))
    found = neighbours(day, timedelta(days=28), latest=48)
    assert found.near.tolist() == [0] * 28
    assert found.same_weekday.sum() == 4


def test_a_count_of_nothing_is_seen_to_have_fallen(store):
    for number in (NOW, NOW + 1):
        nothing = replace(measured("volume", 0.0, 0, by="requests"), status=Status.NO_DATA)
        put(store, number, [nothing])
    check = a_check()
    run = [judge(store, check, number) for number in (NOW, NOW + 1)][1]
    assert causes(run) == ["traffic_lost"]
    assert of(run, "anomaly_severity", cause="traffic_lost").value == 1.0
