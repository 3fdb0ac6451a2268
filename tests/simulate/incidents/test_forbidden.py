"""Blacklisted items, expired ones, and duplicates."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.simulate.incidents.forbidden import blacklisted_shown, duplicated, expired_shown
from monitor.simulate.incidents.incident import SIZES, StruckHour
from monitor.simulate.incidents.shelf import expired, numbers
from monitor.simulate.lists import to_exposures
from tests.simulate.incidents.conftest import SHOP, SINCE, repeats, rows_of


def moment(healthy, size):
    return StruckHour(healthy, SINCE, SINCE, size, np.random.default_rng(1))


@pytest.mark.parametrize("size", SIZES)
def test_the_given_number_of_rows_has_a_blacklisted_item(size, healthy, hour, strike):
    struck = strike("blacklist", size)
    banned = set(healthy.blacklist)
    rows = to_exposures(struck.lists(SINCE), SHOP).to_pandas()
    leaked = rows[rows.item_id.isin(banned)]
    assert len(leaked) == {"small": 1, "middle": 5, "large": 100}[size]
    assert leaked.request_id.is_unique
    assert not to_exposures(hour, SHOP).to_pandas().item_id.isin(banned).any()


@pytest.mark.parametrize("size", SIZES)
def test_the_given_number_of_rows_has_an_expired_item(size, healthy, hour, strike):
    struck = strike("expired", size)
    until = healthy.catalog(SINCE).to_pandas().set_index("item_id").available_until
    count = {}
    for name, lists in (("struck", struck.lists(SINCE)), ("healthy", hour)):
        rows = to_exposures(lists, SHOP).to_pandas().dropna(subset="item_id")
        count[name] = int((rows.item_id.map(until) <= rows.ts).sum())
    assert count == {"struck": {"small": 1, "middle": 5, "large": 100}[size], "healthy": 0}


def test_items_without_an_end_never_expire(healthy):
    catalog = healthy.catalog(SINCE)
    found = expired(catalog, SINCE)
    frame = catalog.to_pandas()
    over = frame[frame.available_until <= SINCE.replace(tzinfo=None)]
    assert found.tolist() == numbers(catalog["item_id"])[over.index].tolist()
    assert 0 < len(found) < len(frame)
    assert frame.available_until.isna().sum() == SHOP.blacklisted


def test_at_most_all_lists_show_one(healthy, hour):
    three = rows_of(hour, np.flatnonzero(hour.lengths > 0)[:3])
    banned = np.arange(SHOP.blacklisted)
    for stage, items in (
        (blacklisted_shown, banned),
        (expired_shown, expired(healthy.catalog(SINCE), SINCE)),
    ):
        shown = stage(three, moment(healthy, 100)).items
        assert np.isin(shown, items).sum(axis=1).tolist() == [1, 1, 1]


@pytest.mark.parametrize("share", [0.005, 0.05, 0.5, 1.0])
def test_the_given_share_of_lists_ends_with_its_first_item(share, healthy, hour):
    found = duplicated(hour, moment(healthy, share))
    struck = (found.items != hour.items).any(axis=1)
    assert struck.sum() == repeats(found) == int(share * (hour.lengths > 1).sum() + 0.5)
    rows = np.flatnonzero(struck)
    last = hour.lengths[rows] - 1
    assert (found.items[rows, last] == hour.items[rows, 0]).all()
    assert ((found.items != hour.items).sum(axis=1)[rows] == 1).all()


def test_a_list_of_one_item_has_no_duplicate(healthy, hour):
    one = rows_of(hour, np.flatnonzero(hour.lengths > 0)[:50])
    one.lengths[:] = 1
    assert (duplicated(one, moment(healthy, 1.0)).items == one.items).all()
