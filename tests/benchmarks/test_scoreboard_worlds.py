"""The worlds and the sample of the scoreboard: what is drawn, and that it is spread as it should be."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.scoreboard.planned import LASTING, RESTARTED, Planned, in_order, sampled
from benchmarks.scoreboard.worlds import (
    DAYS,
    HELD_BACK,
    LEARNED,
    LONGEST,
    SEASON,
    SEASON_DAYS,
    SEEDS,
    STEP,
    STRIKES,
    TUNED,
    Plan,
    drawn,
    plan,
)
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES
from monitor.simulate.seasons import expected_requests, weather
from monitor.simulate.world import HOUR, World

MANY = range(1, 200)
WHOLE = Planned.of()


def test_each_world_has_steps_a_season_holidays_and_weather_of_its_own() -> None:
    worlds = [drawn(seed) for seed in MANY]
    assert len({(one.start, one.steps, one.seasons, one.holidays) for one in worlds}) == len(worlds)
    for world in worlds:
        days = [(world.start + day * 24 * HOUR).date() for day in range(DAYS)]
        assert all(day in days and day.weekday() < 5 for day in world.holidays)
        assert all(STEP[0] <= abs(step.change) <= STEP[1] for step in world.steps)
        (season,) = world.seasons
        assert season.first in days
        assert SEASON_DAYS[0] <= season.days <= SEASON_DAYS[1]
        assert SEASON[0] - 1e-9 <= abs(season.level - 1) <= SEASON[1] + 1e-9
    assert {world.start.weekday() for world in worlds} == set(range(7))
    assert {step.change > 0 for world in worlds for step in world.steps} == {True, False}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_traffic_of_a_world_has_its_steps_its_season_and_its_weather(seed: int) -> None:
    world = drawn(seed)
    (season,) = world.seasons
    plain = replace(world, steps=(), seasons=(replace(season, level=1.0),))
    hours = range(DAYS * 24)
    seen, usual = (np.array([expected_requests(one, hour)[0] for hour in hours]) for one in (world, plain))
    first, second = world.steps
    for hour in hours:
        moment = world.moment(hour)
        level = season.level if season.has(moment.date()) else 1.0
        level *= (1 + first.change * (moment >= first.at)) * (1 + second.change * (moment >= second.at))
        assert seen[hour] / usual[hour] == pytest.approx(level)
    logs = np.log(weather(world, np.arange(20_000)))
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.95, abs=0.02)


def test_incidents_begin_at_any_hour_of_any_day_after_the_world_has_been_learned() -> None:
    plans = [plan(drawn(seed), DAYS) for seed in MANY]
    for one in plans:
        assert len(set(one.strikes)) == STRIKES
        assert list(one.moments) == sorted(one.moments)
        assert one.moments[0] >= one.switched_on + 24 * HOUR
        assert one.moments[-1] + LONGEST <= one.ends
        assert one.switched_on == one.world.start + LEARNED * 24 * HOUR
    moments = [moment for one in plans for moment in one.moments]
    assert Counter(one.weekday() for one in moments).keys() == set(range(7))
    hours = Counter(one.hour for one in moments)
    assert hours.keys() == set(range(24))
    assert max(hours.values()) < 2 * min(hours.values())
    assert plan(drawn(1), DAYS) == plan(drawn(1), DAYS)


def test_a_short_world_keeps_its_parts() -> None:
    assert plan(World(), 0.125) == Plan(World(), 3 * HOUR, (2 * HOUR,), learned=HOUR)
    two_days = plan(World(), 2)
    assert two_days.learned == 30 * HOUR
    assert two_days.learned < two_days.strikes[0] < two_days.lasts


def test_each_world_has_each_incident_once_and_each_size_is_in_a_world_tuned_on() -> None:
    assert set(TUNED).isdisjoint(HELD_BACK)
    for name in INCIDENTS:
        assert sorted(sampled(name, seed) for seed in TUNED) == sorted(SIZES)
        assert sorted(sampled(name, seed) for seed in HELD_BACK) == ["large", "middle"]
    once = [job for job in WHOLE.incidents if not job.lasting]
    assert Counter((job.incident, job.plan.world.seed) for job in once) == Counter(
        (name, seed) for name in INCIDENTS for seed in SEEDS
    )
    assert {job.plan.held_back for job in once} == {True, False}
    by_world = Counter((job.plan.world.seed, job.size) for job in once)
    for seeds, sizes in ((TUNED, SIZES), (HELD_BACK, ("middle", "large"))):
        found = [by_world[seed, size] for seed in seeds for size in sizes]
        assert max(found) - min(found) <= 1  # as even as their number allows


def test_incidents_of_a_world_are_spread_over_its_moments() -> None:
    for one in WHOLE.plans:
        strikes = Counter(job.strike for job in WHOLE.incidents if job.plan == one)
        assert len(strikes) >= STRIKES - 2
        assert max(strikes.values()) < len(INCIDENTS) / 3
    for job in WHOLE.incidents:
        assert job.ends <= job.plan.ends
        assert job.baseline in WHOLE.healthy


def test_lasting_incidents_and_restarts_have_their_worlds() -> None:
    lasting = {job.incident: job.plan.world.seed for job in WHOLE.incidents if job.lasting}
    assert lasting == LASTING
    assert set(lasting.values()) <= set(TUNED)
    assert [(job.plan.world.seed, job.hours) for job in WHOLE.restarts] == [(one, RESTARTED) for one in SEEDS]


def test_sizes_that_are_asked_for_strike_in_every_world() -> None:
    part = Planned.of(seeds=[1, 2], names=["expired"], sizes=["middle", "large"])
    assert [job.name for job in part.incidents] == [
        "expired-middle-seed-1", "expired-large-seed-1", "expired-middle-seed-2", "expired-large-seed-2",
    ]  # fmt: skip
    assert len({job.name for job in WHOLE.jobs}) == len(WHOLE.jobs)


def test_a_new_incident_changes_the_size_of_no_other(tmp_path: Path) -> None:
    ran = [name for name in INCIDENTS if name != "expired"]
    stored = tmp_path / "results.jsonl.gz"
    stored.write_bytes(gzip.compress(json.dumps({"sizes": dict.fromkeys(ran)}).encode()))
    assert in_order(stored) == (*ran, "expired")
    assert in_order(tmp_path / "none") == tuple(INCIDENTS)
