"""The forecast of a candidate: which online metric it would have, by the relation of past days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import numpy as np

from monitor.anomalies.past import Floats, read_windows, series_of
from monitor.core.errors import ExpectedError
from monitor.core.numbers import number
from monitor.core.results import Status
from monitor.core.text import quoted
from monitor.forecast.days import DayTable, last_day, newest_markers, read_days
from monitor.forecast.series import ForecastSeries
from monitor.forecast.study import Pair, Study, prediction, study
from monitor.history.forecasts import StoredForecast
from monitor.history.store import Store
from monitor.models.check import NAME as MODELS_CHECK
from monitor.settings.forecast import TargetSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.forecast import FARTHEST, fewest_points, weekday_effects

GivenValue = tuple[str, Mapping[str, str], float]
"""A metric, some of its labels, and the candidate's value of it."""
_ROUNDS: Final = 50  # windows in which the values of a model are looked for


class CandidateError(ExpectedError):
    """A candidate of whom nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The predicted value of a target, or why there is none.

    Attributes:
        recommender: whose past days it rests on.
        candidate: a model, a recommender, or a name for given values.
        target: the name of the business metric.
        status: `ok`; `no_data` with too little to rest on; `undefined` if the offline metric does not
            predict the target, or the candidate lies too far outside of all past days.
        detail: one sentence.
        series: the offline metric.
        x: the candidate's value of it.
        value: the prediction, with its interval `lower` to `upper` of this `confidence`.
        beyond: how far x lies outside of the past values, as a part of their range.
        points: what the line rests on.
        online_since: the candidate's first day online, if it is online already.
    """

    recommender: str
    candidate: str
    target: str
    status: Status
    detail: str
    confidence: float
    series: ForecastSeries | None = None
    x: float | None = None
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    beyond: float = 0.0
    points: int = 0
    online_since: date | None = None

    @property
    def can_come_true(self) -> bool:
        """Whether it is worth storing: it says something, about a candidate that is not online yet."""
        return self.status is Status.OK and self.online_since is None and bool(self.candidate)

    def stored(self, made_at: datetime) -> StoredForecast:
        """As the history keeps it; only for one that can come true."""
        assert self.series is not None  # it has a value
        return StoredForecast(
            self.recommender, self.candidate, self.target,
            {"metric": self.series.metric, "labels": dict(self.series.labels)}, made_at, self.content(),
        )  # fmt: skip

    def content(self) -> dict[str, Any]:
        """Its numbers as plain data."""
        return {
            "x": self.x, "value": self.value, "lower": self.lower, "upper": self.upper,
            "confidence": self.confidence, "beyond": self.beyond, "points": self.points,
            "detail": self.detail,
        }  # fmt: skip


def forecasts_of(
    store: Store,
    found: Study,
    candidate: str,
    *,
    everybody: Sequence[RecommenderSettings] = (),
    given: Sequence[GivenValue] = (),
    target: str | None = None,
) -> list[Forecast]:
    """The forecasts of a candidate: of each target from every metric that is used, else from the best one.

    Args:
        store: the history.
        found: the study of the recommender.
        candidate: another recommender of `everybody`, or a model; it may be empty if values are given.
        everybody: the recommenders of the config.
        given: values of the candidate, in place of those in the history.
        target: only this one.

    Raises:
        CandidateError: the history knows neither a recommender nor a model of this name, or a given value is
            of no metric that is tried.
        StoreError: the history cannot be read.
    """
    known = _Candidate(store, found, candidate, everybody, given)
    return [
        one
        for each in found.forecast.targets
        if target in (None, each.name)
        for one in _of_target(found, known, each)
    ]


def forecast_of(
    store: Store,
    settings: RecommenderSettings,
    candidate: str,
    target: str,
    *,
    everybody: Sequence[RecommenderSettings] = (),
    given: Sequence[GivenValue] = (),
) -> Forecast:
    """The forecast of one target of a candidate, from the first metric that is used: for a gate.

    It never raises for a candidate of whom nothing is known: that is `no_data`. Raises StoreError.
    """
    assert settings.forecast is not None  # the caller has checked the config
    found = study(store, settings)
    try:
        return forecasts_of(store, found, candidate, everybody=everybody, given=given, target=target)[0]
    except CandidateError as error:
        return _nothing(found, candidate, target, str(error))


