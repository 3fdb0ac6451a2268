"""The daily shape of traffic: its quietest hours, and whether it moved by an hour."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.statistics.counts import Floats

DAY: Final = 24
WEEK: Final = 7 * DAY
NIGHT: Final = 4  # hours
NIGHT_MIDDLE: Final = 4.0  # the usual middle of the four quietest hours, in the users' own time
_QUIET: Final = 0.11  # of a day's requests, at most, if a night can be seen; four equal hours have 0.17
_WEEKS: Final = 2  # the fewest that show the shape of a week
_DAYS: Final = 3  # the fewest that show a new shape
_MOST_DAYS: Final = 2 / 3  # of the days must have moved
_BETTER: Final = 0.5  # the error of the moved shape / that of the old one, at most
_USUAL: Final = 2.0  # the error of the moved shape / the usual error of a day, at most
_CHANCE: Final = 2 * 0.25 * DAY  # the square root of a Poisson count has the variance 1/4
_HOURS: Final = 20  # the fewest of a day


def quietest(requests: npt.ArrayLike) -> int | None:
    """The first of the four hours in a row with the fewest requests; None if no night can be seen.

    Args:
        requests: the mean requests of each hour of the day, 24 of them, not negative.

    >>> quietest([20, 10, 5, 3, 2, 4, 15] + 17 * [30])
    2
    >>> quietest(24 * [30]) is None
    True
    """
    hours = np.asarray(requests, np.float64)
    total = float(hours.sum())
    if hours.shape != (DAY,) or not math.isfinite(total) or total <= 0:
        return None
    sums = np.array([np.take(hours, range(first, first + NIGHT), mode="wrap").sum() for first in range(DAY)])
    first = int(sums.argmin())
    return first if sums[first] <= _QUIET * total else None


def hours_moved(before: Floats, after: Floats) -> int:
    """By how many hours the daily shape moved between two spans: 1 later, -1 earlier, 0 otherwise.

    It moved if it moved the same way on two thirds of the days after, at least three (see `days_moved`). So a
    few unusual days do not matter.

    Args:
        before: requests of each hour of whole weeks before, the last one ends where `after` begins.
        after: requests of each hour after, a week at most. NaN is an unknown hour, in both.

    Raises:
        ValueError: `before` holds no whole weeks, or `after` is longer than a week.
    """
    seen = np.isfinite(_errors(before, after)).all(axis=0)
    days = days_moved(before, after)
    needed = max(_DAYS, math.ceil(_MOST_DAYS * int(seen.sum())))
    return next((moved for moved in (-1, 1) if days.count(moved) >= needed), 0)


def days_moved(before: Floats, after: Floats) -> list[int]:
    """By how many hours the shape of each whole day after moved: 1 later, -1 earlier, 0 no hour or unknown.

    The shape before is the median of its weeks, hour by hour. For each day after, it is scaled to the day's
    requests, as it is and moved by an hour. The errors are squared differences of square roots, because the
    square root of a count has the same noise at any size:

        error(s) = sum over h of (sqrt(after[h]) - scale * sqrt(shape[h - s])) ** 2

    A day moved by s if error(s) is at most half of error(0) and at most twice the usual error, and if
    error(0) is more than twice what chance explains. The usual error is the median over the days before, each
    compared with the other weeks: in school holidays the day begins later too, but its shape is another one.
    With few requests, chance hides an hour, and no day moves.

    >>> day = 1000 * (2 + np.sin(2 * np.pi * np.arange(24) / 24))
    >>> days_moved(np.tile(day, 28), np.roll(np.tile(day, 3), 1))
    [1, 1, 1]
    """
    earlier, same, later = _errors(before, after)
    worst = np.where(same > _CHANCE, np.minimum(_BETTER * same, _USUAL * _usual_error(before)), -1.0)
    return [
        int(forth) - int(back)
        for back, forth in zip(
            earlier <= np.minimum(worst, later), later <= np.minimum(worst, earlier), strict=True
        )
    ]


def _errors(before: Floats, after: Floats) -> Floats:
    """The errors of each whole day (columns) for a shape that is an hour earlier, the same, an hour later."""
    if len(before) % WEEK or len(after) > WEEK:
        raise ValueError("hours before are whole weeks, hours after a week at most")
    whole = len(after) // DAY * DAY
    weeks = before.reshape(-1, WEEK)
    if np.isfinite(weeks).any(axis=1).sum() < _WEEKS:
        return np.full((3, whole // DAY), np.nan)
    shape = np.sqrt(_medians(weeks))
    days = np.sqrt(after[:whole]).reshape(-1, DAY)
    place = np.arange(whole).reshape(-1, DAY)
    return np.stack([_misfit(days, shape[(place - moved) % WEEK]) for moved in (-1, 0, 1)])


def _usual_error(before: Floats) -> float:
    """The median error of a day before, compared with the same day of the other weeks; not below chance."""
    weeks = before.reshape(-1, WEEK)
    weeks = weeks[np.isfinite(weeks).any(axis=1)]
    errors = [
        _misfit(
            np.sqrt(week).reshape(-1, DAY),
            np.sqrt(_medians(np.delete(weeks, place, axis=0))).reshape(-1, DAY),
        )
        for place, week in enumerate(weeks)
    ]
    found = np.concatenate(errors) if errors else np.array([])
    found = found[np.isfinite(found)]
    return max(float(np.median(found)), _CHANCE / 2) if len(found) else _CHANCE / 2


def _medians(weeks: Floats) -> Floats:
    """The median of each hour of the week over the weeks in which it is known; NaN if it never is."""
    found = np.full(WEEK, np.nan)
    known = np.isfinite(weeks).any(axis=0)
    found[known] = np.nanmedian(weeks[:, known], axis=0)
    return found


def _misfit(days: Floats, shapes: Floats) -> Floats:
    """The error of each day's shape; NaN for a day of which too few hours are known or have requests."""
    known = np.isfinite(days) & np.isfinite(shapes)
    days, shapes = np.where(known, days, 0.0), np.where(known, shapes, 0.0)
    norm = (shapes * shapes).sum(axis=1)
    usable = (known.sum(axis=1) >= _HOURS) & (norm > 0) & (days.sum(axis=1) > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (shapes * days).sum(axis=1) / norm
        errors = ((days - scale[:, None] * shapes) ** 2).sum(axis=1)
    return np.asarray(np.where(usable, errors, np.nan))
