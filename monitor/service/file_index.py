"""The log reader's index of files, kept in the history so that a restart reads only what is new."""

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
    """All that is kept of a log: its files, what is missing of them, and what could not be listed."""
    found = [to_history(entry) for entry in log.entries.values()]
    found += [_loss_to_history(loss, is_rotated=log.is_rotated(loss)) for loss in log.losses.values()]
    found += [
        IndexedFile(path=one.path, size=0, modified="", status="unlisted", reason=one.reason)
        for one in log.unlisted
    ]
    return found


def _loss_to_history(loss: Loss, *, is_rotated: bool) -> IndexedFile:
    kept = to_history(loss.entry)
    more = {"missing": _buckets(loss.missing), "hidden": loss.is_hidden, "growing": loss.is_growing}
    # A file that is just being appended to has lost nothing.
    return replace(
        kept,
        status="rotated" if is_rotated or loss.is_growing else "lost",
        reason=loss.reason,
        rows=loss.rows,
        buckets={**kept.buckets, **more},
    )


def loss_from_history(kept: IndexedFile) -> Loss:
    """The loss that `index_of` kept."""
    more: Any = kept.buckets
    entry = replace(from_history(kept), reason=None)
    return Loss(entry, kept.reason, _from_buckets(more["missing"]), more["hidden"], more["growing"])


def _buckets(buckets: Mapping[int, Bucket]) -> dict[str, list[int]]:
    return {str(start): [b.rows, b.checksum, b.bad_values] for start, b in buckets.items()}


def _from_buckets(kept: Mapping[str, list[int]]) -> dict[int, Bucket]:
    return {int(start): Bucket(*bucket) for start, bucket in kept.items()}


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
            "windows": _buckets(entry.buckets),
            "unplaced": entry.unplaced,
            "future": entry.future,
            "tries": entry.tries,
            "again": None if entry.again is None else entry.again.isoformat(),
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
        buckets=_from_buckets(more["windows"]),
        newest=kept.max_ts,
        unplaced=more["unplaced"],
        future=more["future"],
        tries=more.get("tries", 0),
        again=datetime.fromisoformat(again) if (again := more.get("again")) else None,
    )