def _nothing(found: Study, candidate: str, target: str, why: str, **more: Any) -> Forecast:
    return Forecast(
        recommender=found.settings.name, candidate=candidate, target=target, status=Status.NO_DATA,
        detail=why, confidence=found.forecast.confidence, **more,
    )  # fmt: skip


class _Candidate:
    """What is known of a candidate."""

    def __init__(
        self,
        store: Store,
        found: Study,
        name: str,
        everybody: Sequence[RecommenderSettings],
        given: Sequence[GivenValue],
    ) -> None:
        self.name = name
        self._study, self._given = found, given
        self._other: DayTable | None = None
        self._newest: dict[ForecastSeries, float] = {}
        self._check_given()
        other = recommender_of(name, found.settings, everybody)
        if other is not None:
            self._other = days_of(store, found, other)
        elif name:
            self._newest = _newest_values(store, found.settings, name)
            known = found.table is not None and any(name in models for models in found.table.values.values())
            if not self._newest and not known and not given:
                raise CandidateError(
                    f"the history of {found.settings.name} knows no model called {quoted(name)}, and no "
                    "recommender of the config has this name; give its values with --at METRIC=NUMBER"
                )

    def _check_given(self) -> None:
        tried = {one.series for one in self._study.pairs}
        for metric, labels, _ in self._given:
            fits = [one for one in tried if _fits(one, metric, labels)]
            if not fits and tried:
                raise CandidateError(
                    f"no offline metric that is tried is {quoted(_written(metric, labels))}; `recsys-monitor "
                    "forecast` lists them"
                )

    def x(self, series: ForecastSeries) -> float | None:
        """Its value of an offline metric: given, its newest one on samples, or the mean of its last days."""
        for metric, labels, value in self._given:
            if _fits(series, metric, labels):
                return value
        if self._other is not None:
            values = self._other.served(series) if series.is_of_samples else self._other.whole(series)
            return _mean_of_last(self._other, values, self._study.forecast.truth_days)
        if series in self._newest:
            return self._newest[series]
        if self._study.table is None:
            return None
        values = self._study.table.of_model(series, self.name)
        return _mean_of_last(self._study.table, values, self._study.forecast.truth_days)

    def online_since(self, target: TargetSettings) -> date | None:
        """The first day on which it has the business metric."""
        table = self._other or self._study.table
        if table is None or not self.name:
            return None
        return next((day for day, _ in online_days(table, target, self._model)), None)

    @property
    def _model(self) -> str | None:
        return None if self._other is not None else self.name


def recommender_of(
    name: str, own: RecommenderSettings, everybody: Sequence[RecommenderSettings]
) -> RecommenderSettings | None:
    """The other recommender of this name; None if the name is that of a model."""
    return next((one for one in everybody if one.name == name and one.name != own.name), None)


def days_of(store: Store, found: Study, other: RecommenderSettings) -> DayTable | None:
    """The days of another recommender; None if it has none yet."""
    last = last_day(store, other)
    if last is None:
        return None
    return read_days(store, other, last, found.forecast.days, found.forecast.incidents)


def online_days(table: DayTable, target: TargetSettings, model: str | None) -> Iterator[tuple[date, float]]:
    """The days that are not left out and on which a model, or the recommender itself, has the target.

    The rhythm of the week is taken out, as in the fit.
    """
    own = ForecastSeries.asked(target)
    values = table.whole(own) if model is None else table.online(own, model)
    used = table.used()
    weekdays = np.array([day.weekday() for day in table.days], np.int64)
    rhythm = table.whole(own)
    known = used & np.isfinite(rhythm)
    effects = weekday_effects(rhythm[known], weekdays[known])
    for place in np.flatnonzero(used & np.isfinite(values)).tolist():
        yield table.days[place], float(values[place] - effects[weekdays[place]])


def _mean_of_last(table: DayTable, values: Floats, count: int) -> float | None:
    known = values[np.isfinite(values) & table.used()]
    return float(known[-count:].mean()) if len(known) else None


def _newest_values(store: Store, settings: RecommenderSettings, model: str) -> dict[ForecastSeries, float]:
    """The newest values of a model on its samples, which may be of today."""
    with store.reading() as connection:
        names = series_of(connection, settings.name, MODELS_CHECK)
        mine = {
            number: series
            for number, name in names.items()
            for series, of in [ForecastSeries.of(name)]
            if of == model and series.is_of_samples
        }
        if not mine:
            return {}
        for one in newest_markers(connection, settings, MODELS_CHECK, _ROUNDS):
            (window,) = read_windows(connection, [one])
            found = {
                mine[number]: value
                for number, value in zip(window.series.tolist(), window.value.tolist(), strict=True)
                if number in mine and np.isfinite(value)
            }
            if found:
                return found
    return {}


