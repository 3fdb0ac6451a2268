"""Changes that may explain the numbers of a recommender: declared ones, and those that the history shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, select

from monitor.anomalies.series import SLICE_VALUE
from monitor.core.results import ResultKind, Window
from monitor.core.text import VALUE_LENGTH, visible
from monitor.history import schema
from monitor.history.browse import SeriesKey, rows_of, series_named
from monitor.history.rows import batches, window_results
from monitor.report.changes import counts_a_model, most_served
from monitor.settings.recommender import RecommenderSettings

_AT_ONCE: Final = 100
_LIST_VERSION: Final = "list_version"


class ChangeKind(StrEnum):
    """What changed. The first three come from the config, the others from the history."""

    DECLARED = "declared"
    SEASON = "season"
    MAINTENANCE = "maintenance"
    MODEL = "model"
    LIST = "list"
    DEFINITION = "definition"

    @property
    def is_of_config(self) -> bool:
        return self in (ChangeKind.DECLARED, ChangeKind.SEASON, ChangeKind.MAINTENANCE)


@dataclass(frozen=True, slots=True)
class Change:
    """A change at a time, or from then until another time. Without `metrics` it concerns all of them."""

    at: datetime
    kind: ChangeKind
    what: str
    until: datetime | None = None
    metrics: tuple[str, ...] = ()


def changes_of_config(settings: RecommenderSettings) -> Iterator[Change]:
    """The declared changes, seasons and maintenance of a recommender."""
    for span in settings.maintenance:
        what = visible(span.reason) or "maintenance"
        yield Change(span.begins, ChangeKind.MAINTENANCE, what, until=span.until)
    if settings.bands is None:
        return
    for change in settings.bands.changes:
        yield Change(change.at, ChangeKind.DECLARED, visible(change.what), metrics=change.metrics)
    for season in settings.bands.seasons:
        days = season.first, season.last + timedelta(days=1)
        begin, end = (datetime.combine(day, time(), settings.bands.zone) for day in days)
        yield Change(begin, ChangeKind.SEASON, visible(season.what), until=end)


def changes_of_history(
    connection: Connection, recommender: str, start: datetime, end: datetime | None
) -> Iterator[Change]:
    """The changes of models, lists and definitions that the windows in [start, end) show."""
    series = series_named(connection, recommender)
    yield from _models(connection, recommender, series, start, end)
    yield from _lists(connection, recommender, series, start, end)
    yield from _definitions(connection, recommender, series, start, end)


def _models(
    connection: Connection,
    recommender: str,
    series: Mapping[int, SeriesKey],
    start: datetime,
    end: datetime | None,
) -> Iterator[Change]:
    """Every window since which another model has the most requests."""
    models = {
        number: key.labels.get(SLICE_VALUE, "")
        for number, key in series.items()
        if counts_a_model(key.metric, key.labels)
    }
    requests: dict[Window, dict[str, float]] = {}
    for row in rows_of(connection, recommender, models, _checks(series, models), start, end):
        requests.setdefault(row.window, {})[models[row.key.series_id]] = row.result.value or 0.0
    for window, most, before in most_served(requests):
        what = f"{_model(most)} serves most requests; before, {_model(before)} did"
        yield Change(window.start, ChangeKind.MODEL, what)


def _model(name: str) -> str:
    return f"model {visible(name, VALUE_LENGTH)}" if name else "the model without a name"


def _lists(
    connection: Connection,
    recommender: str,
    series: Mapping[int, SeriesKey],
    start: datetime,
    end: datetime | None,
) -> Iterator[Change]:
    """Every window whose evidence shows another version of a rule's list than the evidence before."""
    rules = {number: key for number, key in series.items() if key.kind is ResultKind.RULE}
    known: dict[str, str] = {}
    for row in rows_of(connection, recommender, rules, _checks(series, rules), start, end):
        version = next((str(one[_LIST_VERSION]) for one in row.result.evidence if _LIST_VERSION in one), None)
        rule = row.result.labels.get("rule", "")
        if version is None:
            continue
        if known.get(rule, version) != version:
            shown, before = (visible(one, VALUE_LENGTH) for one in (version, known[rule]))
            what = f"the list of rule {visible(rule, VALUE_LENGTH)} has version {shown}; before, {before}"
            yield Change(row.window.start, ChangeKind.LIST, what)
        known[rule] = version


def _definitions(
    connection: Connection,
    recommender: str,
    series: Mapping[int, SeriesKey],
    start: datetime,
    end: datetime | None,
) -> Iterator[Change]:
    """Every window since which a rule or a metric has another definition, once for all of its series."""
    columns = schema.windows.c
    query = select(columns.id, columns.window_start).where(
        columns.recommender == recommender, columns.current, columns.window_start >= start
    )
    if end is not None:
        query = query.where(columns.window_end <= end)
    windows = connection.execute(query.order_by(columns.window_end, columns.window_start, columns.id)).all()
    known: dict[int, str] = {}
    for part in batches(windows, _AT_ONCE):
        stored = window_results(connection, [row.id for row in part])
        for row in part:
            results = stored[row.id]
            changed: dict[str, Change] = {}
            for number, definition in zip(results.series, results.column("definition"), strict=True):
                if known.get(number, definition) != definition:
                    key = series[number]
                    what = _defined(key, definition, known[number])
                    metrics = () if key.kind is ResultKind.RULE else (key.metric,)
                    changed[what] = Change(row.window_start, ChangeKind.DEFINITION, what, metrics=metrics)
                known[number] = definition
            yield from changed.values()


def _defined(key: SeriesKey, definition: str, before: str) -> str:
    if key.kind is ResultKind.RULE:
        return f"rule {visible(key.labels.get('rule'), VALUE_LENGTH)} is judged by another definition"
    shown, old = (visible(one, VALUE_LENGTH) for one in (definition, before))
    return f"{visible(key.metric)} is measured by definition {shown}; before, {old}"


def _checks(series: Mapping[int, SeriesKey], wanted: Mapping[int, object]) -> set[str]:
    return {series[number].check for number in wanted}
