"""The earlier verdicts of bands: which series were out of their bands, and their last bands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from monitor.anomalies.neighbours import Neighbours
from monitor.anomalies.past import Floats, PastWindow, PastWindows, SeriesName
from monitor.anomalies.results import Banded
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import EXPECTED
from monitor.anomalies.table import Table, verdicts
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from monitor.statistics.bands.band import FARTHEST
from monitor.statistics.bands.scales import Scale

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BandValues:
    """The stored bands of m series, NaN where there is none."""

    expected: Floats
    lower: Floats
    upper: Floats

    def deviation(self, values: Floats, bound: Floats) -> Floats:
        """The deviations of the values, scaled so that the edge of the band is at `bound`.

        >>> one = np.array([1.0])
        >>> kept = BandValues(10 * one, 8 * one, 14 * one)
        >>> kept.deviation(16 * one, 5 * one).tolist(), kept.deviation(9 * one, 5 * one).tolist()
        ([7.5], [-2.5])
        """
        away = values - self.expected
        width = np.where(away > 0, self.upper - self.expected, self.expected - self.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(away == 0, 0.0, away / width) * bound
        return np.clip(far, -FARTHEST, FARTHEST)


class LastBands:
    """The stored bands of a check of bands. Not thread-safe: it caches what it read last."""

    def __init__(self, recommender: str, check: str) -> None:
        self._expected = PastWindows(recommender, check, EXPECTED.name)

    def read(
        self, store: Store, table: Table, wanted: Bools, ends: Sequence[datetime], length: timedelta
    ) -> BandValues:
        """The band of each wanted series in the first of these windows that has one.

        Raises StoreError.
        """
        with store.reading() as connection:
            stored = self._expected.read(connection, ends, length)
            known = [one.series for one in stored.values()]
            names = self._expected.names(connection, np.unique(np.concatenate(known))) if known else {}
        number_of = {BandedSeries.banded(name): number for number, name in names.items()}
        numbers = np.array([number_of.get(one, -1) for one in table.series], dtype=np.int64)
        expected, half = np.full((2, len(numbers)), np.nan)
        for window in (stored[end] for end in ends if end in stored):
            lacking = np.flatnonzero(wanted & np.isnan(expected))
            _, mine, theirs = np.intersect1d(numbers[lacking], window.series, return_indices=True)
            expected[lacking[mine]], half[lacking[mine]] = window.value[theirs], window.error[theirs]
        scales = np.array([one.scale for one in table.series], dtype=np.int64)
        return within(expected, half, scales)


def within(expected: Floats, half: Floats, scales: npt.NDArray[np.int64]) -> BandValues:
    """Bands of these half widths. A band that would leave its scale is moved and keeps its width."""
    level = scales == Scale.LEVEL
    lower = np.where(level, expected - half, np.maximum(expected - half, 0.0))
    upper = lower + 2 * half
    upper = np.where(scales == Scale.SHARE, np.minimum(upper, 1.0), upper)
    return BandValues(expected, np.where(level, lower, np.maximum(upper - 2 * half, 0.0)), upper)


SliceKey = tuple[str, str]


def last(deviations: Floats, departed: Bools) -> tuple[Floats, Bools]:
    """The newest deviation of each series (rows: the newest window first), and whether it had departed.

    >>> last(np.array([[np.nan, 2.0], [7.0, 8.0]]), np.array([[False, False], [True, True]]))
    (array([7., 2.]), array([ True, False]))
    """
    if not len(deviations):
        return np.full(deviations.shape[1], np.nan), np.zeros(deviations.shape[1], dtype=np.bool_)
    first = np.isfinite(deviations).argmax(axis=0)
    columns = np.arange(deviations.shape[1])
    return deviations[first, columns], departed[first, columns]


def standing(deviations: Floats, departed: Bools, around: Neighbours) -> tuple[Floats, Bools]:
    """Whether each series is in a departure, and its deviation there (rows: the newest window first).

    It is if it had departed in the newest window, in the newest window of this time of day, or in the newest
    of this time and day type. So a normal night or Sunday does not end an incident of weeks.
    """
    same_time = around.near == 0
    stood, stands = last(deviations, departed)
    for alike in (same_time, same_time & around.same_day_type):
        then, stood_then = last(deviations[alike], departed[alike])
        stood, stands = np.where(stands, stood, then), stands | stood_then
    return stood, stands


def lost(
    judged: Sequence[PastWindow | None],
    names: Mapping[int, SeriesName],
    around: Neighbours,
    settings: BandSettings,
) -> dict[BandedSeries, datetime]:
    """The slices whose requests were below their band when this time of day was last judged.

    Such a slice is missing until it is back, even if that takes longer than the history. Each comes with the
    end of the first window in which it was judged.
    """
    series = {number: BandedSeries.banded(name) for number, name in names.items()}
    numbers = sorted(number for number, one in series.items() if one.is_missed and one.is_banded(settings))
    deviations, departed = verdicts(judged, np.array(numbers, dtype=np.int64))
    stood, stands = standing(np.where((around.near == 0)[:, None], deviations, np.nan), departed, around)
    return {
        series[numbers[place]]: around.ends[np.flatnonzero(np.isfinite(deviations[:, place]))[-1]]
        for place in np.flatnonzero(stands & (stood < 0)).tolist()
    }


def unseen(
    table: Table,
    judged: Sequence[PastWindow | None],
    names: Mapping[int, SeriesName],
    starts: Sequence[datetime],
    recent: Bools,
    places: Collection[SliceKey],
    end: datetime,
    settings: BandSettings,
) -> list[Banded]:
    """The series that were out of their bands when last judged, and that are absent from this window.

    They count however long ago that was. But a slice without any value is forgotten after the recent windows:
    its volume reports that it is missing.

    Args:
        table: the series of the window.
        judged: the n windows of bands before it, newest first; None without a verdict.
        names: the names of their series.
        starts: their starts.
        recent: which of them are just before the window.
        places: the slices with a value in the window, each a dimension and a value.
        end: the end of the window.
        settings: which series have a band, and the known changes, which end a departure.
    """
    series = {number: BandedSeries.banded(name) for number, name in names.items()}
    here = set(table.series)
    numbers = sorted(number for number, one in series.items() if one not in here and one.is_banded(settings))
    deviations, departed = verdicts(judged, np.array(numbers, dtype=np.int64))
    stood, stands = last(deviations, departed)
    found: list[Banded] = []
    for at in np.flatnonzero(stands).tolist():
        one, newest = series[numbers[at]], int(np.isfinite(deviations[:, at]).argmax())
        changes = (change for change in settings.changes if change.concerns(one.metric, end))
        anew = any(starts[newest] < change.at for change in changes)
        is_left = not one.dimension or one.is_missed or (one.dimension, one.value) in places
        if not anew and (is_left or recent[newest]):
            found.append(Banded.unseen(one, float(stood[at])))
    return found
