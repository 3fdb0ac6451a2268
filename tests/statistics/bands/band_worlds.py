"""Hours of made-up series with the shapes of a day and a week, each judged by the hours before it."""

from __future__ import annotations

import numpy as np
from scipy import signal

from monitor.statistics.bands.band import band, deviation
from monitor.statistics.bands.past import FAR, NEAR, Past


def past_of(values, samples=None, *, days=None, near=None, weekend=(5, 6), today=0):
    """The past of a window on weekday `today`: rows are `days` back (1, 2, ...), one a day by default."""
    values = np.asarray(values, np.float64)
    days = np.arange(1, len(values) + 1) if days is None else np.asarray(days)
    near = np.zeros(len(values), np.int64) if near is None else np.asarray(near)
    weekday = (today - days) % 7
    return Past(
        values=values,
        samples=np.full(values.shape, np.nan) if samples is None else np.asarray(samples, np.float64),
        age=np.asarray(days - np.where(near == FAR, -7, near) / 24, np.float64),
        same_weekday=weekday == today,
        same_day_type=np.isin(weekday, weekend) == (today in weekend),
        near=near,
    )


def hours(days, first_weekday=0):
    """The weekday and the time of day of each hour."""
    hour = np.arange(24 * days)
    return (hour // 24 + first_weekday) % 7, hour % 24


def shape(weekday, time):
    """Requests by hour: low at night, higher and later at the weekend."""
    evening = 20 + 1.5 * (weekday >= 5)
    return np.exp(0.6 * np.cos(2 * np.pi * (time - evening) / 24)) * (1 + 0.25 * (weekday >= 5))


def noise(rng, size, *, tails=np.inf, serial=0.0):
    """Columns of noise with variance 1, Student's tails, and a correlation from hour to hour."""
    drawn = (
        rng.normal(size=size)
        if tails == np.inf
        else rng.standard_t(tails, size) / np.sqrt(tails / (tails - 2))
    )
    return signal.lfilter([1], [1, -serial], drawn * np.sqrt(1 - serial**2), axis=0)


def judged(values, samples, weekday, scale, hours_judged):
    """The deviations and degrees of freedom of these hours, each from its own past."""
    found = [_judged(values, samples, weekday, scale, hour) for hour in hours_judged]
    return np.array([one for one, _ in found]), np.array([df for _, df in found])


def _judged(values, samples, weekday, scale, hour):
    back = np.arange(1, hour + 1)
    near = (-back + 12) % 24 - 12
    kept = back[((np.abs(near) <= NEAR) | (back <= 48)) & (back <= 28 * 24)]
    near = near[kept - 1]
    then = hour - kept
    made = band(
        Past(
            values=values[then],
            samples=samples[then],
            age=kept / 24,
            same_weekday=weekday[then] == weekday[hour],
            same_day_type=(weekday[then] >= 5) == (weekday[hour] >= 5),
            near=np.where(np.abs(near) <= NEAR, near, FAR),
        ),
        scale,
        samples[hour],
    )
    return deviation(made, values[hour]), made.df
