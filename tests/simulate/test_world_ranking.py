"""What is shown follows the sharpness of the model, the appeal of the items, and the scene."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.simulate.draws import Stage, stream
from monitor.simulate.lists import Floats, Ints, Lists
from monitor.simulate.people import People
from monitor.simulate.ranking import Ranking
from monitor.simulate.retraining import in_force_from, sharpness
from monitor.simulate.shop import Shop
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import Scene, World

WORLD = World(seed=3, scenes=(Scene("home", 1500.0), Scene("search", 1500.0)), users=2000, items=600)
EVENING = 20


@pytest.fixture(scope="module")
def evening() -> Lists:
    return Simulation(WORLD).lists(WORLD.moment(EVENING))


def ranked(lists: Lists, hour: int, sharp: float) -> Ints:
    """What the requests of these lists are shown in an hour, by a model of this sharpness."""
    chance = [stream(WORLD.seed, stage, hour) for stage in (Stage.RANKING, Stage.SMALL_SHOP)]
    ranking = Ranking(WORLD, People(WORLD), Shop(WORLD))
    return ranking.rank(hour, sharp, lists.users, lists.scenes, *chance)[0]


def test_a_sharper_model_shows_more_popular_items(evening: Lists) -> None:
    shop = Shop(WORLD)
    popular = np.argsort(-shop.slot_appeal)[: WORLD.items // 10]
    blunt, plain, sharp = (
        np.isin(shop.slots(ranked(evening, EVENING, factor)), popular).mean() for factor in (0.9, 1.0, 1.1)
    )
    assert 1.05 < plain / blunt < 1.2
    assert 1.05 < sharp / plain < 1.2


def test_before_and_after_a_retraining_lists_are_as_sharp_as_the_model_in_force() -> None:
    factors = sharpness(WORLD, np.arange(3))
    change = in_force_from(WORLD, 2)
    for hour, model in ((change - 1, 1), (change, 2)):
        lists = Simulation(WORLD).lists(WORLD.moment(hour))
        assert set(lists.models) == {model}
        same = [
            np.array_equal(ranked(lists, hour, factor)[lists.shown], lists.items[lists.shown])
            for factor in factors
        ]
        assert same == [one == model for one in range(3)]


def steepness(skew: float) -> float:
    """The slope of the log of how often items are shown, by the log of their rank, best first.

    Items of neighbouring ranks are counted together: some of them are seldom shown, new or old.
    """
    simulation = Simulation(replace(WORLD, item_skew=skew))
    lists = simulation.lists(WORLD.moment(EVENING))
    counts = np.bincount(simulation.shop.slots(lists.items[lists.shown]), minlength=WORLD.items)
    best_first = np.argsort(-Shop(WORLD).slot_appeal)  # the ranks are the same with every skew
    shown = [counts[group].mean() for group in np.array_split(best_first, 20)]
    ranks = [np.log(group).mean() for group in np.array_split(np.arange(1, WORLD.items + 1), 20)]
    return float(np.polyfit(ranks, np.log(shown), 1)[0])


@pytest.mark.parametrize("skew", [0.4, 0.9])
def test_how_often_an_item_is_shown_follows_zipfs_law_as_its_appeal_does(skew: float) -> None:
    # By appeal, candidates have the slope 1; that the best of them are shown adds a little.
    assert 0.95 < steepness(skew) / -skew < 1.25


def test_equally_attractive_items_are_shown_equally_often() -> None:
    assert steepness(0.0) == pytest.approx(0, abs=0.06)


def leaning(scenes: Ints, counts: Ints) -> Floats:
    """The log of each category's share in the first scene over that in the second."""
    first, second = (counts[scenes == scene].sum(axis=0) for scene in (0, 1))
    return np.asarray(np.log(first / first.sum()) - np.log(second / second.sum()))


def test_a_scene_prefers_its_own_categories_beyond_chance() -> None:
    simulation = Simulation(WORLD)
    found = []
    for hour in (EVENING, EVENING + 24):
        lists = simulation.lists(WORLD.moment(hour))
        of_item = np.where(lists.shown, simulation.shop.category(lists.items), -1)
        counts = np.stack([(of_item == one).sum(axis=1) for one in range(len(WORLD.categories))], axis=1)
        found.append(leaning(lists.scenes, counts))
    rng = np.random.default_rng(1)
    luck = [abs(leaning(rng.permutation(lists.scenes), counts)).max() for _ in range(100)]
    assert abs(found[1]).max() > 3 * max(luck)
    assert np.asarray(np.corrcoef(found))[0, 1] > 0.9
