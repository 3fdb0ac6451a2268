"""The difference of two estimates from their own intervals (MOVER), and how many samples decide."""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import NormalDist
from typing import Final, NamedTuple

from monitor.statistics.intervals import CONFIDENCE, Interval, quantile

POWER: Final = 0.8
"""How often as many samples as `samples_needed` says decide."""

_MOST_SAMPLES: Final = 10**12
_ROUNDING: Final = 1e-9


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

    It is the smallest n with

        h(n) (1 + z(power) / z(1 - 0.05 / (2 m))) <= distance

    h(n) is the wider half of the interval with n samples a side. The widths of both intervals fall with the
    root of their samples. Those of a share of 0 or 1, which have one half alone, fall with the samples.

    Args:
        one, other: as in `difference`.
        samples: what both rest on.
        distance: between the true difference and the bound, such as 0.
        power: how often the interval ends before the bound.
        comparisons, correlation: as in `difference`.

    None without samples, if the distance is not above 0, and above 10^12.

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
    of_power = 1 + NormalDist().inv_cdf(power) / quantile(1 - (1 - CONFIDENCE) / comparisons)

    def decides(n: int) -> bool:
        a, b = (_with_samples(side, n / own) for side, own in zip((one, other), samples, strict=True))
        lower, upper = difference(a, b, comparisons=comparisons, correlation=correlation)
        return max(-lower, upper) * of_power <= distance * (1 + _ROUNDING)

    if not decides(_MOST_SAMPLES):
        return None
    return bisect_left(range(1, _MOST_SAMPLES), True, key=decides) + 1


def _with_samples(side: Estimate, times: float) -> Estimate:
    """The distances from the value of an interval with so many times the samples."""
    is_at_edge = (side.lower == side.value) != (side.upper == side.value)
    by = times if is_at_edge else math.sqrt(times)
    return Estimate(0.0, (side.lower - side.value) / by, (side.upper - side.value) / by)


def _together(one: float, other: float, correlation: float) -> float:
    """sqrt(one^2 + other^2 - 2 r one other), without squares that overflow."""
    return math.hypot(one - correlation * other, math.sqrt(1 - correlation**2) * other)
