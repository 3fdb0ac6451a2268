"""Slow changes: the last three days of a series against the four weeks before them, and against each other.

A band moves with its past, and a change of two percent a day stays within it for long. Seen over three days,
against a past that ends before they began, it does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.bands.false_alarms import BUDGET, EASIER, student_bound
from monitor.statistics.bands.levels import levelled
from monitor.statistics.bands.medians import median, spread_of_most
from monitor.statistics.bands.scales import Scale, as_scales
from monitor.statistics.bands.weekdays import EFFICIENCY, usual
from monitor.statistics.counts import Floats

RECENT = 3
"""The number of judged days. The newest has weight 9, the one before 4, the oldest 1."""
FIRST, LAST = 5, 28
"""The days that they are compared with, counted back from the last day, which is 1."""
LEAST = 8
"""The least number of those days for a judgement."""
LEAST_MOVES = 20
"""With fewer moves from day to day among them, the pace alone is no drift."""
FLOOR = 0.005
"""The least relative noise of a daily value."""
SMALLEST = 0.04
"""The smallest relative change that is called a drift."""
LARGE = 2.0
"""A change of so many times the smallest is a drift even if it does not continue."""
GOING_ON = 0.25
"""The least pace of a change that continues; a step has almost none."""
DUST = 0.001
"""Ignore smaller rises of anything but a count: relative to 0, any rise is large."""
FARTHEST = 1000.0
"""Larger changes and paces are cut to this."""
_JUDGED_ANEW = 2.5  # as many alarms begin, judged every six hours, as in so many judgements a day; simulated
_PACES_A_WEEK = 7 * _JUDGED_ANEW
_CHANGES_A_WEEK = _PACES_A_WEEK / RECENT  # of three days in a row, the judgements share their days
_OF_MOVES = 0.7  # of the degrees of freedom of moves: two in a row share a day; by simulation
_SPARSE = 0.2  # of a usual day's samples; a day with fewer counts as missing
_SMALLEST_SD = 1e-9
_SHARED = 0.5
"""The correlation of a count's luck on two days in a row, beyond that of chance; of recorded traffic."""
_OF_NOTHING = 0.375  # hits that come to those seen, as in `scales.to_scale`: no hit of n is a noise as well

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Drift:
    """The change of m series. NaN without a judgement."""

    before: Floats
    """What the last three days would be by the days before them."""
    now: Floats
    """The weighted mean of the last three days."""
    change: Floats
    """now - before, in standard errors."""
    relative: Floats
    """(now - before) / |before|; infinite where before is 0 and now is not."""
    df: Floats
    """Degrees of freedom of the change."""
    pace: Floats
    """How far these moved in one direction without the largest of their moves, in sds of a move."""
    pace_df: Floats
    """Degrees of freedom of the pace; NaN, and no bound, where fewer than LEAST_MOVES are known."""
    days: Ints
    """Days before that were used."""
    scales: Ints
    """A `Scale` a series."""


class DriftBounds(NamedTuple):
    """For each series: the bounds of |change| and of |pace|, and the |change| below which a drift is over."""

    change: Floats
    pace: Floats
    clear: Floats


