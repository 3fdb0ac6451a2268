"""The zero-sum incident in the worlds of the scoreboard, by their daily totals: caught, and else silent.

The clicks of the recommender are those expected of its requests; search and visits are the logs that the
simulation delivers. The scoreboard runs the whole daemon.
"""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from benchmarks.scoreboard.config import config
from benchmarks.scoreboard.worlds import drawn, plan
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.luck import click_luck
from monitor.simulate.neighbours import search_clicks, visits
from monitor.simulate.seasons import expected_requests, luck
from monitor.simulate.world import HOUR, World
from monitor.statistics.substitution import changes, shift

DAYS = 25
INCIDENT = INCIDENTS["zero_sum"]


def hourly(world: World) -> np.ndarray:
    """Clicks of the recommender, clicks in search, and visits of each hour."""
    rows = []
    for hour in range(DAYS * 24):
        requests = float((expected_requests(world, hour) * luck(world, hour)).sum())
        clicks = 0.6 * requests * float(click_luck(world, np.array([hour])).mean())
        came = float(np.sum(visits(world, hour)["value"].to_numpy()))
        rows.append((clicks, search_clicks(world, hour).num_rows, came))
    return np.array(rows, float)


def zero_sum(world: World, hours: np.ndarray, day: int) -> bool:
    """The verdict of a day with the settings of the scoreboard."""
    platform = config(world)["recommenders"][0]["platform"]
    recent, before = (int(platform[name].rstrip("d")) for name in ("recent", "before"))
    span = slice(max(1, day + 1 - recent - before), day + 1)  # a log's first day is never whole
    own, search, came = hours.reshape(DAYS, 24, 3).sum(axis=1)[span].T
    own, search = own / came, search / came
    starts = [world.start + timedelta(days=number) for number in range(DAYS)]
    weekday = np.array([6 if one.date() in world.holidays else one.weekday() for one in starts])[span]
    found = changes(np.column_stack([own, own + search, search]), weekday, recent)
    verdict = found and shift(found, whole=1, part=0, other=2, confidence=0.95, least_gain=0.5)
    return bool(verdict and verdict.zero_sum)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_caught_within_three_days_and_healthy_days_are_silent(seed: int) -> None:
    world = drawn(seed)
    planned, hours = plan(world, DAYS), hourly(world)
    assert not any(zero_sum(world, hours, day) for day in range(15, DAYS))
    first = planned.strikes[planned.strike_of(INCIDENT.name)] // HOUR
    for size in ("middle", "large"):
        struck = hours.copy()
        moved = struck[first:, 1] * INCIDENT.sizes[size]
        struck[first:, 0] += moved
        struck[first:, 1] -= moved
        days = range(first // 24, min(DAYS, (first + INCIDENT.windows) // 24))
        assert any(zero_sum(world, struck, day) for day in days), size
