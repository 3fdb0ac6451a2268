"""Spearman's correlation with its interval, its test, and the sample size that decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from monitor.statistics.counts import Floats, as_numbers
from monitor.statistics.intervals import CONFIDENCE, Interval, quantile

LEAST_PAIRS: Final = 5
_MOST_PAIRS: Final = 10**12
_EDGE: Final = 1e-12


class RankCorrelation(NamedTuple):
    """Spearman's rho of n pairs, its two-sided p under independence, and its interval."""

    rho: float
    n: int
    p: float
    interval: Interval


def spearman(one: ArrayLike, other: ArrayLike, confidence: float = CONFIDENCE) -> RankCorrelation | None:
    """Spearman's rank correlation of pairs: Pearson's of the ranks, ties at their average rank.

        interval: tanh(atanh(rho) -+ z sqrt((1 + rho^2 / 2) / (n - 3)))
        p: of t = rho sqrt((n - 2) / (1 - rho^2)), with n - 2 degrees of freedom

    None with fewer than 5 pairs, and where all values of a side are equal: they have no order.

    Args:
        one, other: the values of each pair, in the same order; infinities have an order, NaN is an error.
        confidence: the coverage of the interval.

    Source: D. G. Bonett and T. A. Wright, Sample size requirements for estimating Pearson, Kendall and
    Spearman correlations, Psychometrika 65 (2000); for p: M. G. Kendall and A. Stuart, The advanced theory of
    statistics 2, 31.19.

    >>> iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    >>> hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    >>> found = spearman(iq, hours)
    >>> round(found.rho, 6), round(found.p, 4)  # 1 - 6 * 194 / (10 * 99)
    (-0.175758, 0.6272)
    >>> spearman([1, 2, 3, 4, 5], [7, 7, 7, 7, 7]) is None
    True

    Raises ValueError where the sides differ in length or a value is NaN.
    """
    a, b = as_numbers(one), as_numbers(other)
    if a.shape != b.shape:
        raise ValueError(f"pairs have two values each, got {a.size} and {b.size}")
    n = int(a.size)
    if n < LEAST_PAIRS:
        return None
    a, b = mid_ranks(a), mid_ranks(b)
    a, b = a - a.mean(), b - b.mean()
    spread = math.sqrt(float(a @ a) * float(b @ b))
    if spread == 0:
        return None
    rho = max(-1.0, min(1.0, float(a @ b) / spread))
    return RankCorrelation(rho, n, _p(rho, n), interval_of(rho, n, confidence))


def partial_spearman(one: ArrayLike, other: ArrayLike, held: Sequence[ArrayLike]) -> RankCorrelation | None:
    """Spearman's correlation of what is left of both after a linear regression of their ranks on those of
    other values: how they go together among pairs that are equal in `held`.

    It describes, and is no test: where both depend strongly on the held values, a little is left of them. Of
    a rho of 0.64 that two held values make alone, 0.08 remains; of 0.87, 0.26.

    The interval and p are those of `spearman` with as many pairs fewer as there are values held. None where
    `spearman` gives None, and where nothing is left of a side.

    Source: M. G. Kendall and A. Stuart, The advanced theory of statistics 2, chapter 27, on ranks.

    >>> size = np.arange(60.0)
    >>> one, other = size + np.tile([0, 9, 3], 20), size + np.tile([5, 0, 5, 0], 15)
    >>> round(spearman(one, other).rho, 2), abs(round(partial_spearman(one, other, [size]).rho, 1))
    (0.97, 0.0)
    """
    whole = spearman(one, other)
    columns = [mid_ranks(as_numbers(values)) for values in held]
    if whole is None or whole.n - len(columns) < LEAST_PAIRS:
        return None
    design = np.column_stack([np.ones(whole.n), *columns])
    a, b = (mid_ranks(as_numbers(values)) for values in (one, other))
    left = [ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0] for ranks in (a, b)]
    size = [float(rest @ rest) for rest in left]
    if min(size) <= _EDGE * whole.n**3:  # what is left is rounding error
        return None
    rho = max(-1.0, min(1.0, float(left[0] @ left[1]) / math.sqrt(size[0] * size[1])))
    n = whole.n - len(columns)
    return RankCorrelation(rho, n, _p(rho, n), interval_of(rho, n))


def interval_of(rho: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval of `spearman` from rho and n.

    >>> [round(end, 4) for end in interval_of(0.5, 100)]
    [0.3259, 0.6413]
    """
    half = quantile(confidence) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    z = math.atanh(max(-1 + _EDGE, min(1 - _EDGE, rho)))
    return Interval(min(rho, math.tanh(z - half)), max(rho, math.tanh(z + half)))


def mid_ranks(values: Floats) -> Floats:
    """The rank of each value, from 1; equal values have their average rank.

    >>> mid_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - (counts - 1) / 2.0).astype(np.float64))[place]


def pairs_needed(rho: float, negligible: float, confidence: float = CONFIDENCE) -> int | None:
    """How many pairs decide, if rho stays as it is: its interval then leaves out 0, or lies within
    `negligible` of 0, whichever takes fewer. None where more than 10^12 are needed.

    >>> pairs_needed(0.5, 0.1), pairs_needed(0.0, 0.1)
    (18, 385)
    """
    size, z = abs(rho), quantile(confidence)
    room = [math.atanh(min(size, 1 - _EDGE))]
    if size < negligible:
        room.append(math.atanh(negligible) - math.atanh(size))
    widest = max(room)
    if widest <= 0:
        return None
    needed = (z / widest) ** 2 * (1 + rho * rho / 2) + 3
    return math.ceil(needed) if needed <= _MOST_PAIRS else None


def holm(ps: ArrayLike) -> list[float]:
    """Holm's adjusted p of each of m tests, in the order given: claiming those up to alpha keeps the chance
    of any false claim at alpha, however the tests depend on each other.

        p_(i) -> max over j <= i of min(1, (m - j + 1) p_(j)),  p_(1) <= ... <= p_(m)

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6 (1979).

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    values = as_numbers(ps)
    order = np.argsort(values, kind="stable")
    steps = values[order] * (values.size - np.arange(values.size))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    found: list[float] = adjusted.tolist()
    return found


def _p(rho: float, n: int) -> float:
    from scipy import special

    rest = 1 - rho * rho
    if rest <= _EDGE:
        return 0.0
    t = abs(rho) * math.sqrt((n - 2) / rest)
    return min(1.0, 2 * float(special.stdtr(n - 2, -t)))
