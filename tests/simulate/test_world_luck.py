"""The luck of clicks and of the mix: how large it is, how long it lasts, and that it is always the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.simulate.lists import item_names, micros
from monitor.simulate.luck import CLICK_DAY, CLICK_HOUR, LASTING, MIX, click_luck, mix_luck
from monitor.simulate.seasons import expected_requests, luck
from monitor.simulate.shop import Shop
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World
from monitor.statistics.bands.false_alarms import BUDGET
from monitor.statistics.bands.scales import Scale
from tests.statistics.bands.band_worlds import watched

WORLD = World(seed=4, scenes=(Scene("home", 3000.0), Scene("search", 500.0)), users=2000, items=600)
DAYS = 400
DAY = 24 * HOUR
WEEK = 7 * 24


def logs(world: World = WORLD) -> np.ndarray:
    return np.log(click_luck(world, np.arange(24 * DAYS)))


def test_the_noise_of_clicks_has_the_stated_size_by_day_and_by_hour():
    between = logs()[:, 0] - logs()[:, 1]  # without that of the day, which all scenes share
    assert between.std() == pytest.approx(np.sqrt(2) * CLICK_HOUR, rel=0.05)
    whole = np.hypot(CLICK_DAY, CLICK_HOUR)
    assert logs().std(axis=0) == pytest.approx([whole, whole], rel=0.08)
    assert logs().mean() == pytest.approx(0, abs=4 * CLICK_DAY / np.sqrt(DAYS))


def test_the_noise_of_an_hour_lasts_some_hours_but_not_a_day():
    between = logs()[:, 0] - logs()[:, 1]
    for later in (1, 2, 4, 24):
        found = np.corrcoef(between[later:], between[:-later])[0, 1]
        assert found == pytest.approx(LASTING**later, abs=0.06)


def test_the_noise_of_clicks_does_not_depend_on_the_order_of_calls():
    every = click_luck(WORLD, np.arange(60))
    asked = np.array([59, 0, 31])
    assert np.array_equal(click_luck(WORLD, asked), every[asked])
    assert not np.isclose(click_luck(replace(WORLD, seed=5), np.arange(60)), every).all(axis=1).any()
    assert click_luck(WORLD, np.empty(0, np.int64)).shape == (0, 2)


def test_clicks_follow_the_noise_of_the_hour():
    simulation = Simulation(WORLD)
    lists, counts = simulation.lists(WORLD.start + 18 * HOUR), []
    for day in range(24):  # the same lists, at the same time of other days
        counts.append(simulation.feedback(replace(lists, times=lists.times + day * _micros(DAY))).num_rows)
    meant = np.log(click_luck(WORLD, 18 + 24 * np.arange(24))[:, 0])
    assert np.corrcoef(np.log(counts), meant)[0, 1] > 0.75
    assert np.std(np.log(counts)) == pytest.approx(meant.std(), rel=0.4)


def _micros(span):
    return micros(WORLD.start + span) - micros(WORLD.start)


def test_the_mix_is_constant_within_a_day_and_differs_by_the_stated_size():
    days = [mix_luck(WORLD, 24 * day) for day in range(DAYS)]
    for hour in (30, 47):
        same = mix_luck(WORLD, hour)
        assert np.array_equal(same.categories, days[1].categories)
        assert same[1:] == days[1][1:]
    sizes = [
        np.log([one.categories for one in days]).std(axis=0),
        np.log([one.sharpness for one in days]).std(),
        np.std([one.thrift for one in days]),
    ]
    assert np.hstack(sizes) == pytest.approx(np.full(len(WORLD.categories) + 2, MIX), rel=0.15)


def test_shown_items_follow_the_mix_of_the_day():
    simulation, shares = Simulation(WORLD), []
    days = np.arange(8)
    for day in days:
        lists = simulation.lists(WORLD.start + day * DAY + 18 * HOUR)
        items = simulation.shop.category(lists.items[lists.shown])
        shares.append(np.bincount(items, minlength=len(WORLD.categories)) / len(items))
    seen = np.log(shares) - np.log(shares).mean(axis=0)
    weights = np.array([mix_luck(WORLD, 24 * day).categories for day in days])
    meant = np.log(weights) - np.log(weights @ np.mean(shares, axis=0))[:, None]
    meant -= meant.mean(axis=0)
    assert np.corrcoef(seen.ravel(), meant.ravel())[0, 1] > 0.7


def test_expensive_items_are_shown_less_on_a_thrifty_day():
    shop = Shop(WORLD)
    usual, thrifty = (shop.weights(30, 1.0, thrift) for thrift in (0.0, 0.5))
    prices = shop.catalog(WORLD.start + 30 * HOUR).to_pandas().set_index("item_id").price
    price = prices[item_names(shop.shelf_by_slot(30))].to_numpy()
    assert thrifty / usual == pytest.approx(price**-0.5)


def test_three_healthy_months_keep_to_the_allowed_alarms_and_bands_match_the_noise():
    counts, shares = [], []
    for seed in (1, 2, 3):
        world, rng = World(seed=seed, holidays=()), np.random.default_rng(seed)
        expected = np.array([expected_requests(world, hour) * luck(world, hour) for hour in range(720)])
        requests = rng.poisson(expected)
        chance = world.click_rate * click_luck(world, np.arange(720))
        counts.append(requests)
        shares.append((rng.binomial(world.length * requests, chance), world.length * requests))
    clicks, shown = (np.hstack(each).astype(float) for each in zip(*shares, strict=True))
    requests = np.hstack(counts).astype(float)
    values = np.hstack([requests, clicks / shown])
    samples = np.hstack([np.full(requests.shape, np.nan), shown])
    scales = np.repeat([Scale.COUNT, Scale.SHARE], requests.shape[1])
    found = watched(values, scales, samples, chance=BUDGET / (WEEK * values.shape[1]), judge_from=8 * 24)
    assert found.begun(8 * 24) <= 1  # 0.1 a week are 0.3; two come by chance in 4 of 100 such months
    far = found.deviations[8 * 24 :, 0]
    assert far.std(axis=0) == pytest.approx(np.ones(values.shape[1]), abs=0.3)
