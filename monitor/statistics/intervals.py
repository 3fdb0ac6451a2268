"""Confidence intervals from counts and sums.

Only aggregates come in, so an interval costs nothing beside the scan that gave them, and windows
can be added up before an interval is taken.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95

Floats = NDArray[np.float64]


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
    """Wilson's score interval of a share, or None where n is 0 (nothing was seen).

    With p = hits / n and the normal quantile z:

        (p + z^2 / 2n  -+  z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    It keeps its coverage near 0 and 1, where p -+ z sqrt(p (1 - p) / n) collapses to a point.

    Args:
        hits: how many of the n had the property; 0 <= hits <= n.
        n: how many were looked at.
        confidence: the coverage, 0.95 unless told.

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


def normal_mean(
    n: int, total: float, total_of_squares: float, confidence: float = CONFIDENCE
) -> Interval | None:
    """The normal interval of a mean, mean -+ z s / sqrt(n), from the sums alone.

    s^2 = (total_of_squares - total^2 / n) / (n - 1) is the sample variance. None where n < 2 (a
    single value says nothing of its spread) or where a sum is not finite. Rounding can leave a
    tiny negative variance where all values are equal; that counts as 0.

    Args:
        n: how many values.
        total: their sum.
        total_of_squares: the sum of their squares.
        confidence: the coverage, 0.95 unless told; it holds where n is some tens or more.

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
