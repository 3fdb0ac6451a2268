"""A candidate for the model of bands: a robust seasonal filter that remembers the last hours.

On the scale of the metric, a value is

    z = level + profile(slot, weekend) + profile(slot, weekday) + x + noise,    x = rho x' + step

`x` is what the last hours share beyond level and profile: the weather, a concert, a slow morning. It decays
with rho per window. The filter forecasts each window from the windows before it. It compares the mean of the
last 1, 2, 3, 6, 12 and 24 windows with the forecast from before they began. So a sudden loss is compared with
the hours just before it, a small one adds up, and a level that moved last week widens nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.bands.scales import (
    as_scales,
    from_scale,
    sampling_sd,
    smallest_sd,
    to_scale,
    usable,
)
from monitor.statistics.counts import Floats

SPANS = (1, 2, 3, 6, 12, 24)
"""Windows whose mean is held against the forecast from before them."""
DAYS, SATURDAY = 7, 5
_LEVEL = 1 / 120  # how far a window moves the level, once it is known: five days of hours
_DAY = 0.12  # how far a day moves the profile of working days; twice as far at weekends, which are fewer
_WEEK = 0.22  # how far a week moves the profile of a weekday
_FADES = 0.99  # the profile of a weekday fades, so that it holds only what the weeks confirm
_SPREAD = 1 / 25  # how far a window moves the spread of its slot, once it is known
_BESIDE = (
    (0, 1.0),
    (1, 0.4),
    (-1, 0.4),
)  # a window teaches the spread of its slot, and of the slots beside it
_COVARIANCE = 1 / 500  # how far a window moves the covariances
_LARGEST_RHO = 0.98
_CLIP = 2.5  # no window teaches more than so many standard deviations
_SUSPECT = 3.0  # beyond so many, a window is not remembered at once: an incident may begin
_SUSPECT_WINDOWS = 3  # but after so many in a row it is
_WILD = 5.0  # no single window adds more than so many standard deviations to a span
_DUST = 1e-12
_CONSISTENT = 1.09  # a normal's mean square, clipped at 2.5, is 1 / 1.09

Bools = NDArray[np.bool_]
_Mean = tuple[Floats, Floats]  # the mean of a span less its forecast, and the sd of that


class Judgement(NamedTuple):
    """What one window says of m series; NaN where nothing is expected or there is no value."""

    expected: Floats
    """In the metric's own unit."""
    deviations: Floats
    """SPANS x m, in standard deviations, signed."""
    error: Floats
    """The deviation of this window alone, from the forecast of the last window that was learned."""


