"""The noise of a series about its profile: a part that lasts for some windows, and a part that does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from monitor.statistics.bands.scales import known_or_0, within
from monitor.statistics.counts import Floats

_LARGEST_RHO = 0.98
_DUST = 1e-12


class Noise(NamedTuple):
    """The variance of residuals: of what lasts from window to window, and of what passes with the window."""

    rho: Floats
    """How much of what lasts is left after a window."""
    lasting: Floats
    passing: Floats
    unknown: Floats
    """The variance of what lasts about a forecast one window ahead."""

    @property
    def total(self) -> Floats:
        return self.lasting + self.passing

    def gain_of(self, extra: Floats) -> Floats:
        """The part of a forecast's error that is remembered, with so much more variance that passes."""
        return self.unknown / (self.unknown + self.passing + extra)

    @property
    def ahead(self) -> Floats:
        """The sd of a forecast one window ahead."""
        return np.sqrt(self.unknown + self.passing)

    def growth(self, age: Floats) -> Floats:
        """How much larger the sd of a forecast gets that is so many windows old."""
        unknown = self.lasting - (self.lasting - self.unknown) * self.rho ** (2 * (age - 1))
        return np.sqrt((unknown + self.passing) / (self.unknown + self.passing))

    def of_mean(self, windows: ArrayLike) -> Floats:
        """The sd of the mean of so many windows, at most, if all that lasted before them were known."""
        many = np.asarray(windows, np.float64)
        return np.asarray(np.sqrt(self.lasting * (1 - self.rho ** (2 * many)) + self.passing / many))


def split_noise(covariance: Floats, residual: Floats, chance: Floats) -> Noise:
    """What lasts and what passes, by the covariances of residuals 0, 1 and 2 windows apart.

    An AR(1) seen through white noise has the covariances lasting + passing, rho lasting and rho^2 lasting.
    What a forecast does not know of it is the stationary solution of its Kalman filter.

    Args:
        covariance: 3 x m; NaN where nothing is known yet, and then the residual itself is the noise.
        residual: m, of this window.
        chance: m, the least sd, by sampling alone.

    >>> noise = split_noise(np.array([[5.0], [3.2], [2.56]]), np.zeros(1), np.zeros(1))
    >>> [float(one[0].round(3)) for one in (noise.rho, noise.lasting, noise.passing)]
    [0.8, 4.0, 1.0]
    """
    zero, one, two = covariance[0], *known_or_0(covariance[1:])
    total = np.fmax(np.where(np.isnan(zero), residual**2, zero), chance**2) + _DUST
    some = one > 1e-3 * total
    rho = np.where(some, within(two / np.where(some, one, 1.0), 0.0, _LARGEST_RHO), 0.0)
    known = rho > 0.05
    share = np.where(known, within(one / np.where(known, rho, 1.0) / total, 0.0, 1.0), 0.0)
    lasting = share * total
    passing = np.maximum(total - lasting, 1e-3 * total)
    step = lasting * (1 - rho**2)
    half = passing * (1 - rho**2) - step
    unknown = (-half + np.sqrt(half**2 + 4 * step * passing)) / 2
    return Noise(rho, lasting, passing, unknown)
