"""How one number of a day goes with another one, and what it predicts. Robust, and honest on few days.

Users come in the rhythm of the week, and so do both numbers. Each is therefore compared with the median of
its weekday. Days on which the same model served with the same offline value are one point, not many: they
hold one experience of how well that value predicts.

Sources: P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968);
R. F. Barber et al., Predictive inference with the jackknife+, Annals of Statistics 49 (2021); D. G. Bonett
and T. A. Wright, Sample size requirements for correlations, Psychometrika 65 (2000); M. S. Bartlett, Some
aspects of the time-correlation problem, JRSS 98 (1935).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from monitor.statistics.counts import Floats
from monitor.statistics.intervals import Interval, quantile
from monitor.statistics.rank_correlation import mid_ranks

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_OF_WEEKDAY: Final = 2  # values from which a weekday gets a level of its own
_FEWEST: Final = 4.0  # effective points below which a correlation has no interval
_DIGITS: Final = 12  # digits of the middle value that count: what differs beyond is rounding
_NO_DIGITS: Final = 2.0**13  # so many times the middle value, float64 has no digits beyond these
_MOST_ALIKE: Final = 0.9  # how alike neighbouring days may be at most; beyond, nothing is known
FARTHEST: Final = 0.5
"""How far outside of the past values, in their range, a forecast is still given."""
LARGEST: Final = 1e300
"""The largest size of a number that is compared: sums and differences over all days are still float64."""
CHANGED: Final = 0.99
"""How certain it must be that the slope is another one before a relation counts as broken."""


def fewest_points(confidence: float) -> int:
    """The points that an interval of leave-one-out errors needs.

    >>> fewest_points(0.9), fewest_points(0.8), fewest_points(0.95)
    (9, 4, 19)
    """
    return max(4, math.ceil(round(confidence / (1 - confidence), 9)))


@dataclass(frozen=True, slots=True)
class Days:
    """Days in the order of time, with both numbers of each.

    Attributes:
        day: its number, counted on the calendar.
        weekday: 0 to 6.
        x: the number that predicts.
        y: the number that is predicted.
        point: the point to which each day belongs, numbered from 0; as many as days if each is its own.
    """

    day: Ints
    weekday: Ints
    x: Floats
    y: Floats
    point: Ints

    @property
    def is_daily(self) -> bool:
        """Whether each day is a point of its own."""
        return len(np.unique(self.point)) == len(self.point)

    def of(self, keep: Bools) -> Days:
        """Some of the days."""
        return Days(self.day[keep], self.weekday[keep], self.x[keep], self.y[keep], self.point[keep])


class Points(NamedTuple):
    """The points of days, without the rhythm of the week; `at` is the mean day of each.

    `spent` is how many points the estimate of that rhythm has used up.
    """

    at: Floats
    x: Floats
    y: Floats
    spent: int = 0


def weekday_effects(values: Floats, weekdays: Ints) -> Floats:
    """How far the median of each weekday lies from the mean of these medians; 0 with less than two values.

    >>> weekday_effects(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1])).tolist()[:3]
    [-1.0, 1.0, 0.0]
    """
    levels = np.full(7, np.nan)
    for weekday in range(7):
        of_day = values[weekdays == weekday]
        if len(of_day) >= _OF_WEEKDAY:
            levels[weekday] = np.median(of_day)
    known = np.isfinite(levels)
    effects = np.zeros(7)
    effects[known] = levels[known] - (levels[known].mean() if known.any() else 0.0)
    return effects


def points_of(days: Days, source: Days | None = None) -> Points:
    """The points of some days. The rhythm of the week is that of `source`, by default of these days."""
    source = source or days
    y = days.y - weekday_effects(source.y, source.weekday)[days.weekday]
    x, spent = days.x, 0
    if source.is_daily:  # a value that stands for days has no rhythm
        x = x - weekday_effects(source.x, source.weekday)[days.weekday]
        spent = max(0, int((np.bincount(source.weekday, minlength=7) >= _OF_WEEKDAY).sum()) - 1)
    _, place = np.unique(days.point, return_inverse=True)
    count = np.bincount(place)
    order = np.argsort(np.bincount(place, days.day) / count, kind="stable")
    at, mean_x, mean_y = (np.bincount(place, of) / count for of in (days.day, x, y))
    return Points(at[order], _even(mean_x[order]), _even(mean_y[order]), spent)


def _even(values: Floats) -> Floats:
    """Values that differ only by rounding, as the medians of two weekdays do, become equal.

    The digits are those of the middle size: one wild day must not make all others equal.
    """
    sizes = np.abs(values)
    if not sizes.any():
        return values
    _, exponent = np.frexp(float(np.median(sizes)) or float(sizes.max()))
    with np.errstate(over="ignore"):  # such a value has no digit to round
        scaled = np.ldexp(values, -exponent)
        rounded = np.ldexp(np.round(scaled, _DIGITS), exponent)
    return np.where(np.abs(scaled) < _NO_DIGITS, rounded, values)


class Line(NamedTuple):
    """y = intercept + slope * x."""

    slope: float
    intercept: float


def theil_sen(x: Floats, y: Floats) -> Line | None:
    """The line with the median of the slopes of all pairs of points; None if all x are equal.

    A few wild days do not move it. The intercept is the median of y - slope * x.

    >>> theil_sen(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 5.0, 7.0, 100.0]))
    Line(slope=2.0, intercept=1.0)
    """
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    apart = run != 0
    if not apart.any():
        return None
    slope = float(np.median((y[second] - y[first])[apart] / run[apart]))
    return Line(slope, float(np.median(y - slope * x)))


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """Each point predicted from all others, the rhythm of the week too.

    `slope` and `intercept` are the lines of the others, `error` is y less the prediction, and `naive` is y
    less the median of the others.
    """

    slope: Floats
    intercept: Floats
    error: Floats
    naive: Floats


def leave_one_out(days: Days) -> LeaveOneOut | None:
    """None if without some point all x are equal, or fewer than three points are left."""
    numbers = np.unique(days.point)
    found = np.empty((4, len(numbers)))
    for place, number in enumerate(numbers):
        left = days.point == number
        others = days.of(~left)
        if len(np.unique(others.point)) < 3:
            return None
        _, x, y, _ = points_of(others)
        line = theil_sen(x, y)
        if line is None:
            return None
        _, own_x, own_y, _ = points_of(days.of(left), others)
        error = own_y[0] - line.intercept - line.slope * own_x[0]
        found[:, place] = *line, error, own_y[0] - np.median(y)
    return LeaveOneOut(*found)


def slope_interval(points: Points, effective: float, confidence: float) -> Interval:
    """Sen's interval of the slope, wider where neighbouring days are alike."""
    from scipy import stats

    low, high = map(float, stats.theilslopes(points.y, points.x, confidence)[2:])
    line = theil_sen(points.x, points.y)
    assert line is not None  # the caller has fitted it
    wider = math.sqrt(len(points.x) / effective)
    return Interval(line.slope - wider * (line.slope - low), line.slope + wider * (high - line.slope))


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation of the points.

    `effective` is how many independent points hold as much: fewer where neighbouring days are alike. `p` is
    the chance of a correlation at least as far from 0 without any relation.
    """

    value: float
    points: int
    effective: float
    p: float

    @property
    def _error(self) -> float:
        return math.sqrt((1 + self.value**2 / 2) / (self.effective - 3))

    def interval(self, confidence: float) -> Interval:
        """By Fisher's transformation, with the variance of Bonett and Wright."""
        half = quantile(confidence) * self._error
        at = _arctanh(self.value)
        return Interval(math.tanh(at - half), math.tanh(at + half))


