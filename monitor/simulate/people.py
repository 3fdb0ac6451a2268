"""The users: returning and new ones, their tastes, and their arms."""

from __future__ import annotations

import numpy as np

from monitor.simulate.draws import Stage, bell, keyed, zipf
from monitor.simulate.lists import Floats, Ints
from monitor.simulate.world import World

BUCKETS = 120
"""Hash buckets of users. The number divides evenly into two to six arms."""
TASTE = 0.8
"""How much users differ in their taste: standard deviation of the log of a category's weight."""

_RETURN_HOURS = 10.0  # average time since the first visit of a new user
_MEMORY_HOURS = 240  # the longest such time


class People:
    """The users of a world.

    Raises ValueError if the buckets cannot be divided evenly among its arms.

    >>> people = People(World(users=100))
    >>> bool(people.draw(np.random.default_rng(1), 0, 50).max() < people.newcomers(0)[1])
    True
    """

    def __init__(self, world: World) -> None:
        if BUCKETS % len(world.arms):
            raise ValueError(f"{BUCKETS} buckets do not divide evenly into {len(world.arms)} arms")
        self._world = world
        self._cumulated = np.cumsum(zipf(world.users, world.user_skew))

    def draw(self, rng: np.random.Generator, hour: int, count: int) -> Ints:
        """The users of `count` requests of an hour.

        Returning users follow Zipf's law; user 0 comes most often. A new user comes in the hour of their
        number, and sometimes in later hours.
        """
        kind, who, which = rng.random((count, 3)).T
        known = np.minimum(np.searchsorted(self._cumulated, who, side="right"), self._world.users - 1)
        ago = np.minimum(-_RETURN_HOURS * np.log1p(-who), _MEMORY_HOURS - 1).astype(np.int64)
        per_hour = self._world.new_users_per_hour
        first = self._first_newcomer(hour) - ago * per_hour
        new = first + (which * per_hour).astype(np.int64)
        return np.asarray(np.where(kind < self._world.new_user_share, new, known))

    def newcomers(self, hour: int) -> tuple[int, int]:
        """The half-open range of the users who first come in an hour."""
        first = self._first_newcomer(hour)
        return first, first + self._world.new_users_per_hour

    def _first_newcomer(self, hour: int) -> int:
        return self._world.users + (hour + _MEMORY_HOURS) * self._world.new_users_per_hour

    def buckets(self, users: Ints) -> Ints:
        """The hash bucket of each user, from 0 on; it never changes."""
        return np.asarray((keyed(self._world.seed, Stage.BUCKET, users) * BUCKETS).astype(np.int64))

    def arms(self, buckets: Ints) -> Ints:
        """The arm of each bucket; all arms have equal parts."""
        return np.asarray(buckets * len(self._world.arms) // BUCKETS)

    def taste(self, users: Ints, categories: Ints) -> Floats:
        """How much users like categories; the arguments are broadcast."""
        return TASTE * bell(keyed(self._world.seed, Stage.TASTE, users, categories))
