"""Users in arms that the split did not mean."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.experiments import FEW_BUCKETS
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.people import BUCKETS
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import World
from monitor.statistics.experiments import bucket_uniformity
from tests.simulate.incidents.conftest import LATER, SINCE

SHARES = [("small", 0.1), ("middle", 0.5), ("large", 1.0)]


@pytest.mark.parametrize(("name", "onto"), [("sample_ratio_mismatch", 1), ("bucket_hash_broken", 0)])
@pytest.mark.parametrize(("size", "share"), SHARES)
def test_the_given_share_of_users_moves_to_the_other_arm_for_good(name, onto, size, share, healthy, strike):
    struck = strike(name, size)
    moved, stayed = set(), set()
    for at in (SINCE, LATER):
        found, fresh = struck.lists(at), healthy.lists(at)
        changed = found.arms != fresh.arms
        assert (found.arms[changed] == onto).all()
        assert (fresh.arms[changed] == 1 - onto).all()
        moved |= set(fresh.users[changed].tolist())
        stayed |= set(fresh.users[~changed & (fresh.arms != onto)].tolist())
    assert not moved & stayed
    assert len(moved) / (len(moved) + len(stayed)) == pytest.approx(share, abs=0.06)


def test_unaffected_users_keep_their_arm(healthy, strike):
    found, fresh = strike("bucket_hash_broken", "middle").lists(SINCE), healthy.lists(SINCE)
    assert (found.arms == 1).sum() == pytest.approx((fresh.arms == 1).sum() / 2, rel=0.15)
    assert np.isin(found.arms, (0, 1)).all()


@pytest.mark.parametrize(("name", "few"), [("sample_ratio_mismatch", 0), ("bucket_hash_broken", FEW_BUCKETS)])
def test_only_a_broken_hash_changes_buckets_and_it_fills_the_first_ten(name, few, healthy, strike):
    found, fresh = strike(name, "middle").lists(SINCE), healthy.lists(SINCE)
    changed = found.buckets != fresh.buckets
    assert set(found.buckets[changed].tolist()) == set(range(few))
    assert (healthy.people.arms(found.buckets[changed]) == found.arms[changed]).all()


@pytest.mark.parametrize(
    ("name", "size", "uneven"),
    [
        (None, None, False),
        ("sample_ratio_mismatch", "large", False),
        ("bucket_hash_broken", "middle", True),
        ("bucket_hash_broken", "large", True),
    ],
)
def test_a_broken_hash_is_found_uneven(name, size, uneven):
    simulation = Simulation(World(items=480))  # in a small shop a bucket has too few users for so small a p
    if name:
        simulation = Struck(simulation, INCIDENTS[name], INCIDENTS[name].sizes[size], SINCE)
    lists = simulation.lists(SINCE)
    _, first = np.unique(lists.users, return_index=True)
    p = bucket_uniformity(np.bincount(lists.buckets[first], minlength=BUCKETS)).p
    assert (p < 1e-6) == uneven  # as RecsysAssignmentBroken asks