def drift(
    values: ArrayLike,
    weights: ArrayLike,
    weekday: ArrayLike,
    model: ArrayLike | None = None,
    *,
    scales: ArrayLike = Scale.LEVEL,
    windows: int = 1,
) -> Drift:
    """How far the last three days lie from the days before, and how far they still move.

        now = sum a_d x_d,  before = sum a_d m_d,  a = 1/14, 4/14, 9/14, the newest day last
        change = (now - before) / (s sqrt(sum a_d^2 (1 / u_d + v_d)))
        pace   = (sum y_d - the largest y_d) / s_y,  y = x_d - x_(d - 1) less what is usual, at least 0

    m_d, its noise v_d, and the spread s are what the fifth to the 28th day before say of such a weekday
    (`weekdays.usual`), u_d is the part of a usual day's samples that a day has; s is never below 0.5 % of
    before, nor below what chance alone does to so many hits, of which weeks without any say nothing:

        share  sqrt(p (1 - p) / n),  p = (hits + 3/8) / (n + 3/4), n the samples of a usual day
        count  sqrt(x / windows),    x = (hits + 3/8) / windows

    the mean of this before and now, which makes of a count its distance on the scale of the root.

    What a count's s is above this chance, two days in a row share by half: weather and events last for days.
    So 2 sum a_d a_(d - 1) / 2 of its variance comes to that of the change.

    The pace, with the sign of sum y_d, is the same for the moves from day to day, s_y without those that were
    steps (`spread_of_most`). It leaves out the largest move, so that a new model's step has next to none,
    however large, and a drift has two thirds of its own. A day that does not follow the weekday before it, a
    holiday told as a Sunday, has moved by m_d less m_(d - 1). Neither hangs on the unit of a level.

    With `model`, what each did to the level is taken out first, and what is not known of it is added to the
    error (`levels.levelled`): the step of a new model neither hides a drift nor is one.

    All of the last four days must be there, and eight of the days before. A day with less than a fifth of
    the usual samples, or with none, counts as missing, and so does a value that is not finite.

    Args:
        values: days x series, oldest first, no day left out; NaN where one is missing.
        weights: their samples; NaN where unknown.
        weekday: of each day, 0 to 6.
        model: the number of each day's model, -1 where it is unknown; None: nothing is known of models.
        scales: a `Scale` a series, or one for all. What chance does to a level is not known.
        windows: how many windows of a day a count is the mean of.

    >>> day = np.arange(28)
    >>> values = np.full((28, 2), 100.0)
    >>> values[25:] -= [[2.0, 6.0], [4.0, 6.0], [6.0, 6.0]]  # it drifts; a step
    >>> found = drift(values, np.full((28, 2), np.nan), day % 7)
    >>> found.before.tolist(), found.now.round(2).tolist(), found.relative.round(3).tolist()
    ([100.0, 100.0], [94.86, 94.0], [-0.051, -0.06])
    >>> found.change.round(1).tolist(), found.pace.round(1).tolist()
    ([-14.1, -16.5], [-5.5, 0.0])

    Raises ValueError where the shapes differ, where a weekday or a scale is none, or without a window.
    """
    given, samples = np.asarray(values, np.float64), np.asarray(weights, np.float64)
    days = np.asarray(weekday, np.float64)
    if given.ndim != 2 or samples.shape != given.shape or days.shape != given.shape[:1]:
        raise ValueError(f"values are days x series, {given.shape}; so are weights, and weekday is one a day")
    if not bool(np.isin(days, np.arange(7)).all()):
        raise ValueError("a weekday is 0 to 6")
    if windows < 1:
        raise ValueError(f"a day has a window or more, got {windows}")
    models = np.full(len(days), -1) if model is None else np.asarray(model, np.int64)
    if models.shape != days.shape:
        raise ValueError(f"a model is one a day, got {models.shape} of {days.shape}")
    kinds = as_scales(scales, given.shape[1])
    full, typical = _fullness(given, samples)
    trials = np.where(kinds == Scale.COUNT, windows, typical)
    known = _last(np.where(full >= _SPARSE, given, np.nan), np.nan)
    full, its_day = _last(full, 0.0), _last(days, 0.0).astype(np.int64)
    share = np.arange(1.0, RECENT + 1) ** 2 / 14
    known, unknown, taken = levelled(known, its_day, _last(models.astype(np.float64), -1.0), share)
    old = slice(0, LAST - FIRST + 1)
    level = usual(known[old], its_day[old], its_day[-RECENT - 1 :])
    enough = np.isfinite(known[-RECENT - 1 :]).all(axis=0) & (level.days >= LEAST)
    share = np.where(enough, share[:, None], np.nan)
    centre, noise = level.centre[1:], level.noise[1:]
    before, now = (share * centre).sum(axis=0), (share * known[-RECENT:]).sum(axis=0)
    each = 1 / np.maximum(full[-RECENT:], _SPARSE) + noise
    of_chance = _of_chance(before, now, trials, kinds)
    sd = np.maximum(_believed(level.sd, before), of_chance)
    shared = np.where(kinds == Scale.COUNT, 2 * _SHARED * (share[1:] * share[:-1]).sum(axis=0), 0.0)
    error = np.sqrt(sd**2 * (share**2 * each).sum(axis=0) + (sd**2 - of_chance**2) * shared + unknown)
    follows = np.diff(its_day) % 7 == 1
    moves = np.diff(known, axis=0)
    learnt = np.where(follows[:, None], moves, np.nan)[: old.stop - 1]
    step = usual(learnt, its_day[1 : old.stop], its_day[-RECENT:], robust=spread_of_most)
    usual_move = np.where(follows[-RECENT:, None], step.centre, np.diff(level.centre, axis=0))
    went = np.where(enough, moves[-RECENT:] - usual_move, np.nan)
    last = np.where(enough, known[-1], np.nan)
    start = last - went.sum(axis=0)
    root = np.sqrt(2)  # a move has the noise of two days
    of_move = np.maximum(_believed(step.sd, root * start), root * _of_chance(start, last, trials, kinds))
    of_move *= np.sqrt(1 + step.noise.mean(axis=0))
    return Drift(
        before=before,
        now=now,
        change=np.clip((now - before) / error, -FARTHEST, FARTHEST),
        relative=_relative(now - before, before),
        df=np.where(enough, np.maximum(level.df - EFFICIENCY * taken, 1.0), np.nan),
        pace=np.clip(_without_the_largest(went) / of_move, -FARTHEST, FARTHEST),
        pace_df=np.where(enough & (step.days >= LEAST_MOVES), _OF_MOVES * step.df, np.nan),
        days=level.days.astype(np.int64),
        scales=kinds,
    )


