"""Stores the index of a log's files in the history, so that a restart reads only new files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from monitor.history.logstate import IndexedFile
from monitor.history.store import Store
from monitor.logs.files import LogFile
from monitor.logs.index import Bucket, FileEntry
from monitor.logs.listing import Unlisted
from monitor.logs.log import Log
from monitor.logs.losses import Loss
from monitor.logs.reading import Shape

_FILE, _LOST, _UNLISTED = "read", "lost", "unlisted"
_State = dict[tuple[str, str], Any]
"""What is stored, by its status and path, in a form that is quick to compare."""


class StoredIndex:
    """The index of a log as the history holds it.

    It is written whole once, and after that only what has changed: a log can have ten thousand files, and
    each new one would cost as much as all of them.
    """

    def __init__(self, store: Store, recommender: str, name: str) -> None:
        self._store, self._recommender, self._name = store, recommender, name
        self._stored: _State | None = None  # unknown

    def write(self, log: Log) -> None:
        """Make the history hold the files of the log, its lost rows, and the folders that cannot be listed.

        Raises StoreError if it cannot be written; the next call writes all of it.
        """
        before, now = self._stored, _state(log)
        self._stored = None
        if before is None:
            whole = [_to_history(*one) for one in now.items()]
            self._store.replace_files(self._recommender, self._name, whole, watermark=log.watermark)
        else:
            changed = [_to_history(key, one) for key, one in now.items() if not _same(before.get(key), one)]
            gone = [
                IndexedFile(path=path, size=0, modified="", status=status)
                for status, path in before.keys() - now.keys()
            ]
            self._store.change_files(self._recommender, self._name, changed, gone, watermark=log.watermark)
        self._stored = now


def restore(log: Log, store: Store, recommender: str, name: str) -> None:
    """Give a log its index as the history holds it under this name, also what could not be listed.

    Raises StoreError.
    """
    files, gaps = store.files(recommender, name), store.gaps(recommender, name)
    log.restore(
        map(_from_history, files.values()),
        [_loss_from_history(gap) for gap in gaps if gap.status != _UNLISTED],
        [Unlisted(gap.path, gap.reason) for gap in gaps if gap.status == _UNLISTED],
    )


def _state(log: Log) -> _State:
    found: _State = {(_FILE, path): entry for path, entry in log.entries.items()}
    found |= {(_LOST, path): (loss, log.is_rotated(loss)) for path, loss in log.losses.items()}
    return found | {(_UNLISTED, one.path): one.reason for one in log.unlisted}


def _same(one: Any, other: Any) -> bool:
    """Whether a state is as it was. Entries are never changed, and equal ones may differ in their tries."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return one[0] is other[0] and bool(one[1] == other[1])
    return one is other or (isinstance(one, str) and one == other)


def _to_history(key: tuple[str, str], state: Any) -> IndexedFile:
    status, path = key
    if status == _FILE:
        return _file_to_history(state)
    if status == _LOST:
        loss, is_rotated = state
        return _loss_to_history(loss, is_rotated=is_rotated)
    return IndexedFile(path=path, size=0, modified="", status=status, reason=state)


def _loss_to_history(loss: Loss, *, is_rotated: bool) -> IndexedFile:
    file = _file_to_history(loss.entry)
    more = {"missing": _to_lists(loss.missing), "hidden": loss.is_hidden, "growing": loss.is_growing}
    # A file that is just being appended to has lost nothing.
    return replace(
        file,
        status="rotated" if is_rotated or loss.is_growing else "lost",
        reason=loss.reason,
        rows=loss.rows,
        buckets={**file.buckets, **more},
    )


def _loss_from_history(file: IndexedFile) -> Loss:
    """A loss that `StoredIndex` has written."""
    more: Any = file.buckets
    entry = replace(_from_history(file), reason=None)
    return Loss(entry, file.reason, _to_buckets(more["missing"]), more["hidden"], more["growing"])


def _to_lists(buckets: Mapping[int, Bucket]) -> dict[str, list[int]]:
    return {str(start): [b.rows, b.checksum, b.bad_values] for start, b in buckets.items()}


def _to_buckets(lists: Mapping[str, list[int]]) -> dict[int, Bucket]:
    return {int(start): Bucket(*values) for start, values in lists.items()}


def _file_to_history(entry: FileEntry) -> IndexedFile:
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
    return [*plain, list(shape.folders)] if shape.folders else plain


def _to_shape(kind: str, delimiter: str, columns: Any, folders: Any = ()) -> Shape:
    pairs = tuple((name, dtype) for name, dtype in columns)
    return Shape(kind, pairs, delimiter, tuple(folders))


def _from_history(file: IndexedFile) -> FileEntry:
    """An entry that `StoredIndex` has written."""
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
