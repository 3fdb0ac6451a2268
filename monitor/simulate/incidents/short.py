"""Lists that are empty, or shorter than they should be."""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.picks import Ints, cut, filled, share_of
from monitor.simulate.lists import Lists

_BY_RULE = Caught("RecsysSoftRuleViolated", rule="list_too_short")
_EMPTY = (Caught("RecsysAnomaly", cause="lists_empty"), Caught("RecsysAnomalySevere", cause="lists_empty"))


def _emptied(lists: Lists, candidates: Ints, moment: StruckHour) -> Lists:
    rows = share_of(candidates, moment.size, moment.rng)
    return cut(lists, rows, np.zeros(len(rows), np.int64))


def empty_in_scene(lists: Lists, moment: StruckHour) -> Lists:
    """Requests of the smallest scene return nothing."""
    rates = [scene.requests_per_hour for scene in moment.sim.world.scenes]
    return _emptied(lists, np.flatnonzero(lists.scenes == np.argmin(rates)), moment)


def empty_for_new_users(lists: Lists, moment: StruckHour) -> Lists:
    """Requests of new users return nothing."""
    return _emptied(lists, np.flatnonzero(lists.users >= moment.sim.world.users), moment)


def empty_for_everyone(lists: Lists, moment: StruckHour) -> Lists:
    """Requests of all users in all scenes return nothing."""
    return _emptied(lists, np.arange(len(lists)), moment)


def shortened(lists: Lists, moment: StruckHour) -> Lists:
    """Every list loses its lower end, but keeps at least one item."""
    rows = filled(lists)
    left = np.ceil(lists.lengths[rows] * (1.0 - moment.size) - 1e-9).astype(np.int64)
    return cut(lists, rows, np.maximum(left, 1))


INCIDENTS: Final = (
    Incident(
        name="empty_scene",
        title="Empty lists in one scene",
        says="The candidates of the smallest scene fail to load: its requests return nothing.",
        knob="share of the scene's requests that return nothing",
        sizes=sizes(0.02, 0.2, 1.0),
        caught_by=(*_EMPTY, _BY_RULE),
        lists=empty_in_scene,
    ),
    Incident(
        name="empty_new_users",
        title="Empty lists for new users",
        says="Without a profile the ranker finds no candidates, and there is no fallback: new users see "
        "nothing.",
        knob="share of the new users' requests that return nothing",
        sizes=sizes(0.05, 0.5, 1.0),
        caught_by=(*_EMPTY, _BY_RULE),
        lists=empty_for_new_users,
    ),
    Incident(
        name="empty_everyone",
        title="Empty lists for everyone",
        says="The index of candidates is down on some machines or on all: their requests return nothing.",
        knob="share of all requests that return nothing",
        sizes=sizes(0.02, 0.2, 1.0),
        caught_by=(*_EMPTY, _BY_RULE),
        lists=empty_for_everyone,
    ),
    Incident(
        name="lists_short",
        title="Lists cut short",
        says="A timeout or a too strict filter cuts the lower end off every list.",
        knob="share of every list that is cut off",
        sizes=sizes(0.1, 0.4, 0.8),
        caught_by=(Caught("RecsysAnomaly", cause="lists_short"), *_EMPTY, _BY_RULE),
        lists=shortened,
    ),
)
