"""The bands of a holiday are those of a Sunday, where the settings name it."""

from __future__ import annotations

import pytest

from monitor.core.results import Status
from monitor.history.store import Store
from tests.anomalies.banded import a_check, causes, hour, judge, of, put, usual_hour

WEDNESDAY = 23 * 24 + 10  # ten o'clock, after three Wednesdays and three Sundays
WEEKEND = 1.3  # what a Sunday has more than a working day, see usual_hour
WORKING_DAY = 3200 * (1 + 0.5 * 0.5)  # requests of that hour: sin of ten hours of a day is 0.5
DAY = f"{hour(WEDNESDAY).start:%Y-%m-%d}"


@pytest.mark.parametrize(
    ("holidays", "factor", "expected", "told"),
    [
        ([DAY], WEEKEND, WORKING_DAY * WEEKEND, []),
        ([], WEEKEND, WORKING_DAY, ["traffic_surge"]),
        (["2026-03-18"], WEEKEND, WORKING_DAY, ["traffic_surge"]),  # the Wednesday before
        ([DAY], 1.0, WORKING_DAY * WEEKEND, ["traffic_lost"]),  # a holiday on which all of them work
    ],
    ids=["a holiday", "no holiday", "another holiday", "a holiday like a working day"],
)
def test_a_wednesday_that_is_a_holiday_is_expected_to_be_a_sunday(
    three_weeks: Store, holidays: list[str], factor: float, expected: float, told: list[str]
) -> None:
    assert hour(WEDNESDAY).start.weekday() == 2
    check = a_check(holidays=holidays)
    for number in (WEDNESDAY, WEDNESDAY + 1):
        put(three_weeks, number, usual_hour(number, factor))
    runs = [judge(three_weeks, check, number) for number in (WEDNESDAY, WEDNESDAY + 1)]
    band = of(runs[0], "expected", metric="volume", by="requests", dimension="")
    assert band.value == pytest.approx(expected, rel=0.03)
    assert causes(runs[1]) == told
    assert runs[1].status is (Status.VIOLATED if told else Status.OK)
