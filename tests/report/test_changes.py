"""What changed beside a problem."""

from __future__ import annotations

from datetime import timedelta

from monitor.history.snapshot import Change, RecommenderState, Snapshot
from monitor.report.changes import changes_beside
from tests.service.made import HOUR, NOW


def test_many_later_changes_do_not_hide_the_one_just_before_the_problem() -> None:
    began = NOW - timedelta(days=5)
    suspect = Change(began - HOUR, "the list of rule blacklist was written")
    later = [Change(NOW - hours * HOUR, f"change {hours}") for hours in range(12)]
    long_ago = Change(began - 25 * HOUR, "long ago")
    state = RecommenderState("shop", changes=(long_ago, suspect, *later))
    found = changes_beside(state, Snapshot(NOW, (state,)), began, NOW)
    assert [one.what for one in found] == [*(f"change {hours}" for hours in range(5, 12)), suspect.what]