def _arctanh(value: float) -> float:
    return math.atanh(max(-1 + 1e-12, min(1 - 1e-12, value)))


def correlation(points: Points) -> Correlation | None:
    """None with too few points that tell something, or if one of both numbers never changes."""
    n = len(points.x)
    if n <= _FEWEST or len(np.unique(points.x)) < 2 or len(np.unique(points.y)) < 2:
        return None
    x, y = mid_ranks(points.x), mid_ranks(points.y)
    value = _pearson(x, y)
    alike = min(_MOST_ALIKE, max(0.0, _next_alike(points.at, x) * _next_alike(points.at, y)))
    effective = (n - points.spent) * (1 - alike) / (1 + alike)
    if effective < _FEWEST:
        return None
    found = Correlation(value, n, effective, 1.0)
    p = 2 * NormalDist().cdf(-abs(_arctanh(value)) / found._error)
    return Correlation(value, n, effective, p)


def _pearson(x: Floats, y: Floats) -> float:
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1, 1))


def _next_alike(at: Floats, values: Floats) -> float:
    """The correlation of neighbouring points, corrected for its bias on few points.

    A gap of left-out days separates its ends.
    """
    gaps = np.diff(at)
    near = gaps <= 1.5 * np.median(gaps)
    centred = values - values.mean()
    spread = float(np.mean(centred**2))
    found = float(np.mean(centred[:-1][near] * centred[1:][near])) / spread
    return found + (1 + 4 * found) / len(values)


def trend(at: Floats, values: Floats) -> float:
    """The rank correlation with time; 0 if the values never change.

    Its own error does not matter here: the stronger a trend is, the fewer days are worth something.

    >>> trend(np.arange(4.0), np.array([1.0, 2.0, 4.0, 3.0])), trend(np.arange(4.0), np.ones(4))
    (0.8, 0.0)
    """
    if len(np.unique(values)) < 2 or len(np.unique(at)) < 2:
        return 0.0
    return _pearson(mid_ranks(values), mid_ranks(at))


