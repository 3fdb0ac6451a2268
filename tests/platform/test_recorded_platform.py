"""Recorded series as the systems of a platform: no false alarm on any day, and a shift that is made is found.

New York's taxi rides of 215 days, of which three parts of the day are three systems: night, day and evening.
The figures of docs/platform.md are from here.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from monitor.settings.days_off import DaysOff
from monitor.statistics.substitution import changes, shift

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "series" / "nyc_taxi.csv.gz"
RECENT, BEFORE = 7, 28
SYSTEMS = ("night", "day", "evening")


@pytest.fixture(scope="module")
def rides() -> pd.DataFrame:
    if not RECORDED.exists():
        pytest.skip("the recorded rides are not on this machine")
    half_hours = pd.read_csv(RECORDED, parse_dates=["timestamp"]).set_index("timestamp")["value"]
    part = np.digitize(half_hours.index.hour, [8, 16])
    return pd.DataFrame({name: half_hours[part == n].resample("1D").sum() for n, name in enumerate(SYSTEMS)})


def alarms(rides: pd.DataFrame, part: str, other: str, moved: float, confidence: float = 0.95) -> list[bool]:
    """The verdict of each day, if a share of the part's week was taken from the other."""
    off = DaysOff(frozenset(), "US-NY")
    weekday = np.array([6 if f"{day:%Y-%m-%d}" in off else day.weekday() for day in rides.index])
    found = []
    for end in range(RECENT + BEFORE, len(rides) + 1):
        span = slice(end - RECENT - BEFORE, end)
        own, neighbour = (rides[name].to_numpy(float)[span].copy() for name in (part, other))
        step = moved * own[-RECENT:]
        own[-RECENT:] += step
        neighbour[-RECENT:] -= step
        result = changes(np.column_stack([own, own + neighbour, neighbour]), weekday[span], RECENT)
        if result is not None:
            verdict = shift(result, whole=1, part=0, other=2, confidence=confidence, least_gain=0.5)
            found.append(verdict.zero_sum)
    return found


@pytest.mark.parametrize(("part", "other"), list(permutations(SYSTEMS, 2)))
def test_no_day_of_recorded_traffic_is_a_false_alarm(rides: pd.DataFrame, part: str, other: str) -> None:
    found = alarms(rides, part, other, 0.0)
    assert len(found) == 181
    assert not any(found)


def test_a_shift_in_recorded_traffic_is_found_on_many_days(rides: pd.DataFrame) -> None:
    for part, other, least in (("evening", "night", 0.45), ("day", "night", 0.45), ("evening", "day", 0.35)):
        assert np.mean(alarms(rides, part, other, 0.4)) >= least
