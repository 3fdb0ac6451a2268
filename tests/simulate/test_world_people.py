from __future__ import annotations

import numpy as np
import pytest

from monitor.simulate.people import BUCKETS, People
from monitor.simulate.world import World

WORLD = World(users=1000, user_skew=0.8, new_users_per_hour=50, new_user_share=0.1)


def drawn(world: World, hour: int, count: int, seed: int = 1) -> np.ndarray:
    return People(world).draw(np.random.default_rng(seed), hour, count)


def test_known_users_come_by_zipfs_law():
    users = drawn(WORLD, 0, 400_000)
    counts = np.bincount(users[users < WORLD.users], minlength=WORLD.users)
    ranks = np.arange(1, 201)
    slope, _ = np.polyfit(np.log(ranks), np.log(counts[:200]), 1)
    assert slope == pytest.approx(-0.8, abs=0.03)


def test_the_share_of_new_users_is_as_the_world_says():
    users = drawn(WORLD, 500, 100_000)
    assert (users >= WORLD.users).mean() == pytest.approx(0.1, abs=0.005)


def test_new_users_of_an_hour_were_never_seen_before_and_come_back_in_the_hours_after():
    first, beyond = People(WORLD).newcomers(30)
    assert beyond - first == 50
    earlier, now, later = (drawn(WORLD, hour, 200_000) for hour in (29, 30, 33))
    assert earlier.max() < first
    assert now.max() < beyond
    assert np.isin(np.arange(first, beyond), now).all()
    assert np.isin(np.arange(first, beyond), later).any()


def test_no_user_is_new_for_longer_than_ten_days():
    new = drawn(WORLD, 1000, 200_000)
    new = new[new >= WORLD.users]
    assert new.min() >= People(WORLD).newcomers(1000 - 239)[0]


def test_no_requests_draw_no_users_and_a_single_user_is_always_drawn():
    assert drawn(WORLD, 0, 0).shape == (0,)
    alone = World(users=1, new_user_share=0.0)
    assert set(drawn(alone, 0, 50).tolist()) == {0}


def test_the_arms_have_equal_shares_and_users_stay_in_their_arm():
    people = People(World(arms=("a", "b")))
    arms = people.arms(people.buckets(np.arange(20_000)))
    assert arms.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(20_000))
    assert np.array_equal(people.arms(people.buckets(np.array([7, 3, 7]))), arms[[7, 3, 7]])
    three = People(World(arms=("a", "b", "c")))
    thirds = np.bincount(three.arms(three.buckets(np.arange(20_000))))
    assert thirds / 20_000 == pytest.approx([1 / 3] * 3, abs=0.02)


def test_arms_that_cannot_have_equal_parts_are_refused():
    with pytest.raises(ValueError, match="120 buckets do not divide evenly into 7 arms"):
        People(World(arms=tuple("abcdefg")))


def test_the_buckets_are_filled_evenly():
    counts = np.bincount(People(World()).buckets(np.arange(100_000)), minlength=BUCKETS)
    assert len(counts) == BUCKETS
    expected = 100_000 / BUCKETS
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - BUCKETS) < 5 * np.sqrt(2 * BUCKETS)


def test_arms_are_independent_of_how_often_users_come():
    users = drawn(WORLD, 0, 100_000)
    people = People(WORLD)
    distinct = np.unique(users)
    rank = distinct[people.arms(people.buckets(distinct)) == 0].mean() / distinct.mean()
    assert rank == pytest.approx(1, abs=0.1)


def test_taste_differs_between_users_and_categories_and_is_reproducible():
    people = People(World())
    taste = people.taste(np.arange(5000)[:, None], np.arange(8))
    assert taste.mean() == pytest.approx(0, abs=0.02)
    assert np.array_equal(people.taste(np.array([17]), np.array([3])), taste[17, 3:4])
    assert abs(np.corrcoef(taste[:, 0], taste[:, 1])[0, 1]) < 0.06
