"""Users in arms that the split did not mean."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulate.incidents.conftest import LATER, SINCE

SHARES = [("small", 0.1), ("middle", 0.5), ("large", 1.0)]


@pytest.mark.parametrize(("name", "onto"), [("sample_ratio_mismatch", 1), ("bucket_hash_broken", 0)])
@pytest.mark.parametrize(("size", "share"), SHARES)
def test_the_share_of_the_users_moves_to_the_other_arm_for_good(name, onto, size, share, healthy, strike):
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


def test_users_who_are_not_struck_keep_their_arm(healthy, strike):
    found, fresh = strike("bucket_hash_broken", "middle").lists(SINCE), healthy.lists(SINCE)
    assert (found.arms == 1).sum() == pytest.approx((fresh.arms == 1).sum() / 2, rel=0.15)
    assert np.isin(found.arms, (0, 1)).all()
