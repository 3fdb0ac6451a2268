"""Bounds of a deviation that limit the number of false alarms a week, not the p-value of one test.

Three hundred series judged every hour are fifty thousand tests a week: at three standard deviations a sound
recommender would raise more than a hundred alarms. So the bounds come from how many are allowed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.counts import Floats

BUDGET = 0.1
"""Expected false alarms a week, over all series of a recommender."""
AT_ONCE = 0.1
"""The part of the budget that one window alone may use; two in a row have the rest."""
SERIAL = 0.5
"""The correlation of a series' deviations in two windows in a row that the bounds are made for."""
TAILS_OF_ONE = 10.0
"""The noise of a single window is taken to have Student's tails of so many degrees of freedom."""
TAILS_OF_TWO = 30.0
"""The same of two windows in a row, which seldom meet with two wild values."""
EASIER = 0.6
"""A departure ends below this part of the bound `pair`."""


class Bounds(NamedTuple):
    """For each series, in standard deviations."""

    single: Floats
    """One window beyond it is an alarm."""
    pair: Floats
    """Two windows in a row beyond it, on the same side, are one."""
    clear: Floats
    """Within it the alarm is over."""


def bounds(tests_a_week: float, df: ArrayLike, *, budget: float = BUDGET) -> Bounds:
    """The bounds of m series that together are tested so often a week.

    With q = budget / tests_a_week, the chance of a false alarm that one test may have, both sides counted:

        single   the quantile of Student's t with nu degrees of freedom that leaves q / 10 / 2 above it
        pair     the quantile that leaves Phi(-c) above it, where c is such that two normal deviations with
                 correlation 0.5 are both above c with chance 0.9 q / 2

    and 1 / nu = 1 / df + 1 / tails: what is not known of the sd, and tails heavier than the normal's, of 10
    degrees of freedom for a single window and of 30 for two. Most of the budget goes to the pair, since two
    windows in a row allow a far lower bound: a real incident lasts, and a wild value stands alone. The sum
    over series and sides is an upper bound of the alarms: those that come together count apart.

    Args:
        tests_a_week: series times windows a week.
        df: m degrees of freedom of the sds; NaN where there is no band, and then NaN comes out.
        budget: expected false alarms a week.

    >>> found = bounds(100 * 168, [70.0, 12.0])
    >>> found.single.round(2).tolist(), found.pair.round(2).tolist(), found.clear.round(2).tolist()
    ([12.76, 26.25], [4.45, 6.09], [2.67, 3.65])

    Raises ValueError unless there are tests and a budget, both finite and above 0, and df above 0.
    """
    for what, number in (("tests a week", tests_a_week), ("a budget", budget)):
        if not 0 < number < np.inf:
            raise ValueError(f"{what} are finite and above 0, got {number!r}")
    known = np.asarray(df, np.float64)
    if bool(np.any(known <= 0)):
        raise ValueError("degrees of freedom are above 0")
    chance = min(1.0, budget / tests_a_week)
    single = student_bound(AT_ONCE * chance / 2, 1 / (1 / known + 1 / TAILS_OF_ONE))
    pair = student_bound(
        one_of_a_pair((1 - AT_ONCE) * chance / 2, SERIAL), 1 / (1 / known + 1 / TAILS_OF_TWO)
    )
    return Bounds(single, pair, EASIER * pair)


def student_bound(chance: float, df: ArrayLike) -> Floats:
    """The value that Student's t with these degrees of freedom exceeds with this probability.

    >>> student_bound(0.025, [1.0, 10.0, float("inf")]).round(3).tolist()
    [12.706, 2.228, 1.96]

    Raises ValueError unless 0 < chance < 1.
    """
    if not 0 < chance < 1:
        raise ValueError(f"a chance lies between 0 and 1, got {chance!r}")
    from scipy import special

    return np.asarray(-special.stdtrit(np.asarray(df, np.float64), chance), np.float64)


@lru_cache(maxsize=256)
def one_of_a_pair(chance: float, correlation: float) -> float:
    """The chance of one normal deviation to lie above c, where two of them both do with the chance given.

        P(both above c) = Phi(-c) - 2 T(c, sqrt((1 - r) / (1 + r))), T Owen's function, r their correlation

    Source: D. B. Owen, Tables for computing bivariate normal probabilities, Ann. Math. Stat. 27 (1956).

    >>> round(one_of_a_pair(0.01, 0.0), 6), round(one_of_a_pair(1 / 3, 0.5), 6)  # 0.1 x 0.1; orthant 1/3
    (0.1, 0.5)
    """
    from scipy import optimize, special

    slope = float(np.sqrt((1 - correlation) / (1 + correlation)))

    def too_many(c: float) -> float:
        both = special.ndtr(-c) - 2 * special.owens_t(c, slope)
        return float(np.log(max(both, 1e-300) / chance))

    return float(special.ndtr(-optimize.brentq(too_many, -8.0, 37.0, xtol=1e-9)))


def decide(now: ArrayLike, before: ArrayLike, bound: Bounds) -> NDArray[np.bool_]:
    """Which series are violated by their deviations in a window and in the one before it.

        |now| >= single, or both |now| >= pair and |before| >= pair on the same side

    A NaN, a window without a band or without a value, is beyond nothing.

    >>> bound = Bounds(np.array([8.0]), np.array([4.0]), np.array([2.4]))
    >>> decide([9.0, 5.0, 5.0, 5.0], [0.0, 4.0, -5.0, np.nan], bound).tolist()
    [True, True, False, False]
    """
    here, there = np.asarray(now, np.float64), np.asarray(before, np.float64)
    least = np.where(np.sign(here) == np.sign(there), np.minimum(np.abs(here), np.abs(there)), 0.0)
    return np.asarray((np.abs(here) >= bound.single) | (least >= bound.pair))