class SeasonalFilter:
    """The state of m series, window after window, in the order of time.

    Args:
        scales: a `Scale` for each series.
        slots: windows in a day.

    >>> from monitor.statistics.bands.scales import Scale
    >>> days = SeasonalFilter([Scale.COUNT], slots=1)
    >>> for day in range(28):
    ...     judgement = days.judge([400.0 + day % 3], [np.nan], slot=0, weekday=day % 7)
    ...     days.learn()
    >>> days.judge([200.0], [np.nan], slot=0, weekday=0).error.round(1).tolist()
    [-11.1]
    """

    def __init__(self, scales: ArrayLike, slots: int) -> None:
        self._scales = as_scales(scales, np.size(scales))
        m = self._scales.size
        self._slots = slots
        self._level = np.full(m, np.nan)
        self._day = np.full((2, slots, m), np.nan)  # working days, weekends
        self._week = np.zeros((DAYS, slots, m))
        self._seen = np.zeros((DAYS, slots, m), dtype=np.int64)
        self._spread = np.full((len(SPANS), slots, m), np.nan)
        self._covariance = np.full((3, m), np.nan)  # of residuals 0, 1 and 2 windows apart
        self._last = np.full((2, m), np.nan)  # residuals of the last two windows
        self._memory = np.zeros(m)
        self._age = np.ones(m)  # windows since the memory was made
        self._windows = np.zeros(m)  # that were learned
        self._suspect = np.zeros(m, dtype=np.int64)
        self._last_judged: _Judged | None = None
        self._residuals: deque[Floats] = deque(maxlen=max(SPANS))
        self._memories: deque[Floats] = deque(maxlen=max(SPANS))

    def judge(self, values: ArrayLike, samples: ArrayLike, slot: int, weekday: int) -> Judgement:
        """Compare a window with its forecast.

        Args:
            values: m, in the metrics' own units; NaN where there is none.
            samples: m; NaN where unknown.
            slot: which window of the day it is.
            weekday: 0 to 6; a holiday counts as a Sunday.

        Raises ValueError where an argument has another length than the scales.
        """
        given, many = np.asarray(values, np.float64), np.asarray(samples, np.float64)
        if given.shape != self._scales.shape or many.shape != self._scales.shape:
            raise ValueError(f"{self._scales.size} series, but {given.shape} values and {many.shape} samples")
        there = usable(given, many, self._scales)
        z = np.where(there, to_scale(given, many, self._scales), np.nan)
        chance = sampling_sd(many, self._scales)
        self._level = np.where(np.isnan(self._level), z, self._level)
        base = self._level + self._profile(slot, weekday) + self._week[weekday, slot]
        residual = z - base
        noise = _split(self._covariance, residual, chance)
        forecast = noise.rho**self._age * self._memory
        expected = from_scale(base + forecast, many, self._scales)
        floor = np.fmax(chance, smallest_sd(expected, self._scales))
        sd = np.fmax(self._spread_of(0, slot, noise.ahead) * noise.growth(self._age), floor)
        self._residuals.append(residual)
        self._memories.append(noise.rho ** (self._age - 1) * self._memory)
        means = self._means(slot, noise, sd, floor)
        deviations = np.full((len(SPANS), residual.size), np.nan)
        for number, (mean, spread) in means.items():
            deviations[number] = mean / spread
        error = residual - forecast
        self._last_judged = _Judged(slot, weekday, there, residual, error, forecast, sd, noise, means)
        return Judgement(expected, deviations, error / sd)

    def learn(self, allowed: ArrayLike = True) -> None:
        """Learn from the window that was judged last.

        Args:
            allowed: m, or one for all: a series that is out of its band may not.

        Raises ValueError where no window was judged since the last one that was learned.
        """
        judged, self._last_judged = self._last_judged, None
        if judged is None:
            raise ValueError("judge a window before you learn from it")
        may = judged.there & np.asarray(allowed, np.bool_)
        self._learn_base(judged, may)
        self._learn_noise(judged, may)
        self._remember(judged, may)

    def _profile(self, slot: int, weekday: int) -> Floats:
        """The profile of such a day, else of the other kind of day, else 0."""
        weekend = int(weekday >= SATURDAY)
        own, other = self._day[weekend, slot], self._day[1 - weekend, slot]
        return np.nan_to_num(np.where(np.isnan(own), other, own))

    def _spread_of(self, span: int, slot: int, prior: Floats) -> Floats:
        return np.where(np.isnan(self._spread[span, slot]), prior, self._spread[span, slot])

    def _means(self, slot: int, noise: _Noise, sd: Floats, floor: Floats) -> dict[int, _Mean]:
        """For each span: the mean of its windows less the forecast from before it, and its sd."""
        found = {}
        for number, windows in enumerate(SPANS):
            if len(self._residuals) < windows:
                break
            before = self._memories[-windows]
            away = [
                self._residuals[back - windows] - noise.rho ** (back + 1) * before for back in range(windows)
            ]
            if windows > 1:
                away = [np.clip(one, -_WILD * sd, _WILD * sd) for one in away]
            spread = self._spread_of(number, slot, noise.of_mean(windows))
            if windows == 1:
                spread = spread * noise.growth(self._age)
            found[number] = np.mean(away, axis=0), np.fmax(spread, floor / np.sqrt(windows))
        return found

    def _learn_base(self, judged: _Judged, may: Bools) -> None:
        """Move level and profiles towards the window, each by its own step."""
        slot, weekday, residual = judged.slot, judged.weekday, judged.residual
        weekend = int(weekday >= SATURDAY)
        known = np.isfinite(self._profile_there(slot))
        days = self._windows / self._slots
        most = _CLIP * np.sqrt(judged.noise.total)
        moved = np.where(known & (days >= 1), np.clip(residual, -most, most), residual)
        gain = np.maximum(_LEVEL, 0.5 / (days + 1) / self._slots)
        self._level = np.where(may & known, self._level + gain * moved, self._level)
        seen = self._seen[:, slot]
        of_day = seen[SATURDAY:].sum(axis=0) if weekend else seen[:SATURDAY].sum(axis=0)
        by_day = np.where(known, np.maximum(_DAY * (1 + weekend), 1 / (of_day + 2)), 1.0)
        by_week = np.where(seen[weekday] > 0, _WEEK, 0.0) * (1 - by_day)
        day, week = self._profile(slot, weekday), self._week[weekday, slot]
        self._day[weekend, slot] = np.where(may, day + by_day * moved, self._day[weekend, slot])
        self._week[weekday, slot] = np.where(may, _FADES * (week + by_week * moved), week)
        self._seen[weekday, slot] += may

    def _profile_there(self, slot: int) -> Floats:
        return np.fmax(self._day[0, slot], self._day[1, slot])

    def _learn_noise(self, judged: _Judged, may: Bools) -> None:
        """Move the spreads of the slot and of those beside it, and the covariances of residuals."""
        may = may & (self._windows >= self._slots)
        for number, (mean, sd) in judged.means.items():
            surprise = np.minimum((mean / sd) ** 2, _CLIP**2) * _CONSISTENT - 1
            for beside, weight in _BESIDE:
                at = (judged.slot + beside) % self._slots
                gain = weight * np.maximum(_SPREAD, 2 / (self._seen[:, at].sum(axis=0) + 4))
                spread = self._spread_of(number, at, sd) * np.exp(gain / 2 * surprise)
                self._spread[number, at] = np.where(may, spread, self._spread[number, at])
        most = _CLIP * np.sqrt(judged.noise.total)
        clipped = np.clip(judged.residual, -most, most)
        gain = np.maximum(_COVARIANCE, 1 / (self._windows + 2))
        for lag, other in enumerate((clipped, *self._last)):
            product, now = clipped * other, self._covariance[lag]
            moved = np.where(np.isnan(now), product, now + gain * (product - now))
            self._covariance[lag] = np.where(may & np.isfinite(product), moved, now)
        self._last = np.array([np.where(may, clipped, np.nan), self._last[0]])

    def _remember(self, judged: _Judged, may: Bools) -> None:
        """Let the memory follow the window, unless an incident may have begun."""
        error, sd = judged.error, judged.sd
        suspect = (np.abs(error) > _SUSPECT * sd) & (self._suspect < _SUSPECT_WINDOWS)
        self._suspect = np.where(suspect, self._suspect + 1, 0)
        follows = may & ~suspect
        clipped = np.clip(error, -_CLIP * sd, _CLIP * sd)
        self._memory = np.where(follows, judged.forecast + judged.noise.gain * clipped, self._memory)
        self._age = np.where(follows, 1.0, self._age + 1)
        self._windows = self._windows + may


