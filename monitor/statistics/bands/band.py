"""The expected value of a metric from its own past, and the deviation from it.

Many series at once: a column is a series, a row of the past is a window before the one that is judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.statistics.bands.medians import median, median_of_the_others, spread
from monitor.statistics.bands.past import POINTS, Bools, Ints, Level, Past, groups, levels_of, like, pool
from monitor.statistics.bands.rare import Rare, rare
from monitor.statistics.bands.scales import (
    Scale,
    as_scales,
    from_scale,
    sampling_sd,
    smallest_sd,
    to_scale,
    usable,
)
from monitor.statistics.counts import Floats

FARTHEST = 1000.0
"""Larger deviations are cut to this."""
_EARLIER = 0.5
"""Only windows at least so many days old give the rate of rare hits: newer ones may be in the incident."""
FEWEST = 4
"""The least degrees of freedom: with fewer, not even a complete loss would be reported."""


@dataclass(frozen=True)
class Bands:
    """What is expected of m series in one window. NaN, and level NONE, where there is no band."""

    expected: Floats
    """In the metric's own unit."""
    sd: Floats
    """The standard deviation about it, on the metric's scale; see `scales.to_scale`."""
    df: Floats
    """Degrees of freedom of the sd."""
    level: Ints
    """A `Level`."""
    located: Ints
    """Past windows whose median is expected."""
    pooled: Ints
    """Past windows whose residuals gave the sd."""
    seen: Ints
    """Past windows with a usable value."""
    unusable: Ints
    """Past values that are not usable: infinite, outside the scale, or without samples."""
    scales: Ints
    samples: Floats
    """Of the window judged; if unknown, those of a typical past window."""
    rare: Rare
    """The rare hits of shares, which their scale does not suit."""


def band(past: Past, scales: ArrayLike, samples_now: ArrayLike, *, least: int = 24) -> Bands:
    """The bands of one window, from each series' own past.

    Expected is the median of the past windows that are most like the one judged (`Level`). The sd is pooled
    over the windows of about the same time of day (`NEAR`), all weekdays: the robust spread of what each
    differs from the median of the others like it. So neither the daily nor the weekly shape widens it, and
    the noise of such a median is in it. Where the day type is itself what differs (ANY_DAY, ANY_WINDOW), only
    windows of the type of the day judged are pooled: the first weekends get a wide band, not a false alarm.
    To it comes

        share, count   what chance does more in the window judged than in a typical one (`sampling_sd`)
        level          the factor sqrt(typical samples / samples), where there are fewer

    and it is never below `smallest_sd` nor below what chance alone does. Half of the residuals count as
    degrees of freedom, since windows side by side are not independent; but no more than the days that they
    are from, since a day has its luck as a whole: FEWEST of the first few, which have no more to say.

    Where few hits of a share are expected, or few misses, more of them lie as far as that says, or as far as
    `rare` says by the windows pooled of half a day ago and earlier, whichever is farther.

    Args:
        past: what was measured before; incidents and maintenance left out.
        scales: a `Scale` a series, or one for all.
        samples_now: the samples of the window judged, m; NaN where unknown.
        least: how many windows ANY_WINDOW needs.

    >>> days = np.arange(1.0, 29.0)
    >>> past = Past(values=np.tile([[0.1], [0.3]], (14, 1)), samples=np.full((28, 1), 1000.0), age=days,
    ...             same_weekday=days % 7 == 0, same_day_type=np.full(28, True), near=np.zeros(28, np.int64))
    >>> found = band(past, Scale.SHARE, [1000.0])
    >>> Level(int(found.level[0])).name, found.located.tolist(), found.pooled.tolist()
    ('WEEKDAY', [4], [28])
    >>> found.expected.round(3).tolist()
    [0.19]

    Raises ValueError where shapes differ or a scale is none.
    """
    series = past.values.shape[1]
    kinds, now = as_scales(scales, series), np.asarray(samples_now, np.float64)
    if now.shape != (series,):
        raise ValueError(f"{series} series, but samples of {now.shape}")
    there = usable(past.values, past.samples, kinds)
    on_scale = np.where(there, to_scale(past.values, past.samples, kinds), np.nan).T
    levels = levels_of(past, there, least)
    typical = median(np.where(there, past.samples, np.nan).T)
    centre, width = np.full(series, np.nan), np.full(series, np.nan)
    located, pooled, days = np.zeros((3, series), np.int64)
    shares = np.full(past.values.shape, np.nan)
    for level in (Level.WEEKDAY, Level.DAY_TYPE, Level.ANY_DAY, Level.ANY_WINDOW):
        chosen = np.flatnonzero(levels == level)
        if chosen.size == 0:
            continue
        alike = like(past, level)
        centre[chosen] = median(on_scale[np.ix_(chosen, alike)])
        located[chosen] = there[np.ix_(alike, chosen)].sum(axis=0)
        residuals, windows = _residuals(on_scale[chosen], past, level)
        width[chosen], pooled[chosen] = spread(residuals), np.isfinite(residuals).sum(axis=1)
        days[chosen] = _days(np.isfinite(residuals), past.age[windows])
        earlier = windows[past.age[windows] >= _EARLIER]
        of_shares = np.ix_(earlier, chosen[kinds[chosen] == Scale.SHARE])
        shares[of_shares] = np.where(there, past.values, np.nan)[of_shares]
    samples = np.where(np.isnan(now), typical, now)
    expected = from_scale(centre, typical, kinds)
    return Bands(
        expected=expected,
        sd=_sd(width, expected, typical, samples, kinds),
        df=np.where(levels == Level.NONE, np.nan, np.minimum(pooled / 2, np.maximum(days, FEWEST))),
        level=levels,
        located=located,
        pooled=pooled,
        seen=there.sum(axis=0),
        unusable=(~np.isnan(past.values) & ~there).sum(axis=0),
        scales=kinds,
        samples=samples,
        rare=rare(shares, past.samples, expected, samples),
    )


