"""The steps of models are removed as far as they are known."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.drift import drift, drift_bounds, drifts
from monitor.statistics.bands.levels import STEP, levelled
from monitor.statistics.bands.weekdays import median_noise

DAYS = np.arange(28)
SHARE = np.array([1.0, 4.0, 9.0]) / 14
WEEKLY = (DAYS + 6) // 7  # the last model came three days before the last three


def of(values, model=WEEKLY):
    values = np.asarray(values, np.float64)
    return levelled(values[:, None] if values.ndim == 1 else values, DAYS % 7, model, SHARE)


def drift_rate(values, model):
    found = drift(values, np.full(values.shape, np.nan), DAYS % 7, model)
    return drifts(found, drift_bounds(20, found, budget=0.025)).mean()


def noisy(columns=3000, noise=0.005, seed=1):
    return 1 + noise * np.random.default_rng(seed).normal(size=(28, columns))


def test_the_step_of_a_model_that_served_a_week_is_removed():
    steps = np.array([0.0, 0.03, -0.02, 0.02, 0.03])
    found = of(100 * (1 + steps[WEEKLY]))
    assert np.ptp(found.values) < 0.01
    assert found.unknown[0] < 1e-6
    assert found.taken[0] == pytest.approx(4)


def test_a_model_of_the_last_days_may_have_a_step_of_two_percent():
    model = np.where(DAYS >= 26, 1, 0)
    values = np.where(model, 104.0, 100.0)
    found = of(values, model)
    assert found.values[:, 0].tolist() == values.tolist()
    assert found.unknown[0] == pytest.approx((13 / 14) ** 2 * (STEP * 100) ** 2)
    assert found.taken.tolist() == [0.0]


def test_with_noisy_days_a_young_models_step_is_removed_only_in_part():
    values = 100 * noisy(noise=0.02)
    model = np.where(DAYS >= 24, 1, 0)  # one day before the last three
    values[24:] += 3.0
    found = of(values, model)
    left = np.median(found.values[24] - found.values[:24].mean(axis=0))
    assert 1.2 < left < 1.8  # v of one day is 1.05: about half is believed
    assert np.median(found.unknown) == pytest.approx(2**2 / (1 + 1 / median_noise(np.array(1))), rel=0.15)


@pytest.mark.parametrize(
    "model",
    [
        np.full(28, 3),  # one alone
        DAYS,  # another each day
        DAYS // 3,  # they last three days
        np.full(28, -1),
        np.where(DAYS == 9, -1, WEEKLY),  # a day with an unknown model
    ],
)
def test_nothing_is_removed_if_models_give_no_information(model):
    values = noisy(3)
    found = of(values, model)
    assert (found.values == values).all()
    assert found.unknown.tolist() == found.taken.tolist() == [0.0] * 3


def test_days_without_values_need_no_model():
    values = np.where(DAYS < 7, np.nan, np.where(WEEKLY > 2, 103.0, 100.0))
    found = of(values, np.where(DAYS < 7, -1, WEEKLY))
    assert np.nanmax(found.values) - np.nanmin(found.values) < 0.3
    assert np.isnan(found.values[:7]).all()


def test_series_of_missing_values_and_of_zeros():
    values = np.column_stack([np.full(28, np.nan), np.zeros(28)])
    found = of(values)
    assert np.isnan(found.values[:, 0]).all()
    assert found.values[:, 1].tolist() == [0.0] * 28
    assert found.unknown[1] == 0


def test_a_new_model_each_week_is_no_drift_and_hides_none():
    steps = np.random.default_rng(5).uniform(-0.03, 0.03, (5, 3000))
    for comes in range(8):  # days before the end at which the last model came
        model = (DAYS - (28 - comes)) // 7
        model -= model.min()
        values = noisy() * (1 + steps[model])
        assert drift_rate(values, model) < 0.005, comes
        values[-3:] *= (0.98 ** np.arange(1, 4))[:, None]
        if comes > 3:
            assert drift_rate(values, model) > 0.94, comes
            assert drift_rate(values, model) > drift_rate(values, None) + 0.1, comes


def test_a_model_that_comes_back_has_the_level_that_it_had():
    model = (DAYS // 7) % 2
    found = of(np.where(model, 105.0, 100.0), model)
    assert np.ptp(found.values) < 0.01
    assert found.taken[0] == pytest.approx(1)


def test_there_must_be_one_model_a_day():
    with pytest.raises(ValueError, match="a model is one a day"):
        drift(np.ones((28, 1)), np.ones((28, 1)), DAYS % 7, np.zeros(27))
