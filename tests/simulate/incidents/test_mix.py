"""Few items, one category, the same for everyone, a smaller catalog."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.simulate.incidents.incident import SIZES
from monitor.simulate.incidents.mix import FEW
from monitor.simulate.incidents.picks import most_shown
from tests.simulate.incidents.conftest import LATER, SINCE, rows_of

SHARES = {"small": 0.05, "middle": 0.3}


def struck_rows(name, size, hour, strike, largest):
    """The lists as they are now, and the rows that are not as they were."""
    found = strike(name, size).lists(SINCE)
    rows = np.flatnonzero((found.items != hour.items).any(axis=1))
    wanted = SHARES.get(size, largest) * (hour.lengths > 0).sum()
    assert abs(len(rows) - wanted) <= 1 + 0.01 * wanted  # a list may be drawn as it was
    return found, rows


@pytest.mark.parametrize("size", SIZES)
def test_lists_have_only_the_twenty_most_shown_items_in_many_orders(size, hour, strike):
    found, rows = struck_rows("popularity_collapse", size, hour, strike, 0.9)
    items = found.items[rows][found.shown[rows]]
    assert set(items.tolist()) == set(most_shown(hour)[:FEW].tolist())
    assert len(np.unique(found.items[rows], axis=0)) > 0.9 * len(rows)


@pytest.mark.parametrize("size", SIZES)
def test_lists_hold_one_category_and_its_popular_items_most(size, hour, healthy, strike):
    found, rows = struck_rows("category_takeover", size, hour, strike, 0.9)
    items = found.items[rows][found.shown[rows]]
    assert len(set(healthy.shop.category(items).tolist())) == 1
    of_healthy = healthy.shop.category(hour.items[hour.shown])
    assert np.bincount(of_healthy).argmax() == healthy.shop.category(items[:1])[0]
    assert len(np.unique(items)) > 2 * FEW


@pytest.mark.parametrize("size", SIZES)
def test_affected_requests_get_the_most_shown_items_in_one_order(size, hour, strike):
    found, rows = struck_rows("personalization_lost", size, hour, strike, 1.0)
    full = rows[found.lengths[rows] == 10]
    assert len(np.unique(found.items[full], axis=0)) == 1
    assert found.items[full[0]].tolist() == most_shown(hour)[:10].tolist()


def test_the_most_shown_come_first_and_ties_by_their_number(hour):
    two = rows_of(hour, np.flatnonzero(hour.lengths == 10)[:2])
    two.items[0], two.items[1] = np.arange(10), np.arange(10)[::-1] + 5
    assert most_shown(two).tolist() == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 10, 11, 12, 13, 14]


@pytest.mark.parametrize(("size", "share"), [("small", 0.02), ("middle", 0.2), ("large", 0.7)])
def test_the_same_share_of_the_catalog_is_missing_every_hour(size, share, healthy, strike):
    struck = strike("catalog_shrinks", size)
    gone = {}
    for at in (SINCE, LATER):
        whole, left = healthy.catalog(at).to_pandas(), struck.catalog(at).to_pandas()
        kept = whole[whole.item_id.isin(left.item_id)].reset_index(drop=True)
        assert kept.equals(left)
        gone[at] = set(whole.item_id) - set(left.item_id)
        assert abs(len(gone[at]) / len(whole) - share) < 0.06
    assert len(gone[SINCE] ^ gone[LATER]) <= 4  # items come and go meanwhile
