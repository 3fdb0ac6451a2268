"""Anomalies that last: from window to window, through maintenance, until the value is back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.core.results import Status, Window
from tests.anomalies.banded import (
    HOUR,
    NOW,
    START,
    a_check,
    causes,
    changed,
    hour,
    judge,
    judge_hours,
    judge_usual,
    measured,
    result_of,
    run_of,
    store_hour,
    usual_hour,
)


@pytest.fixture
def store(three_weeks):
    return three_weeks


def test_an_incident_that_lasts_for_days_does_not_become_normal(store):
    check = a_check()
    runs = judge_hours(store, check, lambda _: {("gini", ""): 0.9}, 30)
    assert all(causes(run) == ["few_items"] for run in runs[1:])
    before, after = (result_of(run, "expected", metric="gini") for run in (runs[0], runs[-1]))
    assert after.value == pytest.approx(before.value, abs=0.005)
    assert after.upper < 0.7
    end = judge_hours(store, check, lambda _: {}, 1, first=NOW + 30)[0]
    assert causes(end) == []


def test_a_metric_that_fails_during_an_incident_does_not_end_it_or_restart_it(store):
    check = a_check()
    far = [judge_usual(store, check, NOW + back, 0.9) for back in range(2)]
    store_hour(store, NOW + 2, changed(usual_hour(NOW + 2), {("gini", ""): None}))
    gap = result_of(judge(store, check, NOW + 2), "anomaly", cause="few_items")
    after = judge_usual(store, check, NOW + 3, 0.9)
    assert gap.status is Status.NO_DATA
    assert gap.detail == "gini was out of its band and has no value now"
    assert [causes(run) for run in (far[1], after)] == [["few_items"]] * 2


def test_a_known_change_ends_an_anomaly_at_once(store):
    check = a_check()
    standing = [judge_usual(store, check, NOW + back, 0.9) for back in range(2)][1]
    at = (START + (NOW + 2) * HOUR).isoformat()
    accepted = a_check(changes=[{"at": at, "what": "model m7", "metrics": ["gini"]}])
    store_hour(store, NOW + 2, changed(usual_hour(NOW + 2), {("gini", ""): 0.9}))
    assert causes(standing) == ["few_items"]
    assert result_of(judge(store, accepted, NOW + 2), "anomaly", cause="few_items").status is Status.OK
    store_hour(store, NOW + 3, changed(usual_hour(NOW + 3), {("gini", ""): None}))
    assert result_of(judge(store, accepted, NOW + 3), "anomaly", cause="other").status is Status.OK


def test_an_incident_longer_than_the_history_lasts_until_the_value_is_back(store):
    check = a_check(history="3d")  # after a day too few windows are left for a band of a Tuesday
    runs = judge_hours(store, check, lambda _: {("gini", ""): 0.9}, 80)
    assert all(causes(run) == ["few_items"] for run in runs[1:])
    bands = [result_of(run, "expected", metric="gini") for run in runs]
    assert [one.value for one in bands[-24:]] == pytest.approx(
        [one.value for one in bands[-48:-24]], abs=0.01
    )
    assert 0.4 < bands[-1].lower < bands[-1].value < bands[-1].upper < 0.8
    again = run_of(a_check(history="3d"), store, hour(NOW + 79), fresh=True)
    assert again.results == runs[-1].results
    gap = judge_hours(store, check, lambda _: {("gini", ""): None}, 5, first=NOW + 80)
    assert [result_of(run, "anomaly", cause="few_items").status for run in gap[:3]] == [Status.NO_DATA] * 3
    after = judge_usual(store, check, NOW + 85, 0.9)
    assert causes(after) == ["few_items"]
    back = judge_hours(store, check, lambda _: {}, 30, first=NOW + 86)
    assert not any(causes(run) for run in back)
    assert {result_of(run, "deviation", metric="gini").status for run in back} == {Status.OK}


def test_an_incident_without_a_band_ends_with_a_known_change_or_another_definition(store):
    check = a_check(history="3d")
    judge_hours(store, check, lambda _: {("gini", ""): 0.9}, 78)
    at = (START + (NOW + 78) * HOUR).isoformat()
    accepted = a_check(history="3d", changes=[{"at": at, "what": "model m7", "metrics": ["gini"]}])
    store_hour(store, NOW + 78, changed(usual_hour(NOW + 78), {("gini", ""): 0.9}))
    assert causes(run_of(check, store, hour(NOW + 78))) == ["few_items"]
    assert causes(run_of(accepted, store, hour(NOW + 78))) == []
    other = [replace(one, definition="2") for one in usual_hour(NOW + 78)]
    store_hour(store, NOW + 78, changed(other, {}), version="b")
    run = run_of(check, store, hour(NOW + 78))
    assert result_of(run, "deviation", metric="gini").status is Status.NO_DATA
    assert causes(run) == []


def test_a_restart_during_an_incident_changes_nothing(store):
    check = a_check()
    going_on = [judge_usual(store, check, number, 0.9) for number in range(NOW, NOW + 4)]
    anew = [run_of(a_check(), store, hour(number), fresh=True) for number in range(NOW, NOW + 4)]
    assert [run.results for run in anew] == [run.results for run in going_on]


def test_between_the_bounds_an_anomaly_continues_but_none_begins(store):
    check = a_check()
    band = result_of(judge_usual(store, check, NOW, 0.6), "expected", metric="gini")
    sd_above = (band.upper - band.value) * 0.75  # above 0.6 of the bound, below the bound
    near = [judge_usual(store, check, NOW + 1 + back, band.value + sd_above) for back in range(3)]
    assert [causes(run) for run in near] == [[]] * 3
    far = [judge_usual(store, check, NOW + 4 + back, 0.9) for back in range(2)]
    again = [judge_usual(store, check, NOW + 6 + back, band.value + sd_above) for back in range(3)]
    assert [causes(run) for run in (*far[1:], *again)] == [["few_items"]] * 4
    assert causes(judge_usual(store, check, NOW + 9, band.value)) == []


def test_an_anomaly_ends_when_the_remaining_change_is_small(store):
    check = a_check(least_change=0.2)
    changes = [1.5, 1.5, 1.15, 1.10]  # 0.6 of a fifth is 12 %
    runs = [judge_usual(store, check, NOW + back, 0.6 * part) for back, part in enumerate(changes)]
    assert [causes(run) for run in runs[1:]] == [["few_items"], ["few_items"], []]
    assert result_of(runs[-1], "deviation", metric="gini").value > 5


def test_windows_in_maintenance_are_left_out_of_the_past(store):
    quiet = [Window(START + 15 * 24 * HOUR, START + 16 * 24 * HOUR)]
    store_hour(store, NOW, usual_hour(NOW))
    with_it = result_of(judge(store, a_check(), NOW), "expected", metric="gini").samples
    without = result_of(judge(store, a_check(), NOW, quiet), "expected", metric="gini").samples
    assert without == with_it - 24


def test_an_anomaly_continues_through_maintenance(store):
    check = a_check(least_change=0)
    far = [judge_usual(store, check, NOW + back, 0.9) for back in range(2)]
    band = result_of(far[1], "expected", metric="gini")
    nearer = band.value + (band.upper - band.value) * 0.95  # continues an anomaly, starts none
    quiet = [Window(hour(NOW + 2).start, hour(NOW + 5).end)]
    for number in range(NOW + 2, NOW + 7):
        store_hour(store, number, changed(usual_hour(number), {("gini", ""): nearer}))
    runs = [judge(store, check, number, quiet) for number in range(NOW + 2, NOW + 7)]
    assert [causes(run) for run in (far[1], *runs)] == [["few_items"]] * 6


def test_an_incident_continues_after_a_night_without_values(store):
    check = a_check()

    def results(number, gini, top):
        share = measured("popularity_share", top, 400, by="top_item")
        return [*changed(usual_hour(number), {("gini", ""): gini}), share]

    for number in range(NOW - 60, NOW):
        store_hour(
            store, number, results(number, 0.6 + number % 5 / 500, 0.1 + number % 7 / 500), version="p"
        )
    statuses = []
    for number in range(NOW, NOW + 12):
        is_night = NOW + 2 <= number < NOW + 10
        store_hour(store, number, results(number, None if is_night else 0.9, 0.1))
        statuses.append(result_of(judge(store, check, number), "anomaly", cause="few_items").status)
    assert statuses[1:] == [Status.VIOLATED] + [Status.NO_DATA] * 8 + [Status.VIOLATED] * 2
    store_hour(store, NOW + 12, results(NOW + 12, 0.6, 0.1))
    assert result_of(judge(store, check, NOW + 12), "anomaly", cause="few_items").status is Status.OK


def test_series_of_a_slice_without_rows_are_forgotten_after_three_windows(store):
    """A failing model is removed: its lists cannot become better."""
    model = {"by": "pv", "dimension": "model", "value": "m7"}
    for number in range(NOW - 60, NOW):
        failure = measured("failure", 0.01 + number % 5 / 1000, 500, **model)
        store_hour(store, number, [*usual_hour(number), failure], version="m")
    check = a_check()
    for number in (NOW, NOW + 1):
        store_hour(store, number, [*usual_hour(number), measured("failure", 0.9, 500, **model)])
        failing = judge(store, check, number)
    assert causes(failing) == ["lists_empty"]
    after = judge_hours(store, check, lambda _: {}, 5, first=NOW + 2)
    found = [result_of(run, "anomaly", cause="lists_empty").status for run in after]
    assert found == [Status.NO_DATA] * 3 + [Status.OK] * 2
