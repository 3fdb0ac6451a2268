"""The bounds keep the budget of false alarms and detect real shifts; simulated, with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from monitor.statistics.bands.false_alarms import (
    AT_ONCE,
    BUDGET,
    EASIER,
    SERIAL,
    Bounds,
    bounds,
    decide,
    one_of_a_pair,
    student_bound,
)
from monitor.statistics.bands.scales import Scale
from tests.statistics.bands.band_worlds import hours, judged, noise, shape

SERIES, WEEK = 100, 168


def alarms_a_week(far, bound):
    """Deviations, windows x (series and weeks), each column with one bound; the alarms that begin."""
    fires = decide(far[1:], far[:-1], bound)
    begins = fires[1:] & ~fires[:-1]
    return begins.sum() / (far.size / (SERIES * WEEK))


def simulated(tails, serial, df):
    """Alarms a week in 300 weeks of a recommender: a hundred series whose sds are estimates themselves."""
    rng = np.random.default_rng([1, int(df)])
    columns = 300 * SERIES
    far = noise(rng, (WEEK + 30, columns), tails=tails, serial=serial)[30:]
    far /= np.sqrt(rng.chisquare(df, columns) / df)
    return alarms_a_week(far, bounds(SERIES * WEEK, np.full(columns, df)))


@pytest.mark.parametrize(
    ("tails", "serial"), [(np.inf, 0.0), (np.inf, 0.5), (np.inf, 0.7), (10, 0.0), (20, 0.5)]
)
@pytest.mark.parametrize("df", [25.0, 70.0])
def test_false_alarms_stay_within_the_budget(tails, serial, df):
    assert simulated(tails, serial, df) < BUDGET


def test_strong_serial_correlation_costs_less_than_twice_the_budget():
    assert BUDGET < simulated(np.inf, 0.9, 25.0) < 2 * BUDGET


def test_a_larger_budget_is_used_and_not_exceeded():
    """At twenty alarms a week there is something to count: the bounds are not far too high either."""
    rng = np.random.default_rng(2)
    far = noise(rng, (WEEK, 100 * SERIES), serial=SERIAL)
    bound = bounds(SERIES * WEEK, np.full(100 * SERIES, np.inf), budget=20.0)
    assert 3 < alarms_a_week(far, bound) < 20


@pytest.mark.parametrize(("shift", "least"), [(6.0, 0.88), (10.0, 0.999)])
def test_a_shift_is_detected_within_two_windows(shift, least):
    rng = np.random.default_rng(3)
    far = shift + noise(rng, (32, 4000), serial=0.3)[-2:]
    bound = bounds(SERIES * WEEK, np.full(4000, 70.0))
    assert decide(far[1], far[0], bound).mean() > least


def test_a_shift_of_20_is_detected_at_once():
    far = 20 + np.random.default_rng(4).normal(size=4000)
    assert decide(far, np.zeros(4000), bounds(300 * WEEK, np.full(4000, 70.0))).mean() > 0.999


def test_bands_raise_no_false_alarm_in_three_weeks_and_detect_a_loss_of_a_third():
    rng = np.random.default_rng(5)
    weekday, time = hours(29)
    wander = np.exp(0.03 * noise(rng, (29 * 24, 60), tails=8.0, serial=0.5))
    values = rng.poisson(2_000 * shape(weekday, time)[:, None] * wander).astype(float)
    values[-2:] *= 0.67
    far, df = judged(values, np.full(values.shape, np.nan), weekday, Scale.COUNT, range(8 * 24, 29 * 24))
    bound = bounds(60 * WEEK, df)
    fires = decide(far[1:], far[:-1], Bounds(*(one[1:] for one in bound)))
    assert fires[:-2].sum() == 0
    assert fires[-1].all()


def test_bounds_follow_the_formula():
    found = bounds(1000.0, [40.0], budget=2.0)
    assert found.single[0] == pytest.approx(stats.t.isf(0.002 * AT_ONCE / 2, 1 / (1 / 40 + 1 / 10)))
    beyond = stats.norm.sf(stats.norm.isf(one_of_a_pair(0.002 * 0.9 / 2, 0.5)))
    assert found.pair[0] == pytest.approx(stats.t.isf(beyond, 1 / (1 / 40 + 1 / 30)))
    assert found.clear[0] == EASIER * found.pair[0]


@pytest.mark.parametrize(("first_day", "size"), [(7, 0.5), (22, 0.7)])
def test_noise_common_to_a_day_raises_no_alarm_and_hides_no_incident(first_day, size):
    """Most of the noise is the day's: all hours of a day are high or low together."""
    rng = np.random.default_rng(6)
    weekday, time = hours(first_day + 5)
    days = np.repeat(rng.normal(size=(first_day + 5, 60)), 24, axis=0)
    luck = np.sqrt(0.7) * days + np.sqrt(0.3) * noise(rng, days.shape, serial=0.3)
    values = rng.poisson(2_000 * shape(weekday, time)[:, None] * np.exp(0.03 * luck)).astype(float)
    values[-2:] *= size
    judged_hours = range(first_day * 24, len(values))
    far, df = judged(values, np.full(values.shape, np.nan), weekday, Scale.COUNT, judged_hours)
    bound = bounds(300 * WEEK, df, budget=BUDGET / 4)
    fires = decide(far[1:], far[:-1], Bounds(*(one[1:] for one in bound)))
    assert fires[:-2].sum() == 0
    assert fires[-1].mean() > 0.95


