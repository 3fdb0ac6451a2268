"""The daily shape of traffic: a night can be seen or not, and an hour is told from chance."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.simulate.seasons import day_shapes
from monitor.simulate.world import Scene
from monitor.statistics.day_shape import days_moved, hours_moved, quietest

HOURS = np.arange(24)
DAY = 2 + np.sin(2 * np.pi * (HOURS - 9) / 24)  # 1 at 03:00, 3 at 15:00
WEEK = np.concatenate([DAY * level for level in (1, 1, 1, 1, 1, 1.3, 1.4)])


def before(level: float = 1000, weeks: int = 4) -> np.ndarray:
    return np.tile(level * WEEK, weeks)


def after(hours: float, level: float = 1000, days: int = 7) -> np.ndarray:
    """The week after, moved by so many hours, also by a part of one."""
    place = np.arange(24 * days)
    return level * np.interp(place - hours, np.arange(-168, 336), np.tile(WEEK, 3))


@pytest.mark.parametrize("hours", [-1, 0, 1])
@pytest.mark.parametrize("days", [3, 4, 7])
def test_a_move_by_an_hour_is_seen_from_the_third_day(hours, days):
    assert hours_moved(before(), after(hours, days=days)) == hours
    assert days_moved(before(), after(hours, days=days)) == [hours] * days


@pytest.mark.parametrize("days", [0, 1, 2])
def test_two_days_are_too_few(days):
    assert hours_moved(before(), after(1, days=days)) == 0


@pytest.mark.parametrize("hours", [0.3, -0.4, 5, 12])
def test_another_move_is_none_by_an_hour(hours):
    assert hours_moved(before(), after(hours)) == 0


@pytest.mark.parametrize("level", [300, 5000])
def test_the_level_does_not_matter(level):
    assert hours_moved(before(), after(1, level)) == 1
    assert hours_moved(before(), after(0, level)) == 0


def test_two_unusual_days_do_not_hide_a_move_nor_make_one():
    for moved in (0, 1):
        week = after(moved)
        week[:24] = after(1 - moved)[:24]
        week[30:40] = 0  # an outage
        assert hours_moved(before(), week) == moved


@pytest.mark.parametrize("share", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("days", [4, 7])
def test_school_holidays_that_begin_later_in_the_day_are_no_clock_change(share, days):
    weekday, weekend = 4000 * day_shapes(Scene("home", 1.0))
    noise = np.random.default_rng(3)
    past = noise.poisson(np.tile(np.concatenate([weekend, *5 * [weekday], weekend]), 4))
    holiday = (1 - share) * weekday + share * weekend
    week = noise.poisson(np.concatenate([weekend, *5 * [holiday], weekend]))
    assert hours_moved(past, week[: 24 * days]) == 0


def test_an_unusual_week_before_does_not_matter():
    past = before()
    past[168:336] = after(1)
    assert (hours_moved(past, after(0)), hours_moved(past, after(1))) == (0, 1)


def test_unknown_hours_are_left_out():
    past, week = before(), after(1)
    past[::50] = np.nan
    week[5::24] = np.nan
    assert hours_moved(past, week) == 1
    week[::2] = np.nan  # half of every day
    assert hours_moved(past, week) == 0
    assert hours_moved(np.full(672, np.nan), after(1)) == 0
    assert hours_moved(before(), np.full(168, np.nan)) == 0


def test_one_week_before_is_too_short():
    assert hours_moved(before(weeks=1), after(1)) == 0
    assert hours_moved(np.array([]), after(1)) == 0
    past = before(weeks=4)
    past[:504] = np.nan
    assert hours_moved(past, after(1)) == 0


def test_without_requests_or_without_a_shape_nothing_moves():
    assert hours_moved(np.zeros(672), np.zeros(168)) == 0
    assert hours_moved(np.full(672, 50.0), np.full(168, 50.0)) == 0
    assert hours_moved(before(), np.zeros(168)) == 0


@pytest.mark.parametrize(
    ("requests", "seen"),
    [(1000, 1.0), (5, 0.0)],
)
def test_chance_hides_an_hour_of_little_traffic_and_never_makes_one(requests, seen):
    rng = np.random.default_rng(4)
    found = {0: [], 1: []}
    for _ in range(200):
        for hours, results in found.items():
            results.append(
                hours_moved(rng.poisson(before(requests / 2)), rng.poisson(after(hours, requests / 2)))
            )
    assert np.mean(np.array(found[1]) == 1) == pytest.approx(seen, abs=0.02)
    assert not np.any(np.array(found[1]) == -1)
    assert not np.any(found[0])


def test_the_spans_must_fit():
    with pytest.raises(ValueError, match="whole weeks"):
        hours_moved(np.ones(167), np.ones(24))
    with pytest.raises(ValueError, match="a week at most"):
        days_moved(np.ones(336), np.ones(169))


@pytest.mark.parametrize("shift", range(24))
def test_the_quietest_hours_may_cross_midnight(shift):
    night = np.where(HOURS < 4, 1.0, 10.0)
    assert quietest(np.roll(night, shift)) == shift


@pytest.mark.parametrize(
    "hours",
    [
        24 * [0],
        24 * [7],
        [6, 6, 6, 6] + 20 * [9],  # not quiet enough to be a night
        23 * [1],
        [float("nan")] + 23 * [1],
        [float("inf")] + 23 * [1],
        [],
    ],
)
def test_no_night_is_seen_in_a_flat_or_broken_day(hours):
    assert quietest(hours) is None
