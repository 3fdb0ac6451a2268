"""How far each log has been read: watermarks, and the index of the files that it lies in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from monitor.history import schema
from monitor.history.rows import batches
from monitor.history.snapshot import LogState, SkippedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFile:
    """One file of a log as the reader last saw it.

    `modified` is whatever tells a changed file (a time of change, an etag). `buckets` is plain JSON of the
    reader's own: rows and checksum by window, and what else it wants back.
    """

    path: str
    size: int
    modified: str
    status: str = "read"  # or skipped, then with a reason
    reason: str = ""
    rows: int = 0
    min_ts: datetime | None = None
    max_ts: datetime | None = None
    buckets: Mapping[str, Any] = field(default_factory=dict)


_FIELDS = ("path", "size", "modified", "status", "reason", "rows", "min_ts", "max_ts", "buckets")


def watermarks(connection: Connection, recommender: str) -> dict[str, datetime]:
    """Log -> how far it has come."""
    columns = schema.watermarks.c
    query = select(columns.log, columns.reached).where(columns.recommender == recommender)
    return {row.log: row.reached for row in connection.execute(query)}


def set_watermark(connection: Connection, recommender: str, log: str, reached: datetime) -> None:
    """Set it as given: whether a watermark may move back is for the reader to say."""
    table = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(schema.watermarks)
    connection.execute(
        table.values(recommender=recommender, log=log, reached=reached).on_conflict_do_update(
            index_elements=["recommender", "log"], set_={"reached": table.excluded.reached}
        )
    )


def files(connection: Connection, recommender: str, log: str) -> dict[str, IndexedFile]:
    """The index of a log by path."""
    columns = schema.log_files.c
    query = select(*(columns[name] for name in _FIELDS)).where(
        columns.recommender == recommender, columns.log == log
    )
    return {row.path: IndexedFile(**row._mapping) for row in connection.execute(query)}


def replace_files(connection: Connection, recommender: str, log: str, now: Iterable[IndexedFile]) -> None:
    """Make the index say exactly this; only what differs is written."""
    before = files(connection, recommender, log)
    after = {file.path: file for file in now}
    stale = [path for path, file in before.items() if after.get(path) != file]
    columns = schema.log_files.c
    for part in batches([schema.digest(path) for path in stale]):
        connection.execute(
            delete(schema.log_files).where(
                columns.recommender == recommender, columns.log == log, columns.digest.in_(part)
            )
        )
    fresh = [
        {"recommender": recommender, "log": log, "digest": schema.digest(path)}
        | {name: getattr(file, name) for name in _FIELDS}
        for path, file in after.items()
        if before.get(path) != file
    ]
    if fresh:
        connection.execute(insert(schema.log_files), fresh)


def log_states(connection: Connection, recommender: str) -> tuple[LogState, ...]:
    """What is shown of each log that has a watermark or an indexed file."""
    columns = schema.log_files.c
    reached = watermarks(connection, recommender)
    mine = columns.recommender == recommender
    counted: dict[str, int] = {
        row.log: row.files
        for row in connection.execute(
            select(columns.log, func.count().label("files")).where(mine).group_by(columns.log)
        )
    }
    skipped: dict[str, list[SkippedFile]] = {}
    query = select(columns.log, columns.path, columns.reason).where(mine, columns.status == "skipped")
    for log, path, reason in connection.execute(query):
        skipped.setdefault(log, []).append(SkippedFile(path, reason))
    return tuple(
        LogState(
            log=log,
            watermark=reached.get(log),
            files=counted.get(log, 0),
            skipped=tuple(sorted(skipped.get(log, ()), key=lambda file: file.path)),
        )
        for log in sorted(reached.keys() | counted.keys())
    )
