"""The days of the past: each series as one value a day, who served, and which days are left out.

A day lies in `bands.timezone`; a window belongs to the day of its middle. A share or a mean of a day is the
mean over its windows, weighted by their samples: exact where the samples are the denominator, near it for
users, who may come in several windows. A count or a sum is that of a mean window. Only values of the newest
definition of a series count.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

import numpy as np
from sqlalchemy import Connection

from monitor.anomalies import band_check as bands
from monitor.anomalies import drift_check as drift
from monitor.anomalies.moments import DAY, a_day
from monitor.anomalies.past import (
    Floats,
    Marker,
    SeriesName,
    aligned,
    markers_between,
    read_windows,
    series_of,
)
from monitor.anomalies.series import VOLUME
from monitor.anomalies.specs import ANOMALY, DRIFT
from monitor.core.results import Kind, Status, Window
from monitor.forecast.series import ForecastSeries
from monitor.history import reads
from monitor.history.rows import window_results
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK, FEEDBACK_CHECK
from monitor.models.check import NAME as MODELS_CHECK
from monitor.rules.check import NAME as RULES_CHECK
from monitor.settings.bands import BandSettings
from monitor.settings.maintenance import Maintenance
from monitor.settings.recommender import RecommenderSettings

FULL: Final = 0.75
"""The part of a day's windows that its value needs."""
_SERVES: Final = 0.9
"""The part of the requests from which on a model alone stands for the whole of a day."""
_LOGS_CHECK: Final = "logs"  # `judging.log_check.NAME`, which lies above this folder
_CHECKS: Final = (EXPOSURE_CHECK, FEEDBACK_CHECK, MODELS_CHECK)
_BATCH: Final = 200
_VIOLATED: Final = (Status.VIOLATED,)
_NOT_OK: Final = (Status.ERROR, Status.LATE)  # a log is never violated
_TOLD_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "anomaly": (ANOMALY.name,),
    "drift": (DRIFT.name,),
    "log": ("log_rows", "log_skipped_files"),
}
REASONS: Final[Mapping[str, str]] = {
    "windows": "too few windows were judged",
    "maintenance": "maintenance",
    "season": "a season",
    "anomaly": "an anomaly",
    "drift": "a drift",
    "rule": "a violated hard rule",
    "log": "a log that was not ok",
    "holiday": "a day off",
}
"""Why a day is left out, in the order in which the reasons are given."""


