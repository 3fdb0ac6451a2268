"""A series leaves its band, stays away while nothing speaks for it, and is back as soon as enough does."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.departures import Departures
from monitor.statistics.bands.false_alarms import Bounds
from monitor.statistics.bands.scales import Scale, to_scale
from monitor.statistics.bands.seasonal_filter import Forecast
from monitor.statistics.bands.spans import SPANS

SINGLE, LONGER = 10.0, 5.0
NORMAL = (0.0, 0.0, 0.0, 0.0, 0.0)


class Watch:
    """One series of level 100, judged window after window."""

    def __init__(self, scale=Scale.LEVEL, centre=100.0):
        self.departures = Departures()
        self.departures.add(1)
        self.scale, self.centre = scale, centre

    def see(self, deviations, *, sd=1.0, matters=True, small=False, samples=np.nan):
        """Say the deviations of the spans; the single window's alone, if there is one number."""
        far = np.zeros(len(SPANS)) if np.isscalar(deviations) else np.array(deviations, np.float64)
        far[0] = deviations if np.isscalar(deviations) else far[0]
        spreads = sd / np.sqrt(SPANS)
        one = np.ones(1)
        forecast = Forecast(
            expected=self.centre * one,
            centre=self.centre * one,
            sd=sd * one,
            samples=samples * one,
            means=(far * spreads)[:, None],
            deviations=far[:, None],
            from_base=(far * spreads)[:, None],
            planned=np.full((len(SPANS), 1), self.centre),
            actual=self.centre + (far * spreads)[:, None],
            by_one=np.zeros((len(SPANS), 1)),
            usual=self.centre * one,
        )
        limit = Bounds(np.array([SINGLE, LONGER, LONGER, LONGER, LONGER])[:, None])
        out = self.departures.decide(
            forecast,
            far[:, None],
            limit,
            np.full((len(SPANS), 1), matters),
            np.array([small]),
            np.array([int(self.scale)]),
        )
        assert out.tolist() == (self.departures.side != 0).tolist()
        return int(self.departures.side[0])


@pytest.mark.parametrize(
    ("deviations", "side"),
    [
        (NORMAL, 0),
        ((9.9, 4.9, 4.9, 4.9, -4.9), 0),
        ((10.0, 0.0, 0.0, 0.0, 0.0), 1),
        ((-10.0, 0.0, 0.0, 0.0, 0.0), -1),
        ((3.0, 5.0, 0.0, 0.0, 0.0), 1),
        ((-1.0, -2.0, -3.0, -4.0, -5.0), -1),
        ((-12.0, 8.0, 0.0, 0.0, 0.0), 1),  # by what part of its bound, not by how many deviations
        ((4.0, np.nan, np.nan, np.nan, np.nan), 0),
        ((np.nan, np.nan, np.nan, np.nan, np.nan), 0),
    ],
)
def test_a_series_leaves_by_one_window_or_by_the_mean_of_more(deviations, side):
    assert Watch().see(deviations) == side


def test_a_change_that_does_not_matter_is_no_departure():
    assert Watch().see(-50.0, matters=False) == 0


def test_the_evidence_by_hand():
    """A departure by 4 sds in the mean of three: each window says 4 (4 / 2 - x), and 4.6 are enough."""
    watch = Watch()
    assert watch.see((-4.0, -4.5, -4.0 * np.sqrt(3), 0.0, 0.0)) == -1
    assert watch.see(-1.1) == -1  # 4 (2 - 1.1) = 3.6
    assert watch.see(-1.8) == -1  # 0.8 more
    assert watch.see(-1.94) == 0  # 0.24 more: 4.64


def test_what_speaks_against_it_counts_as_well_but_is_no_debt():
    watch = Watch()
    assert watch.see((-4.0, -4.5, -4.0 * np.sqrt(3), 0.0, 0.0)) == -1
    assert watch.see(-1.5) == -1  # 2
    assert watch.see(-2.2) == -1  # 2 - 0.8 = 1.2
    for _ in range(5):
        assert watch.see(-4.0) == -1  # 8 less each, but not below 0
    assert watch.see(-0.9) == -1  # 4 (2 - 0.9) = 4.4
    assert watch.see(-1.9) == 0  # 0.4 more


def test_no_more_than_the_bound_counts_as_far_away():
    """With the 30 sds of the incident a window at -6 would speak for it; with the bound of 5 it does not."""
    watch = Watch()
    assert watch.see(-30.0) == -1
    assert [watch.see(-6.0), watch.see(-3.0), watch.see(-2.4)] == [-1, -1, -1]
    assert watch.see(-1.6) == 0  # 5 (2.5 - 1.6) = 4.5; the window before said 0.5


def test_after_a_severe_incident_a_series_is_back_at_once():
    watch = Watch()
    for _ in range(20):
        assert watch.see(-25.0) == -1
    assert watch.see(0.5) == 0


