"""Stores the index of a log's files in the history, so that a restart reads only new files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from monitor.history.logstate import IndexedFile
from monitor.logs.files import LogFile
from monitor.logs.index import Bucket, FileEntry
from monitor.logs.log import Log
from monitor.logs.losses import Loss
from monitor.logs.reading import Shape


def index_of(log: Log) -> list[IndexedFile]:
    """The stored index of a log: its files, its lost rows, and the folders that cannot be listed."""
    return [
        *(_to_history(entry) for entry in log.entries.values()),
        *(_loss_to_history(loss, is_rotated=log.is_rotated(loss)) for loss in log.losses.values()),
        *(
            IndexedFile(path=one.path, size=0, modified="", status="unlisted", reason=one.reason)
            for one in log.unlisted
        ),
    ]


def _loss_to_history(loss: Loss, *, is_rotated: bool) -> IndexedFile:
    file = _to_history(loss.entry)
    more = {"missing": _to_lists(loss.missing), "hidden": loss.is_hidden, "growing": loss.is_growing}
    # A file that is just being appended to has lost nothing.
    return replace(
        file,
        status="rotated" if is_rotated or loss.is_growing else "lost",
        reason=loss.reason,
        rows=loss.rows,
        buckets={**file.buckets, **more},
    )


def loss_from_history(file: IndexedFile) -> Loss:
    """A loss that `index_of` has written."""
    more: Any = file.buckets
    entry = replace(from_history(file), reason=None)
    return Loss(entry, file.reason, _to_buckets(more["missing"]), more["hidden"], more["growing"])


def _to_lists(buckets: Mapping[int, Bucket]) -> dict[str, list[int]]:
    return {str(start): [b.rows, b.checksum, b.bad_values] for start, b in buckets.items()}


def _to_buckets(lists: Mapping[str, list[int]]) -> dict[int, Bucket]:
    return {int(start): Bucket(*values) for start, values in lists.items()}


def _to_history(entry: FileEntry) -> IndexedFile:
    shape = entry.shape
    return IndexedFile(
        path=entry.file.path,
        size=entry.file.size,
        modified=entry.file.modified.isoformat(),
        status="read" if entry.reason is None else "skipped",
        reason=entry.reason or "",
        rows=entry.rows,
        max_ts=entry.newest,
        buckets={
            "digest": entry.digest,
            "shape": None if shape is None else _shape_to_list(shape),
            "windows": _to_lists(entry.buckets),
            "unplaced": entry.unplaced,
            "future": entry.future,
            "tries": entry.tries,
            "again": None if entry.again is None else entry.again.isoformat(),
        },
    )


def _shape_to_list(shape: Shape) -> list[Any]:
    plain = [shape.kind, shape.delimiter, list(map(list, shape.columns))]
    return plain if shape.folders is None else [*plain, list(shape.folders)]


def _to_shape(kind: str, delimiter: str, columns: Any, folders: Any = None) -> Shape:
    pairs = tuple((name, dtype) for name, dtype in columns)
    return Shape(kind, pairs, delimiter, None if folders is None else tuple(folders))


def from_history(file: IndexedFile) -> FileEntry:
    """An entry that `index_of` has written."""
    more: Any = file.buckets
    shape = more["shape"]
    return FileEntry(
        file=LogFile(file.path, file.size, datetime.fromisoformat(file.modified).astimezone(UTC)),
        digest=more["digest"],
        shape=None if shape is None else _to_shape(*shape),
        reason=file.reason or None,
        buckets=_to_buckets(more["windows"]),
        newest=file.max_ts,
        unplaced=more["unplaced"],
        future=more["future"],
        tries=more.get("tries", 0),
        again=datetime.fromisoformat(again) if (again := more.get("again")) else None,
    )
