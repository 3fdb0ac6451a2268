"""What tests of daily traffic see of a fall of 1 % a day, where days are alike and where they are not."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from benchmarks.real_traffic.falls import FALSE_ALARMS, TESTS, by_drift, caught
from benchmarks.real_traffic.traffic import Hours

START = datetime(2024, 1, 1, tzinfo=UTC)  # no holiday of the series falls into this year


def traffic(noise: float) -> Hours:
    """Nine weeks of days whose level differs by chance."""
    level = np.exp(noise * np.random.default_rng(5).standard_normal(7 * 9))
    return Hours(START, np.repeat(1000 * level, 24), ())


def test_every_fall_is_seen_where_days_are_alike_and_none_where_they_differ_by_half() -> None:
    seen, cases = caught(traffic(0.002), TESTS["5 days"])[FALSE_ALARMS[0]]
    assert seen == cases >= 4
    assert caught(traffic(0.5), TESTS["5 days"])[FALSE_ALARMS[0]] == (0, cases)


def test_the_statistic_of_drift_is_the_shipped_one_where_it_could_fire() -> None:
    hours = traffic(0.002)
    requests = hours.rate.copy()
    assert by_drift(hours, requests, 60 * 24) == 0
    requests[57 * 24 :] *= np.repeat([0.98, 0.96, 0.94, 0.92, 0.90, 0.88], 24)  # it goes on
    assert by_drift(hours, requests, 60 * 24) < -5
    assert by_drift(hours, 2000 - requests, 60 * 24) > 5
