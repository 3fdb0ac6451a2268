"""Shares with few expected hits: the exact tail probability in place of a scale.

Example: of sixty lists usually none is empty, so eleven are far beyond chance. On the scale of `scales` they
are only five standard deviations away: it suits many hits, not few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.statistics.counts import Floats

FEW = 5.0
"""If more hits are expected, the scale is used."""
ENOUGH = 8
"""The least number of past windows."""


@dataclass(frozen=True)
class Rare:
    """Of m shares what is seldom in each, its hits or what is missing to all; NaN where nothing is."""

    side: Floats
    """1 if hits are rare, -1 if misses are."""
    seen: Floats
    """So many of them in the past, and a half."""
    trials: Floats
    """In so many samples: fewer than there were, where more is expected than the whole past had."""
    noise: Floats
    """How far the windows of the past lie from their mean, in what chance does: 1 or more."""
    samples: Floats
    """Of the window judged."""

    def deviation(self, values: Floats) -> Floats:
        """How far values on the far side of what is expected lie from there, as a normal deviation, signed.

            z = -Phi^-1(P(X >= x)) / noise,  P(X >= x) = I_q(x, seen),  q = samples / (samples + trials)

        X is negative binomial: Poisson, its rate known from `seen` in `trials`. NaN where nothing is rare.

        >>> one = np.array([1.0])
        >>> rare = Rare(side=one, seen=15.5 * one, trials=5000 * one, noise=one, samples=57 * one)
        >>> rare.deviation(one * 11 / 57).round(1).tolist(), rare.deviation(one * 1 / 57).round(1).tolist()
        ([7.9], [1.0])
        """
        from scipy import special

        hits = self.samples * np.where(self.side > 0, values, 1 - values)
        with np.errstate(invalid="ignore"):
            chance = special.betainc(np.maximum(hits, 1e-9), self.seen, self._reach)
            far = np.maximum(-special.ndtri(chance), 0.0) / self.noise
        return np.asarray(self.side * far)

    def limit(self, multiple: Floats) -> Floats:
        """The share that lies so many deviations away on the far side; infinite where none does.

        >>> one = np.array([1.0])
        >>> rare = Rare(side=-one, seen=15.5 * one, trials=5000 * one, noise=one, samples=57 * one)
        >>> rare.deviation(rare.limit(6 * one)).round(6).tolist()
        [-6.0]
        """
        from scipy import special

        with np.errstate(invalid="ignore"):
            hits = special.btdtria(special.ndtr(-multiple * self.noise), self.seen, self._reach)
        share = np.where(np.isfinite(hits), hits, np.inf) / self.samples
        return np.asarray(np.where(self.side > 0, share, 1 - share))

    @property
    def _reach(self) -> Floats:
        return self.samples / (self.samples + self.trials)


def rare(values: Floats, samples: Floats, expected: Floats, now: Floats) -> Rare:
    """What is rare in m shares, where there are samples now, by the windows of their past.

    Args:
        values: n x m shares of windows like the one judged; NaN where one is missing or left out.
        samples: n x m.
        expected: m, of the window judged.
        now: m, its samples.

    >>> past = np.zeros((20, 1))
    >>> past[7] = 0.02  # one hit
    >>> found = rare(past, np.full((20, 1), 50.0), expected=np.zeros(1), now=np.array([50.0]))
    >>> found.seen.tolist(), found.trials.tolist(), found.side.tolist()
    ([1.5], [1000.0], [1.0])
    """
    there = np.isfinite(values) & (samples > 0)
    trials = np.where(there, samples, 0.0)
    total = trials.sum(axis=0)
    hits = np.where(there, values, 0.0) * trials
    side = np.where(hits.sum(axis=0) * 2 <= total, 1.0, -1.0)
    hits = np.where(side > 0, hits, trials - hits)
    seen = hits.sum(axis=0) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = seen / total
        more = np.maximum(np.where(side > 0, expected, 1 - expected) / mean, 1.0)
        chance = np.where(there, trials * mean * (1 - mean), np.nan)
        squares = np.where(there, (hits - trials * mean) ** 2 / chance, 0.0).sum(axis=0)
        noise = np.sqrt(np.maximum(squares / (there.sum(axis=0) - 1), 1.0))
        few = (now > 0) & (now * mean * more <= FEW) & (there.sum(axis=0) >= ENOUGH)
    side, seen, trials, noise = (np.where(few, one, np.nan) for one in (side, seen, total / more, noise))
    return Rare(side, seen, trials, noise, np.where(few, now, np.nan))
