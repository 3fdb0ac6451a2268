"""Which slices are missing: without rows at a time at which they usually have some."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.anomalies.presence import Presence
from monitor.statistics.bands.seasonal_filter import Moment

DAY = 86_400.0
FRIDAY = 4
YES, NO = np.array([True]), np.array([False])


class Slice:
    """One slice, watched day after day at the same time; the first day is a Monday."""

    def __init__(self):
        self.presence = Presence(slots=1)
        self.presence.add(1)
        self.day = 0
        self.was_missing = False

    def see(self, there, *, lost=None, known=True):
        """Whether it is missing today. Unless said, it is lost if it was missing the last time."""
        moment, end = Moment(0, self.day % 7), (self.day + 1) * DAY
        is_lost = self.was_missing if lost is None else lost
        found = self.presence.missing(np.array([there]), np.array([is_lost]), moment, end)[0]
        self.presence.learn(np.array([there]), np.array([known]), moment, end)
        self.day += 1
        self.was_missing = bool(found)
        return self.was_missing


def test_a_slice_that_was_always_there_is_missing_at_once():
    one = Slice()
    assert [one.see(True) for _ in range(3)] == [False] * 3
    assert one.see(False)


def test_a_slice_that_was_never_there_is_not_missing():
    one = Slice()
    assert not any(one.see(False, lost=lost) for lost in (False, True) for _ in range(10))


def test_the_days_before_its_first_one_do_not_count():
    one = Slice()
    for _ in range(20):
        one.see(False)
    one.see(True)
    assert one.see(False)


def test_nothing_is_missing_in_the_first_window_of_all():
    presence = Presence(slots=2)
    presence.add(1)
    assert presence.missing(NO, NO, Moment(0, 0), DAY).tolist() == [False]
    presence.learn(YES, YES, Moment(0, 0), DAY)
    # Nothing is known of another time of day.
    assert presence.missing(NO, NO, Moment(1, 0), 1.5 * DAY).tolist() == [False]


@pytest.mark.parametrize(("there", "is_missing"), [(5, True), (4, False)])
def test_half_of_the_windows_are_usual(there, is_missing):
    """Ten days, the first with rows; then the eleventh has none."""
    one = Slice()
    pattern = [True] * there + [False] * (10 - there)
    for number in range(10):
        one.see(pattern[number], lost=False)
    assert one.see(False, lost=False) is is_missing


def test_a_lost_slice_is_missing_until_it_is_back():
    one = Slice()
    for _ in range(4):
        one.see(True)
    assert all(one.see(False) for _ in range(14))  # far more than half of its windows by now
    assert not one.see(True)
    assert not one.see(False, lost=False)  # then half of the windows are too few


def test_fridays_without_rows_are_missing_three_times_and_then_usual():
    one = Slice()
    said = {weekday: [] for weekday in range(7)}
    for day in range(7 * 8):
        said[day % 7].append(one.see(day % 7 != FRIDAY))
    assert said.pop(FRIDAY) == [True] * 3 + [False] * 5
    assert not any(any(days) for days in said.values())


def test_a_friday_with_rows_makes_the_next_absence_missing_again():
    one = Slice()
    for day in range(7 * 6):
        one.see(day % 7 != FRIDAY)
    assert [one.see(True) for _ in range(7)] == [False] * 7
    assert [one.see(day != FRIDAY) for day in range(7)] == [day == FRIDAY for day in range(7)]


def test_fridays_are_usual_only_while_other_days_have_rows():
    """A slice that is lost on a usual Friday stays lost on the Fridays after it."""
    one = Slice()
    for day in range(7 * 6):
        one.see(day % 7 != FRIDAY)
    gone = [one.see(False, lost=day > 0) for day in range(7 * 6)]
    fridays = gone[FRIDAY::7]
    assert all(is_missing for day, is_missing in enumerate(gone[:14]) if day % 7 != FRIDAY)
    assert fridays[:2] == [False, False]
    assert all(gone[28:])


def test_windows_of_which_nothing_is_known_do_not_count():
    one = Slice()
    one.see(True)
    for _ in range(10):
        one.see(False, lost=False, known=False)
    assert one.see(False, lost=False)


def test_times_of_day_are_apart():
    presence = Presence(slots=2)
    presence.add(1)
    for day in range(6):
        for slot in range(2):
            moment, end = Moment(slot, day), (day + (slot + 1) / 2) * DAY
            there = YES if slot == 0 else NO
            assert presence.missing(there, NO, moment, end).tolist() == [False]
            presence.learn(there, YES, moment, end)
    assert presence.missing(NO, NO, Moment(0, 6), 6.5 * DAY).tolist() == [True]
    assert presence.missing(NO, NO, Moment(1, 6), 7 * DAY).tolist() == [False]
    assert presence.missing(NO, YES, Moment(1, 6), 7 * DAY).tolist() == [True]


def test_series_are_judged_one_by_one():
    presence = Presence(slots=1)
    presence.add(1)
    presence.learn(YES, YES, Moment(0, 0), DAY)
    presence.add(1)
    found = presence.missing(np.array([False, False]), np.array([False, False]), Moment(0, 1), 2 * DAY)
    assert found.tolist() == [True, False]
    presence.begin_anew([True, False])
    assert not presence.missing(np.zeros(2, np.bool_), np.ones(2, np.bool_), Moment(0, 1), 2 * DAY).any()
