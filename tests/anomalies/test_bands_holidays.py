"""A holiday in the settings has the bands of a Sunday."""

from __future__ import annotations

import pytest

from monitor.core.results import Status
from monitor.history.store import Store
from tests.anomalies.banded import a_check, causes, hour, judge, result_of, store_hour, usual_hour

WEDNESDAY = 23 * 24 + 10  # ten o'clock, after three Wednesdays and three Sundays
WEEKEND = 1.3  # a Sunday over a working day, see usual_hour
WORKING_DAY = 3200 * (1 + 0.5 * 0.5)  # requests of that hour: sin of ten hours of a day is 0.5
DAY = f"{hour(WEDNESDAY).start:%Y-%m-%d}"


@pytest.mark.parametrize(
    ("holidays", "factor", "expected", "expected_causes"),
    [
        ([DAY], WEEKEND, WORKING_DAY * WEEKEND, []),
        ([], WEEKEND, WORKING_DAY, ["traffic_surge"]),
        (["2026-03-18"], WEEKEND, WORKING_DAY, ["traffic_surge"]),  # the Wednesday before
        ([DAY], 1.0, WORKING_DAY * WEEKEND, []),  # no two holidays are alike, so the band is wide
        ([DAY], 0.6, WORKING_DAY * WEEKEND, ["traffic_lost"]),
    ],
    ids=["a holiday", "no holiday", "another holiday", "a holiday like a working day", "a loss"],
)
def test_a_wednesday_that_is_a_holiday_has_the_band_of_a_sunday(
    three_weeks: Store, holidays: list[str], factor: float, expected: float, expected_causes: list[str]
) -> None:
    assert hour(WEDNESDAY).start.weekday() == 2
    check = a_check(holidays=holidays)
    for number in (WEDNESDAY, WEDNESDAY + 1):
        store_hour(three_weeks, number, usual_hour(number, factor))
    runs = [judge(three_weeks, check, number) for number in (WEDNESDAY, WEDNESDAY + 1)]
    band = result_of(runs[0], "expected", metric="volume", by="requests", dimension="")
    assert band.value == pytest.approx(expected, rel=0.03)
    assert causes(runs[1]) == expected_causes
    assert runs[1].status is (Status.VIOLATED if expected_causes else Status.OK)
