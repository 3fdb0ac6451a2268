"""The items: a shelf on which each new item replaces an old one, and the catalog."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.draws import Stage, keyed, stream, zipf
from monitor.simulate.lists import Floats, Ints, item_names, micros, named, timestamps
from monitor.simulate.world import World

AVAILABLE_FROM = "available_from"
AVAILABLE_UNTIL = "available_until"
PRICE = "price"

_HOUR = 3_600_000_000  # microseconds
_FIRST, _LAST = 0.3, 0.05  # of its full appeal, when an item comes and before it goes
_RISE = 0.025  # the part of an item's life in which its appeal rises, or fades


class Shop:
    """The items of a world, numbered: first those that must never be shown, then the others in order of
    arrival.

    `items` of them are always on the shelf. An item and its successor share a slot with its category, rank
    and price, so that the mix is the same in every hour.

    >>> shop = Shop(World(items=48, length=5, blacklisted=3, expired=2))
    >>> shop.shelf(0)[[0, -1]].tolist(), shop.shelf(10)[[0, -1]].tolist()
    ([5, 52], [15, 62])
    """

    def __init__(self, world: World) -> None:
        self._world = world
        rng = stream(world.seed, Stage.SHOP)
        self._start = micros(world.start)
        # Whole numbers: a product of floats may be slightly too small.
        self._per_hour = Fraction(world.new_items_per_hour).limit_denominator(1000)
        self._rank: Ints = rng.permutation(world.items)
        shares = zipf(len(world.categories), 0.5)
        self.slot_category: Ints = rng.choice(len(world.categories), world.items, p=shares)
        self.slot_appeal: Floats = zipf(world.items, world.item_skew)[self._rank]
        self._price: Floats = np.round(rng.lognormal(3.0, 0.8, world.items), 2)

    @property
    def blacklisted(self) -> Ints:
        """The items that must never be shown."""
        return np.arange(self._world.blacklisted)

    def shelf(self, hour: int) -> Ints:
        """The items that may be shown during a whole hour, oldest first."""
        first = self._world.blacklisted + self._world.expired + self._came(hour)
        return np.arange(first, first + self._world.items)

    def shelf_by_slot(self, hour: int) -> Ints:
        """The same items, the one of slot 0 first."""
        shelf = self.shelf(hour)
        return np.asarray(np.roll(shelf, self.slots(shelf[:1])[0]))

    def expired(self, hour: int) -> Ints:
        """The expired items in the catalog of an hour, oldest first."""
        first = self._world.blacklisted + self._came(hour)
        return np.arange(first, first + self._world.expired)

    def slots(self, items: Ints) -> Ints:
        """The slot of each item."""
        return np.asarray((items - self._world.blacklisted) % self._world.items)

    def category(self, items: Ints) -> Ints:
        """The category of each item."""
        return np.asarray(self.slot_category[self.slots(items)])

    def appeal(self, items: Ints) -> Floats:
        """How attractive each item is: log(its Zipf share / an equal share)."""
        share = self.slot_appeal[self.slots(items)]
        return np.asarray(np.log(share * self._world.items))

    def impressions(self, items: Ints) -> Floats:
        """How often each item was shown the day before, as an input of a ranker: a whole number above 0."""
        return np.asarray(1 + np.floor(1e5 * self.slot_appeal[self.slots(items)]))

    def weights(self, hour: int, sharpness: float, thrift: float) -> Floats:
        """The relative probability of the item of each slot to be a candidate.

            appeal ** sharpness / price ** thrift, lower when new or old

        An item is shown from its first hour on. Its weight rises for some days and fades before it goes.
        """
        life = float(self._world.items / self._per_hour)
        age = hour - self._from_hour(self.shelf_by_slot(hour)) + 0.5
        rise = np.minimum(1.0, _FIRST + age / (_RISE * life))
        fade = np.minimum(1.0, _LAST + (life - age).clip(0) / (_RISE * life))
        return np.asarray(self.slot_appeal**sharpness / self._price**thrift * rise * fade)

    def catalog(self, at: datetime) -> pa.Table:
        """The catalog at a moment: every item created until then, without those that expired long ago.

        item_id, category, created_at, available_from, available_until (null: unlimited), price.
        """
        now = micros(at)
        hour = (now - self._start) // _HOUR
        last = self._world.blacklisted + self._world.expired + self._world.items + self._came(hour + 1)
        items = np.arange(self._world.blacklisted + self._came(hour), last)
        items = items[self._created(items) <= now]
        items = np.concatenate([self.blacklisted, items])
        created, never = self._created(items), items < self._world.blacklisted
        until = (self._start + _HOUR * self._until_hour(items)).astype("datetime64[us]")
        return pa.table(
            {
                c.ITEM_ID: pa.array(item_names(items), pa.string()),
                c.CATEGORY: named(self.category(items), self._world.categories),
                c.CREATED_AT: timestamps(created),
                AVAILABLE_FROM: timestamps(created),
                AVAILABLE_UNTIL: pa.array(until, pa.timestamp("us"), mask=never),
                PRICE: pa.array(self._price[self.slots(items)]),
            }
        )

    def _came(self, hour: int) -> int:
        """How many items have come since the start, for an hour's shelf."""
        return hour * self._per_hour.numerator // self._per_hour.denominator

    def _from_hour(self, items: Ints) -> Ints:
        """The first hour of each item on the shelf, negative before the world's start."""
        number = items - self._world.blacklisted - self._world.expired - self._world.items
        return -(-(number + 1) * self._per_hour.denominator // self._per_hour.numerator)

    def _until_hour(self, items: Ints) -> Ints:
        """The first hour in which each item is no longer on the shelf."""
        return self._from_hour(items + self._world.items)

    def _created(self, items: Ints) -> Ints:
        """Microseconds since 1970: within the hour before the item is first shown."""
        before = keyed(self._world.seed, Stage.CREATED, items) * _HOUR
        return np.asarray(self._start + _HOUR * self._from_hour(items) - before.astype(np.int64))
