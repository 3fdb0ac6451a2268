"""Successive models, each slightly different from the previous one."""

from __future__ import annotations

import numpy as np

from monitor.simulate.draws import Stage, stream
from monitor.simulate.lists import Floats, Ints
from monitor.simulate.world import World

AT_HOUR = 4
"""A new model goes into service at this hour of the day, UTC."""
LEAST, MOST = 0.01, 0.03
"""The relative change of clicks and sharpness by each model after the first, up or down."""


def model_of(world: World, hour: int) -> int:
    """The number of the model in service in an hour; 0 is the first.

    >>> [model_of(World(retrain_days=7), hour) for hour in (0, 7 * 24 + 3, 7 * 24 + 4)]
    [0, 0, 1]
    """
    return max(0, (hour - AT_HOUR) // (24 * world.retrain_days))


def in_force_from(world: World, model: int) -> int:
    """The hour in which a model goes into service; 0 for the first one.

    >>> in_force_from(World(retrain_days=7), 1)
    172
    """
    return 24 * world.retrain_days * model + AT_HOUR if model else 0


def click_level(world: World, models: Ints) -> Floats:
    """The factor of the click rate under each of these models; 1 for the first."""
    return _shifts(world, models, 0)


def sharpness(world: World, models: Ints) -> Floats:
    """The factor of the exponent of popularity under each of these models; 1 for the first."""
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
