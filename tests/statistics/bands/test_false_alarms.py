"""The bounds keep the budget of false alarms and detect real shifts; simulated, with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from monitor.statistics.bands.false_alarms import (
    AT_ONCE,
    BUDGET,
    TAILS_OF_MORE,
    TAILS_OF_ONE,
    bounds,
    student_bound,
)
from monitor.statistics.bands.scales import Scale
from monitor.statistics.bands.spans import SPANS
from tests.statistics.bands.band_worlds import HOURS, WEEK, hours, noise, shape, watched

SERIES, WEEKS, FIRST = 60, 6, 14 * HOURS
ALLOWED = 20.0
"""False alarms a week: so many that there is something to count."""


def requests(rng, mean, weeks=WEEKS, *, luck=0.0, tails=np.inf, serial=0.0):
    """Poisson requests with the shapes of a day and a week, times noise that lasts."""
    weekday, time = hours(7 * weeks)
    wander = np.exp(luck * noise(rng, (len(time), SERIES), tails=tails, serial=serial))
    return rng.poisson(mean * shape(weekday, time)[:, None] * wander).astype(float)


def a_week(values, scale, samples=np.nan, allowed=ALLOWED):
    found = watched(values, scale, samples, chance=allowed / (WEEK * SERIES), judge_from=FIRST)
    return found.begun(FIRST) / (len(values) / WEEK - 2)


@pytest.mark.parametrize(
    ("mean", "luck", "tails", "serial"),
    [
        pytest.param(8, 0.0, np.inf, 0.0, id="few"),
        pytest.param(2_000, 0.0, np.inf, 0.0, id="Poisson"),
        pytest.param(2_000, 0.03, np.inf, 0.5, id="lasts"),
        pytest.param(2_000, 0.03, np.inf, 0.9, id="lasts long"),
        pytest.param(2_000, 0.03, 8.0, 0.5, id="heavy tails"),
    ],
)
def test_counts_stay_within_the_allowed_false_alarms(mean, luck, tails, serial):
    rng = np.random.default_rng(1)
    assert a_week(requests(rng, mean, luck=luck, tails=tails, serial=serial), Scale.COUNT) <= ALLOWED


def test_shares_stay_within_the_allowed_false_alarms():
    rng = np.random.default_rng(2)
    shares = rng.binomial(400, 0.1, (WEEKS * WEEK, SERIES)) / 400
    assert a_week(shares, Scale.SHARE, 400.0) <= ALLOWED


@pytest.mark.parametrize("serial", [0.0, 0.5])
def test_levels_stay_within_the_allowed_false_alarms_and_use_them(serial):
    levels = 100 + 5 * noise(np.random.default_rng(3), (WEEKS * WEEK, SERIES), serial=serial)
    assert 2 < a_week(levels, Scale.LEVEL) <= ALLOWED  # the bounds are not far too high either


@pytest.mark.parametrize("serial", [0.0, 0.5])
def test_the_tails_of_single_windows_cost_less_than_twice_the_allowed_false_alarms(serial):
    """A clipped sd is smaller than that of Student's t with ten degrees of freedom."""
    drawn = noise(np.random.default_rng(4), (WEEKS * WEEK, SERIES), tails=TAILS_OF_ONE, serial=serial)
    assert a_week(100 + 5 * drawn, Scale.LEVEL) < 2 * ALLOWED


def test_bands_raise_no_false_alarm_in_four_weeks_and_detect_a_loss_of_a_third():
    rng = np.random.default_rng(5)
    values = requests(rng, 2_000, luck=0.03, tails=8.0, serial=0.5)
    begin = len(values) - 12
    values[begin:] *= 0.67
    out = watched(values, Scale.COUNT, chance=BUDGET / (WEEK * SERIES), judge_from=FIRST).out
    assert not out[:begin].any()
    assert out[begin + 5].mean() > 0.9
    assert out[-1].all()


def test_a_total_loss_is_detected_at_once():
    values = requests(np.random.default_rng(6), 300, 4)
    values[-1] = 0
    out = watched(values, Scale.COUNT, chance=BUDGET / (WEEK * SERIES)).out
    assert not out[:-1].any()
    assert out[-1].mean() > 0.95