def without_trend(points: Points) -> float | None:
    """The rank correlation of both numbers at a given time: what is left of it without a common trend.

    None if one of them is nothing but its trend.
    """
    x, y, time = mid_ranks(points.x), mid_ranks(points.y), mid_ranks(points.at)
    of_x, of_y = _pearson(x, time), _pearson(y, time)
    left = (1 - of_x**2) * (1 - of_y**2)
    if left < 1e-9:
        return None
    return (_pearson(x, y) - of_x * of_y) / math.sqrt(left)


@dataclass(frozen=True, slots=True)
class Relation:
    """What days say about a pair of numbers.

    Attributes:
        points: of the days, without the rhythm of the week.
        line: Theil and Sen's.
        out: each point predicted from the others.
        correlation: of the points.
        slope: an interval of the slope.
    """

    points: Points
    line: Line
    out: LeaveOneOut
    correlation: Correlation
    slope: Interval

    @property
    def error(self) -> float:
        """The mean absolute error of a left-out point."""
        return float(np.abs(self.out.error).mean())

    @property
    def naive_error(self) -> float:
        """The same, of the median of the others."""
        return float(np.abs(self.out.naive).mean())

    @property
    def skill(self) -> float:
        """The part of the naive error that the line saves; negative if the line is worse.

        0 if the naive forecast has no error, since then there is nothing to save.
        """
        return 1 - self.error / self.naive_error if self.naive_error > 0 else 0.0

    def predicts(self, confidence: float) -> bool:
        """Whether the relation is certain and the line beats the naive forecast."""
        lower, upper = self.correlation.interval(confidence)
        return (lower > 0 or upper < 0) and self.skill > 0


def relation(days: Days) -> Relation | None:
    """The relation of both numbers.

    None with too few points, if one of them never changes, if a number is beyond `LARGEST` or not finite, or
    if the line is out of the range of float64, as where y is near 1 and x near 1e-320.
    """
    if not all(bool((np.abs(of) <= LARGEST).all()) for of in (days.x, days.y)):
        return None
    points = points_of(days)
    correlated = correlation(points)
    if correlated is None:
        return None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # looked at below
        line = theil_sen(points.x, points.y)
        out = None if line is None or not np.isfinite(line).all() else leave_one_out(days)
        if line is None or out is None:
            return None
        found = Relation(points, line, out, correlated, slope_interval(points, correlated.effective, 0.95))
        errors = (out.slope, out.intercept, out.error, out.naive)
        sound = all(bool(np.isfinite(of).all()) for of in (*errors, np.array(found.slope)))
        return found if sound and math.isfinite(found.error + found.naive_error) else None


class Prediction(NamedTuple):
    """A predicted value with its interval. `beyond`: how far x lies outside, in ranges of the past x."""

    value: float
    lower: float
    upper: float
    beyond: float


def predict(found: Relation, x: float, confidence: float) -> Prediction | None:
    """The prediction at x, by the jackknife+.

    None with too few points for this confidence, or if it is out of the range of float64.

    Outside of the past values the interval also holds what the slope's own interval makes of the distance.
    """
    n = len(found.out.error)
    alpha = 1 - confidence
    upper_place = math.ceil(round((1 - alpha) * (n + 1), 9))
    lower_place = math.floor(round(alpha * (n + 1), 9))
    if n < fewest_points(confidence) or upper_place > n or lower_place < 1:
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        centre = found.out.intercept + found.out.slope * x
    if not np.isfinite(centre).all():
        return None
    lower = float(np.sort(centre - np.abs(found.out.error))[lower_place - 1])
    upper = float(np.sort(centre + np.abs(found.out.error))[upper_place - 1])
    value = found.line.intercept + found.line.slope * x
    first, last = float(found.points.x.min()), float(found.points.x.max())
    distance = max(first - x, x - last, 0.0)
    unsure = distance * max(found.slope.upper - found.line.slope, found.line.slope - found.slope.lower)
    wide = Prediction(
        value, min(lower, value) - unsure, max(upper, value) + unsure, distance / (last - first)
    )
    return wide if all(map(math.isfinite, wide)) else None


def has_vanished(earlier: Relation, recent: Relation, confidence: float) -> bool:
    """Whether a relation that was certain is gone.

    It was certain before; now its interval contains 0 or has the other sign; and the slope is certainly not
    the former one. Without the last condition, few days or values that hardly differ would look like a loss.
    """
    lower, upper = earlier.correlation.interval(confidence)
    if lower <= 0 <= upper:
        return False
    sign = 1 if lower > 0 else -1
    now = recent.correlation.interval(confidence)
    if min(sign * now.lower, sign * now.upper) > 0:
        return False
    errors = [(one.slope.upper - one.slope.lower) / (2 * quantile(0.95)) for one in (earlier, recent)]
    fall = sign * (earlier.line.slope - recent.line.slope)
    return fall > NormalDist().inv_cdf(CHANGED) * math.hypot(*errors)
