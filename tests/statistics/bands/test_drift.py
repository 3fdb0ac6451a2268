"""Drift: by hand, at the edges, and over simulated series that drift, step, or do neither."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from monitor.statistics.bands.drift import FARTHEST, FLOOR, Drift, drift, drift_bounds, drifts
from monitor.statistics.bands.scales import Scale
from monitor.statistics.bands.weekdays import usual

SERIES = 60
WEEK = np.array([0.0, 0.01, 0.0, -0.01, 0.02, 0.1, 0.08])


def weekdays(days):
    return np.arange(days) % 7


def found_in(values, weights=None):
    values = np.asarray(values, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    weights = np.full(values.shape, np.nan) if weights is None else weights
    return drift(values, weights, weekdays(len(values)))


def series(effect, *, past=28, noise=0.01, columns=3000, seed=0, models=0.0):
    """Days of series with a weekly shape, a new model each week, and an effect on their last days."""
    rng = np.random.default_rng(seed)
    days = past + len(effect)
    weekly = 1 + WEEK[weekdays(days)][:, None] + noise * rng.normal(size=(days, columns))
    levels = rng.uniform(1 - models, 1 + models, (days // 7 + 1, columns))[
        (np.arange(days) + 3) // 7 % (days // 7 + 1)
    ]
    return 0.03 * weekly * levels * np.concatenate([np.ones(past), effect])[:, None]


def fires(values):
    found = found_in(values)
    return drifts(found, drift_bounds(SERIES, found)).mean()


def test_a_drift_worked_by_hand():
    """28 days at 100, then 98, 95, 92. The spread is the smallest that is believed, half a percent."""
    values = np.full(31, 100.0)
    values[28:] = [98.0, 95.0, 92.0]
    found = found_in(values)
    assert found.before.tolist() == [100.0]
    assert found.now[0] == pytest.approx((98 + 95 * 4 + 92 * 9) / 14)
    lost = 94 / 14  # 2, four times 5 and nine times 8
    assert found.relative[0] == pytest.approx(-lost / 100)
    of_median, weights = np.pi / (2 * 24 + 2.5), (1 + 16 + 81) / 14**2
    assert found.change[0] == pytest.approx(-lost / (100 * FLOOR * np.sqrt(weights * (1 + of_median))))
    # The moves are -2, -3, -3: without the largest, -5.
    of_median = np.pi / (2 * 23 + 1)
    assert found.pace[0] == pytest.approx(-5 / (100 * FLOOR * np.sqrt(2 * (1 + of_median))))
    assert found.days.tolist() == [24]
    assert (found.df[0], found.pace_df[0]) == pytest.approx((0.7 * 23, 0.7 * 0.7 * 22))


def test_weekdays_count_as_far_as_they_differ():
    values = np.tile(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0]), 3)[:, None]
    found = usual(values, weekdays(21), np.array([6, 0]))
    assert (found.centre[:, 0].tolist(), found.sd.tolist()) == ([9.0, 1.0], [0.0])
    noise = np.random.default_rng(1).normal(0, 1, (28, 4000))
    found = usual(noise, weekdays(28), np.array([6]))
    assert found.centre.std() < 0.4  # the median of all 28 has 0.23, that of four such days 0.55
    assert found.sd.mean() == pytest.approx(1, rel=0.05)


def test_with_fewer_than_two_of_a_weekday_the_weekend_is_noise():
    values = 1 + WEEK[weekdays(12)][:, None]
    found = usual(values, weekdays(12), np.array([5]))
    assert found.centre[0, 0] == np.median(values)
    assert found.sd[0] > 0.02
    assert found.df[0] == pytest.approx(0.7 * 11)


def test_a_drift_of_two_percent_a_day_is_reported_on_its_third_day():
    daily = 0.7 ** (np.arange(1, 6) / 14)
    assert fires(series(daily[:3])) > 0.88
    assert fires(series(daily[:3], noise=0.004)) > 0.99
    assert fires(series(daily[:3], past=20)) > 0.65
    assert fires(series(1 - 0.3 * (np.arange(3) + 0.5) / 14, noise=0.005)) > 0.85  # it grows within the day
    assert fires(series(1 - 0.3 * (np.arange(4) + 0.5) / 14, noise=0.005)) > 0.99


def test_a_rise_is_a_drift_too():
    assert fires(series(1.02 ** np.arange(1, 5))) > 0.88


def test_a_slower_drift_is_reported_later():
    assert fires(series(0.9 ** (np.arange(1, 4) / 14))) < 0.05
    assert fires(series(0.8 ** (np.arange(1, 8) / 14))) > 0.75


def test_a_step_is_no_drift():
    for day, most in ((1, 0.01), (2, 0.03), (3, 0.04), (4, 0.03), (6, 0.01)):
        assert fires(series(np.full(day, 0.98))) < most
    assert fires(series(np.full(5, 0.97))) < 0.05


def test_a_large_step_is_reported_although_it_does_not_continue():
    assert fires(series(np.full(4, 0.9))) > 0.99


def test_weekly_models_that_differ_by_up_to_3_percent_are_no_drift():
    for last in range(7):
        assert fires(series(np.ones(last), models=0.03, columns=6000, seed=last)) < 0.02


@pytest.mark.parametrize("noise", [0.01, 0.04])
def test_false_alarms_stay_within_the_budget(noise):
    """Alarms that begin within six hours, of a recommender with 60 series; a week has 28 times as many."""
    begun = 0
    for past in (13, 18, 22, 27, 31):
        quarters = 2 * noise * np.random.default_rng(past).normal(size=(4 * past + 3, 20_000))
        drifting = []
        for late in range(4):
            day = quarters[late : 4 * past + late].reshape(past, 4, -1).mean(axis=1)
            found = found_in(0.03 * (1 + WEEK[weekdays(past)][:, None] + day))
            drifting.append(drifts(found, drift_bounds(SERIES, found)))
        begun += sum((now & ~before).sum() for before, now in pairwise(drifting))
    assert begun / (5 * 3 * 20_000) * 28 * SERIES < 0.1


@pytest.mark.parametrize(("days", "known"), [(24, False), (25, True)])
def test_the_pace_alone_is_no_drift_with_fewer_than_twenty_moves(days, known):
    found = found_in(np.arange(float(days)) + 50)
    assert np.isfinite(drift_bounds(1, found).pace[0]) == known
    assert np.isfinite(found.pace[0])


def test_the_first_weekends_are_no_drift():
    for past in range(9, 19):
        assert fires(series(np.ones(0), past=past, noise=0.003, columns=500)) < 0.01


@pytest.mark.parametrize("days", [0, 1, 3, 11])
def test_too_few_days_have_no_judgement(days):
    found = found_in(np.full((days, 2), 5.0))
    assert np.isnan(np.concatenate([found.change, found.pace, found.before, found.df])).all()
    assert found.days.tolist() == [max(0, days - 4)] * 2
    assert drifts(found, drift_bounds(2, found)).tolist() == [False, False]


def test_twelve_days_are_enough_and_no_series_gives_empty_results():
    assert found_in(np.arange(12.0) + 50).days.tolist() == [8]
    assert np.isfinite(found_in(np.arange(12.0) + 50).change).all()
    assert found_in(np.empty((28, 0))).change.shape == (0,)


@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("day", [-1, -2, -3, -4])
def test_there_is_no_judgement_if_one_of_the_last_four_days_is_missing(missing, day):
    values = np.full((28, 2), 5.0)
    values[day, 1] = missing
    found = found_in(values)
    assert (found.change[0], np.isnan(found.change[1]), np.isnan(found.pace[1])) == (0.0, True, True)


def test_earlier_missing_days_are_skipped():
    values = np.random.default_rng(2).normal(10, 0.1, (28, 1))
    values[[3, 11]] = np.inf
    assert found_in(values).days.tolist() == [22]
    assert abs(found_in(values).change[0]) < 4


def test_a_day_with_few_samples_is_missing_and_a_half_day_weighs_less():
    values, weights = np.full((28, 3), 100.0), np.full((28, 3), 1000.0)
    values[-1] = 90.0
    weights[-1] = [1000.0, 500.0, 199.0]
    found = found_in(values, weights)
    assert abs(found.change[1]) < abs(found.change[0])
    assert np.isnan(found.change[2])
    weights[10] = 0
    assert found_in(values, weights).days.tolist() == [23] * 3


def test_a_move_away_from_0_is_infinite_relative_to_0():
    values = np.zeros((28, 2))
    values[-3:, 1] = [1.0, 2.0, 3.0]
    found = found_in(values)
    assert found.relative.tolist() == [0.0, np.inf]
    assert found.change.tolist() == found.pace.tolist() == [0.0, FARTHEST]
    assert drifts(found, drift_bounds(2, found)).tolist() == [False, True]


@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_unit_and_sign_of_the_values_do_not_matter(scale, seed):
    values = np.random.default_rng(seed).normal(1, 0.02, (28, 3))
    one, other = found_in(values), found_in(-scale * values)
    for name in ("change", "pace", "relative"):
        assert getattr(other, name) == pytest.approx(-getattr(one, name), rel=1e-6, abs=1e-9)


def test_the_order_of_series_does_not_matter():
    values = np.random.default_rng(3).normal(1, 0.02, (28, 6))
    order = np.array([3, 1, 5, 0, 2, 4])
    assert found_in(values[:, order]).change == pytest.approx(found_in(values).change[order])


def test_only_the_last_28_days_count():
    values = np.random.default_rng(4).normal(1, 0.02, (28, 2))
    longer = np.concatenate([np.full((7, 2), 99.0), values])
    assert found_in(longer).change.tolist() == found_in(values).change.tolist()


def test_bounds_follow_the_formula_and_rise_with_the_number_of_series():
    found = found_in(np.full((28, 1), 100.0))
    bounds, more = drift_bounds(SERIES, found), drift_bounds(10 * SERIES, found)
    chance = 0.1 / 2 / SERIES
    assert bounds.change[0] == pytest.approx(stats.t.isf(chance * 3 / 7 / 2.5 / 2, 0.7 * 23))
    assert bounds.pace[0] == pytest.approx(stats.t.isf(np.sqrt(chance / 7 / 2.5 / 2), 0.7 * 0.7 * 22))
    assert bounds.clear[0] == 0.6 * bounds.change[0]
    assert all(theirs > own for theirs, own in zip(more, bounds, strict=True))


@pytest.mark.parametrize(("count", "budget"), [(0, 0.1), (5, 0.0), (5, np.inf)])
def test_no_series_and_no_budget_are_refused(count, budget):
    with pytest.raises(ValueError, match="above 0"):
        drift_bounds(count, found_in(np.ones((28, 1))), budget=budget)


def made(**changed):
    """One series that drifts by each of its numbers, but for those that are named."""
    usual_one = {
        "before": 1.0, "now": 0.95, "change": -9.0, "relative": -0.05, "df": 17.0,
        "pace": -1.0, "pace_df": 16.0, "days": 24, "scales": Scale.LEVEL,
    }  # fmt: skip
    return Drift(**{name: np.array([value]) for name, value in (usual_one | changed).items()})


@pytest.mark.parametrize(
    ("changed", "fires"),
    [
        ({}, True),
        ({"change": -4.0}, False),
        ({"pace": -0.2}, False),
        ({"pace": 1.0}, False),
        ({"pace": 1.0, "relative": -0.08}, True),
        ({"relative": -0.03}, False),  # it fell to what is usual
        ({"change": -1.0, "pace": -9.0}, True),
        ({"change": -1.0, "pace": -9.0, "relative": -0.03}, False),
        ({"change": 1.0, "pace": -9.0, "relative": 0.05}, False),  # it comes back
        ({"change": np.nan, "pace": np.nan}, False),
    ],
)
def test_a_drift_is_certain_large_enough_and_continues(changed, fires):
    found = made(**changed)
    assert drifts(found, drift_bounds(SERIES, found)).tolist() == [fires]


@pytest.mark.parametrize(
    ("values", "weights", "days"),
    [
        (np.ones(28), np.ones(28), np.zeros(28)),
        (np.ones((28, 2)), np.ones((28, 1)), np.zeros(28)),
        (np.ones((28, 2)), np.ones((28, 2)), np.zeros(27)),
        (np.ones((28, 2)), np.ones((28, 2)), np.full(28, 7)),
        (np.ones((28, 2)), np.ones((28, 2)), np.full(28, 0.5)),
    ],
)
def test_different_shapes_and_invalid_weekdays_are_refused(values, weights, days):
    with pytest.raises(ValueError, match="weekday"):
        drift(values, weights, days)


def test_holidays_given_as_sundays_are_no_drift():
    """Sundays are at 60 of 100; so is a holiday of three days in the middle of the last week."""
    codes = weekdays(31)  # 0 is a Monday; the last day is a Wednesday
    values = np.where(codes == 6, 60.0, 100.0) * (1 + 0.005 * np.random.default_rng(6).normal(size=31))
    values[-3:] *= 0.6
    found = drift(values[:, None], np.full((31, 1), np.nan), [*codes[:-3], 6, 6, 6])
    assert abs(found.change[0]) < 3
    assert abs(found.pace[0]) < 2
    assert found.before[0] == pytest.approx(60, rel=0.01)
    found = drift(values[:, None], np.full((31, 1), np.nan), codes)
    assert drifts(found, drift_bounds(20, found)).tolist() == [True]


def days_that_share(luck, *, days=31, columns=20_000, noise=0.03):
    """Levels of 1000 whose noise has this correlation from day to day."""
    rng = np.random.default_rng(8)
    drawn = rng.normal(size=(days, columns))
    for number in range(1, days):
        drawn[number] = luck * drawn[number - 1] + np.sqrt(1 - luck**2) * drawn[number]
    return 1000 * (1 + noise * drawn)


def scaled(values, scale, windows=10**6):
    return drift(values, np.full(values.shape, np.nan), weekdays(len(values)), scales=scale, windows=windows)


def test_the_luck_that_a_count_shares_with_the_day_before_worked_by_hand():
    """As the drift worked by hand: half of the product of each two days comes to the sum of the squares."""
    values = np.full((31, 1), 100.0)
    values[28:, 0] = [98.0, 95.0, 92.0]
    level, count = scaled(values, Scale.LEVEL), scaled(values, Scale.COUNT)
    alone = (1 + 16 + 81) / 14**2 * (1 + np.pi / (2 * 24 + 2.5))
    shared = 2 * 0.5 * (1 * 4 + 4 * 9) / 14**2
    # Chance moves the mean of a million windows of 100 by 0.01, against the 0.5 that are believed.
    assert count.change[0] == pytest.approx(level.change[0] * np.sqrt(alone / (alone + shared)), rel=1e-3)
    assert count.pace[0] == level.pace[0]


def test_a_count_that_only_chance_moves_shares_no_luck():
    values = np.full((31, 1), 9.0)
    values[28:, 0] = [8.0, 7.0, 6.0]
    by_chance = scaled(values, Scale.COUNT, windows=1)
    lost = (1 + 2 * 4 + 3 * 9) / 14
    sd = (np.sqrt(9 + 0.375) + np.sqrt(9 - lost + 0.375)) / 2
    alone = (1 + 16 + 81) / 14**2 * (1 + np.pi / (2 * 24 + 2.5))
    assert by_chance.change[0] == pytest.approx(-lost / (sd * np.sqrt(alone)))


def test_days_that_share_their_luck_seldom_look_like_a_drift_of_a_count():
    values = days_that_share(0.5)
    beyond = {}
    for scale in (Scale.LEVEL, Scale.COUNT):
        found = scaled(values, scale)
        beyond[scale] = float((np.abs(found.change) > stats.t.isf(0.0005, found.df)).mean())
    assert beyond[Scale.COUNT] < 0.0035
    assert beyond[Scale.LEVEL] > 2 * beyond[Scale.COUNT]
