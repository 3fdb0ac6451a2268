"""Which past windows are similar, and how many are needed."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.past import Level, Past, groups, levels_of, like, pool
from tests.statistics.bands.band_worlds import past_of


def test_windows_of_one_weekday_are_one_group_on_both_sides_of_midnight():
    """Judged is an hour after midnight: two hours earlier is the day before, and still its own group."""
    days, near = np.repeat([1, 7, 8, 14], 3), np.tile([-2, 0, 2], 4)
    found = groups(past_of(np.empty((12, 1)), days=days, near=near), Level.WEEKDAY)
    assert found[:3].tolist() == found[6:9].tolist()  # a day ago and eight days ago
    assert found[3:6].tolist() == found[9:].tolist()  # a week and two weeks ago
    assert len(set(found.tolist())) == 6


def test_windows_half_a_day_away_always_round_to_the_same_day():
    """Windows of six hours: two windows away is half a day, and its age ends in one half."""
    days = np.arange(1, 22)
    past = past_of(np.empty((21, 1)), days=days)
    halves = Past(past.values, past.samples, days - 0.5, past.same_weekday, past.same_day_type, days * 0 + 2)
    found = groups(halves, Level.WEEKDAY)
    assert found[:7].tolist() == found[7:14].tolist() == found[14:].tolist()
    assert len(set(found[:7].tolist())) == 7


def test_a_holiday_is_not_similar_to_its_weekday():
    days = np.arange(1, 29)
    past = past_of(np.ones((28, 1)), days=days)
    past.same_day_type[6] = False  # the last Monday
    assert like(past, Level.WEEKDAY).tolist() == [13, 20, 27]
    found = groups(past, Level.WEEKDAY)
    assert found[6] not in found[[13, 20, 27]]
    assert found[6] not in groups(past, Level.DAY_TYPE)[[13, 20, 27]]


def test_the_pool_has_near_windows_and_only_the_same_day_type_if_day_types_are_mixed():
    days, near = np.array([1, 2, 3, 3, 3]), np.array([0, 0, 0, 2, 99])  # Sunday, Saturday, Friday
    past = past_of(np.empty((5, 1)), days=days, near=near)
    assert pool(past, Level.WEEKDAY).tolist() == [True, True, True, True, False]
    assert pool(past, Level.ANY_DAY).tolist() == [False, False, True, True, False]
    assert pool(past, Level.ANY_WINDOW).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(("least", "level"), [(28, Level.ANY_WINDOW), (29, Level.NONE)])
def test_any_window_needs_least_windows(least, level):
    past = past_of(np.ones((28, 1)), near=np.full(28, 99))
    assert levels_of(past, np.full((28, 1), True), least).tolist() == [level]


@pytest.mark.parametrize(("windows", "level"), [(95, Level.NONE), (96, Level.ANY_WINDOW)])
def test_any_window_needs_a_past_that_reaches_a_day_back(windows, level):
    """Quarters of an hour: 24 of them are an afternoon, and say nothing about the night."""
    back = np.arange(1, windows + 1)
    past = past_of(np.ones((windows, 2)), days=back / 96, near=np.full(windows, 99))
    past = Past(past.values, past.samples, back / 96, back < 0, back > 0, past.near)
    there = np.full((windows, 2), True)
    there[-1, 1] = False  # the other series began one window later
    assert levels_of(past, there, 24).tolist() == [level, Level.NONE]


def test_a_level_needs_enough_residuals_for_a_spread():
    """Three Mondays alone tell where a Monday lies, but not how far it may lie from there."""
    past = past_of(np.ones((3, 1)), days=np.array([7, 14, 21]))
    assert levels_of(past, np.full((3, 1), True), 3).tolist() == [Level.NONE]


@pytest.mark.parametrize(
    "broken",
    [
        {"values": np.ones(3)},
        {"samples": np.ones((3, 2))},
        {"age": np.ones(2)},
        {"near": np.ones(4, np.int64)},
        {"age": np.array([1.0, 0.0, 2.0])},
        {"age": np.array([1.0, np.nan, 2.0])},
    ],
)
def test_a_past_with_wrong_shapes_or_ages_is_refused(broken):
    sound = {
        "values": np.ones((3, 1)),
        "samples": np.ones((3, 1)),
        "age": np.arange(1.0, 4.0),
        "same_weekday": np.full(3, True),
        "same_day_type": np.full(3, True),
        "near": np.zeros(3, np.int64),
    }
    Past(**sound)
    with pytest.raises(ValueError, match=r"windows|one entry|older"):
        Past(**(sound | broken))
