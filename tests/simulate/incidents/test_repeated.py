"""A frozen cache, and nothing new to see."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.shelf import expired
from monitor.simulate.incidents.struck import Struck
from tests.simulate.incidents.conftest import LATER, SHOP, SINCE, differing


@pytest.fixture(scope="module")
def day(healthy):
    """The lists of each user in each scene in the day before, oldest first."""
    lists = healthy.lists(SINCE - timedelta(hours=24), 24)
    found = {}
    for row in np.flatnonzero(lists.lengths > 0).tolist():
        shown = lists.items[row, : lists.lengths[row]].tolist()
        found.setdefault((int(lists.users[row]), int(lists.scenes[row])), []).append(shown)
    return found


def shown(lists, row):
    return lists.items[row, : lists.lengths[row]].tolist()


@pytest.mark.parametrize("at", [SINCE, LATER])
def test_a_user_with_an_earlier_list_keeps_getting_the_last_one(at, day, healthy, strike):
    found, fresh = strike("lists_stale", "large").lists(at), healthy.lists(at)
    seen = 0
    for row in range(len(found)):
        before = day.get((int(found.users[row]), int(found.scenes[row])))
        frozen = fresh.lengths[row] > 0 and before is not None
        assert shown(found, row) == (before[-1] if frozen else shown(fresh, row))
        seen += frozen
    assert seen > 0.5 * len(found)


@pytest.mark.parametrize("name", ["lists_stale", "novelty_gone"])
def test_the_same_share_of_users_is_affected_every_hour(name, healthy, strike):
    struck = strike(name, 0.4)
    users = {}
    for at in (SINCE, LATER):
        found, fresh = struck.lists(at), healthy.lists(at)
        changed = (found.items != fresh.items).any(axis=1)
        users[at] = set(fresh.users[changed].tolist())
        regular = np.unique(fresh.users[fresh.users < SHOP.users])
        assert 0.3 < np.isin(regular, fresh.users[changed]).mean() < 0.45  # some have no past to be shown
    both = np.intersect1d(healthy.lists(SINCE).users, healthy.lists(LATER).users)
    stayed = [user for user in both.tolist() if user in users[SINCE] and user in users[LATER]]
    apart = [user for user in both.tolist() if (user in users[SINCE]) != (user in users[LATER])]
    assert len(stayed) > 3 * len(apart)


def test_lists_change_but_have_no_new_and_no_expired_items(day, healthy, strike):
    found, fresh = strike("novelty_gone", "large").lists(SINCE), healthy.lists(SINCE)
    gone = set(expired(healthy.catalog(SINCE), SINCE).tolist())
    changed = np.flatnonzero((found.items != fresh.items).any(axis=1)).tolist()
    several = 0
    for row in changed:
        before = day[int(found.users[row]), int(found.scenes[row])]
        assert shown(found, row) in before
        assert not gone.intersection(shown(found, row))
        several += shown(found, row) != before[-1]
    assert len(changed) > 0.5 * len(found)
    assert several > 0.3 * len(changed)


def test_scores_and_further_columns_come_with_the_list(healthy, strike):
    found = strike("lists_stale", "large").lists(SINCE)
    assert (np.diff(np.where(found.shown, found.scores, -1.0), axis=1) <= 0).all()
    expected = np.where(found.shown, healthy.shop.impressions(np.maximum(found.items, 0)), 0.0)
    assert (found.extra["impressions"] == expected).all()


def test_no_user_has_a_past_in_the_first_hour_of_the_world(healthy):
    for name in ("lists_stale", "novelty_gone"):
        struck = Struck(healthy, INCIDENTS[name], 1.0, SHOP.start)
        assert differing(struck.lists(SHOP.start), healthy.lists(SHOP.start)) == {}
