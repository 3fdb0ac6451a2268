"""Reads the history page by page: windows, the results of some series, and their violations.

Every page starts after a key of the row before, never after a number of rows. So a window that is recorded
meanwhile neither repeats a row nor hides one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, select, tuple_

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history import schema
from monitor.history.reads import Evaluated, evaluated_of
from monitor.history.rows import batches, results_of_windows, window_results
from monitor.history.standing import BLANK, Signal

_WINDOWS_AT_ONCE: Final = 100
_JUDGED_AT_ONCE: Final = 10  # the first few nearly always answer


class SeriesKey(NamedTuple):
    """A stored series: its check, metric, labels and kind."""

    check: str
    metric: str
    labels: Mapping[str, str]
    kind: ResultKind


class RowKey(NamedTuple):
    """The place of a result among the results of a recommender, in the order of time."""

    end: datetime
    start: datetime
    check: str
    series_id: int


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One result of one window, and its place."""

    key: RowKey
    window: Window
    result: Result

    @property
    def check(self) -> str:
        """The check that gave the result."""
        return self.key.check


@dataclass(frozen=True, slots=True)
class Span:
    """A violation of one series: the windows [since, until) in which it is violated.

    Attributes:
        series_id: the series.
        check, window_id, window: the newest window that violates.
        since: start of the first window that violates.
        until: start of the first window that is ok again; None if there is none yet.
        gone: without `until`, start of the first judged window after `window` that lacks the series; None if
            there is none.
        count: how many windows violate; between them a window may say nothing.
    """

    series_id: int
    check: str
    window_id: int
    window: Window
    since: datetime
    until: datetime | None
    count: int
    gone: datetime | None = None

    @property
    def end(self) -> datetime | None:
        """When it was ok again or gone; None if it lasts."""
        return self.until or self.gone


def series_named(
    connection: Connection, recommender: str, *, metric: str | None = None
) -> dict[int, SeriesKey]:
    """The series of a recommender that were ever stored, by their ids."""
    columns = schema.series.c
    query = select(columns.id, columns.check_name, columns.metric, columns.labels, columns.kind).where(
        columns.recommender == recommender
    )
    if metric is not None:
        query = query.where(columns.metric == metric)
    return {
        number: SeriesKey(name, of, labels, ResultKind(kind))
        for number, name, of, labels, kind in connection.execute(query)
    }


def window_page(
    connection: Connection,
    recommender: str,
    start: datetime | None,
    end: datetime | None,
    before: Window | None,
    limit: int,
) -> list[list[Evaluated]]:
    """The judged windows in [start, end), the newest first: of each window the marks of its checks.

    Args:
        connection: to the history.
        recommender: whose windows.
        start, end: where the windows lie; None: no bound.
        before: the last window of the page before; None: the newest windows.
        limit: the most windows.
    """
    columns = schema.windows.c
    order = (columns.window_end, columns.window_start)
    spans = (
        select(*order)
        .where(columns.recommender == recommender, columns.current, *_within(start, end))
        .distinct()
    )
    if before is not None:
        types = [column.type for column in order]
        spans = spans.where(tuple_(*order) < tuple_(before.end, before.start, types=types))
    spans = spans.order_by(*(column.desc() for column in order)).limit(limit)
    pages: dict[Window, list[Evaluated]] = {
        Window(first, last): [] for last, first in connection.execute(spans)
    }
    for part in batches(sorted({one.end for one in pages})):
        query = (
            select(schema.windows)
            .where(columns.recommender == recommender, columns.current, columns.window_end.in_(part))
            .order_by(columns.check_name)
        )
        for row in connection.execute(query):
            window = Window(row.window_start, row.window_end)
            if window in pages:
                pages[window].append(evaluated_of(row))
    return list(pages.values())


def rows_of(
    connection: Connection,
    recommender: str,
    wanted: Container[int],
    checks: Iterable[str],
    start: datetime | None = None,
    end: datetime | None = None,
    after: RowKey | None = None,
) -> Iterator[StoredRow]:
    """The results of these series in the windows of [start, end), oldest first, and after a place.

    Args:
        connection: to the history.
        recommender: whose results.
        wanted: the ids of the series.
        checks: the checks of these series.
        start, end: where the windows lie; None: no bound.
        after: the last row of the page before.
    """
    columns = schema.windows.c
    order = (columns.window_end, columns.window_start, columns.check_name)
    types = [column.type for column in order]
    query = (
        select(*order, columns.id)
        .where(
            columns.recommender == recommender,
            columns.current,
            columns.check_name.in_(sorted(set(checks))),
            *_within(start, end),
        )
        .order_by(*order)
        .limit(_WINDOWS_AT_ONCE)
    )
    place = None if after is None else after[:3]
    inclusive = True  # the window of `after` may have further series
    while True:
        page = query
        if place is not None:
            here, there = tuple_(*order), tuple_(*place, types=types)
            page = page.where(here >= there if inclusive else here > there)
        windows = connection.execute(page).all()
        stored = results_of_windows(connection, [row.id for row in windows], wanted)
        for last, first, check, number in windows:
            for series, result in sorted(stored[number].items()):
                key = RowKey(last, first, check, series)
                if after is None or key > after:
                    yield StoredRow(key, Window(first, last), result)
        if len(windows) < _WINDOWS_AT_ONCE:
            return
        last, first, check, _ = windows[-1]
        place, inclusive = (last, first, check), False


