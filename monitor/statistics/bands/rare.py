"""Shares with few expected hits: the exact tail probability in place of a scale.

Example: of sixty lists usually none is empty, so eleven are far beyond chance. On the scale of `scales` they
are only five standard deviations away: it suits many hits, not few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.bands.columns import Columns
from monitor.statistics.bands.scales import known_or_0
from monitor.statistics.bands.spans import LONGEST, SPANS
from monitor.statistics.counts import Floats

FEW = 5.0
"""If more hits are expected, the scale is used."""
NONE = 1.0
"""If no more hits would be expected at the rate of the whole past, to have none is nothing unusual."""
Bools = NDArray[np.bool_]
_NEWEST_OF_SPANS = np.array(SPANS) - 1

ENOUGH = 8
"""The least number of past windows."""
_DAYS = 28.0
"""How many days the sums remember."""


@dataclass(frozen=True)
class Rare:
    """Of m shares what is seldom in each, its hits or what is missing to all; NaN where nothing is.

    Each array is m, or SPANS x m.
    """

    side: Floats
    """1 if hits are rare, -1 if misses are."""
    seen: Floats
    """So many of them in the past, and a half."""
    trials: Floats
    """In so many samples: fewer than there were, where more is expected than the whole past had."""
    noise: Floats
    """How far the windows of the past lie from their mean, in what chance does: 1 or more."""
    samples: Floats
    """Of the windows judged, together."""
    hits: Floats
    """In these."""
    usual: Floats
    """The side on which they lie if there are none at all, where that is nothing unusual."""

    @property
    def of_window(self) -> Rare:
        """The same of the newest window alone, the first of SPANS."""
        return Rare(
            self.side[0], self.seen[0], self.trials[0], self.noise[0], self.samples[0], self.hits[0],
            self.usual[0],
        )  # fmt: skip

    @property
    def deviation(self) -> Floats:
        """How far the hits on the far side of what is expected lie from there, as a normal deviation, signed.

            z = -Phi^-1(P(X >= x)) / noise,  P(X >= x) = I_q(x, seen),  q = samples / (samples + trials)

        X is negative binomial: Poisson, its rate known from `seen` in `trials`. NaN where nothing is rare.

        >>> past = np.array([[1], [15.5], [5000], [1]])
        >>> rare = Rare(*past, samples=np.array([57]), hits=np.array([11]), usual=np.array([-1]))
        >>> rare.deviation.round(1).tolist()
        [7.9]
        """
        from scipy import special

        hits = np.where(self.side > 0, self.hits, self.samples - self.hits)
        with np.errstate(invalid="ignore"):
            chance = special.betainc(np.maximum(hits, 1e-9), self.seen, self._reach)
            far = np.maximum(-special.ndtri(chance), 0.0) / self.noise
        return np.asarray(self.side * far)

    def limit(self, multiple: Floats) -> Floats:
        """The share that lies so many deviations away on the far side; infinite where none does.

        >>> past = np.array([[1], [15.5], [5000], [1]])
        >>> rare = Rare(*past, samples=np.array([57]), hits=np.array([11]), usual=np.array([-1]))
        >>> rare.limit(rare.deviation).round(6).tolist(), round(11 / 57, 6)
        ([0.192982], 0.192982)
        """
        from scipy import special

        with np.errstate(invalid="ignore"):
            hits = special.btdtria(special.ndtr(-multiple * self.noise), self.seen, self._reach)
        share = np.where(np.isfinite(hits), hits, np.inf) / self.samples
        return np.asarray(np.where(self.side > 0, share, 1 - share))

    @property
    def _reach(self) -> Floats:
        return self.samples / (self.samples + self.trials)


class RareSums(Columns):
    """The hits of m shares in the windows before, in sums that fade.

    The last 12 windows are not in the sums yet: an incident may have begun in them.

    >>> sums = RareSums(a_day=24)
    >>> sums.add(1)
    >>> for hour in range(40):  # one hit in 27 windows of 50 samples
    ...     found = sums.rare(np.array([0.02 if hour == 7 else 0.0]), np.array([50.0]), np.zeros(1))
    ...     sums.learn(True)
    >>> window = found.of_window
    >>> window.seen.round(2).tolist(), window.trials.round().tolist(), window.side.tolist()
    ([1.47], [1324.0], [1.0])
    """

    _hits: Floats
    _trials: Floats
    _squares: Floats  # of what the windows' hits differ from their mean, over what chance does
    _windows: Floats
    _newest: Floats  # hits and samples of the last windows, the newest first

    def __init__(self, a_day: int) -> None:
        self._fades = 1 - 1 / (_DAYS * a_day)
        self._now: Floats | None = None
        super().__init__()

    def _fresh(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        one: tuple[tuple[int, ...], Any] = ((), 0.0)
        sums = {"_hits": one, "_trials": one, "_squares": one, "_windows": one}
        return {**sums, "_newest": ((2, LONGEST), np.nan)}

    def rare(self, values: Floats, samples: Floats, expected: Floats) -> Rare:
        """What is rare in a window and in the longer spans that end with it: SPANS x m.

        Args:
            values: m shares of the window; NaN where there is none, or where the series is no share.
            samples: m.
            expected: m, of the window.
        """
        there = np.isfinite(values) & (samples > 0)
        self._now = np.where(there, [np.where(there, values, 0.0) * samples, samples], np.nan)
        newest = np.concatenate([self._now[:, None], self._newest], axis=1)
        side = np.where(self._hits * 2 <= self._trials, 1.0, -1.0)
        seen = np.where(side > 0, self._hits, self._trials - self._hits) + 0.5
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = seen / self._trials
            more = np.maximum(np.where(side > 0, expected, 1 - expected) / mean, 1.0)
            noise = np.sqrt(np.maximum(self._squares / (self._windows - 1), 1.0))
            hits, now = newest.cumsum(axis=1)[:, _NEWEST_OF_SPANS]
            enough = (now > 0) & (self._windows >= ENOUGH)
            few = enough & (now * mean * more <= FEW)
            none = few | (enough & (now * mean <= NONE))
            trials = self._trials / more
        parts = zip([few] * 6 + [none], (side, seen, trials, noise, now, hits, -side), strict=True)
        return Rare(*(np.where(is_known, one, np.nan) for is_known, one in parts))

    def learn(self, allowed: Bools | bool) -> None:
        """Learn from the window that was judged last, except in the series that are out of their bands."""
        now, self._now = self._now, None
        if now is None:
            raise ValueError("judge a window before you learn from it")
        may = np.broadcast_to(np.asarray(allowed, np.bool_), self._hits.shape)
        hits, trials = known_or_0(self._newest[:, -1])
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (self._hits + 0.5) / (self._trials + 1)
            square = np.nan_to_num((hits - trials * mean) ** 2 / (trials * mean * (1 - mean)))
        square = np.where(self._trials > 0, square, 0.0)
        is_one = trials > 0
        self._squares = np.where(is_one, self._fades * self._squares + square, self._squares)
        self._windows = np.where(is_one, self._fades * self._windows + 1, self._windows)
        self._hits = np.where(is_one, self._fades * self._hits + hits, self._hits)
        self._trials = np.where(is_one, self._fades * self._trials + trials, self._trials)
        kept = np.where(may, now, np.nan)
        self._newest = np.concatenate([kept[:, None], self._newest[:, :-1]], axis=1)

    def forget_last(self, which: Bools) -> None:
        """Leave the last windows of these series out: an incident had begun."""
        self._newest[:, :, which] = np.nan
