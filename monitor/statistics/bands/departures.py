"""Which series are out of their bands: since when they left, and whether they are back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.bands.columns import Columns
from monitor.statistics.bands.false_alarms import Bounds
from monitor.statistics.bands.scales import LEVEL, SHARE, known_or_0, to_scale, within
from monitor.statistics.bands.seasonal_filter import Forecast
from monitor.statistics.counts import Floats

_SURE = 4.6
"""A series is back when its windows are exp(4.6) = 100 times as likely if it is back as if it is away."""

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Departures(Columns):
    """The departures of m series.

    A series leaves its band where the mean of one of the spans is beyond its bound. It is back when the
    windows since then speak for it: each adds the logarithm of how much more likely it is by the forecast
    than by a forecast with the same loss,

        mu (mu / 2 - x),  x the deviation of this window, mu that of a window that is as far away as when it
        left

    and no more than the bound counts as far away. At night, when the loss of a small scene cannot be seen, mu
    is near 0, and nothing is said for or against.
    """

    side: Ints
    """1 above the band, -1 below, 0 within."""
    _shift: Floats
    _evidence: Floats

    def _fresh(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"side": ((), 0), "_shift": ((), 0.0), "_evidence": ((), 0.0)}

    def decide(
        self,
        forecast: Forecast,
        deviations: Floats,
        bounds: Bounds,
        matters: Bools,
        small: Bools,
        scales: Ints,
    ) -> Bools:
        """Which series are out of their bands with this window.

        Args:
            forecast: of the window.
            deviations: SPANS x m.
            bounds: of the deviations.
            matters: SPANS x m: whether the change is large enough to count.
            small: m: whether the change of this window is so small that a departure ends.
            scales: m.
        """
        known = np.isfinite(deviations[0])
        back = (self.side != 0) & known & self._is_back(forecast, deviations[0], bounds, small, scales)
        ratio = np.where(matters, known_or_0(deviations / bounds.spans), 0.0)
        ratio[1:, back] = 0.0  # the longer spans still hold what is over
        farthest = np.abs(ratio).argmax(axis=0)
        columns = np.arange(self.side.size)
        leaves = np.abs(ratio[farthest, columns]) >= 1
        goes_to = np.sign(ratio[farthest, columns]).astype(np.int64)
        away = (self.side != 0) & ~back
        fresh = leaves & (~away | (goes_to != self.side))
        farther = fresh | (leaves & (np.abs(forecast.means[farthest, columns]) > np.abs(self._shift)))
        self._shift = np.where(farther, forecast.means[farthest, columns], self._shift)
        self._evidence = np.where(leaves, 0.0, self._evidence)
        self.side = np.where(leaves, goes_to, np.where(away, self.side, 0))
        return np.asarray(self.side != 0)

    def _is_back(
        self, forecast: Forecast, deviation: Floats, bounds: Bounds, small: Bools, scales: Ints
    ) -> Bools:
        zeros = np.zeros(deviation.size)
        lowest = np.where(scales == LEVEL, -np.inf, to_scale(zeros, forecast.samples, scales))
        highest = np.where(scales == SHARE, to_scale(zeros + 1, forecast.samples, scales), np.inf)
        away = within(forecast.centre + self._shift, lowest, highest) - forecast.centre
        expected = np.minimum(np.abs(away) / forecast.sd, bounds.shown)
        speaks = expected * (expected / 2 - deviation * self.side)
        self._evidence = np.maximum(self._evidence + known_or_0(speaks), 0.0)
        return (self._evidence >= _SURE) | small
