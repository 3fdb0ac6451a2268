"""Models that follow each other, each a little different from the one before."""

from __future__ import annotations

import numpy as np

from monitor.simulate.draws import Stage, stream
from monitor.simulate.lists import Floats, Ints
from monitor.simulate.world import World

AT_HOUR = 4
"""A new model is put in force at this hour of the day, UTC."""
LEAST, MOST = 0.01, 0.03
"""How far, up or down, a model after the first changes clicks and sharpness."""


def model_of(world: World, hour: int) -> int:
    """The number of the model in force in an hour, 0 the first.

    >>> [model_of(World(retrain_days=7), hour) for hour in (0, 7 * 24 + 3, 7 * 24 + 4)]
    [0, 0, 1]
    """
    return max(0, (hour - AT_HOUR) // (24 * world.retrain_days))


def in_force_from(world: World, model: int) -> int:
    """The hour from which a model is in force; the first one has always been.

    >>> in_force_from(World(retrain_days=7), 1)
    172
    """
    return 24 * world.retrain_days * model + AT_HOUR if model else 0


def click_level(world: World, models: Ints) -> Floats:
    """What the click rate is multiplied with under each of these models: 1 for the first."""
    return _shifts(world, models, 0)


def sharpness(world: World, models: Ints) -> Floats:
    """What the exponent of popularity is multiplied with under each of these models: 1 for the first."""
    return _shifts(world, models, 1)


def _shifts(world: World, models: Ints, which: int) -> Floats:
    numbers, where = np.unique(models, return_inverse=True)
    return np.array([_shift(world, int(number))[which] for number in numbers])[where]


def _shift(world: World, model: int) -> tuple[float, float]:
    if model == 0:
        return 1.0, 1.0
    rng = stream(world.seed, Stage.MODELS, model)
    sizes, up = rng.uniform(LEAST, MOST, 2), rng.random(2) < 0.5
    clicks, sharp = 1 + np.where(up, sizes, -sizes)
    return float(clicks), float(sharp)
