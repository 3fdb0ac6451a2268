"""The lists of the day before an incident began, for what shows people the same again."""

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
    """Lists that are not empty, in the order of `keys` (one of a user in a scene) and of time."""

    lists: Lists
    order: Ints
    keys: Ints
    scenes: int

    def span(self, lists: Lists, rows: Ints) -> tuple[Ints, Ints]:
        """For each request of `rows` the first, and last + 1, of the lists that its user had in its scene."""
        asked = lists.users[rows] * self.scenes + lists.scenes[rows]
        return np.searchsorted(self.keys, asked, "left"), np.searchsorted(self.keys, asked, "right")

    def items(self, which: Ints) -> Ints:
        """What these remembered lists held."""
        return np.asarray(self.lists.items[self.order[which]])

    def shown_again(self, lists: Lists, rows: Ints, which: Ints) -> Lists:
        """The lists with those of `rows` replaced by remembered ones, scores and further columns included."""
        source = self.order[which]
        columns = {name: getattr(self.lists, name)[source] for name in ("items", "scores", "lengths")}
        extra = {name: values[source] for name, values in self.lists.extra.items()}
        return changed(lists, rows, **columns, **extra)


@lru_cache(maxsize=2)
def day_before(sim: Simulation, since: datetime) -> Memory:
    """What was shown in the day before `since`, or in as much of it as the world is old."""
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
