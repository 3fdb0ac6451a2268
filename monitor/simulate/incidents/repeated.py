"""Users see the same items again: a frozen cache, or a recommender without new items."""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.memory import day_before
from monitor.simulate.incidents.picks import filled, of_users
from monitor.simulate.incidents.shelf import expired
from monitor.simulate.lists import Lists


def frozen(lists: Lists, moment: StruckHour) -> Lists:
    """Some users always get their last list in this scene before the incident."""
    memory = day_before(moment.sim, moment.since)
    rows = filled(lists)
    rows = rows[of_users(lists.users[rows], moment.size, moment.sim.world.seed)]
    first, last = memory.span(lists, rows)
    known = first < last
    return memory.shown_again(lists, rows[known], last[known] - 1)


def seen_before(lists: Lists, moment: StruckHour) -> Lists:
    """Some users always get one of their lists in this scene of the day before."""
    memory = day_before(moment.sim, moment.since)
    rows = filled(lists)
    rows = rows[of_users(lists.users[rows], moment.size, moment.sim.world.seed)]
    first, last = memory.span(lists, rows)
    draws = moment.rng.random(len(rows))
    which = first + (draws * (last - first)).astype(np.int64)
    known = first < last
    # Unlike a cache, a ranker leaves out items that have expired since.
    gone = expired(moment.sim.catalog(moment.hour), moment.hour)
    known[known] = ~np.isin(memory.items(which[known]), gone).any(axis=1)
    return memory.shown_again(lists, rows[known], which[known])


INCIDENTS: Final = (
    Incident(
        name="lists_stale",
        title="Stale lists from a frozen cache",
        says="A cache is no longer renewed: users who had a list in the day before keep getting the last "
        "one.",
        knob="share of the users whose part of the cache is frozen",
        sizes=sizes(0.1, 0.4, 1.0),
        caught_by=(Caught("RecsysAnomaly", cause="lists_stale"),),
        lists=frozen,
    ),
    Incident(
        name="novelty_gone",
        title="Nothing new to see",
        says="Candidates come only from the user's own past: the lists change, but all their items were "
        "shown to this user the day before. Where one of them has expired since, the list is new.",
        knob="share of the users who see nothing new",
        sizes=sizes(0.1, 0.4, 1.0),
        caught_by=(
            Caught("RecsysAnomaly", cause="lists_repeat"),
            Caught("RecsysAnomaly", cause="lists_stale"),
        ),
        lists=seen_before,
    ),
)
