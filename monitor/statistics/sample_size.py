"""How many users an experiment needs, its power, and the smallest effect that it can find.

All three come from one function: the power at n users of control and ratio * n of the treatment.
Effects are absolute: a baseline of 5 % and a lift of 2 % of it is an effect of 0.001.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

_MOST_USERS = 10**18
_MOST_UNEQUAL = 1000
_MOST_NONCENTRAL = 1e9  # scipy gives NaN above 3e9
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Plan:
    """The design of a comparison of one treatment with the control.

    Args:
        alpha: how often an effect may be claimed if there is none. With several treatments, divide it by
            their number first (Bonferroni).
        power: how often an existing effect should be found.
        ratio: users of the treatment for each user of the control.
        two_sided: whether a change for the worse should be found as well.

    Raises ValueError unless 0 < alpha < power < 1 and 1/1000 <= ratio <= 1000.
    """

    alpha: float = 0.05
    power: float = 0.8
    ratio: float = 1.0
    two_sided: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.alpha < self.power < 1:
            raise ValueError(f"0 < alpha < power < 1, got alpha {self.alpha:g} and power {self.power:g}")
        if not 1 / _MOST_UNEQUAL <= self.ratio <= _MOST_UNEQUAL:
            raise ValueError(
                f"the ratio lies between 1/{_MOST_UNEQUAL} and {_MOST_UNEQUAL}, got {self.ratio:g}"
            )

    @property
    def tail(self) -> float:
        """The part of alpha on the side of the effect."""
        return self.alpha / 2 if self.two_sided else self.alpha


@dataclass(frozen=True, slots=True)
class Share:
    """A share of users, such as the conversion: each user is a yes or a no.

    The z test of two proportions, pooled where there is no effect:

        power = Phi((|d| - z sqrt(p q (1 + 1 / r) / n)) / sqrt((p1 q1 + p2 q2 / r) / n)),
        p = (p1 + r p2) / (1 + r), p2 = p1 + d

    The normal approximation is good where both groups expect some ten yes and some ten no.

    Source: J. L. Fleiss, Statistical methods for rates and proportions, 3.2, without continuity correction.

    Raises ValueError unless 0 < baseline < 1.
    """

    baseline: float

    def __post_init__(self) -> None:
        if not 0 < self.baseline < 1:
            raise ValueError(f"a share lies between 0 and 1, got {self.baseline:g}")

    @property
    def most(self) -> float:
        """The largest possible rise."""
        return 1 - self.baseline

    def power(self, effect: float, n: float, plan: Plan) -> float:
        """The power at n users of control."""
        one, other, ratio = self.baseline, self.baseline + effect, plan.ratio
        if not 0 <= other <= 1:
            raise ValueError(f"{one:g} changed by {effect:g} is no share")
        pooled = (one + ratio * other) / (1 + ratio)
        without = math.sqrt(pooled * (1 - pooled) * (1 + 1 / ratio) / n)
        with_effect = math.sqrt((one * (1 - one) + other * (1 - other) / ratio) / n)
        if with_effect == 0:  # too small a number: so few users show nothing
            return plan.tail
        z = -_NORMAL.inv_cdf(plan.tail)
        return _NORMAL.cdf((abs(effect) - z * without) / with_effect)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over users, of minutes or of money, with standard deviation sd between users.

    Student's t test with n + r n - 2 degrees of freedom: the power is the upper tail of the noncentral t
    with noncentrality |d| / (sd sqrt((1 + 1 / r) / n)).

    Raises ValueError unless sd is above 0 and finite.
    """

    sd: float

    def __post_init__(self) -> None:
        if not 0 < self.sd < math.inf:
            raise ValueError(f"a standard deviation is above 0, got {self.sd:g}")

    @property
    def most(self) -> float:
        """The largest effect that is considered: a thousand standard deviations."""
        return 1000.0 * self.sd

    def power(self, effect: float, n: float, plan: Plan) -> float:
        """The power at n users of control."""
        from scipy import special

        df = n * (1 + plan.ratio) - 2
        if df <= 0:
            return 0.0
        noncentrality = abs(effect) / self.sd / math.sqrt((1 + 1 / plan.ratio) / n)
        bound = float(special.stdtrit(df, plan.tail))
        return float(special.nctdtr(df, -min(noncentrality, _MOST_NONCENTRAL), bound))


Metric = Share | Mean


def power_at(metric: Metric, effect: float, n: float, plan: Plan) -> float:
    """The power of n users of control and ratio * n of the treatment to find an effect of this size.

    The chance of finding it with the wrong sign is left out, as is usual.

    >>> round(power_at(Share(0.5), 0.25, 50, Plan()), 4)  # R's power.prop.test(n = 50, p1 = .50, p2 = .75)
    0.7402
    >>> round(power_at(Mean(1.0), 1.0, 20, Plan()), 4)  # R's power.t.test(n = 20, delta = 1, sd = 1)
    0.869

    Raises ValueError if n < 1, if the effect is 0 or not finite, or if it leads out of 0 to 1.
    """
    if not 1 <= n < math.inf:
        raise ValueError(f"there is at least 1 user, got {n:g}")
    if effect == 0 or not math.isfinite(effect):
        raise ValueError(f"an effect is not 0, got {effect:g}")
    return metric.power(effect, n, plan)


def sample_size(metric: Metric, effect: float, plan: Plan) -> int:
    """The fewest users of control that give the plan its power; the treatment needs ratio times as many.

    >>> sample_size(Share(0.5), 0.25, Plan(power=0.9))  # R: power.prop.test gives 76.7
    77
    >>> sample_size(Mean(1.0), 1.0, Plan(power=0.9))  # R: power.t.test gives 22.02
    23

    Raises ValueError as `power_at` does, and if 10^18 users are too few.
    """
    high = 1
    while power_at(metric, effect, high, plan) < plan.power:
        high *= 2
        if high > _MOST_USERS:
            raise ValueError(f"an effect of {effect:g} is too small to be found")
    low = high // 2  # too few, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(metric, effect, middle, plan) >= plan.power else (middle, high)
    return high


def detectable_effect(metric: Metric, n: float, plan: Plan) -> float | None:
    """The smallest rise that n users of control (and ratio * n of the treatment) find with the plan's power.

    None if even the largest possible rise would not be found.

    >>> round(detectable_effect(Share(0.05), 100_000, Plan()), 6)
    0.002766
    >>> round(detectable_effect(Mean(10.0), 1_000, Plan()), 4)
    1.2535

    Raises ValueError where n < 1.
    """

    def found(effect: float) -> bool:
        return power_at(metric, effect, n, plan) >= plan.power

    high = metric.most
    if not found(high):
        return None
    low = 0.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if found(middle) else (middle, high)
    return high
