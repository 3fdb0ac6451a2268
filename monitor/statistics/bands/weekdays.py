"""The expected value of a day from the days before it, by weekday as far as weekdays differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.bands.medians import median, median_of_the_others, spread
from monitor.statistics.counts import Floats

WEEK = 7
_SMALLEST = 0.005  # the least spread for outliers, relative to a usual day
EFFICIENCY = 0.7
"""Degrees of freedom of a day, those of the centres taken off: the spread is about medians; by simulation."""

WILD = 6.0
"""An outlier is so many spreads from all other days, and from those of its weekday."""

Ints = NDArray[np.int64]


class Usual(NamedTuple):
    """What r days that are judged should be, in each of m series."""

    centre: Floats
    """r x m"""
    noise: Floats
    """r x m: the variance of the centre, where the sd is 1."""
    sd: Floats
    """m: of a day about what it should be."""
    df: Floats
    """m: degrees of freedom of the sd: what the weekdays took of them, taken as far as they count."""
    days: Floats
    """m: earlier days that have a value and are not outliers."""


def usual(
    values: Floats, weekday: Ints, judged: Ints, *, robust: Callable[[Floats], Floats] = spread
) -> Usual:
    """What days of these weekdays should be, from the days before.

    Where each weekday has two values or more, the centre of a weekday is

        m + k (m_w - m),  k = max(0, 1 - 2/3 v s^2 / var(m_w))

    m the median of all days, m_w that of the weekday, v the noise of m_w, s the robust spread of each day
    about the others of its weekday: weekdays count as far as they differ by more than chance. The sd is the
    robust spread about such a centre of the other days, its noise taken out; k takes 6 k degrees of freedom.
    Else the centre is m, and the sd the root mean square about the median of the others: a robust one would
    take the days of the first weekends for wild ones, and the next for an alarm.

    An outlier, such as the very first day or a day with an outage, is left out: a weekday may have only two
    days, and it would be half of the expected value.

    Args:
        values: days x series; NaN where there is none.
        weekday: of those days, 0 to 6.
        judged: the weekdays of the days that are judged.
        robust: the spread of residuals about 0.

    Source: W. James and C. Stein, Estimation with quadratic loss, Berkeley Symposium 4 (1961), for k; 2/3 is
    (7 - 3) / (7 - 1).

    >>> day = np.arange(21)
    >>> week = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 60.0, 70.0])
    >>> found = usual(week[day % 7][:, None], day % 7, np.array([5, 0]))
    >>> found.centre[:, 0].tolist(), found.sd.tolist(), found.df.round(1).tolist()
    ([60.0, 1.0], [0.0], [9.8])
    >>> found = usual(np.array([[1.0], [2.0], [3.0], [2.0]]), np.arange(4), np.array([4]))
    >>> found.centre.tolist(), found.sd.round(3).tolist(), found.df.round(1).tolist()
    ([[2.0]], [0.587], [2.1])
    """
    values = np.where(wild(values, weekday), np.nan, values)
    days = np.isfinite(values).sum(axis=0)
    middle, chance = median(values.T), median_noise(days)
    by_day = [values[weekday == number].T for number in range(WEEK)]
    counts = np.array([np.isfinite(same).sum(axis=1) for same in by_day])
    often = (counts >= 2).all(axis=0)
    medians, noise = np.array([median(same) for same in by_day]), median_noise(counts)
    by_weekday = np.concatenate([apart(same) for same in by_day], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = 1 - 2 / 3 * noise.mean(axis=0) * robust(by_weekday) ** 2 / medians.var(axis=0, ddof=1)
    kept = np.where(often & (kept > 0), kept, 0.0)
    sd = np.where(often, robust(_apart_from_both(values, weekday, kept)), _root_mean_square(apart(values.T)))
    weekly = kept > 0  # a weekday that has no value must not spoil those series that go without
    centre = np.where(weekly, middle + kept * (medians[judged] - middle), middle)
    each = np.where(weekly, kept * noise[judged], 0.0) + (1 - kept) * chance
    df = EFFICIENCY * (days - 1 - (WEEK - 1) * kept)
    return Usual(centre, each, sd, df, days.astype(np.float64))


def apart(values: Floats) -> Floats:
    """Each value of a row less the median of its others, which differ by the noise of that median as well."""
    others = np.isfinite(values).sum(axis=1) - 1
    return np.asarray((values - median_of_the_others(values)) / np.sqrt(1 + median_noise(others))[:, None])


def wild(values: Floats, weekday: Ints) -> NDArray[np.bool_]:
    """Which days lie far from all others, and far from those of their weekday, of which one is not wild.

    None of a series that is mostly 0: of what is rare, what comes now and then is not wild.
    """
    own = np.full(values.shape, np.nan)
    for number in range(WEEK):
        own[weekday == number] = apart(values[weekday == number].T).T
    size = np.abs(median(values.T))
    found = np.isfinite(values) & (size > 0)
    for residuals in (apart(values.T).T, own):
        found &= np.abs(residuals) > WILD * np.maximum(spread(residuals.T), _SMALLEST * size)
    for number in range(WEEK):
        same = weekday == number
        found[same] &= (np.isfinite(values[same]) & ~found[same]).any(axis=0)
    return found


def _apart_from_both(values: Floats, weekday: Ints, kept: Floats) -> Floats:
    """As `apart`, of a centre that lies by `kept` between the others of all days and those of its weekday."""
    of_all = values.T - median_of_the_others(values.T)
    noise = np.broadcast_to(median_noise(np.isfinite(values).sum(axis=0) - 1)[:, None], of_all.shape)
    own, own_noise = np.full((2, *of_all.shape), np.nan)
    for number in range(WEEK):
        same = values[weekday == number].T
        own[:, weekday == number] = same - median_of_the_others(same)
        own_noise[:, weekday == number] = median_noise(np.isfinite(same).sum(axis=1) - 1)[:, None]
    part, weekly = kept[:, None], kept[:, None] > 0
    mixed = np.where(weekly, part * own + (1 - part) * of_all, of_all)
    return np.asarray(mixed / np.sqrt(1 + np.where(weekly, part * own_noise + (1 - part) * noise, noise)))


def _root_mean_square(residuals: Floats) -> Floats:
    there = np.isfinite(residuals)
    count = there.sum(axis=1)
    squares = np.where(there, residuals, 0.0) ** 2
    return np.where(count > 0, np.sqrt(squares.sum(axis=1) / np.maximum(count, 1)), np.nan)


def median_noise(count: Ints) -> Floats:
    """The variance of the median of so many standard normals; NaN of none.

    pi / (2 n + 1), or pi / (2 n + 5/2) where n is even: within 5 %.

    >>> median_noise(np.array([0, 1, 2, 3, 4])).round(3).tolist()
    [nan, 1.047, 0.483, 0.449, 0.299]
    """
    safe = np.maximum(count, 1)
    return np.where(count > 0, np.pi / (2 * safe + np.where(safe % 2, 1.0, 2.5)), np.nan)
