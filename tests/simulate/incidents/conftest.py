"""A small healthy world, and what tests ask of an incident in it."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import numpy as np
import pytest

from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.lists import Lists
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import Scene, World

SHOP = World(
    seed=3,
    scenes=(Scene("home", 900.0), Scene("detail", 300.0), Scene("search", 120.0)),
    users=800,
    items=480,
)
SINCE = SHOP.start + timedelta(hours=34)
LATER = SINCE + timedelta(hours=1)
_ARRAYS = [one.name for one in fields(Lists) if one.name not in ("start", "end", "extra")]


@pytest.fixture(scope="session")
def healthy() -> Simulation:
    return Simulation(SHOP)


@pytest.fixture(scope="session")
def hour(healthy) -> Lists:
    return healthy.lists(SINCE)


@pytest.fixture
def strike(healthy):
    """The simulation with an incident of a size, or of a number of its knob."""

    def build(name, size):
        incident = INCIDENTS[name]
        return Struck(healthy, incident, incident.sizes.get(size, size), SINCE)

    return build


def columns(lists):
    return {name: getattr(lists, name) for name in _ARRAYS} | lists.extra


def differing(one, other):
    """The columns that are not the same to the byte, each with the number of requests in which it differs."""
    found = {}
    for name, values in columns(one).items():
        others = columns(other)[name]
        assert (values.shape, values.dtype) == (others.shape, others.dtype)
        is_float = values.dtype == np.float64  # by bits: NaN is NaN, and -0.0 is not 0.0
        unequal = values.view(np.uint64) != others.view(np.uint64) if is_float else values != others
        rows = unequal.reshape(len(values), -1).any(axis=1) if len(values) else np.zeros(0, bool)
        if rows.any():
            found[name] = int(rows.sum())
    return found


def rows_of(lists, rows):
    """The lists of some requests alone."""
    extra = {name: values[rows] for name, values in lists.extra.items()}
    return replace(lists, extra=extra, **{name: getattr(lists, name)[rows] for name in _ARRAYS})


def is_sound(lists):
    """Whether places beyond a list's end are blank, and the items within it are there."""
    beyond = ~lists.shown
    return bool((lists.items[beyond] == -1).all() and (lists.items[lists.shown] >= 0).all()) and all(
        bool((values[beyond] == 0.0).all()) for values in (lists.scores, *lists.extra.values())
    )


def repeats(lists):
    """How many lists hold an item twice."""
    blank = -1 - np.arange(lists.items.shape[1])  # differs from place to place
    items = np.sort(np.where(lists.shown, lists.items, blank), axis=1)
    return int((items[:, 1:] == items[:, :-1]).any(axis=1).sum())
