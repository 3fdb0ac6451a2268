"""What the names of many series say about each: its scale, its requests, its slice, what its sides mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from monitor.anomalies.past import Floats
from monitor.anomalies.series import WHOLE_REQUESTS, BandedSeries
from monitor.statistics.bands.scales import Scale

NEARLY_WHOLE: Final = 0.9
"""A slice with this part of all rows, or more, is in its bands if the whole is: that has a longer past."""

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SeriesTraits:
    """The traits of m series, a column for each."""

    is_count: Bools
    is_share: Bools
    is_level: Bools
    is_total: Bools
    is_missed: Bools
    is_of_popularity: Bools
    is_of_harm: Bools
    evener: Ints
    """The side on which the exposures are spread more evenly: 1 above, -1 below, 0 where neither is."""
    rate: Ints
    """Of a number of actions the column of its rate, else -1."""
    driver: Ints
    """The column of the requests that it may follow, else -1."""
    whole: Ints
    """Of a slice the column of the whole, else -1."""
    actions: Ints
    """The column of the number of actions of the same event, else -1."""
    place: Ints
    """The number of its slice."""

    @classmethod
    def of(cls, series: Sequence[BandedSeries], column: Mapping[BandedSeries, int]) -> Self:
        """The traits of these series.

        Args:
            series: in the order of their columns.
            column: the column of each.
        """
        scale = np.array([one.scale for one in series], dtype=np.int64)
        is_total, is_missed, is_of_popularity, is_of_harm = np.array(
            [(one.is_total, one.is_missed, one.is_of_popularity, one.is_of_harm) for one in series], np.bool_
        ).T.reshape(4, len(series))
        requests = column.get(WHOLE_REQUESTS, -1)
        drivers = _ints(column.get(one.driver, requests) for one in series)
        places = {place: number for number, place in enumerate(dict.fromkeys(map(_place, series)))}
        return cls(
            is_count=scale == Scale.COUNT,
            is_share=scale == Scale.SHARE,
            is_level=scale == Scale.LEVEL,
            is_total=is_total,
            is_missed=is_missed,
            is_of_popularity=is_of_popularity,
            is_of_harm=is_of_harm,
            evener=_ints(one.evener for one in series),
            rate=_ints(column.get(one.rate, -1) for one in series),
            driver=np.where(np.arange(len(series)) == drivers, -1, drivers),
            whole=_ints(column.get(one.whole, -1) if one.dimension else -1 for one in series),
            actions=_ints(column.get(one.actions, -1) for one in series),
            place=_ints(places[_place(one)] for one in series),
        )

    def with_slices(self, chosen: Bools) -> Bools:
        """The chosen series, and the slices of each."""
        return np.asarray(chosen | ((self.whole >= 0) & chosen[self.whole]))

    def struck(self, departed: Bools, follows: Bools) -> Bools:
        """The series that an incident has changed, seen in their own values or not.

        A slice with few samples hardly sees what the whole sees. And the rates of an event have wide bands
        after hours without a value, while the number of its actions tells that nearly all are gone.

        Args:
            departed: the series that are out of their bands.
            follows: those that changed as the requests did.
        """
        actions = departed & ~follows
        return self.with_slices(departed | ((self.actions >= 0) & actions[self.actions]))

    def is_nearly_whole(self, samples: Floats) -> Bools:
        """The series of slices that hold nearly all rows of the window, by its samples (NaN: unknown).

        Some series have the same samples in every slice, such as the items of the catalog. So a slice holds
        the smallest of the parts that its samples are of those of the whole.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(self.whole >= 0, samples / samples[self.whole], np.nan)
        smallest = np.full(int(self.place.max(initial=0)) + 1, np.inf)
        known = np.isfinite(part)
        np.minimum.at(smallest, self.place[known], part[known])
        part = smallest[self.place]
        return np.asarray((self.whole >= 0) & np.isfinite(part) & (part >= NEARLY_WHOLE))


def _ints(numbers: Iterable[int]) -> Ints:
    return np.array(list(numbers), dtype=np.int64)


def _place(one: BandedSeries) -> tuple[str, str]:
    return one.dimension, one.value
