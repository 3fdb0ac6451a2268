"""How far each log was read: watermarks, and the index of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from monitor.history import schema
from monitor.history.rows import batches
from monitor.history.snapshot import LogState, SkippedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFile:
    """One file of a log as the reader last saw it, or what is missing of it.

    Attributes:
        status: `read`, or `skipped` with a reason; `lost` or `rotated` if its rows were read before and are
            missing now; `unlisted` for a folder that could not be listed.
        modified: changes when the file changes (a time, an etag).
        buckets: JSON of the reader's own: rows and checksum by window, and more.
    """

    path: str
    size: int
    modified: str
    status: str = "read"
    reason: str = ""
    rows: int = 0
    max_ts: datetime | None = None
    buckets: Mapping[str, Any] = field(default_factory=dict)


OF_THE_INDEX: Final = ("read", "skipped")
OF_ITS_GAPS: Final = ("lost", "rotated", "unlisted")
_FIELDS = ("path", "size", "modified", "status", "reason", "rows", "max_ts", "buckets")


def watermarks(connection: Connection, recommender: str) -> dict[str, datetime]:
    """Log -> how far it has come."""
    columns = schema.watermarks.c
    query = select(columns.log, columns.reached).where(columns.recommender == recommender)
    return {row.log: row.reached for row in connection.execute(query)}


def set_watermark(connection: Connection, recommender: str, log: str, reached: datetime) -> None:
    """Set the watermark, also to an earlier time: the reader decides that."""
    table = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(schema.watermarks)
    connection.execute(
        table.values(recommender=recommender, log=log, reached=reached).on_conflict_do_update(
            index_elements=["recommender", "log"], set_={"reached": table.excluded.reached}
        )
    )


def files(connection: Connection, recommender: str, log: str) -> dict[str, IndexedFile]:
    """The index of a log by path."""
    return {one.path: one for one in _kept(connection, recommender, log) if one.status in OF_THE_INDEX}


def gaps(connection: Connection, recommender: str, log: str) -> list[IndexedFile]:
    """The missing parts of a log: lost and rotated files, and folders that could not be listed."""
    return [one for one in _kept(connection, recommender, log) if one.status in OF_ITS_GAPS]


def _kept(connection: Connection, recommender: str, log: str) -> list[IndexedFile]:
    columns = schema.log_files.c
    query = select(*(columns[name] for name in _FIELDS)).where(
        columns.recommender == recommender, columns.log == log
    )
    return [IndexedFile(**row._mapping) for row in connection.execute(query)]


def _key(file: IndexedFile) -> str:
    """A file that is read but lacks rows has two rows in the table."""
    if file.status in OF_THE_INDEX:
        return schema.value_digest(file.path)
    return schema.value_digest(["unlisted" if file.status == "unlisted" else "lost", file.path])


def replace_files(connection: Connection, recommender: str, log: str, now: Iterable[IndexedFile]) -> None:
    """Make the index hold exactly these files; only differences are written."""
    before = {_key(file): file for file in _kept(connection, recommender, log)}
    after = {_key(file): file for file in now}
    stale = [key for key, file in before.items() if after.get(key) != file]
    changed = {key: file for key, file in after.items() if before.get(key) != file}
    _write(connection, recommender, log, stale, changed)


def change_files(
    connection: Connection,
    recommender: str,
    log: str,
    changed: Iterable[IndexedFile],
    gone: Iterable[IndexedFile],
) -> None:
    """Put new and changed files into the index, and take those away that are gone.

    Of a file that is gone, only its path and status count.
    """
    after = {_key(file): file for file in changed}
    _write(connection, recommender, log, [*after, *map(_key, gone)], after)


def _write(
    connection: Connection, recommender: str, log: str, stale: Iterable[str], new: Mapping[str, IndexedFile]
) -> None:
    """Delete the rows of these keys, then insert the new ones."""
    columns = schema.log_files.c
    for part in batches(list(stale)):
        connection.execute(
            delete(schema.log_files).where(
                columns.recommender == recommender, columns.log == log, columns.digest.in_(part)
            )
        )
    rows = [
        {"recommender": recommender, "log": log, "digest": key}
        | {name: getattr(file, name) for name in _FIELDS}
        for key, file in new.items()
    ]
    if rows:
        connection.execute(insert(schema.log_files), rows)


def log_states(connection: Connection, recommender: str) -> tuple[LogState, ...]:
    """The state of each log that has a watermark or an indexed file."""
    columns = schema.log_files.c
    reached = watermarks(connection, recommender)
    mine = columns.recommender == recommender
    counted: dict[str, int] = {
        row.log: row.files
        for row in connection.execute(
            select(columns.log, func.count().label("files"))
            .where(mine, columns.status.in_(OF_THE_INDEX))
            .group_by(columns.log)
        )
    }
    listed: dict[tuple[str, str], list[SkippedFile]] = {}
    shown = ("skipped", "lost", "unlisted")
    query = select(columns.log, columns.status, columns.path, columns.reason, columns.rows).where(
        mine, columns.status.in_(shown)
    )
    for log, status, path, reason, rows in connection.execute(query):
        listed.setdefault((log, status), []).append(SkippedFile(path, reason, rows))

    def of(log: str, status: str) -> tuple[SkippedFile, ...]:
        return tuple(sorted(listed.get((log, status), ()), key=lambda file: file.path))

    return tuple(
        LogState(
            log=log,
            watermark=reached.get(log),
            files=counted.get(log, 0),
            skipped=of(log, "skipped"),
            lost=of(log, "lost"),
            unlisted=of(log, "unlisted"),
        )
        for log in sorted(reached.keys() | counted.keys() | {log for log, _ in listed})
    )
