"""Bounds of a deviation that limit the number of false alarms a week, not the p-value of one test.

Three hundred series judged every hour are fifty thousand tests a week: at three standard deviations a sound
recommender would raise more than a hundred alarms. So the bounds come from how many are allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from monitor.statistics.bands.spans import SPANS
from monitor.statistics.counts import Floats

BUDGET = 0.1
"""Expected false alarms a week, over all series of a recommender."""
AT_ONCE = 0.1
"""The part of the budget that one window alone may use; the longer spans have the rest."""
TAILS_OF_ONE = 10.0
"""The noise of a single window is taken to have Student's tails of so many degrees of freedom."""
TAILS_OF_MORE = 40.0
"""The same of means of more windows, in which a wild value counts little."""
EASIER = 0.6
"""A change below this part of the smallest that counts ends a departure."""


class Bounds(NamedTuple):
    """For each series, in standard deviations."""

    spans: Floats
    """SPANS x m: the mean of a span beyond it is an alarm."""

    @property
    def shown(self) -> Floats:
        """The bound of the shortest of the longer spans, to which a band is drawn."""
        return np.asarray(self.spans[1])


def bounds(chance: ArrayLike, df: ArrayLike, drawn: ArrayLike = np.inf) -> Bounds:
    """The bounds of m series.

    With q the chance of a false alarm that one test of the series may have, both sides counted:

        one window    the quantile of Student's t with nu degrees of freedom that leaves q / 10 / 2 above it
        longer spans  the one that leaves 9/10 q / 2 above it

    and 1 / nu = 1 / df + 1 / tails + 1 / n: what is not known of the sd; tails heavier than the normal's,
    of 10 degrees of freedom for a single window and of 40 for the mean of more; and that the mean of n skewed
    values is not normal. Most of the budget goes to the longer spans: a real incident lasts, and a wild value
    stands alone. The spans of a window share their values, and count as one test.

    Args:
        chance: q, one for each series or one for all.
        df: m degrees of freedom of the sds; NaN where there is no band, and then NaN comes out.
        drawn: n, the samples of a span, SPANS x m or one for all; infinite where the scale of the series
            allows for few samples.

    >>> bounds(5e-6, [70.0, 12.0]).spans[:2].round(2).tolist()
    [[13.02, 27.1], [5.8, 9.52]]

    Raises ValueError unless each chance lies between 0 and 1, and df above 0.
    """
    known, wanted = np.asarray(df, np.float64), np.asarray(chance, np.float64)
    if bool(np.any(known <= 0)):
        raise ValueError("degrees of freedom are above 0")
    windows = np.array(SPANS, np.float64)[:, None]
    is_one = windows == 1
    tails = 1 / np.where(is_one, TAILS_OF_ONE, TAILS_OF_MORE)
    of_few = 1 / np.maximum(np.asarray(drawn, np.float64), 1.0)
    part = np.where(is_one, AT_ONCE, 1 - AT_ONCE)
    return Bounds(student_bound(part * wanted / 2, 1 / (1 / known + tails + of_few)))


def student_bound(chance: ArrayLike, df: ArrayLike) -> Floats:
    """The value that Student's t with these degrees of freedom exceeds with this probability.

    >>> student_bound(0.025, [1.0, 10.0, float("inf")]).round(3).tolist()
    [12.706, 2.228, 1.96]

    Raises ValueError unless 0 < chance < 1.
    """
    wanted = np.asarray(chance, np.float64)
    if not bool(np.all((wanted > 0) & (wanted < 1))):
        raise ValueError(f"a chance lies between 0 and 1, got {chance!r}")
    from scipy import special

    return np.asarray(-special.stdtrit(np.asarray(df, np.float64), wanted), np.float64)
