"""Queries of the history: which windows were evaluated, with which results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select, tuple_

from monitor.core.results import Result, Status, Window
from monitor.history import schema
from monitor.history.rows import batches, results_of_windows, series_digest, window_results

_PAGE = 100


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A window that a check has judged, as the store marks it."""

    recommender: str
    check: str
    window: Window
    definition: str
    status: Status
    fingerprint: str
    rows: int
    evaluated_at: datetime
    seconds: float
    revision: int


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One stored result with its recommender, check and window."""

    recommender: str
    check: str
    window: Window
    result: Result


def evaluated(
    connection: Connection,
    recommender: str,
    check: str | Collection[str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[Evaluated]:
    """The windows that lie in [start, end), oldest first, each under the definition that judged it last."""
    columns = schema.windows.c
    query = select(schema.windows).where(columns.recommender == recommender, columns.current)
    if check is not None:
        query = query.where(columns.check_name.in_([check] if isinstance(check, str) else sorted(check)))
    if start is not None:
        query = query.where(columns.window_start >= start)
    if end is not None:
        query = query.where(columns.window_end <= end)
    rows = connection.execute(query.order_by(columns.window_end, columns.window_start, columns.check_name))
    return [evaluated_of(row) for row in rows]


def evaluated_of(row: Row[Any]) -> Evaluated:
    """A row of the table of windows."""
    return Evaluated(
        recommender=row.recommender,
        check=row.check_name,
        window=Window(row.window_start, row.window_end),
        definition=row.definition,
        status=Status(row.status),
        fingerprint=row.fingerprint,
        rows=row.rows,
        evaluated_at=row.evaluated_at,
        seconds=row.seconds,
        revision=row.revision,
    )


def newest_end(connection: Connection, recommender: str, check: str) -> datetime | None:
    """The end of the newest window that the check has judged; None if there is none."""
    columns = schema.windows.c
    query = select(func.max(columns.window_end)).where(
        columns.recommender == recommender, columns.check_name == check
    )
    end: datetime | None = connection.execute(query).scalar()
    return end


def values_of(
    connection: Connection, recommender: str, check: str, series: Result, start: datetime, end: datetime
) -> list[tuple[Window, float]]:
    """The measured values of one series in the windows that lie in [start, end), oldest first.

    `series` names it by metric and labels. A count without rows is 0; late results and errors are left out.
    """
    windows, named = schema.windows.c, schema.series.c
    number = connection.scalar(
        select(named.id).where(
            named.recommender == recommender,
            named.check_name == check,
            named.digest == series_digest(series),
        )
    )
    if number is None:
        return []
    query = (
        select(windows.id, windows.window_start, windows.window_end)
        .where(
            windows.recommender == recommender,
            windows.check_name == check,
            windows.current,
            windows.window_start >= start,
            windows.window_end > start,
            windows.window_end <= end,
        )
        .order_by(windows.window_end, windows.window_start)
    )
    spans = {one: Window(first, last) for one, first, last in connection.execute(query)}
    found: list[tuple[Window, float]] = []
    for part in batches(list(spans)):
        for one, results in window_results(connection, part).items():
            mine = results.of({number})
            found += [
                (spans[one], value)
                for value, status in zip(mine.column("value"), mine.column("status"), strict=True)
                if value is not None and status in (Status.OK, Status.VIOLATED, Status.NO_DATA)
            ]
    return found


def kept_page(
    connection: Connection,
    recommenders: Sequence[str] | None,
    start: datetime | None,
    end: datetime | None,
    after: tuple[str, datetime, datetime, str, int] | None,
) -> tuple[list[StoredResult], tuple[str, datetime, datetime, str, int] | None]:
    """One page of results by recommender and time, and where the next page starts (None: no more)."""
    table = schema.windows
    order = (table.c.recommender, table.c.window_end, table.c.window_start, table.c.check_name, table.c.id)
    query = select(table).where(table.c.current).order_by(*order).limit(_PAGE)
    if recommenders is not None:
        query = query.where(table.c.recommender.in_(recommenders))
    if start is not None:
        query = query.where(table.c.window_start >= start)
    if end is not None:
        query = query.where(table.c.window_end <= end)
    if after is not None:
        query = query.where(tuple_(*order) > tuple_(*after, types=[column.type for column in order]))
    windows = connection.execute(query).all()
    results = results_of_windows(connection, [row.id for row in windows])
    stored = [
        StoredResult(row.recommender, row.check_name, Window(row.window_start, row.window_end), result)
        for row in windows
        for result in results[row.id].values()
    ]
    if len(windows) < _PAGE:
        return stored, None
    last = windows[-1]
    return stored, (last.recommender, last.window_end, last.window_start, last.check_name, last.id)
