"""Makes the lists: candidates by popularity and taste, then the best ones for the user, with some noise."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from monitor.simulate.draws import Stage, bell, gumbel, keyed
from monitor.simulate.lists import Flags, Floats, Ints
from monitor.simulate.luck import mix_luck
from monitor.simulate.people import People
from monitor.simulate.shop import Shop
from monitor.simulate.world import World

CHUNK = 4096
"""Requests ranked at once: more need more memory; the result does not depend on it."""

_CELLS = 2**20  # requests x items of the shelf held at once
_FRESHNESS = 0.5  # noise in the order of a list: without it no list would ever change
_APPEAL, _TASTE, _AFFINITY = 0.12, 0.6, 0.7  # weights of the probability of a click
_TILT = 0.5  # how much scenes differ in their categories
_GLADLY = 0.9  # the most clicks of a usual item in the first place
_MEAN_UTILITY = 1.45  # approximate mean of shown items, with these weights


class Ranking:
    """Makes the lists of one world."""

    def __init__(self, world: World, people: People, shop: Shop) -> None:
        self._world, self._people, self._shop = world, people, shop
        scenes, categories = np.arange(len(world.scenes)), np.arange(len(world.categories))
        tilt = bell(keyed(world.seed, Stage.TILT, scenes[:, None], categories))
        self._tilt: Floats = np.exp(_TILT * tilt)
        self._by_category: Ints = np.argsort(shop.slot_category, kind="stable")
        first = world.click_rate / (np.arange(1, world.length + 1) ** -world.position_bias).mean()
        first = min(float(first), _GLADLY)
        self._offset = math.log(first / (1 - first)) - _MEAN_UTILITY

    def utility(self, users: Ints, items: Ints) -> Floats:
        """The utility of an item for a user, in logits; the arguments are broadcast."""
        liking = keyed(self._world.seed, Stage.AFFINITY, users, items)
        return np.asarray(
            _APPEAL * self._shop.appeal(items)
            + _TASTE * self._people.taste(users, self._shop.category(items))
            + _AFFINITY * bell(liking)
        )

    def chance(self, utility: Floats) -> Floats:
        """The probability of a click on an item of this utility in the first place of a list."""
        return np.asarray(1 / (1 + np.exp(-(self._offset + utility))))

    def rank(
        self,
        hour: int,
        sharpness: float,
        users: Ints,
        scenes: Ints,
        rng: np.random.Generator,
        small: np.random.Generator,
    ) -> tuple[Ints, Floats]:
        """Items and falling scores, n x L each, for the requests of an hour; all lists are full.

        Candidates are drawn by category (the user's taste, shifted by the scene) and by popularity, both with
        the noise of the day, and may repeat. If too few differ to fill the list, as in a small shop, they are
        drawn again from the whole shelf without replacement.

        Args:
            hour: its number.
            sharpness: the exponent of popularity.
            users, scenes: of the n requests.
            rng, small: random generators of the candidates and of the second draw.
        """
        shelf = self._shop.shelf_by_slot(hour)
        mix = mix_luck(self._world, hour)
        weights = self._shop.weights(hour, sharpness * mix.sharpness, mix.thrift)
        tilt = self._tilt * mix.categories
        length = self._world.length
        items, scores = np.empty((len(users), length), np.int64), np.empty((len(users), length))
        for low in range(0, len(users), CHUNK):
            part = slice(low, low + CHUNK)
            slots, luck = self._candidates(users[part], tilt[scenes[part]], weights, rng)
            short = np.flatnonzero(_distinct(slots).sum(axis=1) < length)
            slots[short] = self._whole_shelf(users[part][short], slots.shape[1], weights, small)
            found = shelf[slots]
            value = self.utility(users[part, None], found) + _FRESHNESS * luck
            value[~_distinct(slots)] = -np.inf
            best = np.argsort(-value, axis=1, kind="stable")[:, :length]
            items[part] = np.take_along_axis(found, best, axis=1)
            scores[part] = self.chance(np.take_along_axis(value, best, axis=1))
        return items, np.round(scores, 6)

    def _candidates(
        self, users: Ints, tilt: Floats, weights: Floats, rng: np.random.Generator
    ) -> tuple[Ints, Floats]:
        """Slots, which may repeat, and noise; n x candidates each. `tilt` is n x categories."""
        count = min(self._world.items, max(3 * self._world.length, self._world.length + 20))
        # Drawn request by request, so that the numbers do not depend on the size of chunks.
        pick, which, luck = np.moveaxis(rng.random((len(users), count, 3)), 2, 0)
        ordered = np.cumsum(weights[self._by_category])
        sizes = np.bincount(self._shop.slot_category, minlength=len(self._world.categories))
        ends = np.cumsum(sizes)
        upper = np.concatenate([[0.0], ordered])[ends]
        lower = np.concatenate([[0.0], upper[:-1]])
        liking = np.exp(self._people.taste(users[:, None], np.arange(len(sizes))))
        shares = np.cumsum(liking * tilt * (upper - lower), axis=1)
        bounds = shares[:, :-1] / shares[:, -1:]
        category = np.zeros(pick.shape, np.int64)
        for one in range(bounds.shape[1]):
            category += pick > bounds[:, one, None]
        mass = lower[category] + which * (upper - lower)[category]
        place = np.searchsorted(ordered, mass, side="right")
        return self._by_category[np.minimum(place, ends[category] - 1)], gumbel(luck)

    def _whole_shelf(self, users: Ints, count: int, weights: Floats, small: np.random.Generator) -> Ints:
        """Slots drawn from the whole shelf without replacement, n x count, in a fixed order."""
        found = np.empty((len(users), count), np.int64)
        step = max(1, _CELLS // len(weights))
        for low in range(0, len(users), step):
            part = slice(low, low + step)
            liking = self._people.taste(users[part, None], self._shop.slot_category)
            key = np.log(weights) + liking + gumbel(small.random(liking.shape))
            found[part] = np.sort(np.argpartition(-key, count - 1, axis=1)[:, :count], axis=1)
        return found


def _distinct(slots: Ints) -> Flags:
    """n x candidates: whether a slot appears in its row for the first time."""
    order = np.argsort(slots, axis=1, kind="stable")
    ordered = np.take_along_axis(slots, order, axis=1)
    first = np.ones(slots.shape, bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    flags: npt.NDArray[np.bool_] = np.empty(slots.shape, bool)
    np.put_along_axis(flags, order, first, axis=1)
    return flags
