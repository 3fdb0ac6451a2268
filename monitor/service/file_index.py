"""The log reader's index of files, kept in the history so that a restart reads only what is new."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from monitor.history.logstate import IndexedFile
from monitor.logs.files import LogFile
from monitor.logs.index import Bucket, FileEntry
from monitor.logs.reading import Shape


def to_history(entry: FileEntry) -> IndexedFile:
    """An entry as the history keeps it."""
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
            "shape": None if shape is None else [shape.kind, shape.delimiter, list(map(list, shape.columns))],
            "windows": {str(start): [b.rows, b.checksum, b.bad_values] for start, b in entry.buckets.items()},
            "unplaced": entry.unplaced,
            "future": entry.future,
        },
    )


def from_history(kept: IndexedFile) -> FileEntry:
    """The entry that `to_history` kept."""
    more: Any = kept.buckets
    shape = more["shape"]
    return FileEntry(
        file=LogFile(kept.path, kept.size, datetime.fromisoformat(kept.modified).astimezone(UTC)),
        digest=more["digest"],
        shape=None if shape is None else Shape(shape[0], tuple((n, t) for n, t in shape[2]), shape[1]),
        reason=kept.reason or None,
        buckets={int(start): Bucket(*bucket) for start, bucket in more["windows"].items()},
        newest=kept.max_ts,
        unplaced=more["unplaced"],
        future=more["future"],
    )
