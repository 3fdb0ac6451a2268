"""Does one series rise at the cost of others? Changes of daily totals, and the gain that is left of them.

A day resembles the day before it. An interval that takes days for independent is too narrow, so the noise
here has a memory that is estimated with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.bands.weekdays import wild
from monitor.statistics.counts import Floats
from monitor.statistics.intervals import Interval

LEAST_BEFORE: Final = 14
"""The fewest days before, with values, for a judgement."""
LEAST_NOW: Final = 2
_MOST_WILD: Final = 0.15
"""An outlier among the days before is left out. If more of them are, none is: such are usual days."""
_MEMORIES: Final = np.arange(0.0, 0.91, 0.02)
EASIER: Final = 0.9
"""The confidence at which a shift still counts as going on."""
_ROUNDING: Final = 1e-9
_LARGEST: Final = 1e150
"""The square of a larger total, summed over days, is beyond float64."""
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Changes:
    """The change of m series from the days before to the recent days.

    Attributes:
        before: the level of the days before, on the weekdays of the recent days.
        now: that of the recent days.
        change: now - before.
        covariance: m x m, of the changes.
        df: degrees of freedom of the noise.
        memory: the correlation of the noise of a day with that of the day before, for each series.
        days: how many days before and recent days were used.
        wild: how many days before were left out, far from all others.
    """

    before: Floats
    now: Floats
    change: Floats
    covariance: Floats
    df: float
    memory: Floats
    days: tuple[int, int]
    wild: int

    def error(self, series: int) -> float:
        """The standard error of a change."""
        return math.sqrt(float(self.covariance[series, series]))

    def interval(self, series: int, confidence: float) -> Interval:
        """The interval of a change."""
        half = student(self.df, confidence) * self.error(series)
        middle = float(self.change[series])
        return Interval(middle - half, middle + half)


class Gain(NamedTuple):
    """What the whole gains for each unit that a part of it gains: 1 all of it, 0 nothing.

    `interval` is None if the part has not surely changed: the ratio can then be anything.
    """

    value: float
    interval: Interval | None


def student(df: float, confidence: float) -> float:
    """Student's two-sided quantile.

    >>> round(student(20, 0.95), 3)
    2.086
    """
    from scipy import special

    return float(special.stdtrit(df, 0.5 + confidence / 2))


def changes(values: ArrayLike, weekday: ArrayLike, recent: int) -> Changes | None:
    """The changes of m series over n days, of which the last `recent` are compared with those before.

    Each series is a level, an effect of the weekday, a change in the recent days, and noise:

        y_d = level + effect(weekday of d) + change [d is recent] + e_d,  cor(e_d, e_c) = memory ** |d - c|

    fitted by least squares. The memory is the one whose residuals would have, on average, the correlation
    from day to day that these have, plus one standard error of it: too short a memory makes an interval too
    narrow. The variance of the noise and its degrees of freedom (Satterthwaite) follow from it. A day without
    a value in one of the series, or with one beyond 1e150, is left out for all.

    None with fewer than LEAST_BEFORE days before, fewer than LEAST_NOW recent days, a recent weekday that is
    not among the days before, or no degree of freedom.

    Args:
        values: n x m, oldest first; NaN where there is none.
        weekday: n, 0 to 6; a holiday has that of the day which it is like.
        recent: how many of the last days are judged.

    >>> days = [[1.0, 2.0], [3.0, 1.0]] * 14 + [[5.0, 0.0], [7.0, -1.0]]
    >>> found = changes(days, np.arange(30) % 2, 2)
    >>> found.change.round(6).tolist(), found.before.round(6).tolist(), found.days
    ([4.0, -2.0], [2.0, 1.5], (28, 2))
    """
    y, days = np.asarray(values, np.float64), np.asarray(weekday, np.int64)
    is_recent = np.arange(len(y)) >= len(y) - recent
    known = (np.abs(y) <= _LARGEST).all(axis=1)
    left_out = _left_out(y, days, known & ~is_recent)
    used = known & ~left_out
    at = np.flatnonzero(used)
    now = is_recent[at]
    if int(now.sum()) < LEAST_NOW or int((~now).sum()) < LEAST_BEFORE:
        return None
    y, days = y[at], days[at]
    if not set(days[now].tolist()) <= set(days[~now].tolist()):
        return None
    names = np.unique(days)
    design = np.column_stack([(days[:, None] == names).astype(np.float64), now.astype(np.float64)])
    solve = np.linalg.pinv(design)
    residual_maker = np.eye(len(at)) - design @ solve
    if np.trace(residual_maker) < 1:
        return None
    fitted = solve @ y
    residuals = residual_maker @ y
    scale = np.maximum(np.abs(y).max(axis=0), 1e-300)
    residuals[:, np.abs(residuals).max(axis=0) < _ROUNDING * scale] = 0.0
    apart = np.abs(at[:, None] - at[None, :])
    noise = _Noise(residual_maker, apart, solve[-1])
    found = [noise.of(residuals[:, one]) for one in range(y.shape[1])]
    errors = np.sqrt([one.variance for one in found])
    squares = residuals.T @ residuals
    size = np.sqrt(np.diag(squares))
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = np.where(np.outer(size, size) > 0, squares / np.outer(size, size), 0.0)
    np.fill_diagonal(alike, 1.0)
    level, change = (design[now][:, :-1] @ fitted[:-1]).mean(axis=0), fitted[-1]
    for one in (level, change):  # what is 0 but for rounding would give a huge share of it
        one[np.abs(one) < _ROUNDING * scale] = 0.0
    return Changes(
        before=level,
        now=level + change,
        change=change,
        covariance=alike * np.outer(errors, errors),
        df=min(one.df for one in found),
        memory=np.array([one.memory for one in found]),
        days=(int((~now).sum()), int(now.sum())),
        wild=int(left_out.sum()),
    )


class _Spread(NamedTuple):
    """The variance of a change, the degrees of freedom of that, and the memory of the noise."""

    variance: float
    df: float
    memory: float


class _Noise:
    """The noise of a fit, for each memory that it may have. The same for every series of the fit."""

    def __init__(self, residual_maker: Floats, apart: Ints, weights: Floats) -> None:
        self._next = apart == 1
        self._pairs = max(1, int(self._next.sum()) // 2)
        ratios, traces, dfs, sums = [], [], [], []
        for memory in _MEMORIES:
            correlation = np.where(apart == 0, 1.0, memory**apart)
            seen = residual_maker @ correlation @ residual_maker
            trace = float(np.trace(seen))
            ratios.append(float((seen * self._next).sum()) / trace)
            traces.append(trace)
            dfs.append(trace**2 / float((seen * seen.T).sum()))
            sums.append(float(weights @ correlation @ weights))
        self._ratios, self._traces = np.maximum.accumulate(ratios), np.array(traces)
        self._dfs, self._sums = np.array(dfs), np.array(sums)

    def of(self, residuals: Floats) -> _Spread:
        """The spread of a change whose fit left these residuals."""
        squares = float(residuals @ residuals)
        if squares == 0:
            return _Spread(0.0, float(self._dfs[0]), 0.0)
        ratio = float((np.outer(residuals, residuals) * self._next).sum()) / squares
        ratio += 2 / math.sqrt(self._pairs)  # one standard error: each pair counts twice in the sum
        place = min(int(np.searchsorted(self._ratios, ratio)), len(_MEMORIES) - 1)
        variance = squares / self._traces[place] * self._sums[place]
        return _Spread(float(variance), float(self._dfs[place]), float(_MEMORIES[place]))


def _left_out(values: Floats, weekday: Ints, before: Bools) -> Bools:
    """Which days before lie far from all others and from those of their weekday; none if that are many."""
    known = np.where(before[:, None], values, np.nan)
    found: Bools = np.asarray(wild(known, weekday).any(axis=1), bool)
    return found if found.sum() <= _MOST_WILD * before.sum() else np.zeros(len(values), bool)


def fieller(
    numerator: float, denominator: float, variances: tuple[float, float], covariance: float, quantile: float
) -> Interval | None:
    """The interval of a ratio of two normal estimates.

    All r with (n - r d)^2 <= q^2 (v_n - 2 r c + r^2 v_d). None unless d^2 > q^2 v_d: then they are not an
    interval. None if a square is beyond float64.

    Source: E. C. Fieller, Some problems in interval estimation, JRSS B 16 (1954).

    >>> [round(end, 4) for end in fieller(1.0, 4.0, (0.25, 0.25), 0.0, 1.96)]
    [0.005, 0.5269]
    >>> fieller(1.0, 0.9, (0.25, 0.25), 0.0, 1.96) is None
    True
    """
    square = quantile**2
    # Products, because ** raises an error where they are infinite.
    a = denominator * denominator - square * variances[1]
    b = numerator * denominator - square * covariance
    c = numerator * numerator - square * variances[0]
    within = b * b - a * c
    if not (a > 0 and math.isfinite(within)):
        return None
    root = math.sqrt(max(0.0, within))
    return Interval((b - root) / a, (b + root) / a)


def gain(found: Changes, whole: int, part: int, confidence: float) -> Gain | None:
    """What the whole gains for each unit that the part gains. None if the part has not changed at all."""
    change = float(found.change[part])
    if change == 0:
        return None
    covariance = found.covariance
    variances = float(covariance[whole, whole]), float(covariance[part, part])
    between = fieller(
        float(found.change[whole]), change, variances, float(covariance[whole, part]),
        student(found.df, confidence),
    )  # fmt: skip
    return Gain(float(found.change[whole]) / change, between)


class Shift(NamedTuple):
    """Whether the part rises, another part falls, and the whole gains too little.

    Attributes:
        gain: of the whole, for each unit of the part.
        zero_sum: all three are sure.
        continues: all three are likely: at `EASIER`, or at the confidence that is asked for if that is lower,
            what was sure before still counts.
    """

    gain: Gain | None
    zero_sum: bool
    continues: bool


def shift(
    found: Changes, *, whole: int, part: int, other: int, confidence: float, least_gain: float
) -> Shift:
    """Judge whether the part rises at the cost of the other.

    Zero-sum: the whole interval of the part's change lies above 0, that of the other's below, and that of the
    gain below `least_gain`.
    """
    return Shift(
        gain(found, whole, part, confidence),
        _shifts(found, whole, part, other, confidence, least_gain),
        _shifts(found, whole, part, other, min(EASIER, confidence), least_gain),
    )


def _shifts(found: Changes, whole: int, part: int, other: int, confidence: float, least_gain: float) -> bool:
    rises = found.interval(part, confidence).lower > 0
    falls = found.interval(other, confidence).upper < 0
    if not (rises and falls):
        return False
    left = gain(found, whole, part, confidence)
    return left is not None and left.interval is not None and left.interval.upper < least_gain


def least_rise(found: Changes, whole: int, part: int, confidence: float, least_gain: float) -> float:
    """The smallest rise of the part that could be judged: if the whole did not move at all.

    A smaller rise is not sure, or the noise of the whole is as large as the gain that is asked for.
    """
    quantile = student(found.df, confidence)
    return quantile * max(found.error(part), found.error(whole) / least_gain)