@pytest.mark.parametrize(("weeks", "size"), [(2, 0.5), (4, 0.6)])
def test_noise_common_to_a_day_raises_no_alarm_and_hides_no_incident(weeks, size):
    """Most of the noise is the day's: all hours of a day are high or low together."""
    rng = np.random.default_rng(7)
    weekday, time = hours(7 * weeks + 5)
    days = np.repeat(rng.normal(size=(7 * weeks + 5, SERIES)), HOURS, axis=0)
    luck = np.sqrt(0.7) * days + np.sqrt(0.3) * noise(rng, days.shape, serial=0.3)
    values = rng.poisson(2_000 * shape(weekday, time)[:, None] * np.exp(0.03 * luck)).astype(float)
    begin = len(values) - 6
    values[begin:] *= size
    chance = BUDGET / 4 / (WEEK * 300)
    out = watched(values, Scale.COUNT, chance=chance, judge_from=7 * weeks * HOURS).out
    assert not out[:begin].any()
    assert out[-1].mean() >= 0.95


@pytest.mark.parametrize("length", [1, 3, 6, 12])
def test_a_series_is_back_in_the_first_window_after_a_severe_incident(length):
    values = requests(np.random.default_rng(8), 2_000, 5, luck=0.03, serial=0.5)
    begin = 4 * WEEK + 13
    end = begin + length
    values[begin:end] *= 0.1
    out = watched(values[: end + HOURS], Scale.COUNT, chance=BUDGET / 4 / (WEEK * SERIES)).out
    assert out[begin:end].all()
    assert out[end:].mean(axis=1).max() < 0.1  # it takes a window within 2.4 sds: 1 in 100 is not


def test_bounds_follow_the_formula():
    drawn = 7.0 * np.array(SPANS)[:, None]  # samples of each span
    found = bounds(2e-3, [40.0], drawn).spans[:, 0]
    one = stats.t.isf(2e-3 * AT_ONCE / 2, 1 / (1 / 40 + 1 / TAILS_OF_ONE + 1 / 7))
    longer = [stats.t.isf(2e-3 * 0.9 / 2, 1 / (1 / 40 + 1 / TAILS_OF_MORE + 1 / (7 * k))) for k in SPANS[1:]]
    assert found == pytest.approx([one, *longer])
    assert bounds(2e-3, [40.0], drawn).shown == pytest.approx(longer[:1])


def test_bounds_worked_by_hand():
    """1 / (1/40 + 1/40) = 20 degrees of freedom; 2.845 leaves 0.5 % above it in any table of Student's t."""
    assert bounds(0.01 / 0.9, [40.0]).spans[1:, 0] == pytest.approx([2.845] * 4, abs=5e-4)
    assert bounds(0.1, [np.inf]).spans[0, 0] == pytest.approx(3.169, abs=5e-4)  # 0.5 % above, 10 of them


def test_smaller_chances_fewer_degrees_of_freedom_and_fewer_samples_raise_every_bound():
    usual = bounds(1e-4, [50.0], [100.0]).spans
    for other in (bounds(1e-5, [50.0], [100.0]), bounds(1e-4, [10.0], [100.0]), bounds(1e-4, [50.0], [3.0])):
        assert (other.spans > usual).all()


def test_each_series_has_its_own_chance():
    both = bounds([1e-3, 1e-5], [40.0, 40.0]).spans
    assert both[:, 0] == pytest.approx(bounds(1e-3, [40.0]).spans[:, 0])
    assert both[:, 1] == pytest.approx(bounds(1e-5, [40.0]).spans[:, 0])


@pytest.mark.parametrize("chance", [0.5, 1e-3, 1e-9, 1e-15])
def test_bounds_are_finite_and_in_order_for_any_chance(chance):
    found = bounds(chance, [4.0, 70.0, np.inf]).spans
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert (found[0] > found[1]).all()


def test_without_degrees_of_freedom_there_is_no_bound():
    assert np.isnan(bounds(1e-3, [np.nan]).spans).all()


@pytest.mark.parametrize("chance", [0.0, -1.0, 25.0, np.nan])
def test_chances_that_are_none_are_refused(chance):
    with pytest.raises(ValueError, match="chance"):
        bounds(chance, [9.0])


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_a_bound_that_nothing_or_all_exceeds_is_refused(chance):
    with pytest.raises(ValueError, match="chance"):
        student_bound(chance, 3.0)


@pytest.mark.parametrize("df", [0.0, -3.0])
def test_no_degrees_of_freedom_are_refused(df):
    with pytest.raises(ValueError, match="degrees"):
        bounds(1e-3, [9.0, df])