def _fullness(values: Floats, samples: Floats) -> tuple[Floats, Floats]:
    """Samples over those of a usual day, at most 1; 1 where they are unknown, 0 where there is no value.

    And those of a usual day, NaN where they are unknown.
    """
    there = np.isfinite(values) & ~(samples <= 0)
    typical = median(np.where(there & np.isfinite(samples), samples, np.nan).T)
    full = np.where(np.isfinite(samples), np.minimum(samples / typical, 1.0), 1.0)
    return np.where(there, full, 0.0), typical


def _last(days: Floats, missing: float) -> Floats:
    """The last 28 days; days that nobody saw come before them."""
    kept = days[-LAST:]
    around = [(LAST - len(kept), 0)] + [(0, 0)] * (kept.ndim - 1)
    return np.pad(kept, around, constant_values=missing)


def _believed(sd: Floats, size: Floats) -> Floats:
    return np.asarray(np.maximum(sd, np.maximum(FLOOR * np.abs(size), _SMALLEST_SD)))


def _of_chance(one: Floats, other: Floats, trials: Floats, scales: Ints) -> Floats:
    """The mean of what chance does to a day at two levels; 0 of a level, and where the trials are unknown."""
    known = (scales != Scale.LEVEL) & np.isfinite(trials)
    each = np.where(known, 1.0, 0.0) / np.where(known, trials, 1.0)
    hits = np.maximum(np.stack([one, other]), 0.0) + _OF_NOTHING * each
    share = np.minimum(hits / (1 + 2 * _OF_NOTHING * each), 1.0)
    return np.asarray(np.sqrt(np.where(scales == Scale.SHARE, share * (1 - share), hits) * each).mean(axis=0))


def _without_the_largest(went: Floats) -> Floats:
    """The sum over days without the largest of its sign; 0 where that leaves nothing of its sign."""
    total = went.sum(axis=0)
    sign = np.sign(total)
    return np.asarray(sign * np.maximum(np.abs(total) - (went * sign).max(axis=0), 0.0) + 0.0)


def _relative(difference: Floats, base: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / np.abs(base))


