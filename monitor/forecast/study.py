"""The relations of offline metrics with business metrics, on the days of the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

import numpy as np

from monitor.anomalies.past import Floats
from monitor.core.results import Status
from monitor.core.text import visible
from monitor.forecast.days import REASONS, DayTable, last_day, read_days
from monitor.forecast.series import ForecastSeries
from monitor.history.store import Store
from monitor.settings.forecast import ForecastSettings, TargetSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics import forecast as statistics
from monitor.statistics.forecast import Bools, Correlation, Days, Ints, Prediction, Relation
from monitor.statistics.intervals import CONFIDENCE, Interval

STRONGEST = 10
"""How many pairs of a target, beside those that are used, have a regression."""
_TOO_LARGE = f"a number beyond {statistics.LARGEST:g}"
_TREND = 0.5  # the rank correlation with time from which on a number has a trend


@dataclass(frozen=True, slots=True)
class Dot:
    """A day of a pair, for its picture. `reason`: why it is left out of the fit; empty if it is not."""

    day: date
    x: float
    y: float
    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and an offline metric, and what the days say about them.

    Attributes:
        target: the business metric.
        series: the offline metric.
        is_used: whether the config says that it is used to predict the target.
        days: how many days have both numbers and are not left out.
        points: how many points they make.
        confidence: of the interval, so high that the intervals of all such pairs hold together.
        correlation: None if there is none; then `why` says why.
        is_looked_at: whether it is looked at more closely.
        relation: None for other pairs, and if the line is out of the range of numbers.
        earlier, recent: of a used pair, the relations in the days before `recent` and in these days.
        dots: its days, the left-out ones too.
        recent_days: how many days count as recent.
    """

    target: TargetSettings
    series: ForecastSeries
    is_used: bool
    days: int
    points: int
    confidence: float
    correlation: Correlation | None = None
    is_looked_at: bool = False
    relation: Relation | None = None
    earlier: Relation | None = None
    recent: Relation | None = None
    why: str = ""
    dots: tuple[Dot, ...] = ()
    recent_days: int = 0

    @property
    def interval(self) -> Interval | None:
        """Of the correlation."""
        return None if self.correlation is None else self.correlation.interval(self.confidence)

    @property
    def is_certain(self) -> bool:
        """Whether the correlation is certainly not 0, with all pairs in view."""
        return self.interval is not None and (self.interval.lower > 0 or self.interval.upper < 0)

    @property
    def has_vanished(self) -> bool:
        """Whether a used relation that was certain is gone in the recent days."""
        if self.earlier is None or self.recent is None:
            return False
        return statistics.has_vanished(self.earlier, self.recent, self.confidence)

    @property
    def predicts(self) -> bool:
        """Whether the regression beats the naive forecast, on a relation that is certain and not gone."""
        found = self.relation is not None and self.relation.predicts(self.confidence)
        return found and not self.has_vanished

    @property
    def status(self) -> Status:
        if self.correlation is None:
            return Status.NO_DATA
        return Status.VIOLATED if self.has_vanished else Status.OK

    def title(self) -> str:
        return f"{self.series.title()} and {self.target.name}"

    def detail(self) -> str:
        """What the days say, in a sentence or two."""
        if self.correlation is None or self.interval is None:
            return self.why
        if self.has_vanished and self.earlier is not None and self.recent is not None:
            before, now = self.earlier.correlation.value, self.recent.correlation.value
            said = (
                f"the correlation was {before:.2f} and is {now:.2f} in the last {self.recent_days} days, "
                "so it no longer predicts"
            )
        elif not self.is_certain:
            said = "the interval of the correlation contains 0"
        elif self.relation is None:
            out = ", but its line is out of the range of numbers, so it does not predict"
            said = f"related{out if self.is_looked_at else ''}"
        elif not self.predicts:
            said = "related, but the line does not beat the median of the other days, so it does not predict"
        else:
            said = f"predicts: the line saves {100 * self.relation.skill:.0f} % of the error of the median"
        return f"{said}{self._trend()}"

    def _trend(self) -> str:
        """A warning if both numbers follow the same trend, and nothing is left without it."""
        if self.relation is None or not self.is_certain or self.correlation is None:
            return ""
        points = self.relation.points
        left = statistics.without_trend(points)
        if any(abs(statistics.trend(points.at, values)) < _TREND for values in (points.x, points.y)):
            return ""
        rest = Correlation(left or 0.0, self.correlation.points, self.correlation.effective, 1.0)
        interval = rest.interval(CONFIDENCE)
        if interval.lower <= 0 <= interval.upper:
            return (
                "; both follow a trend, and nothing certain is left without it: something else may move both"
            )
        return ""


