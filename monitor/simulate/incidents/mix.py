"""Faults of the mix of items: few items, one category, one list for everyone, or a shrinking catalog."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, sizes
from monitor.simulate.incidents.picks import Floats, Ints, filled, most_shown, share_of, with_items
from monitor.simulate.incidents.shelf import categories, numbers
from monitor.simulate.lists import Lists

FEW: Final = 20
_CHUNK: Final = 4096  # lists drawn at once: chunk x pool floats are held in memory


def _drawn(pool: Ints, weights: Floats, rows: int, width: int, rng: np.random.Generator) -> Ints:
    """`rows` lists of `width` different items of the pool, drawn by weight (largest Gumbel keys)."""
    drawn = np.empty((rows, width), np.int64)
    for low in range(0, rows, _CHUNK):
        part = drawn[low : low + _CHUNK]
        keys = np.log(weights) + rng.gumbel(size=(len(part), len(pool)))
        part[:] = pool[np.argsort(-keys, axis=1)[:, :width]]
    return drawn


def _from_pool(lists: Lists, pool: Ints, weights: Floats, moment: StruckHour) -> Lists:
    """Fill a share of the lists from the pool, if it has enough items."""
    rows = filled(lists)
    rows = share_of(rows[lists.lengths[rows] <= len(pool)], moment.size, moment.rng)
    width = min(lists.items.shape[1], len(pool))
    items = lists.items[rows]
    items[:, :width] = _drawn(pool, weights, len(rows), width, moment.rng)
    return with_items(lists, rows, items)


def on_few_items(lists: Lists, moment: StruckHour) -> Lists:
    """Some lists have only the twenty most shown items of the hour, in random order."""
    pool = most_shown(lists)[: max(FEW, lists.items.shape[1])]
    return _from_pool(lists, pool, np.ones(len(pool)), moment)


def in_one_category(lists: Lists, moment: StruckHour) -> Lists:
    """Some lists have only items of the most shown category of the hour, by popularity."""
    items, groups = categories(moment.sim.catalog(moment.hour))
    shown, counts = np.unique(lists.items[lists.shown & (lists.items >= 0)], return_counts=True)
    known = np.isin(shown, items)
    shown, counts = shown[known], counts[known]
    if not len(shown):
        return lists
    own = groups[np.searchsorted(items, shown)]
    totals = pd.Series(counts).groupby(own).sum()
    there = own == totals.idxmax()
    return _from_pool(lists, shown[there], counts[there].astype(np.float64), moment)


def same_for_everyone(lists: Lists, moment: StruckHour) -> Lists:
    """Some requests get the most shown items of the hour, in one order for everyone."""
    rows = share_of(filled(lists), moment.size, moment.rng)
    top = np.full(lists.items.shape[1], -1)
    popular = most_shown(lists)[: len(top)]
    top[: len(popular)] = popular
    return with_items(lists, rows, np.broadcast_to(top, (len(rows), len(top))))


def shrunk(catalog: pa.Table, moment: StruckHour) -> pa.Table:
    """The catalog without a share of its items; the same items are missing every hour."""
    items = numbers(catalog[c.ITEM_ID]).astype(np.uint64)
    places = pd.util.hash_array(items ^ np.uint64(moment.sim.world.seed)) / 2.0**64
    return catalog.filter(places >= moment.size)


INCIDENTS: Final = (
    Incident(
        name="popularity_collapse",
        title="Popularity collapses onto few items",
        says="A feedback loop or a broken score fills the lists with twenty items.",
        knob="share of the lists that hold only these twenty items",
        sizes=sizes(0.05, 0.3, 0.9),
        caught_by=(Caught("RecsysAnomaly", cause="few_items"),),
        lists=on_few_items,
    ),
    Incident(
        name="category_takeover",
        title="One category takes over",
        says="A boost for a campaign is far too strong: lists hold items of only one category.",
        knob="share of the lists of one category",
        sizes=sizes(0.05, 0.3, 0.9),
        caught_by=(Caught("RecsysAnomaly", cause="category_takeover"),),
        lists=in_one_category,
    ),
    Incident(
        name="catalog_shrinks",
        title="The catalog shrinks",
        says="An import stops halfway: the catalog's file holds only some of the items, but all of them are "
        "still shown.",
        knob="share of the items that are missing from the catalog",
        sizes=sizes(0.02, 0.2, 0.7),
        caught_by=(
            Caught("RecsysAnomaly", cause="catalog_changed"),
            Caught("RecsysSoftRuleViolated", rule="item_not_in_catalog"),
        ),
        catalog=shrunk,
    ),
    Incident(
        name="personalization_lost",
        title="Personalization is lost",
        says="The profiles do not load, and everyone gets the list of popular items.",
        knob="share of the requests that get the popular list",
        sizes=sizes(0.05, 0.3, 1.0),
        caught_by=(Caught("RecsysAnomaly", cause="not_personal"),),
        lists=same_for_everyone,
    ),
)