@pytest.mark.parametrize("chance", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.5, 0.9])
def test_a_pair_exceeds_its_bound_with_the_given_chance(chance, correlation):
    c = stats.norm.isf(one_of_a_pair(chance, correlation))
    both = stats.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf([-c, -c])
    assert both == pytest.approx(chance, rel=2e-3)


def test_more_tests_fewer_degrees_of_freedom_and_a_smaller_budget_raise_every_bound():
    usual = bounds(1e4, [50.0])
    for other in (bounds(1e5, [50.0]), bounds(1e4, [10.0]), bounds(1e4, [50.0], budget=0.01)):
        assert all((theirs > own).all() for theirs, own in zip(other, usual, strict=True))


@pytest.mark.parametrize("tests_a_week", [0.001, 1, 1e9, 1e15])
def test_bounds_are_finite_and_in_order_for_any_number_of_tests(tests_a_week):
    found = bounds(tests_a_week, [4.0, 70.0, np.inf])
    assert np.isfinite(found.single).all()
    assert (found.single > found.pair).all()


def test_without_a_band_there_is_no_bound_and_no_alarm():
    found = bounds(1000, [np.nan])
    assert np.isnan(found.single[0])
    assert decide([100.0], [100.0], found).tolist() == [False]


@pytest.mark.parametrize(
    ("now", "before", "fires"),
    [
        (8.0, np.nan, True), (-8.0, 3.0, True), (7.9, np.nan, False), (4.0, 4.0, True), (-4.0, -9.0, True),
        (4.0, -4.0, False), (-4.0, 9.0, False), (4.0, 3.9, False), (3.9, 9.0, False), (np.nan, 9.0, False),
        (0.0, 0.0, False),
    ],
)  # fmt: skip
def test_one_window_beyond_single_or_two_beyond_pair_on_one_side_fire(now, before, fires):
    assert decide([now], [before], Bounds(*(np.array([one]) for one in (8.0, 4.0, 2.4)))).tolist() == [fires]


@pytest.mark.parametrize("tests_a_week", [0, -1, np.inf, np.nan])
def test_no_tests_are_refused(tests_a_week):
    with pytest.raises(ValueError, match="tests a week"):
        bounds(tests_a_week, [9.0])


def test_no_budget_and_no_degrees_of_freedom_are_refused():
    with pytest.raises(ValueError, match="budget"):
        bounds(10, [9.0], budget=0)
    with pytest.raises(ValueError, match="degrees"):
        bounds(10, [0.0])
    with pytest.raises(ValueError, match="chance"):
        student_bound(0.0, 3.0)