@dataclass(frozen=True, slots=True)
class Study:
    """All pairs of a recommender: by target in the order of the config, used ones first, then the strongest.

    `why` says why there is none at all.
    """

    settings: RecommenderSettings
    forecast: ForecastSettings
    table: DayTable | None
    pairs: tuple[Pair, ...] = ()
    why: str = ""

    @property
    def used_days(self) -> int:
        return 0 if self.table is None else int(self.table.used().sum())

    def of(self, target: str) -> list[Pair]:
        """The pairs of a target."""
        return [one for one in self.pairs if one.target.name == target]

    def left_out_text(self) -> str:
        """Which days are left out, in words; empty if none is."""
        if self.table is None:
            return ""
        parts = [f"{count} ({REASONS[reason]})" for reason, count in self.table.left_out().items()]
        return f"left out: {', '.join(parts)}" if parts else ""


def study(
    store: Store,
    settings: RecommenderSettings,
    until: datetime | None = None,
    since: datetime | None = None,
    strongest: int = STRONGEST,
) -> Study:
    """Look at every pair of a recommender with a forecast.

    Args:
        store: the history.
        settings: of the recommender.
        until: the last day ends by then; default: the last day whose actions have come in.
        since: leave out days that begin earlier; default: `days` back.
        strongest: how many pairs of a target, beside the used ones, have a regression.

    Raises StoreError.
    """
    forecast = settings.forecast
    assert forecast is not None  # the caller asks only then
    last = last_day(store, settings, until)
    if last is None:
        return Study(settings, forecast, None, why="the history has no judged day yet")
    count = forecast.days if since is None else max(1, min(730, (last - since.date()).days + 1))
    table = read_days(store, settings, last, count, forecast.incidents)
    offline = _offline(table, forecast)
    pairs: list[Pair] = []
    used_at_all = sum(len(one.used) for one in forecast.targets)
    explored_at_all = sum(
        1
        for target in forecast.targets
        for one in offline
        if one not in _used(target) and one != ForecastSeries.asked(target)
    )
    for target in forecast.targets:
        used = _used(target)
        own = ForecastSeries.asked(target)
        found = [_pair(table, forecast, target, one, is_used=True, tried=used_at_all) for one in used] + [
            _pair(table, forecast, target, one, is_used=False, tried=explored_at_all)
            for one in offline
            if one not in used and one != own
        ]
        ranked = sorted(found, key=_rank)
        first = [one.series for one in ranked if not one.is_used and one.correlation is not None]
        chosen = {*used, *first[:strongest]}
        pairs += [_closer(table, forecast, one) if one.series in chosen else one for one in ranked]
    return Study(settings, forecast, table, tuple(pairs))


def _rank(pair: Pair) -> tuple[bool, bool, float, ForecastSeries]:
    found = pair.correlation
    return not pair.is_used, found is None, 1.0 if found is None else found.p, pair.series


def _used(target: TargetSettings) -> list[ForecastSeries]:
    return list(dict.fromkeys(ForecastSeries.asked(one) for one in target.used))


def _offline(table: DayTable, forecast: ForecastSettings) -> list[ForecastSeries]:
    """The offline metrics that are tried."""
    if forecast.offline:
        return list(dict.fromkeys(ForecastSeries.asked(one) for one in forecast.offline))
    return sorted(one for one in table.values if one.is_offline)


def _numbers(table: DayTable, target: TargetSettings, series: ForecastSeries) -> tuple[Floats, Floats]:
    """Both numbers of each day; infinite if too large. What is measured on samples is of one model, and so is
    the target then.
    """
    own = ForecastSeries.asked(target)
    of = table.served if series.is_of_samples else table.whole
    return _comparable(of(series)), _comparable(of(own))


def _comparable(values: Floats) -> Floats:
    """The numbers, with infinity for those that are too large to be compared."""
    return np.where(np.abs(values) > statistics.LARGEST, np.inf, values)


