"""Differences of two groups: means by Welch, ratios by the delta method, from sums over units.

A unit is what was assigned to an arm, usually a user. Requests or exposures of one user are correlated; an
interval that treats them as independent is too narrow. So sum per user first, then over the users.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from monitor.statistics.intervals import CONFIDENCE, Interval, most_variance, quantile, wilson_within

_ROUNDING = 1e-12
"""A spread below this part of the sum of squares is rounding error."""


class Moments(NamedTuple):
    """How many units, their mean, and their sample variance (divided by n - 1)."""

    n: int
    mean: float
    variance: float

    @classmethod
    def of_sums(cls, n: int, total: float, total_of_squares: float) -> Self | None:
        """The moments from sums, or None if n < 2 or a sum is not finite.

        If all values are within a millionth of their mean, the sums keep too few digits for their variance;
        it counts as 0.

        >>> Moments.of_sums(4, 10.0, 30.0)  # 1, 2, 3, 4
        Moments(n=4, mean=2.5, variance=1.6666666666666667)

        Raises ValueError where n or the sum of squares is negative.
        """
        _check_n(n)
        if total_of_squares < 0:
            raise ValueError(f"a sum of squares is not negative, got {total_of_squares!r}")
        if n < 2 or not (math.isfinite(total) and math.isfinite(total_of_squares)):
            return None
        mean = total / n
        return cls(n, mean, _spread(total_of_squares - mean * total, total_of_squares) / (n - 1))


class Difference(NamedTuple):
    """Treatment less control: the estimate, its interval, the two-sided p, and the degrees of freedom.

    `df` is infinite if the normal distribution was used.
    """

    difference: float
    interval: Interval
    p: float
    df: float


def welch(control: Moments, treatment: Moments, confidence: float = CONFIDENCE) -> Difference | None:
    """Difference of two means by Welch's t test, which does not assume equal variances.

        d = m_t - m_c,  se^2 = v_t / n_t + v_c / n_c,
        df = se^4 / ((v_t / n_t)^2 / (n_t - 1) + (v_c / n_c)^2 / (n_c - 1))

    None if a group has fewer than two units, a moment is not finite, or both variances are 0: without spread
    there is no test.

    Source: B. L. Welch, The generalization of Student's problem, Biometrika 34 (1947).

    >>> found = welch(Moments(4, 2.5, 5 / 3), Moments(5, 6.0, 10.0))
    >>> found.difference, round(found.df, 4), round(found.p, 4)
    (3.5, 5.5208, 0.0691)
    >>> [round(end, 4) for end in found.interval]
    [-0.3854, 7.3854]

    Raises ValueError where an n or a variance is negative, or unless 0 < confidence < 1.
    """
    quantile(confidence)  # raises for a wrong confidence
    for group in (control, treatment):
        _check_n(group.n)
        if group.variance < 0:
            raise ValueError(f"a variance is not negative, got {group.variance!r}")
    if min(control.n, treatment.n) < 2:
        return None
    parts = [group.variance / group.n for group in (control, treatment)]
    square, difference = sum(parts), treatment.mean - control.mean
    if not (0 < square < math.inf and math.isfinite(difference)):
        return None
    of_control = parts[0] / square  # as a part of 1, so that no square of a variance overflows
    df = 1 / (of_control**2 / (control.n - 1) + (1 - of_control) ** 2 / (treatment.n - 1))
    from scipy import special

    error = math.sqrt(square)
    half = float(special.stdtrit(df, 0.5 + confidence / 2)) * error
    p = min(1.0, 2 * float(special.stdtr(df, -abs(difference) / error)))
    return Difference(difference, Interval(difference - half, difference + half), p, df)


class RatioSums(NamedTuple):
    """Sums over n units, each with a numerator and a denominator: clicks and exposures of a user.

    `product` is the sum of numerator * denominator.
    """

    n: int
    numerator: float
    denominator: float
    numerator_squared: float
    denominator_squared: float
    product: float


class Estimate(NamedTuple):
    """A value, its standard error, and its interval."""

    value: float
    error: float
    interval: Interval


def effective_size(total: float, total_of_squares: float) -> float:
    """How many rows of equal weight the weighted ones are worth: (sum w)^2 / sum w^2.

    Source: L. Kish, Survey Sampling, Wiley 1965.

    >>> effective_size(4.0, 4.0), effective_size(4.0, 10.0)  # 1, 1, 1, 1 and 3, 1
    (4.0, 1.6)
    """
    return total**2 / total_of_squares


def ratio_delta(sums: RatioSums, confidence: float = CONFIDENCE) -> Estimate | None:
    """A ratio of sums, such as CTR = clicks / exposures, with the interval of the delta method by unit.

        R = sum x / sum y,  error^2 = n / (n - 1) * sum((x - R y)^2) / (sum y)^2

    with the normal quantile; it holds for some hundreds of units or more. With y the weights and x the
    weights times the values of the units, it is a weighted mean (a user AUC weighted by samples); with y = 1
    it is the mean over units. None where n < 2, where the denominator or its sum of squares is 0, or where a
    sum is not finite.

    Source: Deng, Knoblich, Lu, Applying the delta method in metric analytics, KDD 2018.

    >>> found = ratio_delta(RatioSums(3, 6, 12, 14, 50, 26))  # 1 of 3, 2 of 4, 3 of 5
    >>> found.value, round(found.error, 6)
    (0.5, 0.072169)
    >>> [round(end, 4) for end in found.interval]
    [0.3586, 0.6414]

    Raises ValueError where n or a sum of squares is negative.
    """
    z = quantile(confidence)
    _check_n(sums.n)
    if sums.numerator_squared < 0 or sums.denominator_squared < 0:
        raise ValueError("a sum of squares is not negative")
    # Denominators below 1e-162 have squares of 0.
    nothing = sums.denominator == 0 or sums.denominator_squared == 0
    if sums.n < 2 or nothing or not all(math.isfinite(one) for one in sums):
        return None
    ratio = sums.numerator / sums.denominator
    # x - R y sums to 0 over the units, so its sum of squares is already about the mean.
    of_denominator = ratio * (ratio * sums.denominator_squared)
    squares = sums.numerator_squared - 2 * ratio * sums.product + of_denominator
    spread = _spread(squares, sums.numerator_squared + of_denominator)
    error = math.sqrt(sums.n / (sums.n - 1) * spread) / abs(sums.denominator)
    if not (math.isfinite(ratio) and math.isfinite(error)):
        return None
    return Estimate(ratio, error, Interval(ratio - z * error, ratio + z * error))


def ratio_within(
    sums: RatioSums,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = CONFIDENCE,
    effective: float = math.inf,
) -> Interval | None:
    """The interval of a ratio of sums within `bounds`: a share of sums, or a weighted mean.

    The variance is that of `ratio_delta`, with one more unit of average weight as far away as the bounds
    allow. The interval is Wilson's with the same number of effective units. Units of unequal weight count as
    (sum y)^2 / sum y^2 units of equal weight. With y = 1 it is `intervals.bounded_mean`. An estimate beyond a
    bound also has the interval of `ratio_delta`, cut off at the bounds.
    None where `ratio_delta` gives None.

    Args:
        sums: over units.
        bounds: the range of the ratio.
        confidence: the coverage.
        effective: the effective sample size if it is known from all rows, not only from those that
            contribute to x. The variance is then at least that of a share of so many rows.

    >>> [round(end, 4) for end in ratio_within(RatioSums(3, 6, 12, 14, 50, 26))]  # 1 of 3, 2 of 4, 3 of 5
    [0.0726, 0.9274]
    >>> [round(end, 4) for end in ratio_within(RatioSums(20, 0, 60, 0, 180, 0))]  # none of 3, twenty times
    [0.0, 0.1797]

    Raises ValueError as `ratio_delta` does, and unless `effective` is above 0.
    """
    if not effective > 0:
        raise ValueError(f"an effective sample size is above 0, got {effective!r}")
    found = ratio_delta(sums, confidence)
    if found is None:
        return None
    low, high = bounds
    units = min(effective, effective_size(sums.denominator, sums.denominator_squared))
    at = min(1.0, max(0.0, (found.value - low) / (high - low)))
    most = most_variance(at)
    own = max((found.error / (high - low)) ** 2, most / effective)
    variance = (own * (sums.n - 1) + most / units) / sums.n
    if most > 0:
        return wilson_within(found.value, most / variance, units - 1, bounds, confidence)
    # At a bound Wilson's interval has no variance, but an estimate beyond the bound has an error.
    within = wilson_within(found.value, units, units - 1, bounds, confidence)
    lower, upper = max(low, found.interval.lower), min(high, found.interval.upper)
    return Interval(min(within.lower, lower), max(within.upper, upper))


def ratio_difference(
    control: RatioSums, treatment: RatioSums, confidence: float = CONFIDENCE
) -> Difference | None:
    """Difference of two ratios of independent groups, by the delta method and the normal distribution.

        d = R_t - R_c,  error^2 = error_t^2 + error_c^2

    None where one of the ratios has no interval, or where neither has any spread.

    >>> found = ratio_difference(RatioSums(3, 6, 12, 14, 50, 26), RatioSums(3, 9, 12, 29, 50, 38))
    >>> found.difference, round(found.p, 4), found.df
    (0.25, 0.0019, inf)

    Raises ValueError as `ratio_delta` does.
    """
    one, other = ratio_delta(control, confidence), ratio_delta(treatment, confidence)
    if one is None or other is None:
        return None
    return normal_difference(one, other, confidence)


def normal_difference(
    control: Estimate, treatment: Estimate, confidence: float = CONFIDENCE
) -> Difference | None:
    """Difference of two independent, normal estimates, from their standard errors.

    None if both errors are 0: without spread there is no test.

    >>> half = Estimate(0.5, 0.03, Interval(0.44, 0.56))
    >>> round(normal_difference(half, Estimate(0.6, 0.04, Interval(0.52, 0.68))).p, 4)
    0.0455
    """
    error = math.hypot(control.error, treatment.error)
    if error == 0:
        return None
    difference = treatment.value - control.value
    half = quantile(confidence) * error
    p = math.erfc(abs(difference) / error / math.sqrt(2))
    return Difference(difference, Interval(difference - half, difference + half), p, math.inf)


def _check_n(n: float) -> None:
    if not n >= 0:
        raise ValueError(f"a number of units is not negative, got {n!r}")


def _spread(squares: float, size: float) -> float:
    """A sum of squared deviations, 0 if it is rounding error of sums of this size."""
    return squares if squares > _ROUNDING * size else 0.0