@dataclass(slots=True)
class DayTable:
    """Days in the order of time.

    Attributes:
        days: on the calendar of the zone, without gaps.
        reasons: why each is left out; empty if it is not.
        values: series -> model, empty for the whole -> its value of each day, NaN without one.
        model: the model with the most requests of each day; empty if unknown.
        alone: whether this model served nearly all requests.
    """

    days: list[date]
    reasons: list[str]
    values: dict[ForecastSeries, dict[str, Floats]] = field(default_factory=dict)
    model: list[str] = field(default_factory=list)
    alone: list[bool] = field(default_factory=list)

    def left_out(self) -> dict[str, int]:
        """How many days are left out, by reason, in the order of the reasons."""
        return {one: self.reasons.count(one) for one in REASONS if one in self.reasons}

    def used(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which days are not left out."""
        return np.array([not one for one in self.reasons], np.bool_)

    def whole(self, series: ForecastSeries) -> Floats:
        """The values of a series of the whole recommender."""
        return self.values.get(series, {}).get("", self._nothing())

    def of_model(self, series: ForecastSeries, model: str) -> Floats:
        """The values of a series of one model, whoever else served."""
        return self.values.get(series, {}).get(model, self._nothing()) if model else self._nothing()

    def served(self, series: ForecastSeries) -> Floats:
        """The values of a series of the model that served most, each day.

        Without a slice by model, the whole stands for a model that served nearly all of it.
        """
        models = self.values.get(series, {})
        found = self._nothing()
        for place, model in enumerate(self.model):
            if model and model in models:
                found[place] = models[model][place]
            elif "" in models and (self.alone[place] or (not model and not series.is_of_samples)):
                found[place] = models[""][place]
        return found

    def online(self, series: ForecastSeries, model: str) -> Floats:
        """The values of a series of a model while it served: its slice, or the whole while it was alone."""
        models = self.values.get(series, {})
        if model in models and model:
            return models[model]
        mine = np.array([one == model for one in self.model], np.bool_) & np.array(self.alone, np.bool_)
        return np.where(mine, self.whole(series), np.nan)

    def _nothing(self) -> Floats:
        return np.full(len(self.days), np.nan)


def span_of(last: date, count: int, zone: tzinfo) -> Window:
    """So many days of the zone up to and including the last."""
    first = last - timedelta(days=count - 1)
    edges = (datetime.combine(day, time(), zone).astimezone(UTC) for day in (first, last + DAY))
    return Window(*edges)


def zone_of(settings: RecommenderSettings) -> tzinfo:
    """The zone of the recommender's days."""
    return UTC if settings.bands is None else settings.bands.zone


def last_day(store: Store, settings: RecommenderSettings, until: datetime | None = None) -> date | None:
    """The last day that is over in the history, whose actions have come in; None if there is none."""
    check = FEEDBACK_CHECK if settings.logs.feedback is not None else EXPOSURE_CHECK
    with store.reading() as connection:
        newest = reads.newest_end(connection, settings.name, check)
    if newest is None:
        return None
    end = newest if until is None else min(newest, until)
    return (end.astimezone(zone_of(settings)) - DAY).date()


def newest_markers(
    connection: Connection, settings: RecommenderSettings, check: str, count: int
) -> list[Marker]:
    """The last windows that the check has judged, newest first."""
    newest = reads.newest_end(connection, settings.name, check)
    if newest is None:
        return []
    length = settings.window
    return markers_between(connection, settings.name, check, newest - count * length, newest, length)[::-1]


def read_days(
    store: Store, settings: RecommenderSettings, last: date, count: int, incidents: Collection[str]
) -> DayTable:
    """The days up to and including `last`. Raises StoreError."""
    zone, length = zone_of(settings), settings.window
    span = span_of(last, count, zone)
    days = [last - timedelta(days=back) for back in reversed(range(count))]
    place = {day: number for number, day in enumerate(days)}
    places = _Places(place, zone, length)
    values: dict[ForecastSeries, dict[str, Floats]] = {}
    with store.reading() as connection:
        judged = np.zeros(count)
        for check in _CHECKS:
            found = markers_between(connection, settings.name, check, span.start, span.end, length)
            if check == (FEEDBACK_CHECK if settings.logs.feedback is not None else EXPOSURE_CHECK):
                ends = np.array([places.of_end(one.end) for one in found], np.int64)
                judged = np.bincount(ends, minlength=count)[:count].astype(np.float64)
            names = series_of(connection, settings.name, check)
            for series, models in _values(connection, found, names, places, check).items():
                values.setdefault(series, {}).update(models)
        marked = _incidents(connection, settings, span, places, incidents)
    full = judged >= FULL * a_day(length)
    reasons = [_reason(day, bool(full[number]), marked[number], settings) for number, day in enumerate(days)]
    table = DayTable(days, reasons, values)
    table.model, table.alone = _serving(values, count)
    return table


@dataclass(frozen=True, slots=True)
class _Places:
    """The number of the day to which a window belongs; the last one is of all that lie outside."""

    place: Mapping[date, int]
    zone: tzinfo
    length: timedelta

    def of_end(self, end: datetime) -> int:
        return self.of(end - self.length / 2)

    def of(self, moment: datetime) -> int:
        return self.place.get(moment.astimezone(self.zone).date(), len(self.place))


def _values(
    connection: Connection,
    found: Sequence[Marker],
    names: Mapping[int, SeriesName],
    places: _Places,
    check: str,
) -> dict[ForecastSeries, dict[str, Floats]]:
    """The values by day of the series of a check that a forecast may need."""
    wanted = {number: ForecastSeries.of(name) for number, name in names.items() if _is_wanted(check, name)}
    if not wanted or not found:
        return {}
    ids = np.array(sorted(wanted), np.int64)
    newest: dict[ForecastSeries, str] = {}  # a model that is gone has the definition of those that serve
    count = len(places.place)
    adds_up = np.array([wanted[number][0].adds_up for number in ids.tolist()], np.bool_)
    windows, plain, unweighted, weighted, samples = np.zeros((5, count + 1, len(ids)))
    for end in range(len(found), 0, -_BATCH):  # the newest first: their definitions count
        part = found[max(0, end - _BATCH) : end]
        read = read_windows(connection, part)
        for window in reversed(read):
            for number, text in zip(window.series.tolist(), window.definition.tolist(), strict=True):
                if number in wanted:
                    newest.setdefault(wanted[number][0], text)
        definition = np.array([newest.get(wanted[number][0], "") for number in ids.tolist()], object)
        table = aligned(read, ids, definition)
        rows = np.array([places.of_end(one.end) for one in part])
        there = np.isfinite(table.value)
        known = there & (table.samples > 0)
        value, weight = np.where(there, table.value, 0.0), np.where(known, table.samples, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # such a day is no number, and is left out
            for total, of in (
                (windows, there), (plain, value), (unweighted, there & ~known),
                (weighted, value * weight), (samples, weight),
            ):  # fmt: skip
                np.add.at(total, rows, of)
    full = windows >= FULL * a_day(places.length)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(adds_up | (unweighted > 0), plain / windows, weighted / samples)
    days = np.where(full, mean, np.nan)[:count]
    values: dict[ForecastSeries, dict[str, Floats]] = {}
    for column, number in enumerate(ids.tolist()):
        series, model = wanted[number]
        values.setdefault(series, {})[model] = days[:, column]
    return values


def _is_wanted(check: str, name: SeriesName) -> bool:
    """Whether the series can be a part of a forecast; slices by anything but the model only as a whole."""
    series, model = ForecastSeries.of(name)
    if check == EXPOSURE_CHECK and model:
        return series.metric == VOLUME
    return True


def _incidents(
    connection: Connection,
    settings: RecommenderSettings,
    span: Window,
    places: _Places,
    asked: Collection[str],
) -> list[set[str]]:
    """Which incidents each day has."""
    marked: list[set[str]] = [set() for _ in range(len(places.place) + 1)]
    of_checks: list[tuple[str, str, timedelta]] = [
        *(("anomaly", check, settings.window) for check in bands.MEASURED),
        *(("drift", check, DAY) for check in drift.BANDS),
        ("rule", RULES_CHECK, settings.window),
        ("log", _LOGS_CHECK, settings.window),
    ]
    for kind, check, length in of_checks:
        if kind not in asked:
            continue
        statuses = _NOT_OK if kind == "log" else _VIOLATED
        known = reads.evaluated(connection, settings.name, check, span.start - DAY, span.end)
        bad = {one.window.end for one in known if one.status in statuses}
        if not bad:
            continue
        names = series_of(connection, settings.name, check)
        tell = {number for number, name in names.items() if _tells(kind, name)}
        found = markers_between(connection, settings.name, check, span.start - DAY, span.end, length)
        for end in _ends_with(connection, [one for one in found if one.end in bad], tell, statuses):
            marked[places.of(end - length / 2)].add(kind)
    return marked


def _tells(kind: str, name: SeriesName) -> bool:
    """Whether a series tells that a window has an incident of this kind."""
    if kind == "rule":
        return "dimension" not in name.labels and name.labels.get("kind") == Kind.HARD
    return name.metric in _TOLD_BY[kind]


def _ends_with(
    connection: Connection, found: Sequence[Marker], asked: Container[int], statuses: Container[str]
) -> Iterator[datetime]:
    """The ends of those of these windows in which one of these series has one of these statuses."""
    for first in range(0, len(found), _BATCH):
        part = found[first : first + _BATCH]
        stored = window_results(connection, [one.id for one in part])
        for one in part:
            if any(status in statuses for status in stored[one.id].of(asked).column("status")):
                yield one.end


def _reason(day: date, is_full: bool, incidents: Collection[str], settings: RecommenderSettings) -> str:
    """Why a day is left out: the first reason; empty if it is not."""
    bands_settings = settings.bands or BandSettings()
    found = set(incidents)
    if not is_full:
        found.add("windows")
    if _in_maintenance(day, zone_of(settings), settings.maintenance):
        found.add("maintenance")
    if bands_settings.season_of(day) is not None:
        found.add("season")
    if day.isoformat() in bands_settings.days_off:
        found.add("holiday")
    return next((one for one in REASONS if one in found), "")


def _in_maintenance(day: date, zone: tzinfo, spans: Sequence[Maintenance]) -> bool:
    whole = span_of(day, 1, zone)
    return any(one.covers(whole) for one in spans)


def _serving(
    values: Mapping[ForecastSeries, Mapping[str, Floats]], count: int
) -> tuple[list[str], list[bool]]:
    """The model that served most on each day, and whether it served nearly all.

    By the requests of each model, else by its online samples, else the only model with test samples.
    """
    requests = next(
        (models for one, models in values.items() if one.metric == VOLUME and _by(one) == "requests"), {}
    )
    rows = next((models for one, models in values.items() if one.is_online_rows), {})
    tested = next((models for one, models in values.items() if one.is_of_samples and one.is_offline), {})
    model, alone = [""] * count, [False] * count
    for counted in (tested, rows, requests):  # the last that knows it decides
        names = sorted(name for name in counted if name)
        if not names:
            continue
        share = np.nan_to_num(np.array([counted[name] for name in names]))
        if counted is tested:
            share = (share != 0).astype(np.float64)
        total = share.sum(axis=0)
        for place in np.flatnonzero(total > 0).tolist():
            first = int(share[:, place].argmax())
            is_alone = bool(share[first, place] >= _SERVES * total[place])
            if counted is tested and not is_alone:
                continue
            model[place], alone[place] = names[first], is_alone
    return model, alone


def _by(series: ForecastSeries) -> str:
    return dict(series.labels).get("by", "")