def test_a_window_beyond_the_bound_takes_the_evidence_back():
    watch = Watch()
    watch.see(-10.0)
    assert watch.see(-2.0) == -1  # 5 (2.5 - 2.0) = 2.5
    assert watch.see(-11.0) == -1
    assert watch.see(-2.0) == -1
    assert watch.see(-2.0) == 0


def test_a_night_in_which_nothing_can_be_seen_neither_ends_nor_prolongs():
    """A loss of 10 is 10 sds by day. At night, with an sd of 1000, a window says nothing."""
    watch = Watch()
    assert watch.see(-10.0) == -1
    assert watch.see(-2.0) == -1
    for _ in range(12):
        assert watch.see(0.3, sd=1000.0) == -1
    assert watch.see(-2.0) == 0  # the 2.5 of the evening, and the 2.5 of the morning


def test_a_count_can_lose_no_more_than_there_is():
    """A scene of 2000 requests by day and one in five nights: nights say nothing."""
    scale = np.array([Scale.COUNT])
    day, night = (float(to_scale(np.array([n]), np.array([np.nan]), scale)[0]) for n in (2000.0, 0.2))
    watch = Watch(Scale.COUNT, day)
    assert watch.see(-30.0) == -1
    watch.centre = night
    for _ in range(6):
        assert watch.see(0.0) == -1
    watch.centre = day
    assert watch.see(0.0) == 0


def test_a_share_cannot_rise_above_one():
    watch = Watch(Scale.SHARE, float(np.arcsin(np.sqrt(0.5))))
    assert watch.see(12.0, sd=0.05, samples=400.0) == 1
    watch.centre = float(np.arcsin(np.sqrt(0.999)))
    for _ in range(5):
        assert watch.see(0.0, sd=0.05, samples=400.0) == 1
    watch.centre = float(np.arcsin(np.sqrt(0.5)))
    assert watch.see(0.0, sd=0.05, samples=400.0) == 0


def test_a_window_without_a_value_ends_nothing():
    watch = Watch()
    watch.see(-12.0)
    for _ in range(30):
        assert watch.see((np.nan,) * 5, small=True) == -1
    assert watch.see(0.0) == 0


def test_a_flip_is_a_departure_to_the_other_side():
    watch = Watch()
    assert watch.see((-9.0, -8.0, -9.0, 0.0, 0.0)) == -1
    assert watch.see((11.0, 0.0, 0.0, 0.0, 0.0)) == 1
    assert watch.see(11.0) == 1
    assert watch.see(0.0) == 0


def test_a_small_change_ends_a_departure():
    watch = Watch()
    watch.see((-12.0, -9.0, -8.0, -6.0, -6.0))
    assert watch.see((-3.1, -9.0, -8.0, -6.0, -6.0), small=False) == -1
    assert watch.see((-3.1, -9.0, -8.0, -6.0, -6.0), small=True) == 0


def test_what_is_over_holds_no_departure_in_the_longer_spans():
    watch = Watch()
    watch.see((-12.0, -9.0, -8.0, -6.0, -6.0))
    assert watch.see((0.0, -8.0, -8.0, -6.0, -6.0)) == 0


def test_a_window_that_is_itself_beyond_its_bound_is_out_even_if_the_change_is_small():
    watch = Watch()
    watch.see(-12.0)
    assert watch.see(-12.0, small=True) == -1


def test_the_farthest_shift_counts():
    """First 5 sds in the mean of twelve, or 1.4 a window; then 10 in one, and these count."""
    watch = Watch()
    assert watch.see((-1.0, 0.0, 0.0, 0.0, -5.0)) == -1
    quick = watch.departures.copy()
    assert watch.see(-10.0) == -1
    assert watch.see(0.0) == 0  # 5^2 / 2
    watch.departures = quick
    assert [watch.see(0.0) for _ in range(5)] == [-1, -1, -1, -1, 0]  # 1.44^2 / 2 = 1.04 each


def test_series_are_decided_one_by_one():
    departures = Departures()
    departures.add(3)
    far = np.zeros((5, 3))
    far[0] = [0.0, -12.0, 12.0]
    values = [
        np.full(3, 100.0),
        np.full(3, 100.0),
        np.ones(3),
        np.full(3, np.nan),
        far,
        far,
        far,
        100 + 0 * far,
        100 + far,
        0 * far,
        np.full(3, 100.0),
    ]
    limit = Bounds(np.tile(np.array([SINGLE, *[LONGER] * 4])[:, None], 3))
    matters, small = np.ones((5, 3), np.bool_), np.zeros(3, np.bool_)
    scales = np.full(3, int(Scale.LEVEL))
    assert departures.decide(Forecast(*values), far, limit, matters, small, scales).tolist() == [
        False,
        True,
        True,
    ]
    assert departures.side.tolist() == [0, -1, 1]
    departures.begin_anew([False, True, False])
    assert departures.side.tolist() == [0, 0, 1]
