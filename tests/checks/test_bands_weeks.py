"""Incidents of weeks, with the nights and Sundays in them."""

from __future__ import annotations

import pytest

from monitor.results import Status
from tests.checks.banded import a_check, causes, judge, of, put, usual_hour

FIRST = 22 * 24  # midnight of a Tuesday, after three weeks and a day


@pytest.fixture
def store(three_weeks):
    return three_weeks


def days_of(store, check, days, factor_of, first=FIRST):
    """Judge whole days; what is told by day, and by the hour of the day."""
    told = []
    for day in range(days):
        of_day = []
        for number in range(first + 24 * day, first + 24 * day + 24):
            put(store, number, usual_hour(number, factor_of(number % 24)))
            of_day.append(judge(store, check, number))
        told.append(of_day)
    return told


def test_an_incident_that_nights_interrupt_stands_for_weeks_and_ends_with_the_number(store):
    check = a_check(history="6d", sliced=[])
    weeks = days_of(store, check, 14, lambda hour: 0.5 if 8 <= hour < 20 else 1.0)
    assert all(causes(run) == ["traffic_lost"] for day in weeks for run in day[9:20])
    assert not any(causes(run) for day in weeks for run in day[:8] + day[20:])
    noons = [of(day[12], "expected", metric="volume") for day in weeks]
    # Two weeks of halves, and a working day still expects what its last whole one had.
    assert noons[13].value == pytest.approx(noons[0].value, rel=0.05)
    assert noons[13].detail.startswith("its last band")
    (back,) = days_of(store, check, 1, lambda _: 1.0, first=FIRST + 14 * 24)
    assert not any(causes(run) for run in back)
    assert {of(run, "deviation", metric="volume").status for run in back} == {Status.OK}


def test_an_incident_that_lasts_longer_than_the_history_stands(store):
    told = days_of(store, a_check(history="6d", sliced=[]), 7, lambda _: 0.5)
    runs = [run for day in told for run in day]
    assert all(causes(run) == ["traffic_lost"] for run in runs[1:])
    last = of(runs[-1], "expected", metric="volume")
    assert last.detail.startswith("its last band")
