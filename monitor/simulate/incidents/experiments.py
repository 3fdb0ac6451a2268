"""Faults of experiments: users are in the wrong arm, or the hash of the buckets is broken."""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.picks import Flags, changed, of_users
from monitor.simulate.lists import Lists

FEW_BUCKETS: Final = 10


def _struck(lists: Lists, moment: StruckHour) -> Flags:
    return of_users(lists.users, moment.size, moment.sim.world.seed)


def rolled_out(lists: Lists, moment: StruckHour) -> Lists:
    """Some users of the first arm are served and logged as users of the last arm."""
    last = len(moment.sim.world.arms) - 1
    rows = np.flatnonzero(_struck(lists, moment) & (lists.arms == 0))
    return changed(lists, rows, arms=np.full(len(rows), last))


def in_few_buckets(lists: Lists, moment: StruckHour) -> Lists:
    """Some users fall into the first ten buckets, and into their arm."""
    rows = np.flatnonzero(_struck(lists, moment))
    buckets = lists.users[rows] % FEW_BUCKETS
    return changed(lists, rows, buckets=buckets, arms=moment.sim.people.arms(buckets))


_CAUGHT: Final = Caught("RecsysSampleRatioMismatch")
INCIDENTS: Final = (
    Incident(
        name="sample_ratio_mismatch",
        title="Sample ratio mismatch",
        says="A flag of the rollout overrides the experiment, and users of the control see the treatment.",
        knob="share of the control's users who get the treatment",
        sizes=sizes(0.1, 0.5, 1.0),
        caught_by=(_CAUGHT,),
        lists=rolled_out,
    ),
    Incident(
        name="bucket_hash_broken",
        title="The hash of the buckets is broken",
        says="After a change of the form of user ids, the hash puts users into the first ten buckets, which "
        "belong to the control.",
        knob="share of the users whose hash is broken",
        sizes=sizes(0.1, 0.5, 1.0),
        caught_by=(Caught("RecsysAssignmentBroken"), _CAUGHT),
        lists=in_few_buckets,
    ),
)
