"""Scales on which the noise does not depend on the value: for shares and counts; levels stay as they are."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.counts import Floats

COUNT_FLOOR = 0.02
"""The least relative noise of a count."""
SHARE_FLOOR = 0.01
"""The same for a share, as a part of the share or of 1 - share, whichever is smaller."""
LEVEL_FLOOR = 0.01
"""The same for a level, as a part of its size."""
LEVEL_DUST = 1e-5
"""The least noise of a level that was always 0."""
_DUST = 1e-9


class Scale(IntEnum):
    """What a metric's values are."""

    SHARE = 0
    """hits / samples, within [0, 1]."""
    COUNT = 1
    """A number of things, not negative."""
    LEVEL = 2
    """Any number: a mean, an index, a distance."""


SHARE, COUNT, LEVEL = map(int, Scale)
"""The same as plain numbers: numpy compares arrays with an enum many times slower."""


def usable(values: Floats, samples: Floats, scales: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values can be read: finite, within what their scale allows, and seen in some sample.

    A number of samples that is NaN is unknown and allowed; a count needs none.

    >>> scales = np.array([Scale.SHARE, Scale.SHARE, Scale.COUNT, Scale.LEVEL])
    >>> usable(np.array([1.5, 0.5, 7.0, -1.0]), np.array([9.0, 0.0, 0.0, np.nan]), scales).tolist()
    [False, False, True, True]
    """
    share, level = scales == SHARE, scales == LEVEL
    sound = np.isfinite(values) & ((values >= -_DUST) | level) & ((values <= 1 + _DUST) | ~share)
    return np.asarray(sound & (~(samples <= 0) | (scales == COUNT)))


def to_scale(values: Floats, samples: Floats, scales: NDArray[np.int64]) -> Floats:
    """The values on the scale where their sampling noise does not hang on their size.

        share   arcsin sqrt((p + 3 / 8n) / (1 + 3 / 4n)): sampling sd 1 / (2 sqrt(n + 1/2))
        count   2 / c asinh(c sqrt(x + 3/8)), c = 0.02:    sd 1 of a Poisson count with 2 % of noise on top
        level   as it is

    The count's is the square root for few things, where chance rules, and the logarithm for many, where
    seasons and incidents multiply; log(x + 1) alone calls a 0 where 8 were expected 6.6 standard deviations
    (chance: 1 in 3000), this one 4.6. NaN stays NaN. Samples that are not known count as infinitely many.

    Source: F. J. Anscombe, The transformation of Poisson, binomial and negative-binomial data,
    Biometrika 35 (1948).

    >>> values, samples = np.array([0.5, 0.0, 7.5]), np.array([100.0, np.nan, np.nan])
    >>> to_scale(values, samples, np.array([Scale.SHARE, Scale.COUNT, Scale.LEVEL])).round(4).tolist()
    [0.7854, 1.2247, 7.5]
    """
    one = _one_over(samples)
    with np.errstate(invalid="ignore"):  # another scale's values pass through as well, and are not taken
        share = np.arcsin(np.sqrt((within(values, 0.0, 1.0) + 0.375 * one) / (1 + 0.75 * one)))
        count = np.arcsinh(COUNT_FLOOR * np.sqrt(np.maximum(values, 0) + 0.375)) * 2 / COUNT_FLOOR
    return np.where(scales == SHARE, share, np.where(scales == COUNT, count, values))


def from_scale(values: Floats, samples: Floats, scales: NDArray[np.int64]) -> Floats:
    """Back from `to_scale`: a share comes out within [0, 1], a count not below 0.

    >>> scales = np.array([Scale.SHARE, Scale.COUNT, Scale.SHARE])
    >>> from_scale(np.array([0.7854, 1.2247, -2.0]), np.array([100.0, np.nan, 9.0]), scales).round(3).tolist()
    [0.5, 0.0, 0.0]
    """
    one = _one_over(samples)
    with np.errstate(over="ignore"):
        share = np.sin(within(values, 0.0, np.pi / 2)) ** 2 * (1 + 0.75 * one) - 0.375 * one
        count = (np.sinh(np.maximum(values, 0) * COUNT_FLOOR / 2) / COUNT_FLOOR) ** 2 - 0.375
    back = np.where(scales == SHARE, within(share, 0.0, 1.0), np.maximum(count, 0))
    return np.where(scales == LEVEL, values, back)


def sampling_sd(samples: Floats, scales: NDArray[np.int64]) -> Floats:
    """What chance alone does on the scale: 1 / (2 sqrt(n + 1/2)) of a share, 1 of a count, else 0 (unknown).

    >>> sampling_sd(np.array([99.5, 1.0, 1.0]), np.array([Scale.SHARE, Scale.COUNT, Scale.LEVEL])).tolist()
    [0.05, 1.0, 0.0]
    """
    known = np.where(np.isnan(samples), np.inf, np.maximum(samples, 0))
    share = 0.5 / np.sqrt(known + 0.5)
    return np.where(scales == SHARE, share, np.where(scales == COUNT, 1.0, 0.0))


def smallest_sd(expected: Floats, scales: NDArray[np.int64]) -> Floats:
    """The sd on the scale below which no series is believed: one that never moved is not judged on dust.

    1 % of a level and 0.00001, 1 % of the smaller part of a share, 1 of a count (its 2 % is in the scale).

    >>> smallest_sd(np.array([0.2, 5.0, -3.0]), np.array(list(Scale))).round(4).tolist()
    [0.0025, 1.0, 0.03]
    """
    part = within(np.minimum(expected, 1 - expected), 0.0, 0.5)
    share = SHARE_FLOOR * np.sqrt(part / (1 - part)) / 2
    level = np.maximum(LEVEL_FLOOR * np.abs(expected), LEVEL_DUST)
    floor = np.where(scales == SHARE, share, np.where(scales == COUNT, 1.0, level))
    return np.asarray(np.maximum(floor, _DUST))


def as_scales(scales: ArrayLike, series: int) -> NDArray[np.int64]:
    """One scale a series.

    >>> as_scales(Scale.COUNT, 2).tolist()
    [1, 1]

    Raises ValueError where one is no Scale, or where there are not as many as series.
    """
    found = np.asarray(scales, np.int64)
    if not bool(np.isin(found, [int(scale) for scale in Scale]).all()):
        raise ValueError(f"a scale is one of {[scale.name for scale in Scale]}")
    if found.shape not in ((), (series,)):
        raise ValueError(f"{series} series, but {found.shape} scales")
    return np.broadcast_to(found, (series,))


def within(values: Floats, least: Floats | float, most: Floats | float) -> Floats:
    """What `np.clip` gives, several times faster for few values.

    >>> within(np.array([-1.0, 0.5, np.nan, 2.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, nan, 1.0]
    """
    return np.asarray(np.minimum(np.maximum(values, least), most))


def known_or_0(values: Floats) -> Floats:
    """The values, and 0 in place of NaN: `np.nan_to_num` for values that are not infinite.

    >>> known_or_0(np.array([np.nan, -2.0])).tolist()
    [0.0, -2.0]
    """
    return np.where(np.isnan(values), 0.0, values)


def _one_over(samples: Floats) -> Floats:
    """1 / n, and 0 where n is unknown, infinite or nothing."""
    known = np.isfinite(samples) & (samples > 0)
    return np.where(known, 1.0, 0.0) / np.where(known, samples, 1.0)
