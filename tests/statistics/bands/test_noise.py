"""The noise is split into what lasts and what passes: by hand, against a long filter, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.noise import Noise, split_noise
from tests.statistics.bands.band_worlds import noise


def split(*covariance, residual=0.0, chance=0.0):
    return split_noise(np.array(covariance, np.float64)[:, None], np.array([residual]), np.array([chance]))


def numbers(found):
    return [float(each[0]) for each in found]


@pytest.mark.parametrize(("rho", "lasting", "passing"), [(0.8, 4.0, 1.0), (0.5, 1.0, 3.0), (0.95, 0.5, 0.5)])
def test_the_parts_come_back_from_their_covariances(rho, lasting, passing):
    found = split(lasting + passing, rho * lasting, rho**2 * lasting)
    assert numbers(found)[:3] == pytest.approx([rho, lasting, passing])
    assert found.total[0] == pytest.approx(lasting + passing)


@pytest.mark.parametrize(("rho", "lasting", "passing"), [(0.8, 4.0, 1.0), (0.5, 1.0, 3.0), (0.95, 0.5, 0.5)])
def test_what_is_unknown_is_that_of_a_kalman_filter_that_ran_long(rho, lasting, passing):
    unknown = lasting
    for _ in range(500):
        after = unknown * passing / (unknown + passing)
        unknown = rho**2 * after + lasting * (1 - rho**2)
    found = split(lasting + passing, rho * lasting, rho**2 * lasting)
    assert found.unknown[0] == pytest.approx(unknown)
    assert found.gain_of(np.zeros(1))[0] == pytest.approx(unknown / (unknown + passing))
    assert found.ahead[0] == pytest.approx(np.sqrt(unknown + passing))


def test_a_forecast_grows_with_its_age_until_nothing_is_known():
    found = split(5.0, 3.2, 2.56)
    ages = np.array([1.0, 2.0, 5.0, 1000.0])
    growth = np.array([found.growth(np.array([age]))[0] for age in ages])
    assert growth[0] == pytest.approx(1)
    assert (np.diff(growth) > 0).all()
    assert growth[-1] * found.ahead[0] == pytest.approx(np.sqrt(5.0))


def test_the_mean_of_windows_by_hand():
    found = split(5.0, 3.2, 2.56)
    assert found.of_mean(1)[0] == pytest.approx(np.sqrt(4 * (1 - 0.64) + 1))
    assert found.of_mean(3)[0] == pytest.approx(np.sqrt(4 * (1 - 0.8**6) + 1 / 3))


@pytest.mark.parametrize(("lasting", "rho"), [(0.6, 0.9), (0.3, 0.7), (0.8, 0.5), (0.0, 0.0)])
@pytest.mark.parametrize("windows", [1, 2, 3, 6, 12])
def test_the_sd_of_a_mean_is_at_most_what_is_said(lasting, rho, windows):
    """Means of windows about the forecast that knew all that lasted before them."""
    rng = np.random.default_rng(1)
    lasts = np.sqrt(lasting) * noise(rng, (260, 2000), serial=rho)
    values = lasts + np.sqrt(1.0 - lasting) * rng.normal(size=lasts.shape)
    found = split(1.0, rho * lasting, rho**2 * lasting)
    ahead = rho ** np.arange(1, windows + 1)
    sd = (values[-windows:] - ahead[:, None] * lasts[-windows - 1]).mean(axis=0).std()
    assert sd <= 1.05 * found.of_mean(windows)[0]
    if windows == 1:
        assert sd == pytest.approx(found.of_mean(1)[0], rel=0.05)


@pytest.mark.parametrize(("lasting", "rho"), [(0.6, 0.9), (0.3, 0.7), (0.8, 0.5), (0.0, 0.0)])
def test_a_forecast_one_window_ahead_has_the_sd_that_is_said(lasting, rho):
    rng = np.random.default_rng(2)
    lasts = np.sqrt(lasting) * noise(rng, (260, 2000), serial=rho)
    values = lasts + np.sqrt(1.0 - lasting) * rng.normal(size=lasts.shape)
    found = split(1.0, rho * lasting, rho**2 * lasting)
    memory = np.zeros(values.shape[1])
    for row in values[:-1]:
        memory = rho * memory + found.gain_of(np.zeros(1)) * (row - rho * memory)
    assert (values[-1] - rho * memory).std() == pytest.approx(found.ahead[0], rel=0.05)


def test_without_a_covariance_the_residual_is_the_noise():
    found = split(np.nan, np.nan, np.nan, residual=-3.0)
    assert numbers(found) == pytest.approx([0.0, 0.0, 9.0, 0.0])


def test_there_is_no_less_noise_than_chance():
    assert split(0.25, 0.0, 0.0, chance=2.0).ahead[0] == pytest.approx(2.0)
    assert split(9.0, 0.0, 0.0, chance=2.0).ahead[0] == pytest.approx(3.0)


@pytest.mark.parametrize(
    "covariance",
    [
        (0.0, 0.0, 0.0),
        (1.0, -0.5, 0.25),
        (1.0, 0.5, 0.9),
        (1.0, 0.9, 2.0),
        (1.0, 2.0, 1.0),
        (1.0, 1e-9, 1e-9),
    ],
)
def test_covariances_that_no_series_has_give_sound_parts(covariance):
    found = split(*covariance)
    assert np.isfinite([*numbers(found), found.gain_of(np.zeros(1))[0], found.ahead[0]]).all()
    assert 0 <= found.rho[0] <= 0.98
    assert found.lasting[0] >= 0
    assert found.passing[0] > 0
    assert 0 <= found.gain_of(np.zeros(1))[0] <= 1


def test_series_do_not_touch_each_other():
    both = split_noise(np.array([[5.0, 1.0], [3.2, 0.0], [2.56, 0.0]]), np.zeros(2), np.zeros(2))
    assert isinstance(both, Noise)
    assert [each[0] for each in both] == numbers(split(5.0, 3.2, 2.56))
    assert [each[1] for each in both] == numbers(split(1.0, 0.0, 0.0))
