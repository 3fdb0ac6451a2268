"""Which windows are the past of a band, and how all that is judged shares the budget of false alarms."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.anomalies.drift_check import NAME as DRIFT
from monitor.anomalies.drift_check import DriftCheck
from monitor.core.results import Result, Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import (
    NOW,
    SHOP,
    START,
    a_check,
    judge,
    measured,
    result_of,
    run_of,
    store_hour,
    usual_hour,
)

DAY = timedelta(days=1)
LATELY = range(NOW - 60, NOW)


@pytest.fixture
def store(three_weeks):
    return three_weeks


def expected_gini(store: Store, **settings: object) -> Result:
    store_hour(store, NOW, usual_hour(NOW))
    return result_of(judge(store, a_check(**settings), NOW), "expected", metric="gini")


def put_again(store: Store, status: Status, gini: float) -> None:
    """The gini of the last hours was this, and its verdict that."""
    for number in LATELY:
        results = [
            replace(one, status=status, value=gini) if one.metric == "gini" else one
            for one in usual_hour(number)
        ]
        store_hour(store, number, results, version="b")


@pytest.mark.parametrize("status", [Status.VIOLATED, Status.LATE, Status.ERROR])
def test_windows_that_missed_their_objective_or_were_late_are_no_past(store, status):
    before = expected_gini(store)
    put_again(store, status, 0.61)  # within the band, so that the band itself says nothing of it
    after = expected_gini(store)
    assert 0 < after.samples < before.samples
    assert after.value == pytest.approx(before.value, abs=0.001)


def test_windows_that_met_their_objective_are_past(store):
    before = expected_gini(store)
    put_again(store, Status.OK, 0.61)
    after = expected_gini(store)
    assert after.samples == before.samples


def width(store: Store, **settings: object) -> float:
    band = expected_gini(store, **settings)
    return band.upper - band.lower


def test_fewer_allowed_false_alarms_give_a_wider_band(store):
    assert width(store, false_alarms=0.001) > 1.2 * width(store, false_alarms=1.0)


def test_more_judged_series_give_a_wider_band(store):
    before = width(store)
    for number in range(NOW - 96, NOW + 1):
        more = [
            measured("failure", 0.005, 1000, by="pv", dimension="scene", value=f"s{n}") for n in range(60)
        ]
        store_hour(store, number, [*usual_hour(number), *more], version="b")
    run = judge(store, a_check(), NOW)
    band = result_of(run, "expected", metric="gini")
    assert len([one for one in run.results if one.metric == "deviation" and one.value is not None]) > 60
    assert band.upper - band.lower > 1.05 * before


def drift_threshold(path, series: int, **settings: object) -> float:
    """How far the failure share may fall on a day, where so many series are judged beside it."""
    check = DriftCheck(SHOP, DRIFT, BandSettings.model_validate(settings), DAY)
    with Store.open(path) as store:
        for number in range(14):
            window = Window(START + number * DAY, START + (number + 1) * DAY)
            wave = 1 + 0.01 * (-1) ** (number // 2)
            results = [measured("failure", 0.05 * wave, 1_000_000, by="pv")]
            results += [measured("coverage", 0.5 * wave, 1_000_000, by=str(one)) for one in range(series)]
            run = CheckRun(check="exposure", results=results, outcome="ok")
            store.record_window(SHOP, window, [run], fingerprint="a", rows=1, evaluated_at=window.end)
            judged = run_of(check, store, window)
            store.record_window(SHOP, window, [judged], fingerprint="", rows=0, evaluated_at=window.end)
    return result_of(judged, "drift", metric="failure").threshold


def test_more_series_and_fewer_allowed_false_alarms_raise_the_bound_of_drift(
    tmp_path,
):
    alone = drift_threshold(tmp_path / "alone.db", 0)
    many = drift_threshold(tmp_path / "many.db", 60)
    rare = drift_threshold(tmp_path / "rare.db", 0, false_alarms=0.001)
    assert many < 1.05 * alone < 0
    assert rare < 1.05 * alone
