"""Which slices lost far more of their requests than the rest of the traffic did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.anomalies.series import WHOLE_REQUESTS, BandedSeries
from monitor.statistics.bands.scales import Scale, from_scale
from monitor.statistics.bands.seasonal_filter import Forecast, Moment, SeasonalFilter
from monitor.statistics.bands.spans import LONGEST, SPANS
from monitor.statistics.counts import Floats

LOST: Final = 0.5
"""A slice is judged by its share only below this part of the requests that it is expected to have."""

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class LostShares(NamedTuple):
    """What the shares say of m series; NaN where they say nothing."""

    deviations: Floats
    """SPANS x m: below 0."""
    centre: Floats
    """m: the expected share, on its scale."""
    sd: Floats
    samples: Floats

    def lower(self, multiple: Floats) -> Floats:
        """The requests of this window that lie so many deviations below what is expected."""
        share = np.full(self.centre.size, int(Scale.SHARE))
        return from_scale(self.centre - multiple * self.sd, self.samples, share) * self.samples


class SliceShares:
    """The share of all requests that each slice has, beside the bands of its number of requests.

    Where the traffic itself is noisy, the band of a slice's requests is as wide as that of the whole, and
    even 0 lies within. The share is free of what all slices have in common. It is judged downwards only, and
    only while less than half of the requests are there that are expected, and that the middle one of the
    other slices lets expect. So a slice is not lost because another one has more.

    Args:
        slots: times of day that are told apart.
        a_day: windows in a day.
    """

    def __init__(self, slots: int, a_day: int) -> None:
        self._filter = SeasonalFilter(slots, a_day)
        self._of = np.empty(0, dtype=np.int64)  # the column of each slice's requests, in order
        self._dimension = np.empty(0, dtype=object)
        self._drawn = np.full(LONGEST, np.nan)  # all requests of the last windows, the newest first
        self._lost = np.empty(0, dtype=np.bool_)

    def add(self, series: Sequence[BandedSeries], first: int) -> None:
        """Add those of the new series that are the requests of a slice; the columns begin with `first`."""
        new = [number for number, one in enumerate(series) if one.is_missed and one.whole == WHOLE_REQUESTS]
        self._filter.add_series(np.full(len(new), int(Scale.SHARE)))
        self._of = np.append(self._of, np.array(new, dtype=np.int64) + first)
        names = np.array([series[number].dimension for number in new], dtype=object)
        self._dimension = np.append(self._dimension, names)
        self._lost = np.append(self._lost, np.zeros(len(new), dtype=np.bool_))

    def begin_anew(self, which: Bools) -> None:
        """Forget everything about the series that are True."""
        self._filter.begin_anew(which[self._of])

    def take_from(self, other: SliceShares, here: Ints, there: Ints) -> None:
        """Take series from another state: the columns `there` of it are the columns `here` of this one."""
        is_one = np.isin(here, self._of)
        to, source = self._of.searchsorted(here[is_one]), other._of.searchsorted(there[is_one])
        self._filter.take_from(other._filter, to, source)
        self._lost[to] = other._lost[source]
        self._drawn = other._drawn.copy()

    def skip(self, windows: int) -> None:
        """Let windows pass that nobody measured."""
        self._filter.skip(windows)
        self._drawn = np.append(np.full(min(windows, LONGEST), np.nan), self._drawn)[:LONGEST]

    def judge(
        self, values: Floats, whole: float, moment: Moment, requests: Forecast, wild: Floats, least: int
    ) -> LostShares:
        """What the shares of a window say.

        Args:
            values: m, of all series.
            whole: all requests of the window; NaN where unknown.
            moment: where the window lies.
            requests: what was expected of all series.
            wild: m; see `over_spans`.
            least: how many windows a share must have learned.
        """
        of = self._of
        self._drawn = np.append(whole, self._drawn)[:LONGEST]
        deviations = np.full((len(SPANS), len(values)), np.nan)
        found = LostShares(deviations, *np.full((3, len(values)), np.nan))
        if not of.size:
            return found
        share = np.minimum(values[of] / whole, 1.0) if whole > 0 else np.full(of.size, np.nan)
        forecast = self._filter.judge(share, np.full(of.size, whole), moment, wild=wild[of])
        with np.errstate(divide="ignore", invalid="ignore"):
            left = requests.actual[:, of] / requests.planned[:, of]
        is_lost: Bools = np.asarray(left < LOST)
        if is_lost.any():
            is_lost &= np.asarray(left < LOST * self._of_others(left))
        away: Floats = np.maximum(forecast.deviations, self._at_most(forecast))
        away[:, self._filter.windows < least] = np.nan
        is_lost &= np.asarray(away < 0)
        self._lost = np.any(is_lost, axis=0)
        deviations[:, of] = np.where(is_lost, away, np.nan)
        for name in ("centre", "sd", "samples"):
            getattr(found, name)[of] = getattr(forecast, name)
        return found

    def learn(self, departed: Bools, may: Bools) -> None:
        """Learn from the window that was judged last; not in a dimension that has lost a slice."""
        of = self._of
        if not of.size:
            return
        lost = self._dimension[departed[of] & self._lost]
        self._filter.learn(may[of] & ~np.isin(self._dimension.astype(str), lost.astype(str)))

    def _of_others(self, left: Floats) -> Floats:
        """SPANS x k: of the other slices of its dimension the median of what is left, the lower of two."""
        found = np.full(left.shape, np.nan)
        for dimension in dict.fromkeys(self._dimension.tolist()):
            mine = np.flatnonzero(self._dimension == dimension)
            order = left[:, mine].argsort(axis=1, kind="stable")
            ranked = np.take_along_axis(left[:, mine], order, axis=1)
            middle = np.maximum(np.isfinite(ranked).sum(axis=1, keepdims=True) - 2, 0) // 2
            behind = np.minimum(middle + 1, mine.size - 1)
            # Without a slice at the middle or before it, the next one comes to the middle.
            is_behind = order.argsort(axis=1, kind="stable") > middle
            others = [np.take_along_axis(ranked, place, axis=1) for place in (middle, behind)]
            found[:, mine] = np.where(is_behind, *others) if mine.size > 1 else np.nan
        return found

    def _at_most(self, forecast: Forecast) -> Floats:
        """SPANS x k: how unusual so few are by the binomial distribution, which holds for few as well."""
        from scipy import special

        drawn = np.array([self._drawn[:windows].sum() for windows in SPANS])[:, None]
        hits = forecast.actual * drawn
        chance = special.betainc(np.maximum(drawn - hits, 1e-9), hits + 1, 1 - forecast.planned)
        return np.asarray(special.ndtri(chance), dtype=np.float64)
