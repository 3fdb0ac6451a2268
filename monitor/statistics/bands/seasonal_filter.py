"""What is expected of each window: a robust seasonal filter that remembers the last hours.

On the scale of the metric, a value is

    z = level + profile(slot, weekend) + profile(slot, weekday) + x + noise,    x = rho x' + step

`x` is what the last windows share beyond level and profile: the weather, a concert, a slow morning. It decays
with rho per window. Each window is forecast from the windows before it. The mean of the last 1, 2, 3, 6 and
12 windows is compared with the forecast from before they began. So a sudden loss is compared with the windows
just before it, a small one adds up, and a level that moved last week widens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.bands.columns import Columns
from monitor.statistics.bands.noise import Noise, split_noise
from monitor.statistics.bands.scales import (
    COUNT,
    LEVEL,
    SHARE,
    Scale,
    as_scales,
    from_scale,
    known_or_0,
    sampling_sd,
    smallest_sd,
    to_scale,
    usable,
    within,
)
from monitor.statistics.bands.spans import LENGTHS, LONGEST, SPANS, Last, over_spans, sampling_sds
from monitor.statistics.counts import Floats

WILD = 5.0
DAYS, SATURDAY = 7, 5
_LEVEL = 1 / 5  # how far a day moves the level, once it is known
_DAY = 0.12  # how far a day moves the profile of working days; twice as far at weekends, which are fewer
_NEW_SHAPE = (
    0.5  # a day moves its profile so far where another one may fit as well: the truth may lie between
)
_WEEK = 0.22  # how far a week moves the profile of a weekday
_FADES = 0.99  # the profile of a weekday fades, so that it holds only what the weeks confirm
_SPREAD = 1 / 25  # how far a day moves the spread of a slot, once it is known
_BESIDE = ((0, 1.0), (1, 0.4), (-1, 0.4))  # a window teaches the spread of its slot, and of those beside it
_COVARIANCE_DAYS = 21.0  # how many days the covariances remember
_FIRST_DAYS = 5  # so many days of a kind count in full, so that none of them decides alone
_CLIP = 2.5  # no window teaches more than so many standard deviations
_SUSPECT = 3.0  # beyond so many, a window is not remembered at once: an incident may begin
_SUSPECT_WINDOWS = 3  # but after so many in a row it is
_CONSISTENT = 1.09  # a normal's mean square, clipped at 2.5, is 1 / 1.09
_UNSEEN = 15.0  # the sd of a kind of day that was not seen yet, in the smallest sds
_HOLIDAY = 2.0  # how much wider the spread of a holiday is: no two are alike
_STEADY = 1.25  # and where a series is hardly different on holidays

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_Kept = TypeVar("_Kept", bound=np.generic)


class Moment(NamedTuple):
    """Where a window lies in the day and in the week."""

    slot: int
    """Which window of the day it is."""
    weekday: int
    """0 to 6; the profile that it follows, so a holiday has that of a Sunday."""
    is_holiday: bool = False
    or_weekday: int | None = None
    """Another weekday whose profile it may follow instead: then anything between the two is expected."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of m series in a window; NaN where there is no forecast or no value."""

    expected: Floats
    """In the metric's own unit."""
    centre: Floats
    """The same on the metric's scale."""
    sd: Floats
    """On the scale, of this window alone."""
    samples: Floats
    """Of this window; if unknown, those of a typical window at this time of day."""
    means: Floats
    """SPANS x m: the mean of the last windows less the forecast from before them, on the scale."""
    deviations: Floats
    """SPANS x m: the same in standard deviations."""
    from_base: Floats
    """SPANS x m: the mean of the last windows less level and profile alone, on the scale."""
    planned: Floats
    """SPANS x m: what was expected of the last windows from before they began, in the metric's own unit: the
    mean of counts, and of shares and levels the mean by precision."""
    actual: Floats
    """SPANS x m: what they were, without a limit for wild windows."""
    by_one: Floats
    """SPANS x m: how far a single sample that changes by 1 moves the mean; NaN if samples are unknown."""
    usual: Floats
    """m: what is usual in the windows of the longest span, whatever they and those before them were like."""


