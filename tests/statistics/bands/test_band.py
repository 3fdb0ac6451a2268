"""Bands: by hand, against a plain computation of the same, at the edges, and over worlds with seasons."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.statistics.bands.band import FARTHEST, band, deviation, limits
from monitor.statistics.bands.past import Level
from monitor.statistics.bands.scales import Scale
from tests.statistics.bands.band_worlds import hours, judged, noise, past_of, shape

UNKNOWN = np.array([np.nan])


def test_a_band_worked_by_hand():
    """Four weeks, one window a day: 10, 11, 12, 13 on the day judged, elsewhere always 50."""
    values = np.full((28, 1), 50.0)
    values[6::7, 0] = [10.0, 11.0, 12.0, 13.0]
    found = band(past_of(values), Scale.LEVEL, UNKNOWN)
    assert found.level.tolist() == [Level.WEEKDAY]
    assert found.expected.tolist() == [11.5]
    assert (found.located.tolist(), found.pooled.tolist(), found.seen.tolist()) == ([4], [28], [28])
    assert found.df.tolist() == [14.0]
    # The medians of the others are 12, 12, 11, 11: residuals -2, -1, 1, 2, and 24 times 0. Half of the
    # residuals being 0, the first guess is 1.2533 of their mean size 6/28, and nothing counts as more than
    # three times that.
    reach = 3 * 1.2533 * 6 / 28
    sd = np.sqrt(4 * reach**2 / 28 / 0.995) * 28 / 27.2
    assert found.sd[0] == pytest.approx(sd)
    assert deviation(found, [13.5])[0] == pytest.approx(2 / sd)
    assert [float(end[0]) for end in limits(found, 3.0)] == pytest.approx([11.5 - 3 * sd, 11.5 + 3 * sd])


def _plainly(values, days, near, weekend_today, level):
    """Expected and the residuals of one series at a level, window by window."""
    weekend = [(-day) % 7 in (5, 6) for day in days]
    keys = {
        Level.WEEKDAY: lambda n: (near[n], days[n] % 7),
        Level.DAY_TYPE: lambda n: (near[n], weekend[n]),
        Level.ANY_DAY: lambda n: near[n],
        Level.ANY_WINDOW: lambda n: 0,
    }
    key, today = keys[level], {1: (0, 0), 2: (0, weekend_today), 3: 0, 4: 0}[level]
    there = [n for n in range(len(values)) if values[n] == values[n]]
    centre = statistics.median(values[n] for n in there if key(n) == today)
    pool = [
        n for n in there if (abs(near[n]) <= 2 or level == 4) and (level <= 2 or weekend[n] == weekend_today)
    ]
    residuals = []
    for n in pool:
        others = [values[o] for o in there if o != n and key(o) == key(n)]
        if len(others) >= {1: 2, 2: 3, 3: 4, 4: 1}[level]:
            residuals.append(values[n] - statistics.median(others))
    return centre, residuals


def _spread(residuals):
    first = 1.4826 * statistics.median(abs(one) for one in residuals)
    first = first or 1.2533 * statistics.fmean(abs(one) for one in residuals)
    n = len(residuals)
    return np.sqrt(sum(min(abs(one), 3 * first) ** 2 for one in residuals) / n / 0.995) * n / (n - 0.8)


@pytest.mark.parametrize(
    ("days_back", "level"),
    [(28, Level.WEEKDAY), (20, Level.DAY_TYPE), (7, Level.DAY_TYPE), (4, Level.ANY_WINDOW)],
)
@pytest.mark.parametrize("seed", range(3))
def test_bands_equal_a_plain_computation(days_back, level, seed):
    rng = np.random.default_rng([seed, days_back])
    offsets = [-2, -1, 0, 1, 2] if level != Level.ANY_WINDOW else [-2, -1, 0, 1, 2, 99, 99]
    days = np.repeat(np.arange(1, days_back + 1), len(offsets))
    near = np.tile(offsets, days_back)
    values = rng.normal(100, 10, (len(days), 6))
    values[rng.random(values.shape) < 0.03] = np.nan
    past = past_of(values, days=days, near=near)
    found = band(past, Scale.LEVEL, np.full(6, np.nan))
    assert set(found.level.tolist()) == {level}
    for series in range(6):
        centre, residuals = _plainly(values[:, series].tolist(), days.tolist(), near.tolist(), False, level)
        assert found.expected[series] == pytest.approx(centre)
        assert found.pooled[series] == len(residuals)
        assert found.sd[series] == pytest.approx(max(_spread(residuals), abs(centre) / 100))


@pytest.mark.parametrize(("days_back", "df"), [(28, 28.0), (14, 14.0), (2, 4.0)])
def test_degrees_of_freedom_are_at_most_the_number_of_days(days_back, df):
    days, near = np.repeat(np.arange(1, days_back + 1), 5), np.tile([-2, -1, 0, 1, 2], days_back)
    values = np.random.default_rng(11).normal(10, 1, (len(days), 1))
    found = band(past_of(values, days=days, near=near, today=2), Scale.LEVEL, UNKNOWN, least=8)
    assert found.df.tolist() == [df]
    assert found.pooled[0] > 2 * df


def test_a_series_uses_the_most_similar_windows_if_it_has_enough_of_them():
    values = np.random.default_rng(3).normal(10, 1, (28, 4))
    mondays, weekdays = np.arange(28) % 7 == 6, ~np.isin(np.arange(28) % 7, [0, 1])
    values[np.flatnonzero(mondays)[:2], 1] = np.nan  # two Mondays left
    values[np.flatnonzero(weekdays)[3:], 2] = np.nan  # three weekdays left
    values[8:, 3] = np.nan  # a week is left, and it has too few windows for any
    found = band(past_of(values), Scale.LEVEL, np.full(4, np.nan), least=10)
    # At the third series' level only windows of its own day type are pooled, and there are three of them.
    assert found.level.tolist() == [Level.WEEKDAY, Level.DAY_TYPE, Level.NONE, Level.NONE]
    assert np.isnan(found.expected[2:]).all()
    assert np.isnan(found.df[2:]).all()
    assert np.isnan(deviation(found, np.full(4, 10.0))[2:]).all()


def test_the_first_saturday_has_no_band_from_working_days():
    """Five working days say nothing of a Saturday, however many hours of them there are."""
    near = np.tile([-2, -1, 0, 1, 2], 5)
    days = np.repeat(np.arange(1, 6), 5)
    values = np.random.default_rng(4).normal(10, 0.1, (25, 1))
    past = past_of(values, days=days, near=near, today=5)
    assert band(past, Scale.LEVEL, UNKNOWN).level.tolist() == [Level.NONE]


def test_the_second_saturday_has_a_wide_band():
    days, near = np.repeat(np.arange(1, 13), 5), np.tile([-2, -1, 0, 1, 2], 12)
    weekend = np.isin((5 - days) % 7, [5, 6])
    rng = np.random.default_rng(5)
    values = (10 + 3 * weekend + rng.normal(0, 0.1, 60))[:, None]
    found = band(past_of(values, days=days, near=near, today=5), Scale.LEVEL, UNKNOWN)
    assert found.level.tolist() == [Level.ANY_DAY]
    assert abs(deviation(found, [13.0])[0]) < 1.5


def test_without_a_past_there_is_no_band():
    found = band(past_of(np.empty((0, 3))), [0, 1, 2], np.full(3, np.nan))
    assert found.level.tolist() == [Level.NONE] * 3
    assert found.seen.tolist() == [0, 0, 0]
    assert np.isnan(np.concatenate([found.expected, found.sd, *limits(found, 4.0)])).all()


def test_no_series_gives_empty_bands():
    found = band(past_of(np.empty((28, 0))), Scale.LEVEL, np.empty(0))
    assert deviation(found, []).shape == (0,)


@pytest.mark.parametrize("scale", list(Scale))
def test_a_past_of_one_window_or_of_nulls_has_no_band(scale):
    values = np.full((28, 2), np.nan)
    values[3, 0] = 0.5
    found = band(past_of(values), scale, np.full(2, 100.0))
    assert (found.seen.tolist(), found.level.tolist()) == ([1, 0], [Level.NONE] * 2)


@pytest.mark.parametrize(
    ("scale", "value", "near_by"), [(0, 0.25, 0.2503), (1, 900.0, 910.0), (2, 7.0, 7.01)]
)
def test_a_constant_series_ignores_tiny_changes_and_reports_real_ones(scale, value, near_by):
    found = band(past_of(np.full((28, 1), value), np.full((28, 1), 1e9)), scale, [1e9])
    assert found.expected[0] == pytest.approx(value)
    assert deviation(found, [value])[0] == pytest.approx(0, abs=1e-6)
    assert abs(deviation(found, [near_by])[0]) < 1
    assert abs(deviation(found, [value * 1.3])[0]) > 7


def test_a_level_that_was_always_0_has_the_largest_deviation_once_it_moves():
    found = band(past_of(np.zeros((28, 2))), Scale.LEVEL, np.full(2, np.nan))
    assert deviation(found, [0.0, -0.02]).tolist() == [0.0, -FARTHEST]
    assert deviation(found, [1e-6, -1e-6]) == pytest.approx([0.1, -0.1])


def test_infinite_values_and_values_without_samples_are_missing_and_counted():
    values = np.random.default_rng(6).normal(5, 1, (28, 3))
    spoilt, samples = values.copy(), np.full((28, 3), 40.0)
    spoilt[[2, 9], 1] = [np.inf, -np.inf]
    samples[[2, 9], 2] = 0
    values[[2, 9], 1:] = np.nan
    one = band(past_of(spoilt, samples), Scale.LEVEL, np.full(3, 40.0))
    other = band(past_of(values, np.full((28, 3), 40.0)), Scale.LEVEL, np.full(3, 40.0))
    assert one.unusable.tolist() == [0, 2, 2]
    assert other.unusable.tolist() == [0, 0, 0]
    assert one.expected.tolist() == other.expected.tolist()
    assert one.sd.tolist() == other.sd.tolist()


def test_a_value_that_cannot_be_read_has_no_deviation():
    values, samples = np.full((28, 5), 0.5), np.full((28, 5), 100.0)
    found = band(past_of(values, samples), Scale.SHARE, [100, 100, 100, 100, 0])
    assert np.isnan(deviation(found, [np.nan, np.inf, 1.5, -0.2, 0.5])).all()


def test_fewer_samples_than_usual_widen_a_band():
    rng = np.random.default_rng(7)
    usual, few = 100_000, 200
    values = np.column_stack([rng.binomial(usual, 0.1, 28) / usual, rng.normal(0.8, 0.03, 28)])
    past = past_of(values, np.full((28, 2), float(usual)))
    many, small = (band(past, [Scale.SHARE, Scale.LEVEL], np.full(2, float(n))) for n in (usual, few))
    assert small.sd[0] >= 0.5 / np.sqrt(few + 0.5) > 5 * many.sd[0]
    assert small.sd[1] == pytest.approx(many.sd[1] * np.sqrt(usual / few))
    assert abs(deviation(small, [16 / few, 0.8])[0]) < 2  # 16 of 200, where 20 are expected
    assert abs(deviation(many, [0.08, 0.8])[0]) > 15


def test_unknown_samples_are_taken_from_the_past():
    past = past_of(np.full((28, 1), 0.5), np.full((28, 1), 400.0))
    known, unknown = band(past, Scale.SHARE, [400.0]), band(past, Scale.SHARE, UNKNOWN)
    assert known.sd.tolist() == unknown.sd.tolist()
    assert unknown.samples.tolist() == [400.0]


def test_the_sd_of_a_level_is_at_least_its_standard_error():
    found = band(past_of(np.full((28, 3), 10.0)), [2, 2, 1], np.full(3, np.nan))
    errors = [5.0, np.nan, 5.0]
    far = deviation(found, np.full(3, 20.0), errors)
    assert far[0] == pytest.approx(2.0)
    assert far[1:].tolist() == deviation(found, np.full(3, 20.0))[1:].tolist()
    lower, upper = limits(found, 2.0, errors)
    assert (lower[0], upper[0]) == pytest.approx((0.0, 20.0))


def test_limits_have_the_asked_deviation_and_stay_in_the_possible_range():
    rng = np.random.default_rng(8)
    values = np.column_stack([rng.binomial(300, 0.4, 28) / 300, rng.poisson(80, 28), rng.normal(-5, 1, 28)])
    found = band(past_of(values, np.full((28, 3), 300.0)), [0, 1, 2], np.full(3, 300.0))
    for side, ends in zip((-1, 1), limits(found, [2.0, 3.0, 4.0]), strict=True):
        assert (side * deviation(found, ends)).tolist() == pytest.approx([2.0, 3.0, 4.0], abs=1e-6)
    lower, upper = limits(found, 500.0)
    assert lower[:2].tolist() == [0.0, 0.0]
    assert upper[0] == 1.0


@given(scale=st.floats(0.01, 100), shift=st.floats(-1000, 1000), seed=st.integers(0, 50))
@settings(max_examples=40, deadline=None)
def test_the_unit_of_a_level_matters_only_for_the_smallest_sd(scale, shift, seed):
    values = np.random.default_rng(seed).normal(0, 1, (28, 2))
    one = band(past_of(values), Scale.LEVEL, np.full(2, np.nan))
    other = band(past_of(values * scale + shift), Scale.LEVEL, np.full(2, np.nan))
    assert other.expected == pytest.approx(one.expected * scale + shift, rel=1e-6, abs=1e-6)
    wide = scale * one.sd > abs(other.expected) / 100
    found = deviation(other, np.array([1.0, 2.0]) * scale + shift)
    assert found[wide] == pytest.approx(deviation(one, [1.0, 2.0])[wide], rel=1e-6)


def test_the_order_of_series_and_windows_does_not_matter():
    rng = np.random.default_rng(9)
    values, scales = rng.poisson(50, (28, 9)).astype(float), np.tile([1, 2, 1], 3)
    order, rows = rng.permutation(9), rng.permutation(28)
    one = band(past_of(values), scales, np.full(9, np.nan))
    other = band(past_of(values[rows][:, order], days=rows + 1), scales[order], np.full(9, np.nan))
    assert other.expected.tolist() == one.expected[order].tolist()
    assert other.sd == pytest.approx(one.sd[order])


def test_an_outlier_in_the_past_hardly_moves_the_band():
    values = np.random.default_rng(10).normal(50, 2, (28, 1))
    clean = band(past_of(values), Scale.LEVEL, UNKNOWN)
    values[6] = 1e7
    found = band(past_of(values), Scale.LEVEL, UNKNOWN)
    assert abs(found.expected - clean.expected)[0] < 2
    assert found.sd[0] < 1.8 * clean.sd[0]


@pytest.mark.parametrize(
    ("scale", "name"), [(Scale.COUNT, "count"), (Scale.SHARE, "share"), (Scale.LEVEL, "level")]
)
@pytest.mark.parametrize("tails", [np.inf, 6.0])
def test_deviations_are_standard_deviations_from_the_second_week_on(scale, name, tails):
    rng = np.random.default_rng([20, int(scale)])
    weekday, time = hours(30, first_weekday=3)
    usual = shape(weekday, time)[:, None]
    wander = np.exp(0.03 * noise(rng, (720, 40), tails=tails, serial=0.4))
    samples = np.round(3000 * usual) * np.ones(40)
    values = {
        "count": rng.poisson(800 * usual * wander) * 1.0,
        "share": rng.binomial(samples.astype(int), 0.1 * wander) / samples,
        "level": (4 + usual) * wander,
    }[name]
    far, _ = judged(values, samples, weekday, scale, range(8 * 24 + 5, 720, 7))
    assert np.isfinite(far).all()
    assert 0.85 < far.std() < 1.1
    assert abs(far.mean()) < 0.15


def test_a_shape_of_the_week_does_not_widen_the_band():
    """The weekend is a quarter above the week, the noise 2 %: half of the traffic gone is far out."""
    rng = np.random.default_rng(21)
    weekday, time = hours(29)
    values = rng.poisson(50_000 * shape(weekday, time)[:, None] * np.exp(0.02 * rng.normal(size=(696, 20))))
    half = values.astype(float)
    half[-24:] /= 2
    far, _ = judged(half, np.full(half.shape, np.nan), weekday, Scale.COUNT, range(672, 696))
    assert far.max() < -15


def test_a_level_without_samples_now_keeps_its_band_and_has_no_deviation():
    values = np.tile(np.linspace(0.4, 0.6, 28)[:, None], 2)
    found = band(past_of(values, np.full((28, 2), 500.0)), Scale.LEVEL, [0.0, 500.0])
    lower, upper = limits(found, 5.0)
    assert (lower[0], upper[0]) == (lower[1], upper[1])
    assert np.isfinite([lower, upper]).all()
    assert np.isnan(deviation(found, [np.nan, 0.5])).tolist() == [True, False]
