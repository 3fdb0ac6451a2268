"""The state of a check of bands: what the windows so far taught about each of its series."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from monitor.anomalies.lost_totals import lost_totals
from monitor.anomalies.model_changes import Serving
from monitor.anomalies.moments import a_day, moment_of, or_sunday, slots
from monitor.anomalies.past import Floats, PastWindow, SeriesName
from monitor.anomalies.presence import Presence
from monitor.anomalies.series import DIMENSION_OTHER, WHOLE_REQUESTS, BandedSeries
from monitor.anomalies.series_traits import Bools, Ints, SeriesTraits
from monitor.anomalies.slice_shares import LOST, LostShares, SliceShares
from monitor.core.results import Window
from monitor.settings.bands import BandSettings
from monitor.statistics.bands.comovement import Comovement
from monitor.statistics.bands.departures import Departures
from monitor.statistics.bands.false_alarms import EASIER, Bounds, bounds
from monitor.statistics.bands.rare import Rare, RareSums
from monitor.statistics.bands.scales import from_scale, known_or_0, within
from monitor.statistics.bands.seasonal_filter import WILD, Forecast, Moment, SeasonalFilter
from monitor.statistics.bands.spans import LONGEST, SPANS

CHECKS: Final = 4  # two of bands and two of drift share the allowed false alarms
FARTHEST: Final = 1000.0
"""Larger deviations are cut to this."""
_HIGHEST: Final = 1e15
"""Higher limits of counts are cut to this: after a few days of long windows, the scale has no end."""
REMEMBERED: Final = 3
"""How many windows a slice without any value is still said to be out of its band."""
_FOR_TOTALS: Final = 0.7
"""The part of the allowed false alarms that the totals have."""
_WEEK: Final = timedelta(days=7)
_HALF_OF_95: Final = 1.959964  # half of a 95 % interval, in standard errors
_DUST: Final = 0.001
"""Ignore smaller rises of anything but a count: relative to 0, any rise is large."""
_FEW_SAMPLES: Final = 3.0
"""Ignore changes of a level that so few samples could make: none of 0 or of twice the size decides alone."""
_NO_HIT: Final = 2.5
"""Where few hits are expected, to have none is no more unusual than this."""
_WINDOWS_A_DF: Final = 4.0  # windows in a row share their noise
_FOLLOWS: Final = 0.5
"""A series follows the requests if they explain this part of its change."""
_NEW_MODEL: Final = 3.0
"""How much larger than usual a change of popularity must be to count in the first day of a new model."""
_EVENER: Final = 3.0
"""The same where the exposures are spread more evenly: chance does that, and no user is harmed."""
YOUNG: Final = 0.25
"""A series younger than this part of the history does not know yet what is usual, and learns every window."""
_NEW_SEASON: Final = timedelta(days=3)
"""So long a season teaches its level, however unusual it is; not to what was out of its band before it."""
_LIKE_SUNDAY: Final = timedelta(days=5)
"""So long its working days may be like a Sunday: three of them or more, on whatever day it begins."""
_WILD_BOUNDS: Final = 1.5  # one wild window takes no longer span beyond its bound, two do
MOST: Final = 8064
"""Windows of past: eight weeks of ten minutes."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one window says of all m series of a state, and which of them are in it."""

    values: Floats
    forecast: Forecast
    deviation: Floats
    """The farthest of the spans where a series is out of its band, else that of the window alone."""
    span: Ints
    """How many windows it is the mean of."""
    change: Floats
    """Relative, of these windows."""
    bound: Floats
    lower: Floats
    upper: Floats
    departed: Bools
    follows: Bools
    """Series that changed as the requests did: fewer requests have fewer users, items and actions."""
    judged: Bools
    """Series that have a result: they have a value, or are missing."""
    has_band: Bools
    points: Floats
    """Windows that each series had learned before."""
    was: Floats
    """The side of its band on which a series was out before: 1 above, -1 below, NaN if it was within."""
    learns: Bools
    """Series that were out of their bands until a known change, and have no new band yet."""


def known_history(settings: BandSettings, length: timedelta) -> timedelta:
    """How far back bands look: the history of the settings, but only so many windows."""
    return min(settings.history, MOST * length)


