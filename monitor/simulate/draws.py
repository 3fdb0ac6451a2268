"""Reproducible random numbers: streams named by their purpose, and numbers fixed by keys.

A stream gives the draws of one hour, whatever was drawn before. Keyed numbers belong to a user, an item or a
place of a list, so that they stay the same if other rows change.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from monitor.simulate.lists import Floats, Ints

_Bits = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Stage(IntEnum):
    """The purposes of random numbers. The values are parts of seeds: never change them."""

    SHOP = 1
    DAY_LEVEL = 2
    HOUR_LEVEL = 3
    REQUESTS = 4
    PEOPLE = 5
    RANKING = 6
    SMALL_SHOP = 7
    LENGTHS = 8
    MODELS = 9
    ODDITIES = 10
    TRAINING = 11
    ONLINE = 12
    SHUFFLE = 13
    TASTE = 20
    AFFINITY = 21
    TILT = 22
    BUCKET = 23
    CLICK = 24
    DELAY = 25
    SCENE_LEVEL = 26
    CREATED = 27
    CLICK_DAY = 28
    CLICK_HOUR = 29
    MIX_CATEGORY = 30
    MIX = 31
    WEATHER = 32
    SEARCH = 33
    SEARCH_DAY = 34
    VISITS = 35
    VISITS_DAY = 36


def stream(seed: int, stage: Stage, *numbers: int) -> np.random.Generator:
    """The random generator of a stage, for example of an hour.

    >>> stream(1, Stage.REQUESTS, 5).random() == stream(1, Stage.REQUESTS, 5).random()
    True

    Raises ValueError if a number is negative.
    """
    return np.random.default_rng([seed, int(stage), *numbers])


def keyed(seed: int, stage: Stage, *keys: Ints) -> Floats:
    """Uniform numbers in (0, 1), each fixed by the seed, the stage and its keys.

    The keys are broadcast against each other. Finalised by splitmix64 after every key.

    >>> users, items = np.array([[1], [2]]), np.array([7, 8, 9])
    >>> keyed(1, Stage.AFFINITY, users, items).shape
    (2, 3)
    >>> bool(keyed(1, Stage.AFFINITY, users, items)[1, 2] == keyed(1, Stage.AFFINITY, users[1], items[2:])[0])
    True

    Source: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators (2014).
    """
    bits = _mixed(_mixed(np.array([seed], np.uint64)) ^ np.uint64(stage))
    for key in keys:
        bits = _mixed(bits ^ np.asarray(key, np.int64).view(np.uint64))
    return np.asarray(((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def _mixed(bits: _Bits) -> _Bits:
    bits = bits + _STEP  # wraps, as it should
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX[0]
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX[1]
    return bits ^ (bits >> np.uint64(31))


def bell(uniforms: Floats) -> Floats:
    """Uniform numbers mapped to a logistic distribution with mean 0 and standard deviation 1: fast, almost
    normal.

    >>> bell(np.array([0.5])).tolist()
    [0.0]
    """
    return np.asarray(np.log(uniforms / (1 - uniforms)) * (np.sqrt(3) / np.pi))


def gumbel(uniforms: Floats) -> Floats:
    """Uniform numbers in [0, 1) as Gumbel noise: the largest log(weight) + noise is drawn by weight."""
    return np.asarray(-np.log(-np.log(np.maximum(uniforms, 2.0**-53))))


def zipf(count: int, exponent: float) -> Floats:
    """Shares that fall as rank ** -exponent and add up to 1.

    >>> zipf(3, 1.0).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    """
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum())
