from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from monitor.simulate.clicks import LONGEST_DELAY, MEAN_DELAY
from monitor.simulate.lists import Lists, to_exposures
from monitor.simulate.luck import click_luck
from monitor.simulate.seasons import mood
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World

WORLD = World(seed=5, scenes=(Scene("home", 4000.0),), users=2000, items=600, click_rate=0.1)


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation(WORLD)


@pytest.fixture(scope="module")
def lists(simulation: Simulation) -> Lists:
    return simulation.lists(WORLD.start + 18 * HOUR, hours=3)


@pytest.fixture(scope="module")
def joined(simulation: Simulation, lists: Lists) -> pd.DataFrame:
    """Every click beside the exposure that it is on."""
    shown = to_exposures(lists, WORLD).to_pandas()
    clicks = simulation.feedback(lists).to_pandas()
    return shown.merge(clicks, on=["request_id", "item_id"], how="left", suffixes=("", "_click"))


def rate(joined: pd.DataFrame) -> float:
    return float(joined.event.notna().mean())


def test_a_click_is_on_an_item_of_its_request_by_its_user_and_there_is_at_most_one(
    simulation: Simulation, lists: Lists, joined: pd.DataFrame
):
    clicks = simulation.feedback(lists)
    clicked = joined[joined.event.notna()]
    assert len(clicked) == clicks.num_rows
    assert (clicked.user_id == clicked.user_id_click).all()
    assert set(clicks["event"].to_pylist()) == {"click"}
    assert not joined.duplicated(["request_id", "item_id"])[joined.item_id.notna()].any()


def test_the_click_rate_is_about_that_of_the_world(joined: pd.DataFrame):
    assert rate(joined) == pytest.approx(0.1, rel=0.35)


def test_delays_are_exponential_and_none_is_longer_than_twenty_minutes(joined: pd.DataFrame):
    delay = (joined.ts_click - joined.ts).dropna().dt.total_seconds() / 60
    assert delay.min() >= 0
    assert delay.max() < LONGEST_DELAY
    assert delay.median() == pytest.approx(MEAN_DELAY * np.log(2), rel=0.05)
    assert (delay > MEAN_DELAY).mean() == pytest.approx(np.exp(-1), abs=0.02)


def test_feedback_comes_in_the_order_of_its_times(simulation: Simulation, lists: Lists):
    times = simulation.feedback(lists)["ts"].to_numpy()
    assert (np.diff(times) >= np.timedelta64(0)).all()


def test_clicks_fall_with_position_beyond_the_utility_of_items(simulation: Simulation):
    flat = Simulation(replace(WORLD, position_bias=0.0, click_rate=WORLD.click_rate / 2))
    biased = Simulation(replace(WORLD, position_bias=1.0, click_rate=WORLD.click_rate / 2))

    def ratio(one: Simulation) -> float:
        lists = one.lists(WORLD.start + 18 * HOUR, hours=2)
        shown = to_exposures(lists, one.world).to_pandas()
        clicks = one.feedback(lists).to_pandas()[["request_id", "item_id"]].assign(clicked=1)
        found = shown.merge(clicks, how="left").fillna({"clicked": 0}).groupby("position").clicked.mean()
        return float(found[1] / found[[8, 9, 10]].mean())

    assert ratio(biased) / ratio(flat) > 4  # nine times but for the ceiling at 1


def test_clicks_do_not_depend_on_scores(simulation: Simulation, lists: Lists):
    broken = replace(lists, scores=np.full_like(lists.scores, np.nan))
    assert simulation.feedback(broken).equals(simulation.feedback(lists))


def test_other_requests_do_not_change_a_click(simulation: Simulation, lists: Lists):
    lengths = lists.lengths.copy()
    lengths[::2] = 0
    items = np.where(lengths[:, None] > 0, lists.items, -1)
    left = simulation.feedback(replace(lists, lengths=lengths, items=items)).to_pandas()
    before = simulation.feedback(lists).to_pandas()
    kept = before[before.request_id.isin(lists.request_ids[1::2])].reset_index(drop=True)
    assert left.equals(kept)


