"""The model of a day: the one with most requests, if the history knows it."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from monitor.anomalies.model_changes import models_by_day
from monitor.anomalies.past import PastWindow, SeriesName
from tests.anomalies.banded import HOUR, START, hour

DAY = timedelta(days=1)
NAMES = {
    3: SeriesName("volume", {"by": "requests", "dimension": "model", "value": "m2"}),
    5: SeriesName("volume", {"by": "requests", "dimension": "model", "value": "m1"}),
    6: SeriesName("volume", {"by": "exposures", "dimension": "model", "value": "m0"}),
    7: SeriesName("volume", {"by": "requests", "dimension": "scene", "value": "home"}),
}


def window(number: int, **requests: float) -> PastWindow:
    series = {3: "m2", 5: "m1", 6: "m0", 7: "home"}
    there = {number: requests[name] for number, name in series.items() if name in requests}
    values = np.array(list(there.values()), dtype=np.float64)
    nothing = np.full(len(there), np.nan)
    return PastWindow(
        hour(number).end, np.array(list(there), dtype=np.int64), values, nothing, nothing,
        np.zeros(len(there), dtype=np.bool_), np.full(len(there), "1", dtype=object),
    )  # fmt: skip


def test_the_model_of_a_day_has_most_requests_not_most_hours():
    windows = [window(30, m1=1, m2=9), window(3, m1=90, m2=10), window(4, m1=20, m2=60), window(5, m2=39)]
    assert models_by_day(windows, NAMES, HOUR, START) == {START: "m1", START + DAY: "m2"}


def test_the_last_hour_belongs_to_its_own_day_and_ties_go_to_the_first_name():
    assert models_by_day([window(23, m1=5, m2=5)], NAMES, HOUR, START) == {START: "m1"}


def test_a_day_may_begin_at_any_hour():
    windows = [window(5, m2=1), window(6, m1=1), window(29, m1=1), window(30, m2=3)]
    six = hour(30).start
    days = {six - 2 * DAY: "m2", six - DAY: "m1", six: "m2"}
    assert models_by_day(windows, NAMES, HOUR, six) == days


def test_a_day_with_unknown_models_is_left_out():
    assert models_by_day([], NAMES, HOUR, START) == {}
    assert models_by_day([window(3, home=7, m0=9)], NAMES, HOUR, START) == {}
    assert models_by_day([window(3, m1=0), window(4, m1=np.nan)], NAMES, HOUR, START) == {}
    assert models_by_day([window(3, home=7)], {7: NAMES[7]}, HOUR, START) == {}
