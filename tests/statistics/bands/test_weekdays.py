"""The expected value of a day from the days before it: only outliers are left out."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.weekdays import usual

MONDAY, SUNDAY = 0, 6


def days(count, first=None, noise=0.01, columns=200):
    values = 1 + noise * np.random.default_rng(7).normal(size=(count, columns))
    if first is not None:
        values[0] = first
    return values, np.arange(count) % 7


@pytest.mark.parametrize("first", [0.2, 3.0])
def test_an_unusual_first_day_is_left_out_of_the_expected_monday(first):
    values, weekday = days(14, first)
    found = usual(values, weekday, np.array([MONDAY]))
    without = usual(values[1:], weekday[1:], np.array([MONDAY]))
    assert found.centre.tolist() == without.centre.tolist()
    assert found.days.tolist() == [13.0] * 200
    assert np.abs(found.centre - 1).max() < 0.02


def test_two_sundays_unlike_all_other_days_give_the_expected_sunday():
    values, weekday = days(14)
    values[weekday == SUNDAY] += 2
    found = usual(values, weekday, np.array([SUNDAY, MONDAY]))
    assert found.days.tolist() == [14.0] * 200
    assert np.abs(found.centre[0] - 3).max() < 0.03
    assert np.abs(found.centre[1] - 1).max() < 0.03


def test_two_sundays_unlike_each_other_and_all_other_days_both_count():
    """Nobody can tell which of them is wild, and without both nothing would be known of Sundays."""
    values, weekday = days(14)
    values[6] += 2
    values[13] += 9
    found = usual(values, weekday, np.array([SUNDAY]))
    assert found.days.tolist() == [14.0] * 200
    assert np.abs(found.centre[0] - 6.5).max() < 0.05


def test_the_first_sunday_is_not_left_out():
    values, weekday = days(12)
    values[6] += 2
    assert usual(values, weekday, np.array([SUNDAY])).days.tolist() == [12.0] * 200


def test_rare_events_are_not_left_out():
    values = np.zeros((28, 1))
    values[[3, 11, 20]] = 1.0
    assert usual(values, np.arange(28) % 7, np.array([MONDAY])).days.tolist() == [28.0]


def test_a_day_three_percent_off_a_constant_is_left_out():
    values, weekday = np.full((21, 3), 100.0), np.arange(21) % 7
    values[8] = [102.9, 105.0, 70.0]
    assert usual(values, weekday, np.array([1])).days.tolist() == [21.0, 20.0, 20.0]
