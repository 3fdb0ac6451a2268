"""Lists that are empty or cut short."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.simulate.incidents.incident import SIZES
from tests.simulate.incidents.conftest import SHOP, SINCE

WHO = {
    "empty_scene": lambda lists: lists.scenes == 2,  # search, the smallest
    "empty_new_users": lambda lists: lists.users >= SHOP.users,
    "empty_everyone": lambda lists: np.ones(len(lists), bool),
}


@pytest.mark.parametrize("name", WHO)
@pytest.mark.parametrize("size", SIZES)
def test_only_the_given_share_of_the_affected_requests_is_empty(name, size, hour, strike):
    struck = strike(name, size)
    found = struck.lists(SINCE)
    meant = WHO[name](hour)
    newly = (found.lengths == 0) & (hour.lengths > 0)
    assert 0 < meant.sum() < len(hour) or name == "empty_everyone"
    assert not newly[~meant].any()
    share = {"empty_new_users": {"small": 0.05, "middle": 0.5}}.get(name, {"small": 0.02, "middle": 0.2})
    wanted = int(share.get(size, 1.0) * meant.sum() + 0.5)
    empty_before = int((hour.lengths[meant] == 0).sum())
    assert wanted - empty_before <= newly.sum() <= wanted  # one that is empty already may be picked
    assert (found.items[newly] == -1).all()
    assert (found.lengths[~newly] == hour.lengths[~newly]).all()


@pytest.mark.parametrize(("size", "left"), [("small", 9), ("middle", 6), ("large", 2)])
def test_every_list_keeps_its_upper_part(size, left, hour, strike):
    found = strike("lists_short", size).lists(SINCE)
    full = hour.lengths == SHOP.length
    assert full.mean() > 0.9
    assert set(found.lengths[full].tolist()) == {left}
    assert (found.lengths[hour.lengths > 0] >= 1).all()
    assert (found.lengths <= hour.lengths).all()
    kept = found.shown
    for name in ("items", "scores"):
        assert (getattr(found, name)[kept] == getattr(hour, name)[kept]).all()


def test_a_list_without_clickable_places_has_no_clicks(hour, strike, healthy):
    struck = strike("empty_everyone", "large")
    assert len(healthy.feedback(hour)) > 0
    assert len(struck.feedback(struck.lists(SINCE))) == 0
