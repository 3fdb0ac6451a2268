"""Random changes of clicks and lists from day to day and hour to hour, beyond the noise of counts.

The number of requests has its own noise, see `seasons.luck`. All of it is fixed by the world and the number
of the hour, so that no incident changes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.simulate.draws import Stage, bell, keyed
from monitor.simulate.lists import Floats, Ints
from monitor.simulate.world import World

CLICK_DAY = 0.02
"""Standard deviation of the log of a day's click level, which all scenes share."""
CLICK_HOUR = 0.025
"""The same for an hour, for each scene."""
LASTING = 0.7
"""The correlation of that level from one hour to the next."""
MIX = 0.025
"""Standard deviation of a day's change of the weights of categories, popularity and price."""

_BACK = 24  # hours that count: the effect of earlier ones is negligible
_SHARPNESS, _THRIFT = 0, 1  # purposes of random numbers


class Mix(NamedTuple):
    """How the lists of a day differ; 1, 1 and 0 mean no change."""

    categories: Floats
    """The factor of each category's weight."""
    sharpness: float
    """The factor of the exponent of popularity."""
    thrift: float
    """Items are shown in proportion to price ** -thrift."""


def click_luck(world: World, hours: Ints) -> Floats:
    """The factor of clicks in these n hours, n x scenes: near 1.

        exp(CLICK_DAY x day + CLICK_HOUR x hour), hour = sum of LASTING ** k x chance of k hours ago, scaled

    >>> luck = click_luck(World(seed=1), np.arange(2400))
    >>> logs = np.log(luck[:, 0]).reshape(100, 24)
    >>> round(float(logs.mean(axis=1).std()), 2), round(float(logs.std(axis=1).mean()), 2)
    (0.02, 0.02)
    """
    ago = np.arange(_BACK)
    fade = LASTING**ago
    fade /= np.sqrt((fade**2).sum())
    fresh = bell(
        keyed(world.seed, Stage.CLICK_HOUR, (hours[:, None] - ago)[..., None], np.arange(len(world.scenes)))
    )
    day = bell(keyed(world.seed, Stage.CLICK_DAY, hours // 24))
    return np.asarray(np.exp(CLICK_DAY * day[:, None] + CLICK_HOUR * np.einsum("nks,k->ns", fresh, fade)))


def mix_luck(world: World, hour: int) -> Mix:
    """How the lists of the day of an hour differ from other days.

    >>> mix_luck(World(seed=1), 30).sharpness == mix_luck(World(seed=1), 40).sharpness
    True
    """
    day = np.array(hour // 24)
    categories = bell(keyed(world.seed, Stage.MIX_CATEGORY, day, np.arange(len(world.categories))))
    further = bell(keyed(world.seed, Stage.MIX, day, np.array([_SHARPNESS, _THRIFT])))
    return Mix(
        categories=np.asarray(np.exp(MIX * categories)),
        sharpness=float(np.exp(MIX * further[_SHARPNESS])),
        thrift=float(MIX * further[_THRIFT]),
    )