class BandState:
    """What the windows so far taught. Windows are taken in the order of time.

    Args:
        settings: which series have bands, and how.
        length: of a window.
    """

    def __init__(self, settings: BandSettings, length: timedelta) -> None:
        self._settings, self._length = settings, length
        count = slots(length)
        self.least = max(settings.least, a_day(length))
        """How many past windows a band needs."""
        self.end: datetime | None = None
        """The end of the last window."""
        self.series: list[BandedSeries] = []
        self._column: dict[BandedSeries, int] = {}
        self._by_id: dict[int, int] = {}
        self._definition = np.empty(0, dtype=object)
        self._filter = SeasonalFilter(count, a_day(length))
        self._rare = RareSums(a_day(length))
        self.departures = Departures()
        self._presence = Presence(count)
        self._shares = SliceShares(count, a_day(length))
        self._learns = np.empty(0, dtype=np.int64)  # its side until a known change; 0 once it has a new band
        self._seen = np.empty(0)  # when it was last judged
        self._drawn = np.empty((LONGEST, 0))  # the samples of the last windows, the newest first
        self._wild = np.empty(0)  # what one window adds to a longer span, at most
        self._traits = SeriesTraits.of([], {})
        self._moves = Comovement(a_day(length))
        self._slopes = np.empty(0)  # of the series on their drivers, before the newest window
        self._began_with = np.empty(0, dtype=np.bool_)  # out of the band since requests were out of theirs
        self._serving = Serving()
        self._before_season: tuple[date, SeasonalFilter, RareSums, SliceShares] | None = None
        self._season_began: datetime | None = None  # the start of its first window
        self._side_before_season = np.empty(0, dtype=np.int64)  # of series out since before the season
        self._begins_on_holiday = False  # whether all days of the season so far are holidays

    def copy(self) -> Self:
        """The same state, which goes its own way from here."""
        unchanging = {id(one): one for one in (self._settings, *self.series)}
        return copy.deepcopy(self, unchanging)

    @property
    def scales(self) -> Ints:
        return self._filter.scales

    def step(
        self, now: PastWindow, window: Window, names: Mapping[int, SeriesName], *, calm: bool = True
    ) -> Step:
        """Judge a window, and learn from it.

        Args:
            now: its results.
            window: the window; later than all before.
            names: the names of the series.
            calm: whether the window lies outside of maintenance; else it teaches nothing.
        """
        if self.end is not None and window.start > self.end:
            gap = (window.start - self.end) // self._length
            self._filter.skip(gap)
            self._shares.skip(gap)
        self._name(now, names)
        columns = np.array([self._by_id[number] for number in now.series.tolist()], dtype=np.int64)
        chosen = columns >= 0
        columns = columns[chosen]
        self._define(columns, now.definition[chosen])
        self._serving.see(now, names)
        self._change(window)
        moment = moment_of(window, self._settings.zone, self._settings.days_off)
        lasts = self._turn_season(window, moment)
        was_out = self._traits.with_slices(self._side_before_season != 0)
        is_new_season = ~was_out & (lasts is not None and lasts < _NEW_SEASON)
        self._slopes = self._moves.slopes()
        values, samples, errors = np.full((3, len(self.series)), np.nan)
        values[columns], samples[columns] = now.value[chosen], now.samples[chosen]
        errors[columns] = now.error[chosen] / _HALF_OF_95
        violated, there = np.zeros((2, len(self.series)), dtype=np.bool_)
        violated[columns], there[columns] = now.violated[chosen], True
        if lasts is not None and lasts < _LIKE_SUNDAY:
            moment = or_sunday(moment)
        end = window.end.timestamp()
        known = self._traits.is_missed & self._may_be_missing(there, values)
        lost = self.departures.side < 0
        missing = known & self._presence.missing(there, lost, moment, end)
        values[missing] = 0.0
        self._presence.learn(there, known | (there & self._traits.is_missed), moment, end)
        forecast = self._filter.judge(values, samples, moment, errors, self._wild, self._traits.driver >= 0)
        rare = self._rare.rare(np.where(self._traits.is_share, values, np.nan), samples, forecast.expected)
        whole = values[self._column[WHOLE_REQUESTS]] if WHOLE_REQUESTS in self._column else np.nan
        shares = self._shares.judge(values, whole, moment, forecast, self._wild, self.least)
        nearly_whole = self._traits.is_nearly_whole(samples)
        step = self._decide(values, forecast, rare, shares, there | missing, nearly_whole)
        is_beyond = (self._side_before_season != 0) & (self.departures.side == -self._side_before_season)
        self._side_before_season[self.departures.side != self._side_before_season] = 0
        young = step.points < YOUNG * (known_history(self._settings, self._length) / self._length)
        is_struck = self._traits.struck(step.departed, step.follows) | self._moves_with(step.departed)
        may = (~is_struck | young | is_new_season) & ~violated & calm
        self._moves.learn(forecast.means[0], self._traits.driver, may)
        new_model = np.where(self._is_of_new_model(), self._serving.windows, 0)
        self._filter.learn(may, new_model, step.departed)
        self._rare.learn(may)
        self._shares.learn(step.departed, may)
        self._forget_level(is_beyond)  # what came before the season is over, and the season has another level
        self._seen[there | missing] = end
        self._learns[step.has_band] = 0
        self.end = window.end
        return step

    def unseen(self, step: Step) -> list[int]:
        """The columns that were out of their bands, and have no result in this window.

        A slice without any value is forgotten after some windows: its volume reports that it is missing.
        """
        absent = np.flatnonzero((self.departures.side != 0) & ~step.judged)
        places = {(one.dimension, one.value) for one in self._with_values(step)}
        assert self.end is not None
        oldest = (self.end - REMEMBERED * self._length).timestamp()
        found = []
        for column in absent.tolist():
            one = self.series[column]
            is_left = not one.dimension or one.is_missed or (one.dimension, one.value) in places
            if is_left or self._seen[column] >= oldest:
                found.append(column)
        return found

    def take_over(self, older: BandState, wanted: set[BandedSeries]) -> None:
        """Take series from the state of an earlier beginning."""
        mine = [one for one in older.series if one in wanted]
        self._add(mine)
        here = np.array([self._column[one] for one in mine], dtype=np.int64)
        theirs = np.array([older._column[one] for one in mine], dtype=np.int64)
        self._filter.take_from(older._filter, here, theirs)
        self._rare.take_from(older._rare, here, theirs)
        self._moves.take_from(older._moves, here, theirs)
        self._shares.take_from(older._shares, here, theirs)
        self.departures.take_from(older.departures, here, theirs)
        self._presence.take_from(older._presence, here, theirs)
        self._began_with[here] = older._began_with[theirs]
        self._side_before_season[here] = older._side_before_season[theirs]
        self._definition[here], self._seen[here] = older._definition[theirs], older._seen[theirs]
        self._serving = copy.deepcopy(older._serving)
        self.end = older.end

    def _with_values(self, step: Step) -> list[BandedSeries]:
        return [self.series[column] for column in np.flatnonzero(np.isfinite(step.values)).tolist()]

    def _name(self, now: PastWindow, names: Mapping[int, SeriesName]) -> None:
        new = [number for number in now.series.tolist() if number not in self._by_id]
        series = {number: BandedSeries.named(names[number]) for number in new}
        banded = {number: one for number, one in series.items() if one.is_banded(self._settings)}
        self._add([one for one in dict.fromkeys(banded.values()) if one not in self._column])
        self._by_id |= {number: self._column[banded[number]] if number in banded else -1 for number in new}

    def _add(self, new: list[BandedSeries]) -> None:
        if not new:
            return
        self._column |= {one: len(self.series) + place for place, one in enumerate(new)}
        self.series += new
        scales = np.array([int(one.scale) for one in new], dtype=np.int64)
        self._filter.add_series(scales)
        self._shares.add(new, len(self.series) - len(new))
        if self._before_season is not None:
            self._before_season[1].add_series(scales)
            self._before_season[2].add(len(new))
            self._before_season[3].add(new, len(self.series) - len(new))
        for part in (self._rare, self._moves, self.departures, self._presence):
            part.add(len(new))
        self._definition = np.append(self._definition, np.full(len(new), None))
        self._learns = np.append(self._learns, np.zeros(len(new), dtype=np.int64))
        self._seen = np.append(self._seen, np.full(len(new), -np.inf))
        no = np.zeros(len(new), dtype=np.bool_)
        self._began_with = np.append(self._began_with, no)
        self._side_before_season = np.append(self._side_before_season, np.zeros(len(new), dtype=np.int64))
        self._drawn = np.append(self._drawn, np.full((LONGEST, len(new)), np.nan), axis=1)
        self._wild = np.append(self._wild, np.full(len(new), WILD))
        self._traits = SeriesTraits.of(self.series, self._column)

    def _define(self, columns: Ints, definitions: NDArray[np.object_]) -> None:
        """A series of another definition is another series."""
        held = self._definition[columns]
        other = columns[(held != definitions) & (held != None)]  # noqa: E711
        if other.size:
            self._begin_anew(np.isin(np.arange(len(self.series)), other))
        self._definition[columns] = definitions

    def _change(self, window: Window) -> None:
        """A known change since the last window begins its series anew."""
        late = self.least * self._length
        if not any(timedelta(0) < window.end - one.at <= late for one in self._settings.changes):
            self._learns[:] = 0
        for change in self._settings.changes:
            since = window.start if self.end is None else self.end - self._length
            if since < change.at < window.end:
                concerned = np.array(
                    [change.concerns(one.metric, window.end) for one in self.series], np.bool_
                )
                side = self.departures.side
                self._learns = np.where(concerned & (side != 0), side, self._learns)
                self._begin_anew(concerned)

    def _begin_anew(self, which: Bools) -> None:
        for part in (self._filter, self._rare, self._moves, self._shares, self.departures):
            part.begin_anew(which)
        if self._before_season is not None:
            for part in self._before_season[1:]:
                part.begin_anew(which)

    def _forget_level(self, which: Bools) -> None:
        self._filter.forget_level(which)
        self._shares.forget_level(which)

    def _turn_season(self, window: Window, moment: Moment) -> timedelta | None:
        """Keep what was usual before a season, and return to it afterwards.

        If it begins on a holiday, the level is that of the holiday until the next day, which begins it anew.

        How long the season of the window has lasted; None outside a season.
        """
        local = (window.start + window.length / 2).astimezone(self._settings.zone).replace(tzinfo=None)
        season = self._settings.season_of(local.date())
        first = None if season is None else season.first
        if self._before_season is not None and self._before_season[0] != first:
            _, self._filter, self._rare, self._shares = self._before_season
            self._before_season = None
            self._side_before_season[:] = 0
            self._begins_on_holiday = False
            assert self._season_began is not None
            # What lay before the season is not next to this window.
            gap = (window.start - self._season_began) // self._length
            self._filter.skip(gap)
            self._shares.skip(gap)
            self._rare.forget_last(np.ones(len(self.series), dtype=np.bool_))
        if first is not None and self._before_season is None:
            self._before_season = first, self._filter.copy(), self._rare.copy(), self._shares.copy()
            self._season_began = window.start
            self._side_before_season = self.departures.side.copy()
            self._forget_level(self._side_before_season == 0)
            self._begins_on_holiday = moment.is_holiday
        elif self._begins_on_holiday and not moment.is_holiday:
            self._side_before_season = self.departures.side.copy()
            self._begins_on_holiday = False
        return None if first is None else local - datetime.combine(first, time.min)

    def _may_be_missing(self, there: Bools, values: Floats) -> Bools:
        """Whether a slice without rows would have a result if it had rows.

        Not if the window was not measured, or if the slice may be a part of `other`.
        """
        whole = self._column.get(WHOLE_REQUESTS)
        if whole is None or np.isnan(values[whole]):
            return np.zeros(len(self.series), dtype=np.bool_)
        full = {
            one.dimension
            for one, is_there in zip(self.series, there.tolist(), strict=True)
            if is_there and one.value == DIMENSION_OTHER
        }
        return np.array([one.dimension not in full for one in self.series], dtype=np.bool_)

    def _decide(
        self,
        values: Floats,
        forecast: Forecast,
        rare: Rare,
        shares: LostShares,
        judged: Bools,
        nearly_whole: Bools,
    ) -> Step:
        points = self._filter.windows
        has_band = np.isfinite(forecast.expected) & (points >= self.least)
        plain = forecast.deviations
        seldom, size = rare.deviation, np.abs(plain)
        farther = (rare.side * forecast.means > 0) & (np.abs(seldom) > size)
        none = (np.sign(plain) == rare.usual) & (size > _NO_HIT)
        by_chance = np.where(farther, seldom, np.where(none, np.copysign(_NO_HIT, plain), plain))
        deviations = np.fmin(by_chance, shares.deviations)
        deviations = within(np.where(has_band, deviations, np.nan), -FARTHEST, FARTHEST)
        self._drawn = np.concatenate([forecast.samples[None], self._drawn])[:LONGEST]
        limit = self._bounds(np.isfinite(deviations[0]))
        change = forecast.actual - forecast.planned
        lost = lost_totals(forecast, self._drawn, self._traits) & has_band
        least = np.fmax(np.abs(deviations), limit.shown)
        deviations = np.where(lost, np.copysign(least, change), deviations)
        by_share = (shares.deviations <= -limit.spans).any(axis=0)
        self._wild = np.fmax(_WILD_BOUNDS * limit.shown, WILD)
        ratio = known_or_0(deviations / limit.spans)
        was = self.departures.side.copy()
        departed = self.departures.decide(
            forecast, deviations, limit, self._matters(forecast, change, 1.0),
            ~self._matters(forecast, change, EASIER)[0], self.scales,
        )  # fmt: skip
        as_whole = departed & nearly_whole & has_band[self._traits.whole] & ~departed[self._traits.whole]
        self.departures.side[as_whole] = 0
        departed[as_whole] = False
        self._rare.forget_last((was == 0) & departed)
        self._filter.forget_last((was != 0) & ~departed)
        stood = np.where(was != 0, was, np.where(has_band, 0, self._learns))
        self._end_with(was, departed, ratio[0])
        side = self.departures.side
        alike = np.sign(self._slopes) * side[self._traits.driver] == side
        alike |= self._traits.is_count & (side[self._traits.driver] == side)
        led = self._moves_with(departed) & alike
        self._began_with = departed & np.where(was != side, led, self._began_with)
        same = np.sign(ratio) == self.departures.side
        place = np.where(departed, np.abs(np.where(same, ratio, 0.0)).argmax(axis=0), 0)
        columns = np.arange(len(self.series))
        lower, upper = self._limits(forecast, rare.of_window, limit)
        lowest = np.fmin(shares.lower(limit.shown), LOST * forecast.expected)
        lower = np.where(departed & by_share, np.fmax(lower, lowest), lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = change / np.abs(forecast.planned)
        return Step(
            values=values, forecast=forecast, deviation=deviations[place, columns],
            span=np.array(SPANS)[place], change=relative[place, columns], bound=limit.spans[place, columns],
            lower=lower, upper=upper, departed=departed & judged, judged=judged,
            follows=self._follows(relative, forecast, place) & ~by_share, has_band=has_band,
            points=points, was=np.where(stood == 0, np.nan, stood), learns=(self._learns != 0) & ~has_band,
        )  # fmt: skip

    def _bounds(self, tested: Bools) -> Bounds:
        """The bounds of the deviations; the totals have a part of the false alarms for themselves."""
        budget = self._settings.false_alarms / CHECKS * (self._length / _WEEK)
        is_total = self._traits.is_total
        totals, parts = tested & is_total, tested & ~is_total
        of_totals = _FOR_TOTALS if parts.any() else 1.0
        of_parts = 1 - _FOR_TOTALS if totals.any() else 1.0
        chance = np.where(is_total, of_totals / max(1, totals.sum()), of_parts / max(1, parts.sum()))
        df = np.where(self._filter.windows > 0, np.maximum(self._filter.windows / _WINDOWS_A_DF, 1.0), np.nan)
        together = np.array([self._drawn[:windows].sum(axis=0) for windows in SPANS])
        drawn = np.where(self._traits.is_level & np.isfinite(together), together, np.inf)
        return bounds(np.minimum(budget * chance, 0.5), df, drawn)

    def _follows(self, changes: Floats, forecast: Forecast, place: Ints) -> Bools:
        """Which series changed as the requests did, in the span that `place` says of each series.

        A count changes by the same part as the requests. Others move as they moved with the requests in the
        past; but no change of the requests explains that users get no list.
        """
        columns, driven = np.arange(place.size), self._traits.driver >= 0
        error, from_base = forecast.means[place, columns], forecast.from_base[place, columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = changes[place, columns]
            by_requests = np.where(driven, changes[place, self._traits.driver], np.nan) / relative
            by_rate = (relative - changes[place, self._traits.rate]) / relative
            # The forecasts of both remember the last hours, but not alike. So what is usual is compared.
            moved = self._slopes * forecast.from_base[place, self._traits.driver]
            by_slope = (moved - (from_base - error)) / error
        is_count, may_follow = self._traits.is_count, ~self._traits.is_of_harm
        by_count = np.where(self._traits.rate >= 0, by_rate, by_requests)
        by_other = np.where(driven & may_follow & (moved != 0), by_slope, np.nan)
        explained = np.where(is_count, by_count, by_other)
        return np.asarray((explained >= _FOLLOWS) | (self._began_with & ~is_count & may_follow))

    def _end_with(self, was: Ints, departed: Bools, ratio: Floats) -> None:
        """When the requests are back, begin anew what moves with them, and end what left its band with them.

        The longer spans still hold what is over. Where a part stays lost, its next windows show it.
        """
        back = self._moves_with((was != 0) & ~departed)
        self._filter.forget_last(back)
        ends = back & departed & (self._began_with | (was == 0)) & (np.abs(ratio) < 1)
        self.departures.side[ends] = 0
        departed[ends] = False

    def _moves_with(self, chosen: Bools) -> Bools:
        """The series that move with chosen requests: those of their slice, or of the whole."""
        by = self._traits.driver
        return np.asarray(self._is_led() & (chosen[by] | ((by[by] >= 0) & chosen[by[by]])))

    def _is_led(self) -> Bools:
        """The series that move with requests."""
        return np.asarray((self._traits.driver >= 0) & (self._traits.is_count | (self._slopes != 0)))

    def _is_of_new_model(self) -> Bools:
        """Whether a new model serves since less than a day, for each series of popularity."""
        return self._traits.is_of_popularity & (0 < self._serving.windows <= a_day(self._length))

    def _matters(self, forecast: Forecast, change: Floats, part: float) -> Bools:
        """Whether changes reach `part` of the smallest that counts, however certain they are."""
        settings, traits, expected = self._settings, self._traits, np.abs(forecast.planned)
        least = np.where(traits.is_count, settings.least_volume_change, settings.least_change)
        is_evener = (change != 0) & (np.sign(change) == traits.evener)
        times = np.where(is_evener, _EVENER, np.where(self._is_of_new_model(), _NEW_MODEL, 1.0))
        size = np.where(traits.is_share, np.minimum(expected, np.abs(1 - expected)), expected)
        is_dust = ~traits.is_count & (change >= 0) & (change < _DUST * part)
        by_few = np.where(traits.is_level, _FEW_SAMPLES * known_or_0(forecast.by_one), 0.0)
        with np.errstate(invalid="ignore"):
            return np.asarray((np.abs(change) >= part * np.maximum(times * least, by_few) * size) & ~is_dust)

    def _limits(self, forecast: Forecast, rare: Rare, limit: Bounds) -> tuple[Floats, Floats]:
        """Lower and upper: the values of this window that lie at the bound of the longer spans."""
        half = limit.shown * forecast.sd
        lower, upper = (
            from_scale(forecast.centre + side * half, forecast.samples, self.scales) for side in (-1, 1)
        )
        upper = np.where(self._traits.is_count, np.minimum(upper, _HIGHEST), upper)
        by_chance, expected = rare.limit(limit.shown), forecast.expected
        nearer_upper = np.minimum(upper, np.maximum(by_chance, expected))
        nearer_lower = np.maximum(lower, np.minimum(by_chance, expected))
        return np.where(rare.side < 0, nearer_lower, lower), np.where(rare.side > 0, nearer_upper, upper)