def _fits(series: ForecastSeries, metric: str, labels: Mapping[str, str]) -> bool:
    return series.metric == metric and labels.items() <= dict(series.labels).items()


def _written(metric: str, labels: Mapping[str, str]) -> str:
    return ",".join([metric, *(f"{name}={value}" for name, value in labels.items())])


def _of_target(found: Study, candidate: _Candidate, target: TargetSettings) -> Iterator[Forecast]:
    pairs = found.of(target.name)
    if not pairs:
        why = found.why or "no offline metric has a value in the history"
        yield _nothing(found, candidate.name, target.name, why)
        return
    used = [one for one in pairs if one.is_used]
    if used:
        for one in used:
            yield _of_pair(found, candidate, one)
        return
    known = [one for one in pairs if candidate.x(one.series) is not None]
    best = min(
        (one for one in known if one.predicts and one.relation is not None),
        key=lambda one: one.relation.error,  # type: ignore[union-attr]
        default=None,
    )
    if best is None:
        yield _of_pair(found, candidate, (known or pairs)[0])
        return
    more = f"; the best of {len(pairs)} pairs, so the truth is likely farther away than it seems"
    yield _of_pair(found, candidate, best, more if len(pairs) > 1 else "")


def _of_pair(found: Study, candidate: _Candidate, pair: Pair, more: str = "") -> Forecast:
    x = candidate.x(pair.series)
    title, confidence = pair.series.title(), found.forecast.confidence
    common: dict[str, Any] = {
        "recommender": found.settings.name, "candidate": candidate.name, "target": pair.target.name,
        "confidence": confidence, "series": pair.series, "x": x, "points": pair.points,
        "online_since": candidate.online_since(pair.target),
    }  # fmt: skip
    if pair.correlation is None:
        return Forecast(status=Status.NO_DATA, detail=pair.why, **common)
    if x is None:
        return Forecast(status=Status.NO_DATA, detail=f"the candidate has no value of {title}", **common)
    if not pair.predicts:
        return Forecast(status=Status.UNDEFINED, detail=f"{title}: {pair.detail()}", **common)
    predicted = prediction(pair, x, confidence)
    least = fewest_points(confidence)
    if predicted is None and pair.points >= least:
        why = f"{title} {number(x)} lies too far outside of all past days to compute a forecast"
        return Forecast(status=Status.UNDEFINED, detail=why, **common)
    if predicted is None:
        why = f"{pair.points} points, and an interval of {100 * confidence:.0f} % needs {least}"
        return Forecast(status=Status.NO_DATA, detail=why, **common)
    if predicted.beyond > FARTHEST:
        why = (
            f"{title} {number(x)} lies outside of all past days by {100 * predicted.beyond:.0f} % of their "
            "range: no past day says what happens there"
        )
        return Forecast(status=Status.UNDEFINED, detail=why, beyond=predicted.beyond, **common)
    outside = ""
    if predicted.beyond > 0:
        outside = (
            f"; {number(x)} lies outside of all past days by {100 * predicted.beyond:.0f} % of their range, "
            "so the interval is wider"
        )
    value, lower, upper = map(number, (predicted.value, predicted.lower, predicted.upper))
    detail = (
        f"{pair.target.name} {value} ({lower} to {upper} with {100 * confidence:.0f} %) "
        f"from {title} {number(x)}, by {pair.points} past points{outside}{more}"
    )
    return Forecast(
        status=Status.OK, detail=detail, value=predicted.value, lower=predicted.lower,
        upper=predicted.upper, beyond=predicted.beyond, **common,
    )  # fmt: skip


def as_content(one: Forecast) -> dict[str, Any]:
    """The forecast as plain data; null for what is not known."""
    series = None if one.series is None else {"metric": one.series.metric, "labels": dict(one.series.labels)}
    return {
        "recommender": one.recommender, "candidate": one.candidate, "target": one.target, "series": series,
        "status": one.status.value, **one.content(),
        "online_since": None if one.online_since is None else one.online_since.isoformat(),
    }  # fmt: skip
