from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.simulate.seasons import DAY_LUCK, HOLIDAY, HOUR_LUCK, day_shapes, expected_requests, luck, mood
from monitor.simulate.world import Scene, World

PLAIN = World(scenes=(Scene("home", 100.0), Scene("search", 20.0, 0.2, 0.5)), growth=0.0, holidays=())
WEEK = 7 * 24


def week(world: World, first: int = 0) -> np.ndarray:
    return np.array([expected_requests(world, first + hour) for hour in range(WEEK)])


@given(st.floats(0.01, 1.0), st.floats(0.05, 5.0))
def test_the_night_the_weekend_and_the_weekly_mean_match_the_scene(night: float, weekend: float):
    weekday, saturday = day_shapes(Scene("a", 1.0, night, weekend))
    assert weekday.min() / weekday.max() == pytest.approx(night)
    assert saturday.mean() / weekday.mean() == pytest.approx(weekend)
    assert (5 * weekday.mean() + 2 * saturday.mean()) / 7 == pytest.approx(1)


def test_the_mean_of_a_week_without_holidays_matches_each_scene():
    assert week(PLAIN).mean(axis=0) == pytest.approx([100.0, 20.0])


def test_nights_are_quiet_and_weekends_start_later():
    weekday, saturday = day_shapes(Scene("home", 1.0))
    assert weekday.argmin() in range(5)
    assert weekday.argmax() in range(17, 23)
    morning = lambda day: np.flatnonzero(day[6:15] > day[:15].min() + 0.25 * np.ptp(day))[0]  # noqa: E731
    assert morning(saturday) > morning(weekday)


def test_monday_to_friday_are_alike_and_so_are_the_two_days_of_the_weekend():
    days = week(PLAIN)[:, 0].reshape(7, 24)  # the world starts on a Monday
    assert all(np.array_equal(days[0], days[one]) for one in range(5))
    assert np.array_equal(days[5], days[6])
    assert not np.array_equal(days[4] / days[4].mean(), days[5] / days[5].mean())


def test_growth_is_a_factor_a_week():
    world = replace(PLAIN, growth=0.01)
    assert week(world, 3 * WEEK) / week(world) == pytest.approx(np.full((WEEK, 2), 1.01**3))


def test_a_holiday_looks_like_a_busier_sunday_and_changes_no_other_day():
    holiday = replace(PLAIN, holidays=(date(2026, 1, 7),))  # a Wednesday
    ratio = week(holiday).reshape(7, 24, 2) / week(PLAIN).reshape(7, 24, 2)
    sunday = week(PLAIN).reshape(7, 24, 2)[6]
    assert week(holiday).reshape(7, 24, 2)[2] == pytest.approx(HOLIDAY * sunday)
    assert np.delete(ratio, 2, axis=0) == pytest.approx(np.ones((6, 24, 2)))


def test_scenes_share_the_noise_of_a_day_but_not_of_an_hour():
    logs = np.log([luck(PLAIN, hour) for hour in range(60 * 24)])
    between = logs[:, 0] - logs[:, 1]
    assert between.std() == pytest.approx(HOUR_LUCK * np.sqrt(2), rel=0.1)
    days = logs.mean(axis=1).reshape(60, 24).mean(axis=1)
    assert days.std() == pytest.approx(DAY_LUCK, rel=0.35)
    assert logs.mean() == pytest.approx(0, abs=4 * DAY_LUCK / np.sqrt(60))


def test_the_noise_of_an_hour_does_not_depend_on_earlier_calls():
    later = luck(PLAIN, 30)
    luck(PLAIN, 5)
    assert np.array_equal(luck(PLAIN, 30), later)
    assert not np.array_equal(luck(replace(PLAIN, seed=2), 30), later)


def test_the_mood_averages_to_one_over_a_day():
    assert mood(np.arange(24.0)).mean() == pytest.approx(1)


def test_requests_of_real_hours_follow_the_expected_ones():
    from monitor.simulate.simulation import Simulation

    world = replace(PLAIN, scenes=(Scene("home", 400.0),), items=48, length=2, oddities=False)
    simulation = Simulation(world)
    hours = range(24)
    seen = [len(simulation.lists(world.start + timedelta(hours=hour))) for hour in hours]
    means = [float((expected_requests(world, hour) * luck(world, hour))[0]) for hour in hours]
    chi_square = sum((one - mean) ** 2 / mean for one, mean in zip(seen, means, strict=True))
    assert chi_square < 24 + 4 * np.sqrt(48)  # of Poisson counts: mean 24, variance 48
