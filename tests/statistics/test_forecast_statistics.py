"""Theil and Sen's line, the jackknife+, and rank correlation: by hand, by brute force and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from monitor.statistics import forecast as f
from monitor.statistics.forecast import Days, Points


def days(x, y, point=None):
    n = len(x)
    number = np.arange(n, dtype=np.int64)
    return Days(
        number, number % 7, np.asarray(x, float), np.asarray(y, float),
        number if point is None else np.asarray(point, np.int64),
    )  # fmt: skip


def points(x, y):
    return Points(np.arange(len(x), dtype=float), np.asarray(x, float), np.asarray(y, float))


def test_the_line_is_the_median_of_all_slopes():
    # Slopes of the six pairs: 1, 2, 10/3, 3, 4.5, 6; their median is 3.1666...
    line = f.theil_sen(np.array([0.0, 1, 2, 3]), np.array([0.0, 1, 4, 10]))
    assert line.slope == pytest.approx((3 + 10 / 3) / 2)
    assert line.intercept == pytest.approx(np.median([0, 1 - 19 / 6, 4 - 19 / 3, 10 - 9.5]))


def test_no_line_without_two_different_values():
    assert f.theil_sen(np.ones(5), np.arange(5.0)) is None
    assert f.theil_sen(np.array([1.0]), np.array([1.0])) is None


def test_a_wild_day_does_not_move_the_line():
    x = np.arange(30.0)
    y = 2 * x + 1
    y[[3, 17]] = [1e6, -1e6]
    assert f.theil_sen(x, y) == pytest.approx((2.0, 1.0))


@pytest.mark.parametrize("wild", [1e9, 9.2e18, 1e30, 1e300])
def test_a_wild_day_hides_no_other_day(wild):
    """Rounding that follows the largest day made all other days equal: one wrong amount hid a relation."""
    rng = np.random.default_rng(1)
    x = rng.normal(0.8, 0.01, 60)
    y = 1e4 + 2e5 * (x - 0.8) + rng.normal(0, 300, 60)
    y[20] = wild
    found = f.relation(days(x, y))
    assert found.correlation.value > 0.9
    assert found.line.slope == pytest.approx(2e5, rel=0.1)
    assert f.predict(found, 0.81, 0.8).value == pytest.approx(12_000, rel=0.05)
    assert found.points.y[20] == pytest.approx(wild, rel=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("of_x", "of_y"),
    [
        (1e308, 1),
        (1, 1e308),
        (1.7e308, 1.7e308),
        (1e308, 1e-308),
        (5e-324, 1e308),
        (1e-320, 1),
        (math.inf, 1),
    ],
)
def test_values_out_of_range_have_no_relation_and_warn_of_nothing(of_x, of_y):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    y = (x + rng.normal(0, 0.1, 60)).clip(-1, 1)
    assert f.relation(days(x * of_x, y * of_y)) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("of_x", "of_y"), [(1e299, 1e299), (1e-299, 1e-299), (1e150, 1e-150), (1, 1e-320)])
def test_a_relation_of_extreme_values_is_that_of_plain_ones(of_x, of_y):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    y = (x + rng.normal(0, 0.1, 60)).clip(-1, 1)
    plain, found = f.relation(days(x, y)), f.relation(days(x * of_x, y * of_y))
    assert found.correlation.value == pytest.approx(plain.correlation.value, abs=0.01)
    assert found.skill == pytest.approx(plain.skill, abs=0.01)
    assert f.predict(found, 0.5 * of_x, 0.8).value / of_y == pytest.approx(0.5, abs=0.1)
    far = f.predict(found, 1.7e308, 0.8)
    assert far is None or np.isfinite(far).all()


def test_leave_one_day_out_is_a_fit_of_the_other_days():
    rng = np.random.default_rng(4)
    x = rng.normal(0, 1, 25) + (np.arange(25) % 7 >= 5)
    y = 2 * x + rng.normal(0, 0.3, 25) + 3 * (np.arange(25) % 7 >= 5)
    found = f.leave_one_out(days(x, y))
    weekday = np.arange(25) % 7
    for left in range(25):
        keep = np.arange(25) != left
        levels = {
            name: np.array([np.median(of[keep & (weekday == one)]) for one in range(7)])
            for name, of in (("x", x), ("y", y))
        }
        flat_x = x - (levels["x"] - levels["x"].mean())[weekday]
        flat_y = y - (levels["y"] - levels["y"].mean())[weekday]
        others = np.flatnonzero(keep)
        pairs = [(a, b) for a in others for b in others if a < b and abs(flat_x[b] - flat_x[a]) > 1e-9]
        slope = np.median([(flat_y[b] - flat_y[a]) / (flat_x[b] - flat_x[a]) for a, b in pairs])
        intercept = np.median(flat_y[keep] - slope * flat_x[keep])
        assert found.error[left] == pytest.approx(flat_y[left] - intercept - slope * flat_x[left])
        assert found.naive[left] == pytest.approx(flat_y[left] - np.median(flat_y[keep]))


def test_days_of_one_model_are_one_point():
    """Four models of ten days: the number of days does not make them more than four experiences."""
    model = np.repeat(np.arange(4), 10)
    found = f.points_of(days(model * 1.0, model * 2.0, model))
    assert found.x.tolist() == [0, 1, 2, 3]
    assert f.relation(days(model * 1.0, model * 2.0, model)) is None  # too few for an interval


@pytest.mark.parametrize(("n", "noise"), [(24, "normal"), (40, "normal"), (40, "heavy")])
def test_the_interval_of_a_prediction_contains_the_truth_as_often_as_it_says(n, noise):
    rng = np.random.default_rng(7)
    held = []
    for _ in range(60):
        x = rng.normal(0, 1, n + 1)
        error = rng.normal(0, 1, n + 1) if noise == "normal" else rng.standard_t(3, n + 1)
        y = 3 + 1.5 * x + error
        found = f.relation(days(x[:n], y[:n]))
        predicted = f.predict(found, float(x[n]), 0.9)
        flat = y[n]  # the new day has the mean rhythm of the week, which is none here
        held.append(predicted.lower <= flat <= predicted.upper)
    assert 0.8 <= np.mean(held) <= 0.99


def test_outside_of_the_past_the_interval_is_wider():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, 40)
    found = f.relation(days(x, x + rng.normal(0, 0.1, 40)))
    inside, outside = (f.predict(found, at, 0.9) for at in (0.5, found.points.x.max() + 0.4))
    assert inside.beyond == 0
    assert outside.beyond > 0
    assert outside.upper - outside.lower > 1.3 * (inside.upper - inside.lower)


def test_too_few_points_have_no_interval():
    rng = np.random.default_rng(1)
    x = rng.normal(size=8)
    found = f.relation(days(x, x + 0.1 * rng.normal(size=8)))
    assert found is not None
    assert f.predict(found, 0.0, 0.9) is None
    assert f.predict(found, 0.0, 0.8) is not None


def test_the_correlation_is_spearmans_with_the_interval_of_bonett_and_wright():
    """Published form: tanh(atanh r -+ z sqrt((1 + r^2/2) / (n - 3))), Psychometrika 65 (2000)."""
    x = np.random.default_rng(2).permutation(20) + 1.0
    y = np.where(x % 2 == 1, x + 1, x - 1)  # neighbours change places: each of 20 is off by 1
    found = f.correlation(points(x, y))
    assert found.value == pytest.approx(1 - 6 * np.sum((x - y) ** 2) / (20 * 399))
    independent = f.Correlation(0.5, 28, 28.0, 1.0)
    half = 1.959964 * math.sqrt(1.125 / 25)
    assert independent.interval(0.95) == pytest.approx(
        (math.tanh(math.atanh(0.5) - half), math.tanh(math.atanh(0.5) + half)), abs=1e-5
    )


def test_a_higher_confidence_for_many_pairs_makes_the_interval_wider():
    found = f.Correlation(0.5, 28, 28.0, 1.0)
    one, many = found.interval(0.95), found.interval(1 - 0.05 / 100)
    assert many.lower < one.lower
    assert many.upper > one.upper
    assert one.lower > 0 > many.lower


def test_of_two_hundred_unrelated_pairs_the_correction_leaves_hardly_one():
    rng = np.random.default_rng(9)
    certain, uncorrected = 0, 0
    for _ in range(8):
        y = rng.normal(size=40)
        found = [f.correlation(points(rng.normal(size=40), y)) for _ in range(200)]
        apart = [(one.interval(1 - 0.05 / 200), one.interval(0.95)) for one in found]
        certain += any(wide.lower > 0 or wide.upper < 0 for wide, _ in apart)
        uncorrected += any(one.lower > 0 or one.upper < 0 for _, one in apart)
    assert uncorrected == 8
    assert certain <= 2


@pytest.mark.parametrize("level", [0.0, 0.7])
def test_days_that_are_alike_do_not_make_two_numbers_related(level):
    """Two random walks of their own: without the effective number of points 5 % would be far more."""
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(200):
        x, y = np.zeros((2, 60))
        for at in range(1, 60):
            x[at], y[at] = (level * before + rng.normal() for before in (x[at - 1], y[at - 1]))
        found = f.correlation(points(x, y))
        interval = None if found is None else found.interval(0.95)
        wrong += interval is not None and (interval.lower > 0 or interval.upper < 0)
    assert wrong / 200 <= 0.1


@pytest.mark.parametrize(
    ("x", "y"),
    [([], []), ([1.0], [1.0]), ([1.0] * 30, range(30)), (range(30), [1.0] * 30), ([1, 2, 3], [1, 2, 3])],
)
def test_no_relation_without_enough_different_values(x, y):
    assert f.correlation(points(x, y)) is None
    if len(x):
        assert f.relation(days(x, y)) is None


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_tiny_and_huge_numbers_have_the_same_correlation(scale):
    rng = np.random.default_rng(3)
    x = rng.normal(size=30)
    y = x + 0.5 * rng.normal(size=30)
    plain, scaled = f.relation(days(x, y)), f.relation(days(x * scale, y * scale))
    assert scaled.correlation.value == pytest.approx(plain.correlation.value)
    assert scaled.line.slope == pytest.approx(plain.line.slope)
    assert scaled.skill == pytest.approx(plain.skill)


def test_a_relation_vanishes_only_if_its_slope_is_certainly_another():
    rng = np.random.default_rng(5)
    x = rng.normal(size=56)
    y = x + 0.3 * rng.normal(size=56)
    before = f.relation(days(x[:28], y[:28]))
    same = f.relation(days(x[28:], y[28:]))
    gone = f.relation(days(x[28:], rng.normal(0, 0.3, 28)))
    hardly_moved = x[28:] * 0.001
    narrow = f.relation(days(hardly_moved, hardly_moved + 0.3 * rng.normal(size=28)))
    assert not f.has_vanished(before, same, 0.95)
    assert f.has_vanished(before, gone, 0.95)
    assert not f.has_vanished(before, narrow, 0.95)  # x hardly moved: nothing is known
    assert not f.has_vanished(gone, before, 0.95)  # nothing was certain before
