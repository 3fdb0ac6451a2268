"""The clicks on lists, by the utility of the item and its position."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.draws import Stage, bell, keyed
from monitor.simulate.lists import Floats, Ints, Lists, item_names, micros, named, timestamps, user_names
from monitor.simulate.luck import click_luck
from monitor.simulate.ranking import Ranking
from monitor.simulate.retraining import click_level
from monitor.simulate.seasons import mood
from monitor.simulate.world import World

CLICK = "click"
MEAN_DELAY, LONGEST_DELAY = 3.0, 20.0
"""Minutes from a list to its click: exponential, truncated."""

_CHUNK = 16_384  # requests processed at once
_HOUR = 3_600_000_000  # microseconds
_SCENES = 0.15  # how much click rates differ between scenes


def clicks(lists: Lists, world: World, ranking: Ranking) -> pa.Table:
    """The clicks on these lists, in the order of their times, as the log of feedback.

        P(click) = chance(utility) x level / position ** position_bias

    Scores have no effect: users do not see them. A click depends only on the user, time, scene, item and
    position of its place, so that other rows may change.
    """
    request, place = _clicked(lists, world, ranking)
    times, users, items = lists.times[request], lists.users[request], lists.items[request, place]
    luck = keyed(world.seed, Stage.DELAY, times, users, place)
    minutes = -MEAN_DELAY * np.log1p(luck * np.expm1(-LONGEST_DELAY / MEAN_DELAY))
    at = times + (minutes * 60e6).astype(np.int64)
    order = np.argsort(at, kind="stable")
    people, person = np.unique(users[order], return_inverse=True)
    goods, good = np.unique(items[order], return_inverse=True)
    return pa.table(
        {
            c.USER_ID: named(person, user_names(people)),
            c.ITEM_ID: named(good, item_names(goods)),
            c.TS: timestamps(at[order]),
            c.EVENT: named(np.zeros(len(order), np.int64), [CLICK]),
            c.REQUEST_ID: pa.array(lists.request_ids, pa.string()).take(pa.array(request[order])),
        }
    )


def _clicked(lists: Lists, world: World, ranking: Ranking) -> tuple[Ints, Ints]:
    """The clicked places: their requests, and their indices from 0."""
    level = _level(lists, world)
    there = lists.shown & (lists.items >= 0)
    found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for low in range(0, len(lists), _CHUNK):
        request, place = np.nonzero(there[low : low + _CHUNK])
        request += low
        users = lists.users[request]
        chance = ranking.chance(ranking.utility(users, lists.items[request, place])) * level[request]
        chance /= (place + 1.0) ** world.position_bias
        clicked = keyed(world.seed, Stage.CLICK, lists.times[request], users, place) < chance
        found.append((request[clicked], place[clicked]))
    requests, places = zip(*found, strict=True)
    return np.concatenate(requests), np.concatenate(places)


def _level(lists: Lists, world: World) -> Floats:
    """The factor of clicks on each request's list, whatever its items."""
    since = lists.times - micros(world.start)
    hours, hour = np.unique(since // _HOUR, return_inverse=True)
    of_scene = np.exp(_SCENES * bell(keyed(world.seed, Stage.SCENE_LEVEL, np.arange(len(world.scenes)))))
    level = (of_scene * click_luck(world, hours))[hour, lists.scenes]
    level *= click_level(world, lists.models) * np.where(lists.arms > 0, 1 + world.arm_lift, 1.0)
    return np.asarray(level * mood(since / _HOUR))