class _Judged(NamedTuple):
    """The window that was judged last, as `learn` needs it."""

    slot: int
    weekday: int
    there: Bools
    residual: Floats
    error: Floats
    forecast: Floats
    sd: Floats
    noise: _Noise
    means: Mapping[int, _Mean]


class _Noise(NamedTuple):
    """The variance of residuals: what lasts from window to window, and what passes with the window."""

    rho: Floats
    """How much of what lasts is left after a window."""
    lasting: Floats
    passing: Floats
    unknown: Floats
    """The variance of what lasts, by a forecast one window ahead."""

    @property
    def total(self) -> Floats:
        return self.lasting + self.passing

    @property
    def gain(self) -> Floats:
        """The part of a forecast's error that is remembered."""
        return self.unknown / (self.unknown + self.passing)

    @property
    def ahead(self) -> Floats:
        """The sd of a forecast one window ahead."""
        return np.sqrt(self.unknown + self.passing)

    def growth(self, age: Floats) -> Floats:
        """How much larger the sd of a forecast gets that is so many windows old."""
        unknown = self.lasting - (self.lasting - self.unknown) * self.rho ** (2 * (age - 1))
        return np.sqrt((unknown + self.passing) / (self.unknown + self.passing))

    def of_mean(self, windows: int) -> Floats:
        """The sd of the mean of so many windows about a forecast from before them, at most."""
        return np.sqrt(self.lasting * (1 - self.rho ** (2 * windows)) + self.passing / windows)


def _split(covariance: Floats, residual: Floats, chance: Floats) -> _Noise:
    """What lasts and what passes, by the covariances of residuals 0, 1 and 2 windows apart.

    An AR(1) seen through white noise has covariances lasting + passing, rho lasting and rho^2 lasting. What a
    forecast does not know of it is the stationary solution of its Kalman filter.
    """
    zero, one, two = covariance[0], *np.nan_to_num(covariance[1:])
    total = np.fmax(np.where(np.isnan(zero), residual**2, zero), chance**2) + _DUST
    some = one > 1e-3 * total
    rho = np.where(some, np.clip(two / np.where(some, one, 1.0), 0.0, _LARGEST_RHO), 0.0)
    known = rho > 0.05
    share = np.where(known, np.clip(one / np.where(known, rho, 1.0) / total, 0.0, 1.0), 0.0)
    lasting = share * total
    passing = np.maximum(total - lasting, 1e-3 * total)
    step = lasting * (1 - rho**2)
    half = passing * (1 - rho**2) - step
    unknown = (-half + np.sqrt(half**2 + 4 * step * passing)) / 2
    return _Noise(rho, lasting, passing, unknown)
