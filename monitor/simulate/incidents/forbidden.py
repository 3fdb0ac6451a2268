"""Items that must not be shown: blacklisted, expired, or twice in one list."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.picks import Ints, changed, filled, share_of, some
from monitor.simulate.incidents.shelf import expired, numbers
from monitor.simulate.lists import Lists


def _smuggled(lists: Lists, items: Ints, moment: StruckHour) -> Lists:
    """`size` lists of the hour show one of the items at a random place."""
    rng = moment.rng
    if not len(items):
        return lists
    rows = some(filled(lists), int(moment.size), rng)
    places = (rng.random(len(rows)) * lists.lengths[rows]).astype(np.int64)
    shown = lists.items[rows]
    shown[np.arange(len(rows)), places] = rng.choice(items, len(rows))
    return changed(lists, rows, items=shown)


def blacklisted_shown(lists: Lists, moment: StruckHour) -> Lists:
    """Some lists of the hour show an item of the blacklist."""
    return _smuggled(lists, numbers(pa.array(moment.sim.blacklist, pa.string())), moment)


def expired_shown(lists: Lists, moment: StruckHour) -> Lists:
    """Some lists of the hour show an item that expired before the hour."""
    return _smuggled(lists, expired(moment.sim.catalog(moment.hour), moment.hour), moment)


def duplicated(lists: Lists, moment: StruckHour) -> Lists:
    """Some lists with two or more items end with their first item."""
    rows = share_of(np.flatnonzero(lists.lengths > 1), moment.size, moment.rng)
    shown = lists.items[rows]
    shown[np.arange(len(rows)), lists.lengths[rows] - 1] = shown[:, 0]
    return changed(lists, rows, items=shown)


INCIDENTS: Final = (
    Incident(
        name="blacklist",
        title="Blacklisted items leak",
        says="A copy of the blacklist is out of date, and items on it are shown again.",
        knob="exposures of such items in an hour",
        sizes=sizes(1, 5, 100),
        caught_by=(Caught("RecsysHardRuleViolated", rule="blacklist"),),
        hard=True,
        lists=blacklisted_shown,
    ),
    Incident(
        name="expired",
        title="Expired items are shown",
        says="Items stay in the index after their end date in the catalog.",
        knob="exposures of such items in an hour",
        sizes=sizes(1, 5, 100),
        caught_by=(Caught("RecsysHardRuleViolated", rule="item_expired"),),
        hard=True,
        lists=expired_shown,
    ),
    Incident(
        name="duplicates",
        title="Duplicates in lists",
        says="Two sources of candidates are merged without removing duplicates, and an item fills two "
        "places of a list.",
        knob="share of the lists that show an item twice",
        sizes=sizes(0.005, 0.05, 0.5),
        caught_by=(Caught("RecsysSoftRuleViolated", rule="duplicate_item"),),
        lists=duplicated,
    ),
)
