"""The means of the last 1, 2, 3, 6 and 12 windows, against the forecast from before they began."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.bands.scales import COUNT, from_scale, sampling_sd, within
from monitor.statistics.counts import Floats

SPANS: Final = (1, 2, 3, 6, 12)
"""Windows whose mean, weighted by their precision, is compared with the forecast from before them."""
LONGEST: Final = max(SPANS)
LENGTHS: Final = np.array(SPANS, np.float64)[:, None]
_LAST: Final = np.array(SPANS) - 1
_UPWARDS: Final = np.arange(1.0, LONGEST + 1)[:, None]
# The windows of all spans below each other, the oldest of each span first. For each: its span, which of the
# last windows it is, and how many windows of its span lie before it.
_SPAN: Final = np.repeat(np.arange(len(SPANS)), SPANS)
_ROW: Final = np.concatenate([np.arange(windows)[::-1] for windows in SPANS])
_PLACE: Final = np.concatenate([np.arange(windows) for windows in SPANS])
_BEGINS: Final = np.cumsum([0, *SPANS[:-1]])


class Last(NamedTuple):
    """The last LONGEST windows of m series, the newest first; NaN where a series has no value."""

    residuals: Floats
    """What each window differs from level and profile, on the scale of its metric."""
    memories: Floats
    """What was remembered of the windows before each."""
    sds: Floats
    bases: Floats
    """Level and profile of each."""
    drawn: Floats
    """The samples of each."""


class Means(NamedTuple):
    """SPANS x m, but `usual`, which is m. See `Forecast`."""

    means: Floats
    from_base: Floats
    planned: Floats
    actual: Floats
    by_one: Floats
    usual: Floats


def over_spans(last: Last, rho: Floats, spreads: Floats, wild: ArrayLike, scales: NDArray[np.int64]) -> Means:
    """Compare the last windows with their forecasts.

    A window is forecast as base + rho^k memory, k windows after the memory was made. The mean of a span
    weighs its windows by 1 / sd^2. Of each it takes no more than `wild` of the window's own sds, and no more
    than half of `wild` of the span's. So two windows in a row can take a span beyond its bound, one cannot.

    Args:
        last: the windows.
        rho: m, how much of what lasts is left after a window.
        spreads: SPANS x m, the sd of each mean.
        wild: m, or one for all.
        scales: m.

    >>> from monitor.statistics.bands.scales import LEVEL
    >>> hours = [np.array(one, np.float64)[:, None] for one in ([-3, -5, 1], [0] * 3, [1] * 3, [10] * 3)]
    >>> last = Last(*(np.vstack([one, np.full((LONGEST - 3, 1), np.nan)]) for one in hours), np.ones((12, 1)))
    >>> found = over_spans(last, np.zeros(1), np.ones((5, 1)), 9.0, np.array([LEVEL]))
    >>> found.means[:3, 0].round(2).tolist(), found.planned[:3, 0].tolist(), found.actual[:2, 0].tolist()
    ([-3.0, -4.0, -2.33], [10.0, 10.0, 10.0], [7.0, 6.0])
    """
    remembered = (rho**_UPWARDS)[_PLACE] * last.memories[_LAST][_SPAN]
    each, residuals, drawn = last.sds[_ROW], last.residuals[_ROW], last.drawn[_ROW]
    weight = _weights(each)
    away = residuals - remembered
    farthest = np.asarray(wild, np.float64) * np.fmin(each, spreads[_SPAN] / weight / 2)
    farthest[0] = np.inf
    means = _sums(weight * within(away, -farthest, farthest))
    from_base = _sums(weight * residuals)
    every = last.bases[_ROW]
    bases = np.where(np.isnan(away), np.nan, every)
    share = np.where(scales == COUNT, 1 / LENGTHS[_SPAN], weight)
    both = share * from_scale(np.array([bases + remembered, bases + residuals]), drawn, scales)
    planned, actual = _sums(both[0]), _sums(both[1])
    usual = share[-LONGEST:] * from_scale(every[-LONGEST:], drawn[-LONGEST:], scales)
    by_one = np.maximum.reduceat(weight / np.maximum(drawn, 1.0), _BEGINS, axis=0)
    return Means(means, from_base, planned, actual, by_one, usual.sum(axis=0))


def sampling_sds(last: Last, scales: NDArray[np.int64]) -> Floats:
    """SPANS x m: what chance alone does to the mean of each span, on the scale; 0 if samples are unknown.

        sqrt(sum of (weight x sampling sd of the window)^2)

    At noon, after a quiet morning, that is more than the newest window's own chance / sqrt(windows).

    >>> from monitor.statistics.bands.scales import SHARE
    >>> samples = np.vstack([[[900.0]], np.full((11, 1), 100.0)])
    >>> shares, nothing = np.array([SHARE]), np.zeros((12, 1))
    >>> last = Last(nothing, nothing, sampling_sd(samples, shares), nothing, samples)
    >>> found = sampling_sds(last, shares)
    >>> (0.5 / np.sqrt([900.5, 1001, 1101.5, 1403, 2006]) / found[:, 0]).round(9).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    chance = _weights(last.sds[_ROW]) * sampling_sd(last.drawn[_ROW], scales)
    return np.asarray(np.sqrt(_sums(chance**2)))


def _weights(sds: Floats) -> Floats:
    """The weight of each window in the mean of its span."""
    precision = sds**-2
    return np.asarray(precision / _sums(precision)[_SPAN])


def _sums(rows: Floats) -> Floats:
    """The sums over the windows of each span."""
    return np.asarray(np.add.reduceat(rows, _BEGINS, axis=0))
