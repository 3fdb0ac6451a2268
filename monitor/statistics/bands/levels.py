"""Remove the step of each model from the days of a series, as far as it differs from chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.bands.medians import median, spread
from monitor.statistics.bands.weekdays import WEEK, apart, median_noise, usual
from monitor.statistics.counts import Floats

STEP = 0.02
"""The prior standard deviation of the step of a new model, relative to the level."""
LASTS = 4
"""Models that last fewer days than this on average are part of the noise of days."""
_DUST = 1e-9

Ints = NDArray[np.int64]


class Levelled(NamedTuple):
    """Days without the steps of their models."""

    values: Floats
    """days x series"""
    unknown: Floats
    """series: the variance of the weighted mean of the last days for what is not known of their models."""
    taken: Floats
    """series: the degrees of freedom that this took from the days."""


def levelled(values: Floats, weekday: Ints, model: Floats, share: Floats) -> Levelled:
    """Remove the step of its model from each day, estimated from the days before the last ones.

        r = the day less what is usual of such a weekday
        e_k = b_k median(r of model k),  b_k = t^2 / (t^2 + v_k s^2),  t = 2 % of the level
        unknown = sum_k (the share of the last days that model k has)^2 t^2 (1 - b_k)

    s is the spread of r about the other days of the same model, v_k the noise of a median of so many days: a
    model that has just come has no level of its own yet, and t is what it may have moved; one of a week has.
    Nothing is done where a day has no model, where one model has served all of the time, or where models last
    less than four days on average.

    Args:
        values: days x series; NaN where there is none.
        weekday: of each day, 0 to 6.
        model: of each day; -1 if it is unknown or the day has no values.
        share: the weight of each of the last days in their mean.

    >>> steady = np.where(np.arange(28) < 14, 100.0, 103.0)[:, None]
    >>> found = levelled(steady, np.arange(28) % 7, np.arange(28) // 14, np.array([1 / 3] * 3))
    >>> found.values[[0, -1], 0].round(3).tolist(), found.unknown.round(3).tolist(), found.taken.tolist()
    ([100.0, 100.0], [0.0], [1.0])
    """
    some = np.flatnonzero(model >= 0)
    numbers = np.unique(model[some])
    nothing = Levelled(values, *np.zeros((2, values.shape[1])))
    seen = np.isfinite(values).any(axis=1)
    if len(numbers) < 2 or LASTS * len(numbers) > len(some) or bool((seen & (model < 0)).any()):
        return nothing
    last = len(share)
    past, of = values[:-last], model[:-last]
    expected = usual(past, weekday[:-last], np.arange(WEEK)).centre[weekday[:-last]]
    rest = past - expected
    by_model = [rest[of == number].T for number in numbers]
    sd = spread(np.concatenate([apart(one) for one in by_model], axis=1))
    prior = (STEP * np.abs(median(expected.T))) ** 2
    noise = np.array([median_noise(np.isfinite(one).sum(axis=1)) for one in by_model]) * sd**2 + _DUST**2
    with np.errstate(invalid="ignore"):
        believed = np.nan_to_num(prior / (prior + noise))
    moved = believed * np.nan_to_num(np.array([median(one) for one in by_model]))
    out = values - np.where(model >= 0, 1.0, 0.0)[:, None] * moved[np.searchsorted(numbers, model)]
    part = np.array([share[model[-last:] == number].sum() for number in numbers])
    unknown = (part[:, None] ** 2 * (1 - believed) * prior).sum(axis=0)
    taken = believed.sum(axis=0) - believed.max(axis=0)
    return Levelled(out, unknown, np.asarray(taken))
