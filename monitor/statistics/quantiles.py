"""A quantile of values of any distribution, with the interval that order statistics give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from monitor.statistics.intervals import CONFIDENCE, Interval

SIGMAS: Final = 3.0
RANKS: Final = 4.0
"""An interval of 95 % never asks for a rank further from n p than SIGMAS sqrt(n p (1 - p)) + RANKS."""


def rank_of(n: int, p: float) -> int:
    """The rank of the p-quantile of n values: the smallest k with k / n >= p, from 1.

    >>> rank_of(10, 0.5), rank_of(10, 0.99), rank_of(1, 0.5)
    (5, 10, 1)
    """
    return max(1, math.ceil(n * p - 1e-9))


def quantile_interval(n: int, p: float, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """The ranks of the values that bound the p-quantile; None if n is too small for both ends.

    Of n independent values, the number below the quantile is binomial (n, p), whatever their distribution. So

        P(X_(l) <= quantile <= X_(u)) >= P(l <= B <= u - 1)

    l is the largest rank with P(B < l) <= a / 2, u the smallest with P(B >= u) <= a / 2, a = 1 - confidence.
    The coverage is at least the confidence; for values with ties it is more.

    Source: H. A. David, H. N. Nagaraja, Order Statistics, Wiley 2003, section 7.1.

    >>> quantile_interval(100, 0.5)
    (40, 61)
    >>> quantile_interval(100, 0.99) is None, quantile_interval(368, 0.99)
    (True, (360, 368))

    Args:
        n: how many values.
        p: which quantile, between 0 and 1.
        confidence: the coverage.
    """
    from scipy import stats

    tail = (1 - confidence) / 2
    if n < 1:
        return None
    lower = int(stats.binom.ppf(tail, n, p))  # the smallest k with P(B <= k) >= tail
    lower += int(stats.binom.cdf(lower, n, p) <= tail)
    upper = int(stats.binom.ppf(1 - tail, n, p)) + 1  # P(B >= upper) = 1 - P(B <= upper - 1) <= tail
    return (lower, upper) if lower >= 1 and upper <= n else None


def least_samples(p: float, confidence: float = CONFIDENCE) -> int:
    """How many values it takes for an interval of the p-quantile to have both ends.

    >>> [least_samples(p) for p in (0.5, 0.9, 0.99)]
    [6, 36, 368]
    """
    tail = (1 - confidence) / 2
    return math.ceil(math.log(tail) / math.log(max(p, 1 - p)))


def quantile_of(
    n: int, p: float, near: Sequence[float], first: int, confidence: float = CONFIDENCE
) -> tuple[float, Interval | None]:
    """The p-quantile and its interval, from some of the values.

    Args:
        n: how many values there are, at least 1.
        p: which quantile.
        near: the values with the ranks from `first` on, in any order. `SIGMAS` and `RANKS` say how many it
            takes.
        first: the smallest of their ranks, from 1.
        confidence: the coverage.

    >>> quantile_of(5, 0.5, [5.0, 1.0, 3.0, 2.0, 4.0], 1)
    (3.0, None)
    """
    ordered = sorted(near)
    ranks = quantile_interval(n, p, confidence)
    interval = None if ranks is None else Interval(*(ordered[rank - first] for rank in ranks))
    return ordered[rank_of(n, p) - first], interval