class SeasonalFilter(Columns):
    """The state of m series, window after window, in the order of time.

    Args:
        slots: times of day that are told apart.
        a_day: windows in a day; default: one for each slot.

    >>> days = SeasonalFilter(slots=1)
    >>> days.add_series([Scale.COUNT])
    >>> for day in range(28):
    ...     forecast = days.judge([400.0 + day % 3], [np.nan], Moment(0, day % 7))
    ...     days.learn()
    >>> days.judge([200.0], [np.nan], Moment(0, 0)).deviations[0].round(1).tolist()
    [-11.1]
    """

    scales: Ints
    windows: Floats
    """Windows that each series has learned."""
    _level: Floats
    _day: Floats  # of working days, of weekends
    _week: Floats
    _seen: NDArray[np.int32]
    _spread: Floats
    _inverse: Floats  # a typical 1 / samples of each slot
    _covariance: Floats  # of residuals 0, 1 and 2 windows apart
    _last: Floats  # residuals of the last two windows
    _memory: Floats
    _age: Floats  # windows since the memory was made
    _suspect: Ints
    _suspects: Ints  # the sides of the last windows that were not remembered at once, 0 of others
    _held: Floats  # the largest sd of these, of what lasts
    _begun: Ints  # the windows learned in the first day of a level, the next one counted; 0 later
    _of_holiday: Bools  # whether the level is that of a holiday
    _residuals: Floats  # of the last windows, the newest first
    _memories: Floats  # before each of them
    _sds: Floats  # of each of them
    _bases: Floats  # level and profile of each of them
    _drawn: Floats  # samples of each of them

    def __init__(self, slots: int, a_day: int | None = None) -> None:
        self._slots = slots
        self._a_day = a_day or slots
        self._alike = max(1.0, self._a_day / slots)  # windows of a slot on one day, which share its step
        self._fades = _FADES ** (1 / self._alike)
        self._judged: _Judged | None = None
        super().__init__()

    def _fresh(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        n = self._slots
        return {
            "scales": ((), int(Scale.LEVEL)),
            "windows": ((), 0.0),
            "_level": ((), np.nan),
            "_day": ((2, n), np.nan),
            "_week": ((DAYS, n), 0.0),
            "_seen": ((DAYS, n), np.int32(0)),
            "_spread": ((len(SPANS), n), np.nan),
            "_inverse": ((n,), np.nan),
            "_covariance": ((3,), np.nan),
            "_last": ((2,), np.nan),
            "_memory": ((), 0.0),
            "_age": ((), 1.0),
            "_suspect": ((), 0),
            "_suspects": ((LONGEST,), 0),
            "_held": ((), 0.0),
            "_begun": ((), 0),
            "_of_holiday": ((), False),
            "_residuals": ((LONGEST,), np.nan),
            "_memories": ((LONGEST,), np.nan),
            "_sds": ((LONGEST,), np.nan),
            "_bases": ((LONGEST,), np.nan),
            "_drawn": ((LONGEST,), np.nan),
        }

    def add_series(self, scales: ArrayLike) -> None:
        """Add new series behind the others, each with its `Scale`."""
        given = as_scales(scales, np.size(scales))
        self.add(given.size)
        self.scales[self.scales.size - given.size :] = given

    def begin_anew(self, which: ArrayLike) -> None:
        """Forget everything about the series that are True, but their scales."""
        scales = self.scales.copy()
        super().begin_anew(which)
        self.scales = scales

    def forget_level(self, which: ArrayLike) -> None:
        """Take the level of the series that are True from their next day: it is another one then."""
        chosen = np.asarray(which, np.bool_)
        self._level[chosen] = np.nan
        self._memory[chosen] = 0.0
        self._suspect[chosen] = 0
        self._suspects[:, chosen] = 0
        self._begun[chosen] = 1
        self._of_holiday[chosen] = False

    def forget_last(self, which: ArrayLike) -> None:
        """Begin the longer spans of these series anew with the newest window: what lies before it is over."""
        chosen = np.asarray(which, np.bool_)
        if self._judged is None:
            self._residuals[1:, chosen] = np.nan
        else:
            self._judged.last.residuals[1:, chosen] = np.nan

    def seen(self, moment: Moment) -> Floats:
        """How many days of its kind, working days or those of weekends, taught each series at this time."""
        kind = slice(SATURDAY, DAYS) if moment.weekday >= SATURDAY else slice(SATURDAY)
        return np.asarray(self._seen[kind, moment.slot].sum(axis=0) / self._alike)

    def skip(self, windows: int) -> None:
        """Let windows pass that nobody measured."""
        self._age = self._age + windows
        self._last[:] = np.nan
        gap = np.full((min(windows, LONGEST), self.scales.size), np.nan)
        self._suspects = _newest(np.zeros_like(gap, np.int64), self._suspects)
        self._residuals, self._memories = _newest(gap, self._residuals), _newest(gap, self._memories)
        self._sds, self._bases = _newest(gap, self._sds), _newest(gap, self._bases)
        self._drawn = _newest(gap, self._drawn)

    def judge(
        self,
        values: ArrayLike,
        samples: ArrayLike,
        moment: Moment,
        errors: ArrayLike | None = None,
        wild: ArrayLike = WILD,
        steady: ArrayLike = False,
    ) -> Forecast:
        """Compare a window with its forecast.

        Args:
            values: m, in the metrics' own units; NaN where there is none.
            samples: m; NaN where unknown.
            moment: where the window lies.
            errors: m standard errors of levels whose interval is known, else NaN; the sd is never below.
            wild: how many standard deviations one window adds to a longer span at most; see `over_spans`.
            steady: m, or one for all: whether a series is hardly different on holidays.

        Raises ValueError where an argument has another length than there are series.
        """
        given, many = np.asarray(values, np.float64), np.asarray(samples, np.float64)
        if given.shape != self.scales.shape or many.shape != self.scales.shape:
            raise ValueError(f"{self.scales.size} series, but {given.shape} values and {many.shape} samples")
        if not moment.is_holiday:
            self.forget_level(self._of_holiday)
        slot, weekday = moment.slot, moment.weekday
        there = usable(given, many, self.scales)
        z = np.where(there, to_scale(given, many, self.scales), np.nan)
        chance = sampling_sd(many, self.scales)
        profile, is_new = self._profile(slot, weekday)
        level = np.where(np.isnan(self._level), z - profile, self._level)
        noise = split_noise(self._covariance, z - level - profile, chance)
        remembered = noise.rho**self._age * self._memory
        off = z - level - profile
        if moment.or_weekday is not None:
            other, _ = self._profile(slot, moment.or_weekday)
            nearest = within(z - level - remembered, np.fmin(profile, other), np.fmax(profile, other))
            profile = np.where(np.isnan(nearest), profile, nearest)
        base = level + profile
        residual = z - base
        centre = base + remembered
        expected = from_scale(centre, many, self.scales)
        dust = smallest_sd(expected, self.scales)
        floor = np.fmax(chance, dust)
        if errors is not None:
            known = np.where(self.scales == LEVEL, np.asarray(errors, np.float64), np.nan)
            floor = np.fmax(floor, known)
        growth = noise.growth(self._age)
        factor, more = self._fewer(many, slot)
        held = self._spread[:, slot]
        own = np.where(np.isnan(held[0]), noise.ahead, held[0]) * growth
        sd = np.fmax(own, floor)
        last = Last(
            residuals=_newest(residual, self._residuals),
            memories=_newest(noise.rho ** (self._age - 1) * self._memory, self._memories),
            sds=_newest(np.hypot(sd * factor, more), self._sds),
            bases=_newest(base, self._bases),
            drawn=_newest(many, self._drawn),
        )
        spread = np.where(np.isnan(held), noise.of_mean(LENGTHS), held)
        spread[0] *= growth
        spreads = np.fmax(np.fmax(spread, floor / _ROOTS), sampling_sds(last, self.scales))
        found = over_spans(last, noise.rho, spreads, wild, self.scales)
        extra = np.maximum(last.sds[0] ** 2 - own**2, 0.0)
        holiday = np.where(steady, _STEADY, _HOLIDAY) if moment.is_holiday else 1.0
        wide = np.hypot(spreads * factor, more / _ROOTS) * holiday
        wide = np.where(is_new, np.hypot(wide, _UNSEEN * dust), wide)
        # A span that starts right after a suspect window is compared with the forecast from before that one.
        # So its spread is at least what lasts of that window's: the lists of a night may last all day.
        wide = np.where(self._suspects[_BEFORE] != 0, np.fmax(wide, self._held), wide)
        is_new_shape = (moment.or_weekday is not None) & ((self.scales == COUNT) | ~np.asarray(steady))
        self._judged = _Judged(
            moment, there, is_new, is_new_shape, level, off, residual, residual - (centre - base),
            centre - base, sd, extra, noise, found.means, spreads, wide[0], last,
        )  # fmt: skip
        return Forecast(
            expected, centre, wide[0], self._samples(many, slot), found.means, found.means / wide,
            found.from_base, found.planned, found.actual, found.by_one, found.usual,
        )  # fmt: skip

    def learn(self, allowed: ArrayLike = True, moved: ArrayLike = 0, out: ArrayLike = False) -> None:
        """Learn from the window that was judged last.

        A holiday is remembered. It teaches nothing else, but a level that was forgotten: until the next day
        that is no holiday, or for good where a series leaves its band.

        Args:
            allowed: m, or one for all: a series that is out of its band may not.
            moved: m, or one for all: which window it is since the level moved for a known reason, from 1 on;
                0 where it did not. The level becomes the mean of these windows.
            out: m, or one for all: whether a series is out of its band. It may be allowed all the same, and
                then teaches slowly.

        Raises ValueError where no window was judged since the last one that was learned.
        """
        judged, self._judged = self._judged, None
        if judged is None:
            raise ValueError("judge a window before you learn from it")
        self._residuals, self._memories, self._sds, self._bases, self._drawn = judged.last
        may = judged.there & np.asarray(allowed, np.bool_)
        is_in = ~np.asarray(out, np.bool_)
        since = np.where(is_in, self._begun, 0)
        begins = may & (self._begun > 0)
        if judged.moment.is_holiday:
            self._learn_level(judged, begins, since, np.zeros(since.shape))
            self._of_holiday = (self._of_holiday | begins) & is_in
        else:
            self._learn_base(judged, may, np.where(np.asarray(moved) > 0, moved, since))
        self._begun = np.where(begins, (self._begun + 1) % (self._a_day + 1), self._begun)
        if not judged.moment.is_holiday:
            if judged.moment.or_weekday is None:  # between two profiles, noise cannot be seen
                self._learn_noise(judged, may & ~judged.is_new)
            self._learn_samples(judged, may)
        self._remember(judged, may, is_in)

    def _profile(self, slot: int, weekday: int) -> tuple[Floats, Bools]:
        """The profile of a time of day, and where no day of its kind was seen at that time yet."""
        weekend = int(weekday >= SATURDAY)
        own, other = self._day[weekend, slot], self._day[1 - weekend, slot]
        is_new = np.isnan(own)
        return known_or_0(np.where(is_new, other, own)) + self._week[weekday, slot], is_new

    def _fewer(self, samples: Floats, slot: int) -> tuple[Floats, Floats]:
        """What fewer samples than usual do: a factor of the spread of levels, more chance for shares."""
        inverse = 1 / (np.maximum(samples, 0) + 0.5)
        usual = self._inverse[slot]
        with np.errstate(invalid="ignore"):
            factor = np.where(self.scales == LEVEL, np.sqrt(np.fmax(inverse / usual, 1.0)), 1.0)
            share = np.where(self.scales == SHARE, np.sqrt(np.fmax(inverse - usual, 0.0)) / 2, 0.0)
        return np.where(np.isnan(factor), 1.0, factor), known_or_0(share)

    def _samples(self, samples: Floats, slot: int) -> Floats:
        """Samples of a window; if unknown, those that are usual at this time of day."""
        return np.where(np.isnan(samples), 1 / self._inverse[slot] - 0.5, samples)

    def _learn_level(self, judged: _Judged, may: Bools, since: Ints, step: Floats) -> None:
        """Move the level by a step, or towards the mean of the windows since it moved for a known reason."""
        slot = judged.moment.slot
        known = np.isfinite(np.fmax(self._day[0, slot], self._day[1, slot]))
        moved = np.where(since > 0, judged.error / np.maximum(since, 1), step)
        begun = np.where(may & np.isnan(self._level), judged.level, self._level)
        self._level = np.where(may & known, begun + moved, begun)

    def _learn_base(self, judged: _Judged, may: Bools, since: Ints) -> None:
        """Move level and profiles towards the window, each by its own step."""
        (slot, weekday, *_), off = judged.moment, judged.off
        weekend = int(weekday >= SATURDAY)
        known = np.isfinite(np.fmax(self._day[0, slot], self._day[1, slot]))
        days = self.windows / self._a_day
        seen = self._seen[:, slot]
        of_day = seen[SATURDAY:].sum(axis=0) if weekend else seen[:SATURDAY].sum(axis=0)
        most = _CLIP * np.sqrt(judged.noise.total)
        in_full = (of_day < _FIRST_DAYS * self._alike) | judged.is_new_shape
        moved = np.where(in_full, off, within(off, -most, most))
        gain = np.maximum(_LEVEL, 0.5 / (days + 1)) / self._a_day
        self._learn_level(judged, may, since, gain * moved)
        by_day = np.maximum(_DAY * (1 + weekend) / self._alike, 1 / (of_day + 1 + (known & (of_day == 0))))
        by_day = np.where(judged.is_new_shape, np.maximum(by_day, _NEW_SHAPE / self._alike), by_day)
        by_week = np.where(seen[weekday] > 0, _WEEK / self._alike, 0.0) * (1 - by_day)
        own, other = self._day[weekend, slot], self._day[1 - weekend, slot]
        day, week = known_or_0(np.where(np.isnan(own), other, own)), self._week[weekday, slot]
        self._day[weekend, slot] = np.where(may, day + by_day * moved, own)
        self._week[weekday, slot] = np.where(may, self._fades * (week + by_week * moved), week)
        self._seen[weekday, slot] += may

    def _learn_noise(self, judged: _Judged, may: Bools) -> None:
        """Move the spreads of the slot and of those beside it, and the covariances of residuals."""
        slot = judged.moment.slot
        may = may & (self.windows >= self._a_day)
        surprise = np.minimum((judged.means / judged.spreads) ** 2, _CLIP**2) * _CONSISTENT - 1
        for beside, weight in _BESIDE:
            at = (slot + beside) % self._slots
            gain = weight * np.maximum(_SPREAD / self._alike, 2 / (self._seen[:, at].sum(axis=0) + 4))
            held = self._spread[:, at]
            spread = np.where(np.isnan(held), judged.spreads, held) * np.exp(gain / 2 * surprise)
            self._spread[:, at] = np.where(may & np.isfinite(spread), spread, held)
        most = _CLIP * np.sqrt(judged.noise.total)
        clipped = within(judged.residual, -most, most)
        gain = np.maximum(1 / (_COVARIANCE_DAYS * self._a_day), 1 / (self.windows + 2))
        for lag, other in enumerate((clipped, *self._last)):
            product, now = clipped * other, self._covariance[lag]
            moved = np.where(np.isnan(now), product, now + gain * (product - now))
            self._covariance[lag] = np.where(may & np.isfinite(product), moved, now)
        self._last = np.array([np.where(may, clipped, np.nan), self._last[0]])

    def _learn_samples(self, judged: _Judged, may: Bools) -> None:
        slot = judged.moment.slot
        inverse, held = 1 / (np.maximum(judged.last.drawn[0], 0) + 0.5), self._inverse[slot]
        gain = np.maximum(_SPREAD, 1 / (self._seen[:, slot].sum(axis=0) + 1))
        moved = np.where(np.isnan(held), inverse, held + gain * (inverse - held))
        self._inverse[slot] = np.where(may & np.isfinite(moved), moved, held)

    def _remember(self, judged: _Judged, may: Bools, is_in: Bools) -> None:
        """Let the memory follow the window, unless an incident may have begun.

        Where a series is in its band, the fourth window on one side in a row is remembered in full.
        """
        error, sd = judged.error, judged.sd
        side = np.sign(known_or_0(error)).astype(np.int64)
        far = np.abs(error) > _SUSPECT * sd
        suspect = far & (self._suspect < _SUSPECT_WINDOWS)
        self._suspect = np.where(far, self._suspect + 1, 0)
        follows = may & ~suspect
        lasts_on = far & is_in & (self._suspects[:_SUSPECT_WINDOWS] == side).all(axis=0)
        held = np.where(self._suspects.any(axis=0), self._held, 0.0)
        lasts = np.sqrt(np.maximum(judged.wide**2 - judged.noise.passing - judged.extra, 0.0))
        self._held = np.where(may & suspect, np.fmax(held, lasts), held)
        self._suspects = _newest(np.where(may & suspect, side, 0), self._suspects)
        moved = judged.noise.gain_of(judged.extra) * within(error, -_CLIP * sd, _CLIP * sd)
        moved = np.where(lasts_on, error, moved)
        self._memory = np.where(follows, judged.remembered + moved, self._memory)
        self._age = np.where(follows, 1.0, self._age + 1)
        self.windows = self.windows + (may & ~np.isnan(self._level))


_ROOTS = np.sqrt(LENGTHS)
_BEFORE = np.array(SPANS) - 1  # of the windows before this one, the newest that a span does not hold


class _Judged(NamedTuple):
    """The window that was judged last, as `learn` needs it."""

    moment: Moment
    there: Bools
    is_new: Bools
    """Whether no day of its kind was seen yet at this time."""
    is_new_shape: Bools
    """Whether its own profile may not fit, and another one does, or one between them."""
    level: Floats
    off: Floats
    """What the window differs from level and the profile of its own weekday."""
    residual: Floats
    """The same, from the nearest profile that it may follow."""
    error: Floats
    remembered: Floats
    sd: Floats
    extra: Floats
    """The variance that few samples add to what is usual at this time."""
    noise: Noise
    means: Floats
    spreads: Floats
    wide: Floats
    """m: the sds of this window alone, with what a holiday and few samples add."""
    last: Last


def _newest(new: NDArray[_Kept], held: NDArray[_Kept]) -> NDArray[_Kept]:
    """The last windows: one or several new ones before those that were held."""
    return np.vstack([new, held])[:LONGEST]
