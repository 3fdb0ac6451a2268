"""Incidents that last for weeks, with normal nights and Sundays in between."""

from __future__ import annotations

import pytest

from monitor.core.results import Status
from tests.anomalies.banded import (
    a_check,
    causes,
    changed,
    hour,
    judge,
    measured,
    result_of,
    store_hour,
    usual_hour,
)

FIRST = 22 * 24  # midnight of a Tuesday, after three weeks and a day


@pytest.fixture
def store(three_weeks):
    return three_weeks


def days_of(store, check, days, factor_of, first=FIRST):
    """Judge whole days; the runs by day and by hour of the day."""
    runs = []
    for day in range(days):
        of_day = []
        for number in range(first + 24 * day, first + 24 * day + 24):
            store_hour(store, number, usual_hour(number, factor_of(number % 24)))
            of_day.append(judge(store, check, number))
        runs.append(of_day)
    return runs


def test_an_incident_with_normal_nights_lasts_for_weeks_until_the_value_is_back(store):
    check = a_check(history="6d", sliced=[])
    weeks = days_of(store, check, 14, lambda hour: 0.5 if 8 <= hour < 20 else 1.0)
    assert all(causes(run) == ["traffic_lost"] for day in weeks for run in day[9:20])
    assert not any(causes(run) for day in weeks for run in day[:8] + day[20:])
    noons = [result_of(day[12], "expected", metric="volume") for day in weeks]
    # After two weeks at half, a working day still expects the level of the last normal one.
    assert noons[13].value == pytest.approx(noons[0].value, rel=0.05)
    (back,) = days_of(store, check, 1, lambda _: 1.0, first=FIRST + 14 * 24)
    assert not any(causes(run) for run in back)
    assert {result_of(run, "deviation", metric="volume").status for run in back} == {Status.OK}


def test_a_daytime_incident_can_last_longer_than_the_history(store):
    days = days_of(store, a_check(history="6d", sliced=[]), 7, lambda _: 0.5)
    runs = [run for day in days for run in day]
    assert all(causes(run) == ["traffic_lost"] for run in runs[1:])
    usual, last = (result_of(run, "expected", metric="volume") for run in (runs[23], runs[-1]))
    assert last.value == pytest.approx(usual.value, rel=0.1)  # a Monday expects what a Tuesday did


def without_search(number):
    return changed(usual_hour(number), {("volume", "search"): None, ("failure", "search"): None})


HOURS = (2, 3, 9, 10, 11)  # of a day: a night and a morning


def mornings_of(store, check, days, results_of, first=FIRST):
    """Judge some hours of each of the days."""
    runs = []
    for number in (first + 24 * day + one for day in range(days) for one in HOURS):
        store_hour(store, number, results_of(number))
        runs.append(judge(store, check, number))
    return runs


def test_a_lost_scene_is_missing_for_longer_than_the_history_until_it_is_back(store):
    check = a_check(history="6d", sliced=["volume"])
    gone = mornings_of(store, check, 12, without_search)
    assert all(causes(run) == ["scene_lost"] for run in gone[1:])
    row = result_of(gone[-1], "anomaly", cause="scene_lost").evidence[0]
    assert (row["value"], row["measured"]) == ("search", 0.0)
    assert row["expected"] == pytest.approx(250, rel=0.3)  # 200 an hour, by time of day and week
    back = mornings_of(store, check, 1, usual_hour, first=FIRST + 12 * 24)
    scene = {"metric": "volume", "value": "search"}
    assert {result_of(run, "deviation", **scene).status for run in back} == {Status.OK}
    assert not any(causes(run) for run in back)


def test_a_known_change_ends_the_report_of_a_scene_lost_for_longer_than_the_history(store):
    gone = mornings_of(store, a_check(history="6d", sliced=["volume"]), 10, without_search)
    assert causes(gone[-1]) == ["scene_lost"]
    at = hour(FIRST + 10 * 24).start.isoformat()
    check = a_check(history="6d", sliced=["volume"], changes=[{"at": at, "what": "no search any more"}])
    after = mornings_of(store, check, 9, without_search, first=FIRST + 10 * 24)
    assert result_of(after[0], "anomaly", cause="scene_lost").status is Status.OK
    assert not any(causes(run) for run in after)
    scenes = {one.labels.get("value") for one in after[-1].results if one.metric == "deviation"}
    assert scenes == {None, "home"}


def test_a_scene_younger_than_half_of_the_history_can_be_missing(store):
    scene = {"by": "requests", "dimension": "scene", "value": "launch"}
    for number in range(FIRST, FIRST + 3 * 24 + 10):
        launched = measured("volume", 1500.0 + number % 7, 1500, **scene)
        store_hour(store, number, [*usual_hour(number), launched], version="l")
    check = a_check(sliced=["volume"])
    runs = []
    for number in range(FIRST + 3 * 24 + 10, FIRST + 3 * 24 + 13):
        store_hour(store, number, usual_hour(number))
        runs.append(judge(store, check, number))
    assert [causes(run) for run in runs[1:]] == [["scene_lost"]] * 2
    assert result_of(runs[1], "anomaly", cause="scene_lost").evidence[0]["value"] == "launch"


def test_a_scene_lost_for_weeks_is_not_taken_for_a_weekly_absence(store):
    gone = mornings_of(store, a_check(history="25d", sliced=["volume"]), 24, without_search)
    assert all(causes(run) == ["scene_lost"] for run in gone[1:])
