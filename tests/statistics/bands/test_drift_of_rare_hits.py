"""Drift of shares and counts with few hits or none: chance is no drift, a real slide is."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.drift import FARTHEST, drift, drift_bounds, drifts
from monitor.statistics.bands.scales import Scale

DAYS = 28
HOURS = 24
SERIES = 60
BUDGET = 0.025


def found_in(values, samples=np.nan, scale=Scale.SHARE):
    values = np.asarray(values, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    weights = np.full(values.shape, samples)
    return drift(values, weights, np.arange(len(values)) % 7, scales=scale, windows=HOURS)


def reported(found):
    return drifts(found, drift_bounds(SERIES, found, budget=BUDGET))


def days(*last):
    """28 days, of 0 but for the last."""
    return np.concatenate([np.zeros(DAYS - len(last)), last])


@pytest.mark.parametrize("hits", [(1.0,), (1.0, 0.0), (1.0, 0.0, 1.0)])
@pytest.mark.parametrize("samples", [1000.0, 1e6])
def test_the_first_hits_after_weeks_without_any_are_no_drift(hits, samples):
    found = found_in(days(*hits) / samples, samples)
    assert 0 < found.change[0] < 2
    assert found.pace[0] < 1
    assert not reported(found).any()


def test_the_first_hit_of_a_share_and_of_a_count_worked_by_hand():
    """Before there is none, now 9/14 of a hit, of a thousand: chance is the mean of 3/8 and 1.02 hits."""
    weights, of_median = 98 / 14**2, np.pi / (2 * 24 + 2.5)
    hits = np.array([0.0, 9 / 14]) + 0.375
    p = hits / 1000.75
    chance = np.sqrt(p * (1 - p) / 1000).mean()
    share = found_in(days(1.0) / 1000, 1000.0)
    assert share.change[0] == pytest.approx(9 / 14 / 1000 / (chance * np.sqrt(weights * (1 + of_median))))
    count = found_in(days(1.0) / HOURS, scale=Scale.COUNT)
    chance = np.sqrt(hits).mean()
    assert count.change[0] == pytest.approx(9 / 14 / (chance * np.sqrt(weights * (1 + of_median))))
    level = found_in(days(1.0) / 1000, 1000.0, Scale.LEVEL)
    assert level.change[0] == FARTHEST  # nobody knows what chance does to it


@pytest.mark.parametrize("a_day", [0.02, 0.05, 0.1, 0.2, 1.0, 5.0])
@pytest.mark.parametrize(("samples", "scale"), [(1000.0, Scale.SHARE), (np.nan, Scale.COUNT)])
def test_false_alarms_of_rare_hits_stay_within_the_budget(a_day, samples, scale):
    hits = np.random.default_rng(5).poisson(a_day, (DAYS, 20_000))
    values = hits / (HOURS if scale is Scale.COUNT else samples)
    found = found_in(values, samples, scale)
    assert reported(found).mean() * 7 * SERIES <= BUDGET


@pytest.mark.parametrize(
    ("slope", "days_of_it", "scale", "least"),
    [
        (0.13, 3, Scale.SHARE, 0.99),
        (0.13, 3, Scale.COUNT, 0.99),
        (0.025, 8, Scale.SHARE, 0.97),
        (0.025, 8, Scale.COUNT, 0.92),
    ],
)
def test_a_drift_is_reported_if_nearly_all_noise_is_chance(slope, days_of_it, scale, least):
    """3000 clicks a day of 100,000 requests. What a count's days seem to share costs some of its power."""
    rng = np.random.default_rng(8)
    effect = np.concatenate([np.ones(DAYS), (1 - slope) ** np.arange(1.0, days_of_it + 1)])
    rate = 3000 * effect[:, None] * (1 + 0.002 * rng.normal(size=(len(effect), 500)))
    per = HOURS if scale is Scale.COUNT else 1e5
    assert reported(found_in(rng.poisson(rate) / per, 1e5, scale)).mean() > least


def test_hits_that_come_every_day_after_weeks_without_any_are_a_drift():
    found = found_in(np.stack([days(20.0, 40.0, 60.0), days(0.0, 0.0, 40.0)], axis=1) / 1e4, 1e4)
    assert reported(found).tolist() == [True, True]


@pytest.mark.parametrize("scale", [Scale.SHARE, Scale.LEVEL])
@pytest.mark.parametrize(
    ("last", "drifting"),
    [((2e-4, 4e-4, 9e-4), False), ((5e-4, 1e-3, 2e-3), True), ((5e-4, 1e-3, 9e-4), False)],
)
def test_a_rise_by_less_than_a_thousandth_is_ignored_however_certain_it_is(scale, last, drifting):
    found = found_in(days(*last), 1e9, scale)
    assert found.change[0] > 100
    assert reported(found).tolist() == [drifting]
    if scale is Scale.LEVEL:  # which way is up does not matter to a level
        assert reported(found_in(-days(*last), 1e9, scale)).tolist() == [drifting]


@pytest.mark.parametrize("scale", [Scale.SHARE, Scale.LEVEL])
def test_a_small_value_that_falls_can_drift(scale):
    values = np.full(DAYS, 5e-4)
    values[-3:] = [4e-4, 3e-4, 2e-4]
    assert reported(found_in(values, 1e9, scale)).tolist() == [True]


def test_small_rises_of_counts_are_not_ignored():
    values = np.full(DAYS, 1e-4)
    values[-3:] = [4e-4, 6e-4, 9e-4]
    found = drift(values[:, None], np.full((DAYS, 1), np.nan), np.arange(DAYS) % 7, scales=Scale.COUNT,
                  windows=10**9)  # fmt: skip
    assert reported(found).tolist() == [True]


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("samples", [np.nan, 1000.0])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_series_has_no_change_and_no_pace(scale, samples, value):
    found = found_in(np.full(DAYS, value), samples, scale)
    assert (found.change.tolist(), found.pace.tolist(), reported(found).tolist()) == ([0.0], [0.0], [False])


def test_a_share_with_unknown_samples_has_no_floor_by_chance():
    values = 0.3 * (1 + 0.01 * np.random.default_rng(2).normal(size=DAYS))
    assert found_in(values).change.tolist() == found_in(values, scale=Scale.LEVEL).change.tolist()


def test_a_constant_0_is_no_drift_and_raises_no_warning():
    """The last three days are at the old level. Only the day before them was 0."""
    values = np.full(DAYS, 5.0)
    values[-4] = 0.0
    with np.errstate(all="raise"):
        found = found_in(values, scale=Scale.LEVEL)
        assert found.change[0] == 0.0
        assert reported(found).tolist() == [False]


@pytest.mark.parametrize(("scale", "windows"), [(3, 1), (Scale.COUNT, 0)])
def test_an_unknown_scale_and_a_day_without_windows_are_refused(scale, windows):
    with pytest.raises(ValueError, match=r"a scale is one of|a window or more"):
        drift(np.ones((DAYS, 1)), np.ones((DAYS, 1)), np.zeros(DAYS), scales=scale, windows=windows)
