"""How estimates vary, alone and together, from their values in random groups of units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

LEAST_GROUPS: Final = 20
_CLEAR: Final = 2.0


def cautious_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """The correlation of two estimates, from both values in each of G random groups of the same users.

        r = corr(one, other),  z = atanh(r),  error = 1 / sqrt(G - 3)

    0 where |z| is below two errors: then the estimates count as independent. Else tanh(z - error), so that
    a difference of the estimates gets an interval that is rather too wide. Groups in which a value is
    missing or not finite do not count. 0 with fewer than 20 groups, and where a value is the same in every
    group. A sum over users has the same correlation in the whole as over the groups; of other estimates it
    is near that.

    Args:
        one, other: the values of the groups, in the same order.

    Source: K. M. Wolter, Introduction to Variance Estimation, Springer 2007, chapter 2 (random groups);
    R. A. Fisher's transformation of r.

    >>> up = [float(number) for number in range(100)]
    >>> cautious_correlation(up, up)
    1.0
    >>> cautious_correlation(up, [number % 2 for number in up])
    0.0
    """
    pairs = np.array([one, other], dtype=float)
    pairs = pairs[:, np.isfinite(pairs).all(axis=0)]
    count = pairs.shape[1]
    if count < LEAST_GROUPS or (pairs == pairs[:, :1]).all(axis=1).any():
        return 0.0
    if (pairs[0] == pairs[1]).all():
        return 1.0
    # Values of one size keep their squares finite; the correlation is the same.
    found = float(np.corrcoef(pairs / np.abs(pairs).max(axis=1, keepdims=True))[0, 1])
    if not math.isfinite(found):
        return 0.0
    error = 1 / math.sqrt(count - 3)
    z = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, found)))
    return 0.0 if abs(z) < _CLEAR * error else math.tanh(z - error)


def error_by_groups(values: Sequence[float], sizes: Sequence[float]) -> float | None:
    """The standard error of an estimate, from its values v in each of G random groups of units.

        error^2 = G / (G - 1) * sum (m (v - R))^2 / (sum m)^2,  R = sum m v / sum m

    m is the size of a group. Of a ratio of sums whose denominator is the size it is the delta method with
    groups as units; of other estimates it is near that. Rows that belong together are in one group, so rows
    need not be independent. Groups do not count if their value is not finite or their size is not above 0.

    None with fewer than 20 groups.

    Args:
        values: of the groups.
        sizes: of the groups, such as their rows.

    Source: K. M. Wolter, Introduction to Variance Estimation, Springer 2007, chapter 2 (random groups).

    >>> round(error_by_groups([0.0, 1.0] * 50, [1.0] * 100), 6)  # 0.5 / sqrt(99)
    0.050252
    """
    v, m = np.array([values, sizes], dtype=float)
    usable = np.isfinite(v) & np.isfinite(m) & (m > 0)
    v, m = v[usable], m[usable]
    count = len(v)
    if count < LEAST_GROUPS:
        return None
    shares = m / m.max()
    shares /= shares.sum()
    residuals = shares * (v - float(shares @ v))
    return math.sqrt(count / (count - 1)) * float(np.linalg.norm(residuals))
