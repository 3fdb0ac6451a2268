from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.simulate.lists import item_names
from monitor.simulate.shop import Shop
from monitor.simulate.world import World

SMALL = World(items=240, length=5, blacklisted=7, expired=10, new_items_per_hour=2.0)


def at(world: World, hours: float) -> datetime:
    return world.start + timedelta(hours=hours)


def catalog(world: World, hours: float) -> pd.DataFrame:
    return Shop(world).catalog(at(world, hours)).to_pandas().set_index("item_id")


@given(st.integers(0, 3000), st.sampled_from([0.001, 0.1, 1 / 3, 0.7, 1.0, 2.0, 10.0]))
def test_the_shelf_has_the_items_that_the_catalog_allows_for_the_whole_hour(hour: int, pace: float):
    world = World(items=240, length=5, blacklisted=7, expired=10, new_items_per_hour=pace)
    shop = Shop(world)
    frame = catalog(world, hour)
    start, end = (pd.Timestamp(at(world, hour + more)).tz_localize(None) for more in (0, 1))
    may = (frame.available_from <= start) & ~(frame.available_until < end)
    blacklist = item_names(shop.blacklisted)
    assert set(frame.index[may]) - set(blacklist) == set(item_names(shop.shelf(hour)))
    assert set(frame.index[frame.available_until <= start]) == set(item_names(shop.expired(hour)))


def test_the_catalog_always_has_the_same_size_at_a_full_hour():
    for hour in (0, 1, 50, 700):
        frame = catalog(SMALL, hour)
        assert len(frame) == 240 + 7 + 10
        assert frame.index.is_unique


def test_new_items_come_every_hour_with_their_creation_time():
    before, after = catalog(SMALL, 10), catalog(SMALL, 11)
    new = after.loc[after.index.difference(before.index)]
    assert len(new) == 2
    start = pd.Timestamp(at(SMALL, 10)).tz_localize(None)
    assert new.created_at.between(start, start + pd.Timedelta(hours=1)).all()
    assert (new.created_at == new.available_from).all()
    assert before.loc[before.index.intersection(after.index)].equals(
        after.loc[before.index.intersection(after.index)]
    )


def test_within_an_hour_the_catalog_has_the_items_created_so_far():
    moment = at(SMALL, 10.5)
    frame = Shop(SMALL).catalog(moment).to_pandas()
    assert frame.created_at.max() <= pd.Timestamp(moment).tz_localize(None)
    sizes = [len(catalog(SMALL, 10 + minute / 60)) for minute in range(60)]
    assert sorted(sizes) == sizes
    assert sizes[0] == 257
    assert sizes[-1] in (258, 259)


def test_the_first_new_item_is_on_the_shelf_in_the_first_hour_that_begins_after_it():
    shop = Shop(SMALL)
    newest = shop.shelf(11)[-1]
    assert newest not in shop.shelf(10)
    assert shop.weights(11, 1.0, 0.0)[shop.slots(np.array([newest]))[0]] > 0


def test_blacklisted_items_are_in_the_catalog_but_never_on_the_shelf():
    shop = Shop(SMALL)
    for hour in (0, 500):
        frame = catalog(SMALL, hour).loc[item_names(shop.blacklisted)]
        assert len(frame) == 7
        assert frame.available_until.isna().all()
        assert not np.isin(shop.blacklisted, shop.shelf(hour)).any()


def test_a_successor_takes_slot_category_and_rank_so_that_the_mix_stays():
    shop = Shop(SMALL)
    one, other = shop.shelf_by_slot(0), shop.shelf_by_slot(777)
    assert np.array_equal(shop.slots(one), np.arange(240))
    assert np.array_equal(shop.slots(other), np.arange(240))
    assert np.array_equal(shop.category(one), shop.category(other))
    assert np.array_equal(shop.appeal(one), shop.appeal(other))


def test_the_appeal_of_the_shelf_follows_zipfs_law():
    world = World(items=1000, item_skew=0.9)
    appeal = np.sort(Shop(world).appeal(Shop(world).shelf(0)))[::-1]
    slope, _ = np.polyfit(np.log(np.arange(1, 1001)), appeal, 1)
    assert slope == pytest.approx(-0.9)


def test_new_items_rise_and_old_ones_fade():
    shop = Shop(SMALL)
    share = shop.weights(500, 1.0, 0.0) / shop.slot_appeal
    by_age = share[shop.slots(shop.shelf(500))]  # oldest first
    assert by_age[120] == 1
    assert 0 < by_age[-1] < 1
    assert 0 < by_age[0] < 1
    assert by_age.max() == 1


def test_impressions_are_whole_numbers_above_zero():
    shop = Shop(World())
    found = shop.impressions(shop.shelf(0))
    assert (found >= 1).all()
    assert (found == np.floor(found)).all()
    assert len(np.unique(found)) > 100


def test_another_seed_gives_another_shop():
    one, other = Shop(World(seed=1)), Shop(World(seed=2))
    assert not np.array_equal(one.slot_appeal, other.slot_appeal)
    assert one.catalog(World().start).equals(Shop(World(seed=1)).catalog(World().start))