def spans_of_violations(
    connection: Connection, recommender: str, wanted: Sequence[int] | None = None
) -> list[Span]:
    """The violations of a recommender's series that the history keeps, the oldest first.

    Args:
        connection: to the history.
        recommender: whose violations.
        wanted: the ids of the series; None: all.
    """
    own, signal, windows = schema.series.c, schema.signals.c, schema.windows.c
    fired = (
        select(signal.series_id)
        .join(schema.series, own.id == signal.series_id)
        .where(own.recommender == recommender, signal.signal == int(Signal.FIRE))
        .distinct()
    )
    query = (
        select(
            signal.series_id,
            signal.signal,
            windows.id,
            windows.check_name,
            windows.window_start,
            windows.window_end,
        )
        .join(schema.windows, windows.id == signal.window_id)
        .where(signal.signal.in_((int(Signal.FIRE), int(Signal.CLEAR))), signal.series_id.in_(fired))
        .order_by(signal.series_id, windows.window_end, windows.window_start)
    )
    parts = [None] if wanted is None else list(batches(wanted))
    found: list[Span] = []
    for part in parts:
        rows = connection.execute(query if part is None else query.where(signal.series_id.in_(part)))
        found += _spans(rows)
    gone = _gone(connection, recommender, [one for one in found if one.until is None])
    found = [replace(one, gone=gone.get(one.series_id)) if one.until is None else one for one in found]
    return sorted(found, key=lambda one: (one.since, one.series_id))


def _spans(rows: Iterable[tuple[int, int, int, str, datetime, datetime]]) -> Iterator[Span]:
    """The violations of the series, whose signals come one series after the other, oldest first."""
    current: Span | None = None
    for series, signal, number, check, start, end in rows:
        if current is not None and current.series_id != series:
            yield current
            current = None
        if signal == Signal.FIRE:
            since = start if current is None else current.since
            count = 1 if current is None else current.count + 1
            current = Span(series, check, number, Window(start, end), since, None, count)
        elif current is not None:
            yield Span(
                series, current.check, current.window_id, current.window, current.since, start, current.count
            )
            current = None
    if current is not None:
        yield current


def _gone(connection: Connection, recommender: str, spans: Sequence[Span]) -> dict[int, datetime]:
    """Series -> start of the first judged window after its newest violation that lacks it.

    A series that the newest judged window of its check has is not gone: it came back.
    """
    found: dict[int, datetime] = {}
    by_check: dict[str, list[Span]] = {}
    for one in spans:
        by_check.setdefault(one.check, []).append(one)
    columns = schema.windows.c
    for check, own in by_check.items():
        query = (
            select(schema.windows)
            .where(
                columns.recommender == recommender,
                columns.check_name == check,
                columns.current,
                columns.window_end >= min(one.window.end for one in own),
            )
            .order_by(columns.window_end, columns.window_start)
        )
        windows = connection.execute(query).all()
        _, there = next(_judged(connection, windows[::-1]), (None, {one.series_id for one in own}))
        missing = {one.series_id: one.window for one in own if one.series_id not in there}
        judged = _judged(connection, windows)
        while missing:
            row, series = next(judged)
            place = (row.window_end, row.window_start)  # windows of two lengths may have one end
            new = [
                one for one, last in missing.items() if place > (last.end, last.start) and one not in series
            ]
            found |= dict.fromkeys(new, row.window_start)
            missing = {one: last for one, last in missing.items() if one not in found}
    return found


def _judged(connection: Connection, windows: Sequence[Row[Any]]) -> Iterator[tuple[Row[Any], set[int]]]:
    """Those of these windows that were judged, each with its series."""
    for part in batches(windows, _JUDGED_AT_ONCE):
        stored = window_results(connection, [row.id for row in part])
        for row in part:
            series = set(stored[row.id].series)
            if series or Status(row.status) not in BLANK:
                yield row, series


def _within(start: datetime | None, end: datetime | None) -> list[ColumnElement[bool]]:
    """The conditions that a window lies in [start, end)."""
    columns = schema.windows.c
    conditions = [] if start is None else [columns.window_start >= start]
    return conditions if end is None else [*conditions, columns.window_end <= end]


def results_at(
    connection: Connection, recommender: str, start: datetime, end: datetime | None = None
) -> list[tuple[str, Window, Result]] | None:
    """Check, window and result of the windows that start at a time, and end at another; None without any."""
    columns = schema.windows.c
    query = select(columns.id, columns.check_name, columns.window_end).where(
        columns.recommender == recommender, columns.current, columns.window_start == start
    )
    if end is not None:
        query = query.where(columns.window_end == end)
    windows = {number: (check, Window(start, last)) for number, check, last in connection.execute(query)}
    if not windows:
        return None
    stored = results_of_windows(connection, list(windows))
    return [(*windows[number], one) for number, results in stored.items() for one in results.values()]


def windows_near(connection: Connection, recommender: str, moment: datetime) -> list[Window]:
    """The last judged window that starts before a time, and the first that starts after it."""
    columns = schema.windows.c
    own = select(columns.window_start, columns.window_end).where(
        columns.recommender == recommender, columns.current
    )
    beside = (
        own.where(columns.window_start < moment).order_by(columns.window_start.desc()).limit(1),
        own.where(columns.window_start > moment).order_by(columns.window_start).limit(1),
    )
    return [Window(first, last) for query in beside for first, last in connection.execute(query)]
