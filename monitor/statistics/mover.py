"""The difference of two estimates from their own intervals (MOVER)."""

from __future__ import annotations

import math
from typing import NamedTuple

from monitor.statistics.intervals import CONFIDENCE, Interval, quantile


class Estimate(NamedTuple):
    """A value and its interval, which contains it."""

    value: float
    lower: float
    upper: float


def difference(one: Estimate, other: Estimate, *, comparisons: int = 1) -> Interval:
    """The interval of `other` less `one`, of two independent estimates with intervals of 95 %.

        d - w sqrt((b - b_lower)^2 + (a_upper - a)^2)  to  d + w sqrt((b_upper - b)^2 + (a - a_lower)^2)
        d = b - a,  w = z(1 - 0.05 / (2 m)) / z(0.975)

    An interval that is not symmetric, such as Wilson's near 0, keeps its shape. With m comparisons all m
    intervals hold together in 95 of 100 cases or more (Bonferroni).

    Args:
        one, other: a and b.
        comparisons: m.

    Source: G. Y. Zou and A. Donner, Construction of confidence limits about effect measures: a general
    approach, Statistics in Medicine 27 (2008). Of two shares with Wilson's intervals it is method 10 of
    R. G. Newcombe, Interval estimation for the difference between independent proportions (1998).

    >>> a, b = Estimate(56 / 70, 0.6911, 0.8768), Estimate(48 / 80, 0.4904, 0.7004)
    >>> [round(end, 3) for end in difference(a, b)]  # Newcombe's example (a), with its sign turned
    [-0.334, -0.052]

    Raises ValueError where an end is not finite, where an interval does not contain its value, or without a
    comparison.
    """
    if comparisons < 1:
        raise ValueError(f"there is one comparison or more, got {comparisons}")
    for estimate in (one, other):
        if not all(map(math.isfinite, estimate)) or not estimate.lower <= estimate.value <= estimate.upper:
            raise ValueError(f"an interval is finite and contains its value, got {estimate}")
    wider = quantile(1 - (1 - CONFIDENCE) / comparisons) / quantile(CONFIDENCE)
    between = other.value - one.value
    below = math.hypot(other.value - other.lower, one.upper - one.value)
    above = math.hypot(other.upper - other.value, one.value - one.lower)
    return Interval(between - wider * below, between + wider * above)
