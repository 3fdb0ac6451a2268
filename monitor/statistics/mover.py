"""The difference of two estimates from their own intervals (MOVER), and how many samples decide."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

from monitor.statistics.intervals import CONFIDENCE, Interval, quantile

POWER: Final = 0.8
"""How often as many samples as `samples_needed` says decide."""

_MOST_SAMPLES: Final = 10**12


class Estimate(NamedTuple):
    """A value and its interval, which contains it."""

    value: float
    lower: float
    upper: float


def difference(one: Estimate, other: Estimate, *, comparisons: int = 1, correlation: float = 0.0) -> Interval:
    """The interval of `other` less `one`, of two estimates with intervals of 95 %.

        d - w sqrt(b_below^2 + a_above^2 - 2 r b_below a_above)
        d + w sqrt(b_above^2 + a_below^2 - 2 r b_above a_below)
        d = b - a,  b_below = b - b_lower,  a_above = a_upper - a,  and so on
        w = z(1 - 0.05 / (2 m)) / z(0.975)

    An interval that is not symmetric, such as Wilson's near 0, keeps its shape. With m comparisons all m
    intervals hold together in 95 of 100 cases or more (Bonferroni).

    Args:
        one, other: a and b.
        comparisons: m.
        correlation: r of the two estimates; 0 if they are independent.

    Source: G. Y. Zou and A. Donner, Construction of confidence limits about effect measures: a general
    approach, Statistics in Medicine 27 (2008). Of two shares with Wilson's intervals it is method 10 of
    R. G. Newcombe, Interval estimation for the difference between independent proportions (1998). With r:
    G. Y. Zou, Toward using confidence intervals to compare correlations, Psychological Methods 12 (2007).

    >>> a, b = Estimate(56 / 70, 0.6911, 0.8768), Estimate(48 / 80, 0.4904, 0.7004)
    >>> [round(end, 3) for end in difference(a, b)]  # Newcombe's example (a), with its sign turned
    [-0.334, -0.052]

    Raises ValueError where an end is not finite, where an interval does not contain its value, without a
    comparison, or where r is not within -1 and 1.
    """
    if comparisons < 1:
        raise ValueError(f"there is one comparison or more, got {comparisons}")
    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation is within -1 and 1, got {correlation}")
    for estimate in (one, other):
        if not all(map(math.isfinite, estimate)) or not estimate.lower <= estimate.value <= estimate.upper:
            raise ValueError(f"an interval is finite and contains its value, got {estimate}")
    wider = quantile(1 - (1 - CONFIDENCE) / comparisons) / quantile(CONFIDENCE)
    between = other.value - one.value
    below = _together(other.value - other.lower, one.upper - one.value, correlation)
    above = _together(other.upper - other.value, one.value - one.lower, correlation)
    return Interval(between - wider * below, between + wider * above)


def samples_needed(
    one: Estimate,
    other: Estimate,
    samples: tuple[int, int],
    distance: float,
    *,
    power: float = POWER,
    comparisons: int = 1,
    correlation: float = 0.0,
) -> int | None:
    """The samples a side at which the interval of `difference` ends before a bound in `power` of all cases.

        n = (h (1 + z(power) / z(1 - 0.05 / (2 m))) / distance)^2

    h is the half width of the interval with one sample a side: a width falls with the root of the samples.
    The wider half counts.

    Args:
        one, other: as in `difference`.
        samples: what both rest on.
        distance: between the true difference and the bound, such as 0.
        power: how often the interval ends before the bound.
        comparisons, correlation: as in `difference`.

    None without samples, or if the distance is not above 0.

    >>> share = Estimate(0.5, 0.4, 0.6)
    >>> samples_needed(share, share, (100, 100), 0.1, power=0.5)  # twice as many halve each variance
    200
    >>> samples_needed(share, share, (100, 100), 0.1)
    409

    Raises ValueError as `difference` does, and unless 0.5 <= power < 1.
    """
    if not 0.5 <= power < 1:
        raise ValueError(f"a power is at least 0.5 and below 1, got {power!r}")
    if min(samples) < 1 or not distance > 0:
        return None
    a, b = (
        Estimate(0.0, (side.lower - side.value) * math.sqrt(n), (side.upper - side.value) * math.sqrt(n))
        for side, n in zip((one, other), samples, strict=True)
    )
    lower, upper = difference(a, b, comparisons=comparisons, correlation=correlation)
    error = max(-lower, upper) / distance
    of_power = NormalDist().inv_cdf(power) / quantile(1 - (1 - CONFIDENCE) / comparisons)
    needed = max(1, math.ceil(round((error * (1 + of_power)) ** 2, 6)))
    return needed if needed <= _MOST_SAMPLES else None


def _together(one: float, other: float, correlation: float) -> float:
    """sqrt(one^2 + other^2 - 2 r one other), without squares that overflow."""
    return math.hypot(one - correlation * other, math.sqrt(1 - correlation**2) * other)
