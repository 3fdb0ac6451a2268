"""What differs from day to day and from hour to hour for no reason, beside the chance of counts.

How many people come has luck of its own, see `seasons.luck`. All of it is fixed by the world and the number
of the hour, so that no incident changes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from monitor.simulate.draws import Stage, bell, keyed
from monitor.simulate.lists import Floats, Ints
from monitor.simulate.world import World

CLICK_DAY = 0.02
"""Standard deviation of the log of how gladly people click on a day; all scenes share it."""
CLICK_HOUR = 0.025
"""The same of an hour; each scene has its own."""
LASTING = 0.7
"""The correlation of that luck from an hour to the next."""
MIX = 0.025
"""Standard deviation of what a day does to the weight of a category, of popularity and of the price."""

_BACK = 24  # hours that an hour remembers: of luck before them there is next to nothing left
_SHARPNESS, _THRIFT = 0, 1  # what the luck of a day's mix is used for


class Mix(NamedTuple):
    """How a day differs in what is shown: 1, 1 and 0 where it does not."""

    categories: Floats
    """What the weight of each category is multiplied with."""
    sharpness: float
    """What the exponent of popularity is multiplied with."""
    thrift: float
    """Items are shown in proportion to price ** -thrift."""


def click_luck(world: World, hours: Ints) -> Floats:
    """What the clicks on lists of these n hours are multiplied with, n x scenes: near 1.

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
    """How the day of an hour differs from others in what is shown.

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
