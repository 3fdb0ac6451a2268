"""How series move with the requests: what of a departure do the requests explain?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.bands.columns import Columns
from monitor.statistics.bands.scales import known_or_0, within
from monitor.statistics.counts import Floats

_DAYS = 21.0  # how many days the products of errors remember
_CLIP = 2.5  # no window teaches more than so many standard deviations
_LEAST_DAYS = 2.0  # before that, nothing is known
_LEAST = 0.3  # the correlation from which on a series is said to move with its driver

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Comovement(Columns):
    """The slopes of m series on the series that drive them, from the errors of their forecasts.

        slope = mean(error x error of the driver) / mean(error of the driver ^ 2)

    The means fade over three weeks, and each error is cut at 2.5 standard deviations.

    Args:
        a_day: windows in a day.

    >>> rng = np.random.default_rng(1)
    >>> found = Comovement(24)
    >>> found.add(3)
    >>> for _ in range(200):
    ...     requests, chance = rng.normal(size=2)
    ...     errors = np.array([requests, -0.5 * requests, chance])
    ...     found.learn(errors, np.array([-1, 0, 0]), True)
    >>> found.slopes().round(2).tolist()
    [0.0, -0.5, 0.0]
    """

    _products: Floats  # the driver's error squared, the product of both, the own error squared
    _windows: Floats

    def __init__(self, a_day: int) -> None:
        self._a_day = a_day
        super().__init__()

    def _fresh(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"_products": ((3,), np.nan), "_windows": ((), 0.0)}

    def learn(self, errors: Floats, drivers: Ints, allowed: ArrayLike) -> None:
        """Learn from a window.

        Args:
            errors: m: the values less their forecasts, on the scales of the metrics; NaN where there is none.
            drivers: m: the column of the series that drives each; -1 where there is none.
            allowed: m, or one for all: a series that is out of its band may not.
        """
        given = np.where(drivers >= 0, errors[drivers], np.nan) if errors.size else errors
        driver, own = (
            within(one, -_CLIP * sd, _CLIP * sd) for one, sd in ((given, self._sd(0)), (errors, self._sd(2)))
        )
        may = np.isfinite(driver) & np.isfinite(own) & np.asarray(allowed, np.bool_)
        gain = np.maximum(1 / (_DAYS * self._a_day), 1 / (self._windows + 1))
        new = np.array([driver**2, driver * own, own**2])
        held = np.where(np.isnan(self._products), new, self._products)
        self._products = np.where(may, held + gain * (new - held), self._products)
        self._windows = self._windows + may

    def slopes(self) -> Floats:
        """How far each series moves when its driver moves by 1; 0 where it is not known to move with it."""
        driver, both, own = known_or_0(self._products)
        known = (self._windows >= _LEAST_DAYS * self._a_day) & (both**2 >= _LEAST**2 * driver * own)
        known &= driver > 0
        return np.where(known, both / np.where(known, driver, 1.0), 0.0)

    def _sd(self, row: int) -> Floats:
        """The standard deviation so far. In the first windows none is known, and nothing is cut."""
        known = self._windows >= self._a_day / 2
        return np.where(known, np.sqrt(self._products[row]), np.inf)
