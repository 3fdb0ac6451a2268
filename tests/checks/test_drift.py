"""What the check of drift says of days, from the hours that were measured in them."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from monitor.checks.band_settings import BandSettings
from monitor.checks.drift import NAME, DriftCheck
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.results import Result, Status, Window
from tests.checks.banded import HOUR, SHOP, START, hour, measured, of

DAY = timedelta(days=1)


def day(number: int) -> Window:
    return Window(START + number * DAY, START + (number + 1) * DAY)


def share_of(number: int, slope: float = 0.0, since: int = 20) -> float:
    """A failure share of a day with 1 % of noise that slides by `slope` a day."""
    noise = np.random.default_rng([3, number]).normal(0, 0.01)
    return 0.05 * (1 + noise) * (1 + slope * max(0, number - since + 1))


def put_day(store: Store, number: int, share: float, hours: int = 24) -> None:
    for at in range(number * 24, number * 24 + hours):
        results = [measured("failure", share, 4000, by="pv"), measured("gini", 0.6, 400)]
        run = CheckRun(check="exposure", results=results, outcome="ok")
        store.record_window(SHOP, hour(at), [run], fingerprint=str(at), rows=1, evaluated_at=hour(at).end)


def judge_day(store: Store, check: DriftCheck, number: int) -> CheckRun:
    run = check.run(store, day(number))
    store.record_window(SHOP, day(number), [run], fingerprint="", rows=0, evaluated_at=day(number).end)
    return run


def a_check(**settings: object) -> DriftCheck:
    return DriftCheck(SHOP, NAME, BandSettings.model_validate(settings), HOUR)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "history.db") as store:
        yield store


def days_of(store, check, values, first=0):
    runs = []
    for number, value in enumerate(values, first):
        put_day(store, number, value)
        runs.append(judge_day(store, check, number))
    return runs


def test_a_slide_of_three_percent_a_day_is_told_on_the_third_day(store):
    check = a_check()
    runs = days_of(store, check, [share_of(number, -0.03) for number in range(24)])
    told = [of(run, "drift", metric="failure").status for run in runs]
    assert Status.VIOLATED not in told[:20]
    assert told.index(Status.VIOLATED) <= 22
    slides = of(runs[23], "drift", metric="failure")
    assert slides.status is Status.VIOLATED
    assert slides.detail.startswith("fell from 0.0")
    assert (slides.bound, slides.value < slides.threshold < slides.clear) == ("min", True)
    assert of(runs[23], "drift", metric="gini").status is Status.OK


def test_what_stands_still_does_not_drift_and_learns_first(store):
    runs = days_of(store, a_check(), [share_of(number) for number in range(16)])
    first = of(runs[0], "drift", metric="failure")
    assert (first.status, first.detail) == (
        Status.NO_DATA,
        "0 days before can be used, and 8 are needed",
    )
    assert of(runs[0], "daily", metric="failure").value == pytest.approx(share_of(0))
    assert of(runs[0], "daily", metric="failure").samples == 24 * 4000
    assert {of(run, "drift", metric="failure").status for run in runs[12:]} == {Status.OK}


def test_a_day_with_less_than_half_of_its_hours_has_no_value(store):
    put_day(store, 0, 0.05, hours=11)
    run = judge_day(store, a_check(), 0)
    daily = of(run, "daily", metric="failure")
    assert (daily.status, daily.detail) == (Status.NO_DATA, "11 of the day's windows have a value")
    put_day(store, 1, 0.05, hours=12)
    assert of(judge_day(store, a_check(), 1), "daily", metric="failure").status is Status.OK


def test_a_day_in_which_a_series_left_its_band_is_none_of_it(store):
    put_day(store, 0, 0.05)
    labels = {"metric": "failure", "by": "pv", "of": ""}
    out = Result(metric="deviation", labels=labels, definition="1", status=Status.VIOLATED, value=9.0)
    run = CheckRun(check="bands", results=[out])
    store.record_window(SHOP, hour(7), [run], fingerprint="7", rows=1, evaluated_at=hour(7).end)
    judged = judge_day(store, a_check(), 0)
    assert of(judged, "daily", metric="failure").detail == "it left its band that day"
    assert of(judged, "daily", metric="gini").status is Status.OK


def test_shares_weigh_by_samples_and_levels_do_not(store):
    for at, (share, requests, gini) in enumerate([(0.1, 100, 0.5), (0.3, 300, 0.7)] * 12):
        results = [measured("failure", share, requests, by="pv"), measured("gini", gini, requests)]
        run = CheckRun(check="exposure", results=results, outcome="ok")
        store.record_window(SHOP, hour(at), [run], fingerprint=str(at), rows=1, evaluated_at=hour(at).end)
    judged = judge_day(store, a_check(), 0)
    assert of(judged, "daily", metric="failure").value == pytest.approx((0.1 * 100 + 0.3 * 300) / 400)
    assert of(judged, "daily", metric="gini").value == pytest.approx(0.6)


def test_slices_and_what_is_not_asked_for_are_left_out(store):
    results = [
        measured("failure", 0.1, 100, by="pv"),
        measured("failure", 0.1, 100, by="pv", dimension="scene", value="home"),
        measured("gini", 0.1, 100),
    ]
    for at in range(24):
        run = CheckRun(check="exposure", results=results, outcome="ok")
        store.record_window(SHOP, hour(at), [run], fingerprint=str(at), rows=1, evaluated_at=hour(at).end)
    judged = judge_day(store, a_check(without=["gini"]), 0)
    assert [(one.metric, one.labels["metric"]) for one in judged.results] == [
        ("daily", "failure"),
        ("drift", "failure"),
    ]


def test_a_day_without_any_window_gives_nothing(store):
    assert judge_day(store, a_check(), 3).results == []