def _pair(
    table: DayTable,
    forecast: ForecastSettings,
    target: TargetSettings,
    series: ForecastSeries,
    *,
    is_used: bool,
    tried: int,
) -> Pair:
    x, y = _numbers(table, target, series)
    both = np.isfinite(x) & np.isfinite(y)
    keep = both & table.used()
    days = _days(table, x, y, keep, series)
    points = len(np.unique(days.point))
    confidence = 1 - (1 - CONFIDENCE) / max(1, tried)
    number, needed = int(keep.sum()), statistics.fewest_points(forecast.confidence)
    correlation, why = None, ""
    if number < forecast.min_days:
        why = (
            f"{number} of {len(table.days)} days can be used, and {forecast.min_days} are needed"
            f"{_lacking(table, x, y)}"
        )
    elif points < needed:
        why = (
            f"the {number} days hold {points} different {'value' if points == 1 else 'values'} of "
            f"{series.title()}, one for each model and value, and {needed} are needed"
        )
    else:
        correlation = statistics.correlation(statistics.points_of(days))
        if correlation is None:
            why = "one of both numbers never changes, or neighbouring days are too alike to tell"
    return Pair(target, series, is_used, number, points, confidence, correlation, why=why)


def _lacking(table: DayTable, x: Floats, y: Floats) -> str:
    """What the days that are not left out lack."""
    used = table.used()
    parts = [
        f"{count} {one if count == 1 else several}"
        for count, one, several in (
            (int((used & np.isnan(x)).sum()), "lacks the offline metric", "lack the offline metric"),
            (int((used & np.isnan(y)).sum()), "lacks the business metric", "lack the business metric"),
            (int((used & (np.isinf(x) | np.isinf(y))).sum()), f"has {_TOO_LARGE}", f"have {_TOO_LARGE}"),
        )
        if count
    ]
    return f"; {', '.join(parts)}" if parts else ""


def _closer(table: DayTable, forecast: ForecastSettings, pair: Pair) -> Pair:
    """The pair with its regression and its days; of a used one also before the recent days and in them."""
    x, y = _numbers(table, pair.target, pair.series)
    both = np.isfinite(x) & np.isfinite(y)
    dots = tuple(_dots(table, x, y, both))
    if pair.correlation is None:
        return replace(pair, dots=dots)
    keep = both & table.used()
    found = statistics.relation(_days(table, x, y, keep, pair.series))
    if not pair.is_used:
        return replace(pair, is_looked_at=True, relation=found, dots=dots)
    recent = keep & (np.arange(len(keep)) >= len(keep) - forecast.recent)
    parts = [statistics.relation(_days(table, x, y, one, pair.series)) for one in (keep & ~recent, recent)]
    earlier, now = parts
    return replace(
        pair, is_looked_at=True, relation=found, earlier=earlier, recent=now, dots=dots,
        recent_days=forecast.recent,
    )  # fmt: skip


def _days(table: DayTable, x: Floats, y: Floats, keep: Bools, series: ForecastSeries) -> Days:
    places = np.flatnonzero(keep)
    weekday = np.array([table.days[place].weekday() for place in places.tolist()], np.int64)
    point: Ints = np.arange(len(places))
    if series.is_of_samples:
        known: dict[tuple[str, float], int] = {}
        keys = [(table.model[place], float(x[place])) for place in places.tolist()]
        point = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    return Days(places.astype(np.int64), weekday, x[places], y[places], point)


def _dots(table: DayTable, x: Floats, y: Floats, both: Bools) -> Iterator[Dot]:
    for place in np.flatnonzero(both).tolist():
        yield Dot(
            table.days[place], float(x[place]), float(y[place]), visible(table.model[place]),
            table.reasons[place],
        )  # fmt: skip


def prediction(pair: Pair, x: float, confidence: float) -> Prediction | None:
    """What the line of a pair predicts at x; None without a line."""
    return None if pair.relation is None else statistics.predict(pair.relation, x, confidence)


def band_of(pair: Pair, confidence: float, count: int = 9) -> Sequence[tuple[float, Prediction]]:
    """The line and the interval around it at places of the range of x, for the picture."""
    if pair.relation is None:
        return []
    x = pair.relation.points.x
    places = np.linspace(float(x.min()), float(x.max()), count).tolist()
    return [(at, found) for at in places if (found := prediction(pair, at, confidence)) is not None]
