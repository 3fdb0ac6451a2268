"""Changes of daily totals, the gain that is left, and the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.statistics.effects import Moments, welch
from monitor.statistics.intervals import quantile
from monitor.statistics.substitution import (
    LEAST_BEFORE,
    changes,
    fieller,
    gain,
    least_rise,
    shift,
    student,
)

WEEK = np.array([0.0, 5.0, 7.0, 4.0, 9.0, 30.0, 25.0])


def noise(rng: np.random.Generator, days: int, memory: float) -> np.ndarray:
    found = rng.normal(size=days)
    for day in range(1, days):
        found[day] = memory * found[day - 1] + np.sqrt(1 - memory**2) * found[day]
    return found


def series(days: int, *levels: float) -> np.ndarray:
    return np.column_stack([level + WEEK[np.arange(days) % 7] for level in levels])


def test_a_step_is_found_exactly_whatever_the_weekdays_are():
    values = series(35, 100.0, 50.0)
    values[28:] += [12.0, -3.0]
    found = changes(values, np.arange(35) % 7, 7)
    assert found.change == pytest.approx([12.0, -3.0])
    assert found.before == pytest.approx([100 + WEEK.mean(), 50 + WEEK.mean()])
    assert found.now == pytest.approx(found.before + found.change)
    assert found.days == (28, 7)
    assert found.covariance == pytest.approx(np.zeros((2, 2)))


def test_two_recent_days_are_compared_with_their_own_weekdays():
    values = series(30, 100.0)
    found = changes(values, np.arange(30) % 7, 2)
    assert found.change == pytest.approx([0.0])
    assert found.before == pytest.approx([100 + WEEK[[0, 1]].mean()])


@pytest.mark.parametrize("memory", [0.0, 0.3, 0.6])
@pytest.mark.parametrize(("before", "recent"), [(28, 7), (56, 7), (16, 2)])
def test_the_interval_covers_no_change_as_often_as_it_says_though_days_remember(memory, before, recent):
    rng = np.random.default_rng(int(memory * 10) + before)
    weekday = np.arange(before + recent) % 7
    inside = 0
    for _ in range(300):
        values = (1000 + 20 * noise(rng, before + recent, memory) + WEEK[weekday])[:, None]
        lower, upper = changes(values, weekday, recent).interval(0, 0.95)
        inside += lower <= 0 <= upper
    assert inside / 300 >= 0.92


def test_a_wild_day_before_is_left_out_for_all_series_and_counted():
    rng = np.random.default_rng(1)
    values = series(35, 100.0, 200.0) + rng.normal(size=(35, 2))
    wild = values.copy()
    wild[10, 0] = 5.0  # an outage of one system
    found, without = changes(wild, np.arange(35) % 7, 7), changes(values, np.arange(35) % 7, 7)
    assert found.wild == 1
    assert found.days == (27, 7)
    assert found.change == pytest.approx(without.change, abs=1.0)


def test_days_that_are_wild_in_large_numbers_are_what_days_look_like():
    values = np.full((35, 1), 100.0)
    values[0:28:4] = 1000.0
    assert changes(values, np.arange(35) % 7, 7).wild == 0


def test_a_day_without_a_value_in_one_series_counts_for_none():
    values = series(35, 100.0, 50.0)
    values[3, 1] = np.nan
    values[30, 0] = np.inf
    assert changes(values, np.arange(35) % 7, 7).days == (27, 6)


@pytest.mark.parametrize("known", [0, 1, LEAST_BEFORE - 1])
def test_too_few_days_give_no_judgement(known):
    values = np.full((35, 2), np.nan)
    values[28 - known : 35] = 5.0
    assert changes(values, np.arange(35) % 7, 7) is None


def test_a_recent_weekday_that_never_was_gives_no_judgement():
    weekday = np.array([0] * 20 + [1, 1])
    assert changes(np.ones((22, 1)), weekday, 2) is None


def test_one_recent_day_is_not_enough():
    values = series(35, 100.0)
    values[29:] = np.nan
    assert changes(values, np.arange(35) % 7, 7) is None


def test_the_variance_without_memory_is_that_of_least_squares():
    # Two groups of one weekday: the change is a difference of means, whose error is the pooled one.
    rng = np.random.default_rng(7)
    values = rng.normal(size=(40, 1))
    found = changes(values, np.zeros(40, int), 10)
    before, now = values[:30, 0], values[30:, 0]
    squares = ((before - before.mean()) ** 2).sum() + ((now - now.mean()) ** 2).sum()
    pooled = np.sqrt(squares / 38 * (1 / 30 + 1 / 10))
    assert found.change[0] == pytest.approx(now.mean() - before.mean())
    assert found.error(0) >= 0.99 * pooled  # and larger by the memory that cannot be ruled out
    assert found.error(0) <= 2 * pooled


@given(st.floats(0.1, 1e6), st.floats(-1e6, 1e6))
def test_a_unit_and_an_origin_change_nothing_but_themselves(scale, origin):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(35, 2))
    one = changes(values, np.arange(35) % 7, 7)
    other = changes(values * scale + origin * scale, np.arange(35) % 7, 7)
    assert other.change == pytest.approx(one.change * scale, rel=1e-4, abs=1e-4 * scale)
    assert other.error(0) == pytest.approx(one.error(0) * scale, rel=1e-3)


def test_constant_and_huge_and_tiny_series_have_no_spread_and_no_nan():
    for level in (0.0, 1e-300, 1e15):
        found = changes(np.full((35, 2), level), np.arange(35) % 7, 7)
        assert found.change == pytest.approx([0.0, 0.0], abs=1e-6 * max(level, 1e-300))
        assert np.isfinite(found.covariance).all()
        assert gain(found, 1, 0, 0.99) is None or found.change[0] != 0


def test_totals_whose_squares_are_beyond_float64_are_left_out_and_no_error():
    values = series(35, 100.0, 50.0)
    values[-2, 1] = 1e200
    assert changes(values, np.arange(35) % 7, 7).days == (28, 6)
    values[28:, 1] = 1e200
    assert changes(values, np.arange(35) % 7, 7) is None
    for one, other, variance in ((1e200, 1.0, 1.0), (1.0, 1e200, 1.0), (1.0, 4.0, 1e308)):
        assert fieller(one, other, (variance, 0.25), 0.0, 1.96) is None


def test_fieller_gives_the_textbook_interval_and_covers_the_ratio():
    rng = np.random.default_rng(5)
    covariance = np.array([[0.09, 0.03], [0.03, 0.04]])
    draws = rng.multivariate_normal([1.0, 2.0], covariance, 4000)
    inside = 0
    for top, bottom in draws:
        found = fieller(top, bottom, (0.09, 0.04), 0.03, quantile(0.95))
        inside += found is not None and found.lower <= 0.5 <= found.upper
    assert inside / 4000 == pytest.approx(0.95, abs=0.012)


def test_fieller_with_a_sure_denominator_is_the_numerators_interval_divided():
    lower, upper = fieller(3.0, 2.0, (0.25, 0.0), 0.0, 2.0)
    assert (lower, upper) == pytest.approx((1.0, 2.0))


def test_fieller_refuses_a_denominator_that_may_be_0():
    assert fieller(1.0, 0.1, (1.0, 1.0), 0.0, 1.96) is None


def moved(part: float, other: float, spread: float = 2.0, seed: int = 2) -> object:
    """The part, the whole and the other, of which the recent week moved."""
    rng = np.random.default_rng(seed)
    values = series(35, 100.0, 200.0) + spread * rng.normal(size=(35, 2))
    values[28:] += [part, other]
    return changes(np.column_stack([values[:, 0], values.sum(axis=1), values[:, 1]]), np.arange(35) % 7, 7)


def judged(found: object, confidence: float = 0.99) -> object:
    return shift(found, whole=1, part=0, other=2, confidence=confidence, least_gain=0.5)


def test_what_one_gains_and_the_other_loses_is_zero_sum():
    found = judged(moved(30.0, -30.0))
    assert found.zero_sum
    assert found.continues
    assert found.gain.value == pytest.approx(0.0, abs=0.2)
    assert found.gain.interval.upper < 0.5


@pytest.mark.parametrize(
    ("part", "other"),
    [(30.0, 0.0), (30.0, 30.0), (0.0, -30.0), (-30.0, 30.0), (0.0, 0.0), (30.0, -3.0), (-30.0, -30.0)],
)
def test_a_real_gain_a_loss_alone_and_a_fall_of_all_are_not(part, other):
    assert not judged(moved(part, other)).zero_sum


def test_what_is_sure_goes_on_at_any_confidence():
    """A shift that is sure at 80 % and not at 90 % is still a shift."""
    found = [judged(moved(part, -part, 5.0), 0.8) for part in np.arange(2.0, 30.0, 0.1)]
    assert any(one.zero_sum for one in found)
    assert all(one.continues for one in found if one.zero_sum)


def test_a_shift_below_what_the_noise_lets_see_is_not_judged():
    found = moved(3.0, -3.0)
    assert not judged(found).zero_sum
    assert least_rise(found, 1, 0, 0.99, 0.5) > 3.0
    large = moved(30.0, -30.0)
    assert least_rise(large, 1, 0, 0.99, 0.5) < 30.0


def test_a_shift_goes_on_at_an_easier_bound_so_that_it_does_not_flap():
    found = next(
        one
        for part in np.arange(2.0, 60.0, 0.1)
        if (one := judged(moved(part, -part, 5.0))).continues and not one.zero_sum
    )
    assert found.gain is not None


def test_false_alarms_of_independent_series_are_rare():
    rng = np.random.default_rng(11)
    weekday = np.arange(35) % 7
    alarms = 0
    for _ in range(400):
        demand = 1 + 0.05 * noise(rng, 35, 0.5)
        part, other = (1000 * demand * (1 + 0.02 * noise(rng, 35, 0.3)) for _ in range(2))
        found = changes(np.column_stack([part, part + other, other]), weekday, 7)
        alarms += judged(found).zero_sum
    assert alarms == 0


def test_students_quantile_is_that_of_welch():
    found = welch(Moments(4, 2.5, 5 / 3), Moments(5, 6.0, 10.0))
    half = (found.interval.upper - found.interval.lower) / 2
    assert half == pytest.approx(student(found.df, 0.95) * np.sqrt(5 / 12 + 2))


def test_a_level_of_0_is_0_and_not_what_rounding_leaves():
    own = [0.0] * 28 + [14_049.0] * 7
    other = [3.1] * 35
    found = changes(np.column_stack([own, other]), np.arange(35) % 7, 7)
    assert found is not None
    assert (found.before[0], found.change[1]) == (0.0, 0.0)
    assert found.now[0] == pytest.approx(14_049.0)
