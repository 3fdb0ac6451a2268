"""The last band of a series that has been out of it for so long that its past holds no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from monitor.anomalies.past import Floats, PastWindows
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import EXPECTED
from monitor.anomalies.table import Table
from monitor.history.store import Store
from monitor.statistics.bands.band import FARTHEST
from monitor.statistics.bands.scales import Scale

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Kept:
    """The bands of m series as they were told before, NaN where there is none."""

    expected: Floats
    lower: Floats
    upper: Floats

    def deviation(self, values: Floats, bound: Floats) -> Floats:
        """How far the values are, in units in which the edge of the band is at the bound.

        >>> one = np.array([1.0])
        >>> kept = Kept(10 * one, 8 * one, 14 * one)
        >>> kept.deviation(16 * one, 5 * one).tolist(), kept.deviation(9 * one, 5 * one).tolist()
        ([7.5], [-2.5])
        """
        away = values - self.expected
        width = np.where(away > 0, self.upper - self.expected, self.expected - self.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(away == 0, 0.0, away / width) * bound
        return np.clip(far, -FARTHEST, FARTHEST)


class KeptBands:
    """What a check of bands has told to be expected; for one thread, since it keeps what it read last."""

    def __init__(self, recommender: str, check: str) -> None:
        self._told = PastWindows(recommender, check, EXPECTED.name)

    def read(
        self, store: Store, table: Table, wanted: Bools, ends: Sequence[datetime], length: timedelta
    ) -> Kept:
        """The band of each wanted series of the table in the first of these windows that has one.

        Raises StoreError.
        """
        with store.reading() as connection:
            told = self._told.read(connection, ends, length)
            known = [one.series for one in told.values()]
            names = self._told.names(connection, np.unique(np.concatenate(known))) if known else {}
        number_of = {BandedSeries.banded(name): number for number, name in names.items()}
        numbers = np.array([number_of.get(one, -1) for one in table.series], dtype=np.int64)
        expected, half = np.full((2, len(numbers)), np.nan)
        for window in (told[end] for end in ends if end in told):
            lacking = np.flatnonzero(wanted & np.isnan(expected))
            _, mine, theirs = np.intersect1d(numbers[lacking], window.series, return_indices=True)
            expected[lacking[mine]], half[lacking[mine]] = window.value[theirs], window.error[theirs]
        scales = np.array([one.scale for one in table.series], dtype=np.int64)
        return within(expected, half, scales)


def within(expected: Floats, half: Floats, scales: npt.NDArray[np.int64]) -> Kept:
    """The bands of these half widths. Where one would leave its scale it is moved, and stays as wide."""
    level = scales == Scale.LEVEL
    lower = np.where(level, expected - half, np.maximum(expected - half, 0.0))
    upper = lower + 2 * half
    upper = np.where(scales == Scale.SHARE, np.minimum(upper, 1.0), upper)
    return Kept(expected, np.where(level, lower, np.maximum(upper - 2 * half, 0.0)), upper)