def drift_bounds(series: int, found: Drift, *, budget: float = BUDGET) -> DriftBounds:
    """The bounds of a recommender's series, from the false alarms that may be expected a week.

    Each of the two tests has half of the budget. With q = budget / 2 / series:

        change   the quantile of Student's t that leaves q 6/35 / 2 above it
        pace     the one that leaves sqrt(q 2/35 / 2) above it

    A day is judged every six hours, in which as many alarms begin as in 2.5 judgements of it. The change is
    tested on days that those of three days share, which makes 35/6 a week. Without its largest move the pace
    is below both x_0 - x_2 and x_1 - x_3, which share no day: both must be beyond the bound.

    >>> day = np.arange(28)
    >>> found = drift(np.full((28, 1), 100.0), np.full((28, 1), np.nan), day % 7)
    >>> [bound.round(2).tolist() for bound in drift_bounds(60, found)]
    [[4.95], [3.13], [2.97]]

    Raises ValueError unless there is a series and the budget is finite and above 0.
    """
    if not (series > 0 and 0 < budget < np.inf):
        raise ValueError(f"bounds need a series and a budget above 0, got {series!r} and {budget!r}")
    chance = min(1.0, budget / 2 / series)
    change = student_bound(chance / _CHANGES_A_WEEK / 2, found.df)
    return DriftBounds(
        change, student_bound(math.sqrt(chance / _PACES_A_WEEK / 2), found.pace_df), EASIER * change
    )


def drifts(found: Drift, bounds: DriftBounds, *, smallest: float = SMALLEST) -> Bools:
    """Which series drift: they moved by `smallest` or more, surely, and go on or moved far.

        |relative| >= smallest, and
        |change| >= bound with a pace of 0.25 or more to the same side, or with |relative| >= 2 smallest,
        or |pace| >= bound to the same side

    A step, as a retrained model makes it, is sure after three days however small it is, and is no drift. So a
    small change is never one, and a medium one only while it goes on; nor is a rise by less than 0.001 of
    anything but a count. The verdict of a series that drifts already is `stays`. docs/statistics.md says what
    was measured.

    >>> day = np.arange(28)
    >>> values = np.full((28, 3), 100.0)
    >>> values[25:] -= [[2.0, 6.0, 0.5], [4.0, 6.0, 1.0], [6.0, 6.0, 1.5]]
    >>> found = drift(values, np.full((28, 3), np.nan), day % 7)
    >>> drifts(found, drift_bounds(3, found)).tolist()
    [True, False, False]
    """
    side = np.sign(found.change)
    matters = (np.abs(found.relative) >= smallest) & ~_is_dust(found)
    goes_on = (found.pace * side >= GOING_ON) | (np.abs(found.relative) >= LARGE * smallest)
    by_change = (np.abs(found.change) >= bounds.change) & goes_on
    return np.asarray(matters & (by_change | (found.pace * side >= bounds.pace)))


def stays(found: Drift, bounds: DriftBounds, side: ArrayLike, *, smallest: float = SMALLEST) -> Bools:
    """Which series that drift already are still away, by days from before their drift.

        |change| >= clear to the same side, and |relative| >= 0.6 smallest

    It need not go on. The limits are lower than those of `drifts`, so that the verdict does not flicker.

    Args:
        found: the last three days, against days from before the drift.
        bounds: of `drift_bounds`.
        side: 1 of a series that drifted upwards, -1 downwards, 0 of one that did not drift.

    >>> day = np.arange(28)
    >>> values = np.full((28, 2), 100.0)
    >>> values[25:] -= [6.0, 1.0]
    >>> found = drift(values, np.full((28, 2), np.nan), day % 7)
    >>> stays(found, drift_bounds(2, found), [-1, -1]).tolist()
    [True, False]
    """
    away = found.change * np.asarray(side, np.float64) >= bounds.clear
    return np.asarray(away & (np.abs(found.relative) >= EASIER * smallest))


def _is_dust(found: Drift) -> Bools:
    """Whether anything but a count rises by less than DUST."""
    away = (np.abs(found.now) >= np.abs(found.before)) & (np.abs(found.now - found.before) < DUST)
    return np.asarray(away & (found.scales != Scale.COUNT))
