"""The lists of the day before an incident, for incidents that repeat them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from monitor.simulate.incidents.picks import Ints, changed
from monitor.simulate.lists import Lists
from monitor.simulate.simulation import Simulation

HOURS = 24


@dataclass(frozen=True)
class Memory:
    """Lists that are not empty, sorted by `keys` (one for each user and scene) and by time."""

    lists: Lists
    order: Ints
    keys: Ints
    scenes: int

    def span(self, lists: Lists, rows: Ints) -> tuple[Ints, Ints]:
        """For each request of `rows`, the half-open range of its user's earlier lists in its scene."""
        asked = lists.users[rows] * self.scenes + lists.scenes[rows]
        return np.searchsorted(self.keys, asked, "left"), np.searchsorted(self.keys, asked, "right")

    def items(self, which: Ints) -> Ints:
        """The items of these remembered lists."""
        return np.asarray(self.lists.items[self.order[which]])

    def shown_again(self, lists: Lists, rows: Ints, which: Ints) -> Lists:
        """The lists with `rows` replaced by remembered ones, with scores and extra columns."""
        source = self.order[which]
        columns = {name: getattr(self.lists, name)[source] for name in ("items", "scores", "lengths")}
        extra = {name: values[source] for name, values in self.lists.extra.items()}
        return changed(lists, rows, **columns, **extra)


@lru_cache(maxsize=2)
def day_before(sim: Simulation, since: datetime) -> Memory:
    """The lists of the day before `since`, or of the part of it since the world's start."""
    begin = max(since - timedelta(hours=HOURS), sim.world.start)
    hours = (since - begin) // timedelta(hours=1)
    if not hours:
        none = np.empty(0, np.int64)
        return Memory(sim.lists(since), none, none, 1)
    lists = sim.lists(begin, hours)
    scenes = len(sim.world.scenes)
    rows = np.flatnonzero(lists.lengths > 0)
    keys = lists.users[rows] * scenes + lists.scenes[rows]
    order = np.argsort(keys, kind="stable")
    return Memory(lists, rows[order], keys[order], scenes)
