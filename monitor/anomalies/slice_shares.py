"""Which slices lost far more of their requests than the rest of the traffic did."""

from __future__ import annotations

import copy
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
_BESIDE_ONE: Final = 0.1
"""The same beside a single other slice: a rush there makes every share of this one small."""
_DAYS_OF_KIND: Final = 2
"""A share has a verdict once so many working days, or days of a weekend, were seen at this time."""
_FAR: Final = 4.0
"""A share so many standard deviations too low counts as a time at which the slice was away."""
_OFTEN: Final = 2.5
"""A slice that was away and back three times within some weeks comes and goes: its absence is no loss."""
_WEEKS: Final = 4.0  # how long the times count

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


class LostShares(NamedTuple):
    """What the shares say of m series."""

    deviations: Floats
    """SPANS x m: below 0, and NaN where nothing is lost."""
    centre: Floats
    """m: the expected share, on its scale; NaN where there is none."""
    sd: Floats
    """m: on the same scale."""
    samples: Floats
    """m: all requests."""

    def lower(self, multiple: Floats) -> Floats:
        """The requests of this window that lie so many deviations below what is expected."""
        share = np.full(self.centre.size, int(Scale.SHARE))
        return from_scale(self.centre - multiple * self.sd, self.samples, share) * self.samples


class SliceShares:
    """The share of all requests that each slice has, beside the bands of its number of requests.

    Where the traffic itself is noisy, the band of a slice's requests is as wide as that of the whole, and
    even 0 lies within. The share is free of what all slices have in common. It is judged downwards only, and
    only while the slice keeps less than half of its expected requests, and less than half of the part that
    the middle one of the other slices keeps. So a slice is not lost because others have more. A slice without
    another one has no such verdict, nor has one that came and went several times in the last weeks.

    Args:
        slots: times of day that are told apart.
        a_day: windows in a day.
    """

    def __init__(self, slots: int, a_day: int) -> None:
        self._filter = SeasonalFilter(slots, a_day)
        self._a_day = a_day
        self._of = np.empty(0, dtype=np.int64)  # the column of each slice's requests, in order
        self._dimension = np.empty(0, dtype=object)
        self._drawn = np.full(LONGEST, np.nan)  # all requests of the last windows, the newest first
        self._lost = np.empty(0, dtype=np.bool_)
        self._since = np.empty(0, dtype=np.int64)  # for so many windows each is lost
        self._away = np.empty(0, dtype=np.bool_)  # whether the share was too low in the last window
        self._times = np.empty(0)  # how often each was away, fading over weeks
        self._fades = 1 - 1 / (_WEEKS * 7 * a_day)

    def copy(self) -> SliceShares:
        """The same state, which goes its own way from here."""
        return copy.deepcopy(self)

    def add(self, series: Sequence[BandedSeries], first: int) -> None:
        """Add those of the new series that are the requests of a slice; the columns begin with `first`."""
        new = [number for number, one in enumerate(series) if one.is_missed and one.whole == WHOLE_REQUESTS]
        self._filter.add_series(np.full(len(new), int(Scale.SHARE)))
        self._of = np.append(self._of, np.array(new, dtype=np.int64) + first)
        names = np.array([series[number].dimension for number in new], dtype=object)
        self._dimension = np.append(self._dimension, names)
        self._lost = np.append(self._lost, np.zeros(len(new), dtype=np.bool_))
        self._since = np.append(self._since, np.zeros(len(new), dtype=np.int64))
        self._away = np.append(self._away, np.zeros(len(new), dtype=np.bool_))
        self._times = np.append(self._times, np.zeros(len(new)))

    def begin_anew(self, which: Bools) -> None:
        """Forget everything about the series that are True."""
        self._filter.begin_anew(which[self._of])
        chosen = which[self._of]
        self._lost[chosen], self._away[chosen] = False, False
        self._since[chosen], self._times[chosen] = 0, 0.0

    def take_from(self, other: SliceShares, here: Ints, there: Ints) -> None:
        """Take series from another state: the columns `there` of it are the columns `here` of this one."""
        is_one = np.isin(here, self._of)
        to, source = self._of.searchsorted(here[is_one]), other._of.searchsorted(there[is_one])
        self._filter.take_from(other._filter, to, source)
        for name in ("_lost", "_since", "_away", "_times"):
            getattr(self, name)[to] = getattr(other, name)[source]
        self._drawn = other._drawn.copy()

    def forget_level(self, which: Bools) -> None:
        """Take the level of the series that are True from their next day."""
        self._filter.forget_level(which[self._of])

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
            is_lost &= np.asarray(left < self._allowed(left))
        away: Floats = np.maximum(forecast.deviations, self._at_most(forecast))
        with np.errstate(divide="ignore", invalid="ignore"):
            # A share that a campaign raised for hours is back at its usual level, not lost.
            away = np.maximum(away, forecast.from_base * forecast.deviations / forecast.means)
        away[:, (self._filter.windows < least) | (self._filter.seen(moment) < _DAYS_OF_KIND)] = np.nan
        is_lost &= np.asarray(away < 0)
        is_away = np.any(is_lost & (away < -_FAR), axis=0)
        self._times = self._fades * self._times + (self._away & ~is_away)
        self._away = is_away
        is_lost[:, (self._times > _OFTEN) & (self._since == 0)] = False
        self._lost = np.any(is_lost, axis=0)
        deviations[:, of] = np.where(is_lost, away, np.nan)
        for name in ("centre", "sd", "samples"):
            getattr(found, name)[of] = getattr(forecast, name)
        return found

    def learn(self, departed: Bools, may: Bools) -> None:
        """Learn from the window that was judged last, but for a day not in a dimension that lost a slice.

        A slice that stays away for longer may have been closed: then the others have new shares.
        """
        of = self._of
        if not of.size:
            return
        self._since = np.where(departed[of] & (self._lost | (self._since > 0)), self._since + 1, 0)
        lost = self._dimension[(self._since > 0) & ~self._is_gone]
        self._filter.learn(may[of] & ~np.isin(self._dimension.astype(str), lost.astype(str)))

    @property
    def _is_gone(self) -> Bools:
        """Which slices are lost for more than a day."""
        return np.asarray(self._since > self._a_day)

    def _allowed(self, left: Floats) -> Floats:
        """SPANS x k: below this part of its requests a slice is judged by its share; NaN if it never is.

        Args:
            left: SPANS x k, the part of the expected requests that is there.
        """
        allowed = np.full(left.shape, np.nan)
        known = np.where(np.isfinite(left) & ~self._is_gone, left, np.nan)
        for dimension in dict.fromkeys(self._dimension.tolist()):
            mine = np.flatnonzero(self._dimension == dimension)
            if mine.size > 1:
                middle, lowest, others = _of_others(known[:, mine])
                # Where half of them or more have a rush, the lowest tells what is usual.
                rush = np.where(middle > 1, np.maximum(LOST * lowest, _BESIDE_ONE), np.inf)
                part = np.minimum(LOST * middle, np.where(others > 1, rush, _BESIDE_ONE))
                allowed[:, mine] = part
        return allowed

    def _at_most(self, forecast: Forecast) -> Floats:
        """SPANS x k: how unusual so few are by the binomial distribution, which holds for few as well."""
        from scipy import special

        drawn = np.array([self._drawn[:windows].sum() for windows in SPANS])[:, None]
        hits = forecast.actual * drawn
        chance = special.betainc(np.maximum(drawn - hits, 1e-9), hits + 1, 1 - forecast.planned)
        return np.asarray(special.ndtri(chance), dtype=np.float64)


