"""Deletes what is older than the retention, in steps that are short enough not to delay the daemon."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, case, delete, exists, func, literal, or_, select

from monitor.history import schema
from monitor.history.signals import mark

WINDOWS_AT_ONCE: Final = 50
SERIES_AT_ONCE: Final = 5000


def drop_windows(connection: Connection, before: datetime, keep: Mapping[str, datetime]) -> int:
    """Drop one batch of windows that ended before this time, with their results. Returns their number.

    Windows of a recommender in `keep` that end after its time there stay, however old they are.
    """
    table = schema.windows
    old = select(table.c.id, table.c.recommender, table.c.check_name).where(table.c.window_end < before)
    if keep:  # one CASE: SQLite takes no more than 1,000 conditions in a row
        moments = {name: literal(moment, schema.UTCTime()) for name, moment in keep.items()}
        free = case(moments, value=table.c.recommender, else_=table.c.window_end)
        old = old.where(table.c.window_end <= free)
    rows = connection.execute(old.order_by(table.c.window_end).limit(WINDOWS_AT_ONCE)).all()
    if rows:
        connection.execute(delete(table).where(table.c.id.in_([row.id for row in rows])))
    for recommender, check in {(row.recommender, row.check_name) for row in rows}:
        mine = (table.c.recommender == recommender, table.c.check_name == check, table.c.current)
        oldest = connection.scalar(select(func.min(table.c.window_end)).where(*mine))
        if oldest is not None:
            mark(connection, recommender, check, oldest)
    return len(rows)


def drop_leftovers(connection: Connection, before: datetime, watched: Collection[str] = ()) -> None:
    """Drop series without a signal, and the log state of recommenders that have no window left.

    That of the `watched` ones stays: one with a long window may have none yet.
    A series without a signal has no result: see signals.py.
    The newest series always stays: SQLite counts up from the largest id in the table, and readers would take
    a series with a reused id for the old one. The index of a log that is still read is never touched.
    """
    series, signals, windows = schema.series, schema.signals, schema.windows
    unused = (
        select(series.c.id)
        .where(~exists().where(signals.c.series_id == series.c.id))
        .where(series.c.id < select(func.max(series.c.id)).scalar_subquery())
        .limit(SERIES_AT_ONCE)
    )
    connection.execute(delete(series).where(series.c.id.in_(list(connection.scalars(unused)))))
    files, marks = schema.log_files, schema.watermarks
    stale = or_(files.c.max_ts < before, files.c.max_ts.is_(None))
    living = exists().where(windows.c.recommender == files.c.recommender)
    aged = exists().where(
        (marks.c.recommender == files.c.recommender)
        & (marks.c.log == files.c.log)
        & (marks.c.reached < before)
    )
    free = files.c.recommender.not_in(watched)
    connection.execute(delete(files).where(~living, stale, aged, free))
    living = exists().where(windows.c.recommender == marks.c.recommender)
    free = marks.c.recommender.not_in(watched)
    connection.execute(delete(marks).where(~living, marks.c.reached < before, free))
