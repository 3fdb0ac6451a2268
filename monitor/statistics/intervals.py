"""Confidence intervals from counts and sums, so that windows can be added up before an interval is taken."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from monitor.statistics.counts import Floats

CONFIDENCE = 0.95

_EDGE = 1e-9


class Interval(NamedTuple):
    """Both ends of a two-sided confidence interval."""

    lower: float
    upper: float


def quantile(confidence: float) -> float:
    """The standard normal's quantile z that leaves (1 - confidence) / 2 above it.

    >>> round(quantile(0.95), 6)
    1.959964

    Raises ValueError unless 0 < confidence < 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, got {confidence!r}")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(hits: int, n: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson's score interval of a share, or None if n is 0.

    With p = hits / n and the normal quantile z:

        (p + z^2 / 2n  -+  z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    It keeps its coverage near 0 and 1, where p -+ z sqrt(p (1 - p) / n) collapses to a point.

    Args:
        hits: how many of the n had the property; 0 <= hits <= n.
        n: how many were looked at.
        confidence: the coverage.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
    JASA 22 (1927).

    >>> [round(x, 6) for x in wilson(3, 10)]
    [0.107791, 0.603222]
    >>> wilson(0, 0) is None
    True

    Raises ValueError where hits is negative or above n.
    """
    if n == 0 and hits == 0:
        return None
    lower, upper = wilson_bounds(hits, n, confidence)
    return Interval(float(lower), float(upper))


def wilson_bounds(hits: ArrayLike, n: ArrayLike, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """Wilson's interval for arrays of counts: (lower, upper), of the broadcast shape, NaN where n is 0.

    >>> lower, upper = wilson_bounds([0, 5, 0], [10, 10, 0])
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([0.0, 0.2366, nan], [0.2775, 0.7634, nan])

    Raises ValueError where a count of hits is negative or above its n.
    """
    k, total = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n, np.float64))
    if not bool(np.all((k >= 0) & (k <= total))):
        raise ValueError("a share needs 0 <= hits <= n")
    square = quantile(confidence) ** 2
    seen = total > 0
    safe = np.where(seen, total, 1.0)
    p = k / safe
    scale = 1.0 + square / safe
    middle = (p + square / (2.0 * safe)) / scale
    half = np.sqrt(square * (p * (1.0 - p) / safe + square / (4.0 * safe * safe))) / scale
    # At the edges both terms are equal up to rounding, which must not leave 1e-17 or 1 + 2e-16.
    lower = np.where(k == 0, 0.0, np.clip(middle - half, 0.0, p))
    upper = np.where(k == total, 1.0, np.clip(middle + half, p, 1.0))
    return np.where(seen, lower, np.nan), np.where(seen, upper, np.nan)


def bounded_mean(
    n: int,
    total: float,
    total_of_squares: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """Wilson's interval of the mean of values that all lie within `bounds`, from the sums alone.

    With the mean m and the sum of squares about it SS, both rescaled to 0..1, and Student's quantile t of
    n - 1 degrees of freedom in the place of z:

        n_e = n m (1 - m) / ((SS + m (1 - m)) / n),   then `wilson` of a share of m among n_e

    m (1 - m) is the largest variance that values with this mean can have. For values of 0 and 1 alone n_e is
    n^2 / (n + 1), so this is nearly Wilson's interval of a share. It never leaves the bounds. If all values
    are equal, it still has a width: one more value, as far away as the bounds allow, adds to the spread. With
    many values it is the normal interval. docs/statistics.md has its measured coverage.

    None if n < 2 (one value has no spread) or a sum is not finite.

    >>> [round(end, 4) for end in bounded_mean(50, 2.5, 0.5)]  # 0.05 on average, seldom much more
    [0.0297, 0.0831]
    >>> [round(end, 4) for end in bounded_mean(50, 0.0, 0.0)]  # nothing but zeros
    [0.0, 0.0747]
    >>> bounded_mean(1, 0.5, 0.25) is None
    True

    Raises ValueError unless 0 < confidence < 1 and the lower bound is below the upper.
    """
    quantile(confidence)  # raises for a wrong confidence
    low, high = bounds
    if not low < high:
        raise ValueError(f"the lower bound is below the upper, got {bounds!r}")
    if n < 2 or not (math.isfinite(total) and math.isfinite(total_of_squares)):
        return None
    width, mean = high - low, total / n
    most = most_variance((mean - low) / width)
    squares = min(max(0.0, total_of_squares - mean * total) / width**2, n * most)
    spread = (squares + most) / n
    effective = n * most / spread if most > 0 else float(n)
    return wilson_within(mean, effective, n - 1, bounds, confidence)


def wilson_within(
    value: float,
    effective: float,
    df: float,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = CONFIDENCE,
) -> Interval:
    """Wilson's interval of a mean within bounds, from a number of effective values.

    Args:
        value: the mean.
        effective: how many values of 0 and 1 give a share the same variance; above 0.
        df: the degrees of freedom of the variance; below 0.5 the interval is all of `bounds`.
        bounds: the range of all values.
        confidence: the coverage.

    >>> [round(end, 4) for end in wilson_within(0.3, 10, math.inf)]
    [0.1078, 0.6032]
    """
    low, high = bounds
    if df < 0.5:
        return Interval(low, high)
    from scipy import special

    at = min(1.0, max(0.0, (value - low) / (high - low)))
    square = float(special.stdtrit(df, 0.5 + confidence / 2)) ** 2 / effective
    middle = (at + square / 2) / (1 + square)
    half = math.sqrt(square * (most_variance(at) + square / 4)) / (1 + square)
    # At the edges both terms are equal up to rounding.
    lower = low if at == 0 else low + (high - low) * max(0.0, middle - half)
    upper = high if at == 1 else low + (high - low) * min(1.0, middle + half)
    return Interval(min(lower, value), max(upper, value))


def most_variance(mean: float) -> float:
    """The largest variance of values from 0 to 1 with this mean: that of zeros and ones.

    A mean that is 0 or 1 up to rounding has a variance of 0.

    >>> most_variance(0.5), most_variance(1 - 1e-16)
    (0.25, 0.0)
    """
    return mean * (1 - mean) if _EDGE < mean < 1 - _EDGE else 0.0


def normal_mean(
    n: int, total: float, total_of_squares: float, confidence: float = CONFIDENCE
) -> Interval | None:
    """The normal interval of a mean, mean -+ z s / sqrt(n), from the sums alone.

    s^2 = (total_of_squares - total^2 / n) / (n - 1) is the sample variance. None if n < 2 (one value
    has no spread) or a sum is not finite. If all values are equal, rounding can leave a tiny negative
    variance; that counts as 0.

    Args:
        n: how many values.
        total: their sum.
        total_of_squares: the sum of their squares.
        confidence: the coverage; it holds if n is some tens or more.

    >>> [round(x, 4) for x in normal_mean(4, 10.0, 30.0)]  # 1, 2, 3, 4
    [1.2348, 3.7652]
    >>> normal_mean(1, 3.0, 9.0) is None
    True
    """
    if n < 2 or not (math.isfinite(total) and math.isfinite(total_of_squares)):
        return None
    mean = total / n
    # mean * total, not total ** 2 / n: the square of a large sum can overflow where this does not.
    variance = max(0.0, (total_of_squares - mean * total) / (n - 1))
    half = quantile(confidence) * math.sqrt(variance / n)
    if not math.isfinite(half):
        return None
    return Interval(mean - half, mean + half)