def _residuals(on_scale: Floats, past: Past, level: Level) -> tuple[Floats, Ints]:
    """Series x windows pooled: each less the median of the others like it; NaN where these are too few.

    And which windows of the past these are.

    A window that is left out of its own group leaves one point fewer, so the others may be one fewer.
    """
    group = groups(past, level)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    place = np.arange(group.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Groups side by side, the shorter ones filled up with NaN, so that one sort serves them all.
    stacked = np.full((on_scale.shape[0], sizes.size, int(sizes.max())), np.nan)
    stacked[:, group[order], place] = on_scale[:, order]
    residuals = stacked - median_of_the_others(stacked)
    enough = np.isfinite(stacked).sum(axis=2, keepdims=True) >= POINTS.get(level, 2)
    flat = np.where(enough, residuals, np.nan)[:, group[order], place]
    pooled = pool(past, level)[order]
    return np.asarray(flat[:, pooled]), order[pooled]


def _days(there: Bools, age: Floats) -> Ints:
    """How many days the windows of each series are from: there is series x windows, age is in days."""
    _, day = np.unique(np.floor(age + 0.5 - 1e-6), return_inverse=True)  # whole days back, as in `groups`
    is_of = day[:, None] == np.arange(day.max(initial=-1) + 1)
    return np.asarray((there.astype(np.float64) @ is_of > 0).sum(axis=1))


def _sd(width: Floats, expected: Floats, typical: Floats, now: Floats, kinds: Ints) -> Floats:
    usual, chance = sampling_sd(typical, kinds), sampling_sd(now, kinds)
    more = np.maximum(chance**2 - usual**2, 0.0)
    # Without samples there is no value either, and the band keeps its width.
    less = (kinds == Scale.LEVEL) & (now > 0) & (now < typical)
    fewer = np.divide(typical, now, out=np.ones_like(typical), where=less)
    wide = np.sqrt(np.maximum(width, usual) ** 2 * fewer + more)
    return np.asarray(np.maximum(wide, smallest_sd(expected, kinds)))


def deviation(bands: Bands, values: ArrayLike, errors: ArrayLike | None = None) -> Floats:
    """How far each value lies from what is expected, in standard deviations, signed; at most FARTHEST.

        (scale(value) - scale(expected)) / sd

    or, on the far side of what is rare, as `Rare.deviation` says, whichever is farther. NaN where there is no
    band, or where the value is missing, infinite, outside its scale or of no sample.

    Args:
        bands: of m series.
        values: m, in the metric's own unit.
        errors: m standard errors of levels whose interval is known, else NaN; the sd is never below it.

    >>> days = np.arange(1.0, 29.0)
    >>> past = Past(values=np.full((28, 1), 400.0), samples=np.full((28, 1), np.nan), age=days,
    ...             same_weekday=days % 7 == 0, same_day_type=np.full(28, True), near=np.zeros(28, np.int64))
    >>> found = band(past, Scale.COUNT, [np.nan])
    >>> deviation(found, [400.0]).tolist(), deviation(found, [200.0]).round(1).tolist()
    ([0.0], [-11.1])
    """
    given = np.asarray(values, np.float64)
    there = usable(given, bands.samples, bands.scales)
    centre = to_scale(bands.expected, bands.samples, bands.scales)
    with np.errstate(invalid="ignore"):
        far = (to_scale(given, bands.samples, bands.scales) - centre) / _with_errors(bands, errors)
    side, by_chance = bands.rare.side, bands.rare.deviation(given)
    seldom = (side * (given - bands.expected) > 0) & (side * by_chance > side * far)
    return np.where(there, np.clip(np.where(seldom, by_chance, far), -FARTHEST, FARTHEST), np.nan)


def limits(bands: Bands, multiple: ArrayLike, errors: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Lower and upper: the values at which the deviation is -multiple and +multiple.

    In the metric's own unit. A share's stay within [0, 1], a count's not below 0. NaN where there is no band.
    """
    centre = to_scale(bands.expected, bands.samples, bands.scales)
    half = np.asarray(multiple, np.float64) * _with_errors(bands, errors)
    lower, upper = (from_scale(centre + side * half, bands.samples, bands.scales) for side in (-1, 1))
    side, by_chance = bands.rare.side, bands.rare.limit(np.asarray(multiple, np.float64))
    nearer_upper = np.minimum(upper, np.maximum(by_chance, bands.expected))
    nearer_lower = np.maximum(lower, np.minimum(by_chance, bands.expected))
    return np.where(side < 0, nearer_lower, lower), np.where(side > 0, nearer_upper, upper)


def _with_errors(bands: Bands, errors: ArrayLike | None) -> Floats:
    if errors is None:
        return bands.sd
    known = np.where(bands.scales == Scale.LEVEL, np.asarray(errors, np.float64), np.nan)
    return np.where(np.isnan(bands.sd), np.nan, np.fmax(bands.sd, known))