def _of_others(left: Floats) -> tuple[Floats, Floats, Ints]:
    """Of the others in each row the median, the lower of two; the lowest; and how many there are.

    NaN is left out.

    >>> middle, lowest, others = _of_others(np.array([[0.1, 1.0, 2.0, 0.9], [0.0, 1.0, np.nan, np.nan]]))
    >>> middle.tolist(), others.tolist()
    ([[1.0, 0.9, 0.9, 1.0], [1.0, 0.0, 0.0, 0.0]], [[3, 3, 3, 3], [1, 1, 2, 2]])
    >>> lowest.tolist()
    [[0.9, 0.1, 0.1, 0.1], [1.0, 0.0, 0.0, 0.0]]
    """
    there = np.isfinite(left)
    order = left.argsort(axis=1, kind="stable")
    ranked, rank = np.take_along_axis(left, order, axis=1), order.argsort(axis=1, kind="stable")
    others = there.sum(axis=1, keepdims=True) - there

    def at(place: Ints) -> Floats:
        # Without a slice at this place or before it, the next one comes there.
        found = np.minimum(place + (there & (rank <= place)), left.shape[1] - 1)
        return np.where(others > 0, np.take_along_axis(ranked, found, axis=1), np.nan)

    return at(np.maximum(others - 1, 0) // 2), at(np.zeros_like(others)), others