def test_one_list_for_everyone_gets_fewer_clicks_than_personal_lists(
    simulation: Simulation, lists: Lists, joined: pd.DataFrame
):
    everyone = replace(lists, items=np.where(lists.shown, lists.items[lists.lengths == 10][0], -1))
    assert simulation.feedback(everyone).num_rows < 0.8 * simulation.feedback(lists).num_rows


def test_scores_predict_clicks(joined: pd.DataFrame):
    shown = joined[joined.position == 1]
    halves = shown.groupby(shown.score > shown.score.median()).event.count()
    assert halves[True] > 1.3 * halves[False]


def test_the_second_arm_clicks_more_by_the_lift():
    world = replace(WORLD, arm_lift=0.3)
    simulation = Simulation(world)
    lists = simulation.lists(world.start + 18 * HOUR, hours=3)
    treated = simulation.feedback(lists).num_rows
    all_control = simulation.feedback(replace(lists, arms=np.zeros_like(lists.arms))).num_rows
    all_treated = simulation.feedback(replace(lists, arms=np.ones_like(lists.arms))).num_rows
    assert all_treated / all_control == pytest.approx(1.3, rel=0.05)
    assert all_control < treated < all_treated


def test_a_new_model_clicks_a_little_differently(simulation: Simulation, lists: Lists):
    counts = [
        simulation.feedback(replace(lists, models=np.full_like(lists.models, model))).num_rows
        for model in range(6)
    ]
    changes = abs(np.array(counts[1:]) / counts[0] - 1)
    assert (changes > 0.003).all()
    assert (changes < 0.045).all()


def test_the_click_rate_differs_between_scenes_beyond_chance() -> None:
    world = replace(WORLD, scenes=tuple(Scene(f"scene {one}", 100.0) for one in range(24)))
    simulation = Simulation(world)
    lists, counts = simulation.lists(world.moment(18)), []
    for scene in range(24):
        counts.append(simulation.feedback(replace(lists, scenes=np.full_like(lists.scenes, scene))).num_rows)
    beyond = np.log(counts) - np.log(click_luck(world, np.array([18]))[0])
    assert 0.1 < beyond.std() < 0.22  # the luck of an hour is 0.025


def test_the_click_rate_is_higher_in_the_evening_than_in_the_morning(
    simulation: Simulation,
) -> None:
    lists, clicks, meant = simulation.lists(WORLD.moment(18)), [], []
    hour = HOUR // timedelta(microseconds=1)
    for at in (9, 21):
        hours = at + 24 * np.arange(6)
        moved = [replace(lists, times=lists.times + (to - 18) * hour) for to in hours.tolist()]
        clicks.append(sum(simulation.feedback(one).num_rows for one in moved))
        meant.append(mood(np.array([at + 0.5]))[0] * click_luck(WORLD, hours)[:, 0].sum())
    chance = np.hypot(*np.array(clicks) ** -0.5)
    assert np.log(clicks[1] / clicks[0]) == pytest.approx(np.log(meant[1] / meant[0]), abs=4 * chance)
    assert mood(np.array([21.5]))[0] / mood(np.array([9.5]))[0] > 1 + 6 * chance  # more than luck


def test_a_missing_item_is_not_clicked(simulation: Simulation, lists: Lists):
    none = replace(lists, items=np.full_like(lists.items, -1))
    assert simulation.feedback(none).num_rows == 0
    assert simulation.feedback(none).schema == simulation.feedback(lists).schema


def test_clicks_late_in_an_hour_fall_into_the_next(simulation: Simulation):
    lists = simulation.lists(WORLD.start + 18 * HOUR)
    times = simulation.feedback(lists)["ts"].to_numpy()
    end = np.datetime64(lists.end.replace(tzinfo=None), "us")
    assert 0 < (times >= end).sum() < 0.15 * len(times)
    assert times.max() < end + np.timedelta64(timedelta(minutes=20))
