"""Rows that were indexed and cannot be read any more: rotated away, or lost.

docs/decisions/0023-lost-rows.md defines rotation, and what happens to a window that lost rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from monitor.core.text import plural
from monitor.logs.index import Bucket, FileEntry, seconds

GONE: Final = "the file is gone"
NOT_IN_TABLE: Final = "the table's current version is without this file"
_ARCHIVES: Final = (".gz", ".zst")
_NOTHING: Final = Bucket(0, 0)


@dataclass(frozen=True, slots=True)
class Loss:
    """The rows of one file that are missing now.

    Attributes:
        entry: the file as it was last read.
        reason: why its rows are missing.
        missing: the missing rows by start of the window, as in the index.
        is_hidden: the file was not listed because of an error, so it may still exist.
        is_growing: it is just being appended to; its rows will be back at one of the next looks.
    """

    entry: FileEntry
    reason: str
    missing: Mapping[int, Bucket]
    is_hidden: bool = False
    is_growing: bool = False

    @property
    def path(self) -> str:
        return self.entry.file.path

    @property
    def rows(self) -> int:
        return sum(bucket.rows for bucket in self.missing.values())

    @property
    def is_settleable(self) -> bool:
        """Whether its rows may be in other files now."""
        return not self.is_hidden and not self.is_growing

    def newest(self, window: timedelta) -> datetime | None:
        """The newest time of the missing rows, at the latest the end of their last window."""
        if self.entry.newest is None or not self.missing:
            return None
        return min(self.entry.newest, datetime.fromtimestamp(max(self.missing), UTC) + window)

    def without(self, starts: Iterable[int]) -> Loss:
        """The same loss without these windows."""
        left = set(starts)
        return replace(self, missing={one: b for one, b in self.missing.items() if one not in left})

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def fallen(before: Mapping[int, Bucket], after: Mapping[int, Bucket]) -> dict[int, Bucket]:
    """The missing rows of each window that has fewer rows than before.

    >>> fallen({0: Bucket(5, 50), 60: Bucket(1, 7)}, {0: Bucket(3, 20), 60: Bucket(4, 9)})
    {0: Bucket(rows=2, checksum=30, bad_values=0)}
    """
    found = {}
    for start, had in before.items():
        has = after.get(start, _NOTHING)
        if has.rows < had.rows:
            bad = max(0, had.bad_values - has.bad_values)
            found[start] = Bucket(had.rows - has.rows, had.checksum - has.checksum, bad)
    return found


def together(buckets: Iterable[Mapping[int, Bucket]]) -> dict[int, Bucket]:
    """The sums of several files, by window."""
    sums: dict[int, list[int]] = {}
    for one in buckets:
        for start, bucket in one.items():
            total = sums.setdefault(start, [0, 0, 0])
            total[0] += bucket.rows
            total[1] += bucket.checksum
            total[2] += bucket.bad_values
    return {start: Bucket(*total) for start, total in sums.items()}


def replaced(
    new: Mapping[str, Loss],
    losses: Mapping[str, Loss],
    before: Mapping[int, Bucket],
    after: Mapping[int, Bucket],
    entries: Iterable[FileEntry],
) -> dict[str, set[int]]:
    """The windows of each loss whose rows are in other files: renamed, compressed, merged or rewritten.

    At the look that first misses the rows, the same number of rows in other files is enough. Later it must be
    the same rows, by their checksum: other rows may have come.

    Args:
        new: the losses that this look found, by path.
        losses: all losses, by path.
        before: the log's rows by window at the last look.
        after: the log's rows by window at this look.
        entries: the files that exist.
    """
    open_losses = {path: loss for path, loss in losses.items() if loss.is_settleable}
    wanted = together(loss.missing for loss in open_losses.values())
    present: dict[int, set[tuple[int, int]]] = {}
    for entry in entries:
        for start in entry.buckets.keys() & wanted.keys() if entry.reason is None else ():
            present.setdefault(start, set()).add(_rows(entry.buckets[start]))
    grown = {start: _difference(after.get(start, _NOTHING), before.get(start, _NOTHING)) for start in wanted}
    fell = fallen(before, after)
    found: dict[str, set[int]] = {}
    for path, loss in open_losses.items():
        for start, missing in loss.missing.items():
            same = present.get(start, set()) | {grown[start]}
            if (path in new and start not in fell) or _rows(missing) in same or _rows(wanted[start]) in same:
                found.setdefault(path, set()).add(start)
    return found


def rewritten(new: Mapping[str, Loss], fell: Mapping[int, Bucket]) -> dict[str, Loss]:
    """The losses of table files that were rewritten, without the rows that the other files took over.

    A change of a table replaces whole files at once. So if one file is missing, the rows that its window lost
    are those that were deleted.

    Args:
        new: the losses that this look found, by path.
        fell: the missing rows of the log by window.
    """
    counts = Counter(start for loss in new.values() for start in loss.missing)
    found = {}
    for path, loss in new.items():
        missing = {
            start: fell[start] if counts[start] == 1 and fell[start].rows < bucket.rows else bucket
            for start, bucket in loss.missing.items()
        }
        if missing != loss.missing:
            found[path] = replace(loss, missing=missing)
    return found


def _rows(bucket: Bucket) -> tuple[int, int]:
    return bucket.rows, bucket.checksum


def _difference(one: Bucket, other: Bucket) -> tuple[int, int]:
    return one.rows - other.rows, one.checksum - other.checksum


def unread_archive(path: str, entries: Mapping[str, FileEntry]) -> FileEntry | None:
    """The compressed copy of a file that is gone, if that copy cannot be read."""
    found = (entries.get(path + ending) for ending in _ARCHIVES)
    return next((one for one in found if one is not None and one.reason and not one.is_duplicate), None)


def rotated(
    losses: Iterable[Loss], entries: Mapping[str, FileEntry], window: timedelta
) -> dict[str, frozenset[int]]:
    """The windows of each lost file that were rotated away, from the old end of the log.

    The file is gone from a folder that could be listed, or its name was reused for later rows; and no
    remaining file ends in an earlier window. A hidden file counts as remaining. A file whose compressed copy
    cannot be read was not rotated away.
    """
    losses = list(losses)
    left = [one for one in entries.values() if one.reason is None and one.newest is not None]
    left += [loss.entry for loss in losses if loss.is_hidden]
    oldest = min((seconds(one.newest_window(window).start) for one in left), default=None)
    found = {}
    for loss in losses:
        now = entries.get(loss.path)
        is_unread = now is not None and (now.reason is not None or not now.buckets)
        if not loss.is_settleable or is_unread or unread_archive(loss.path, entries) is not None:
            continue
        reused = None if now is None else min(now.buckets)
        found[loss.path] = frozenset(
            start
            for start in loss.missing
            if (oldest is None or start <= oldest) and (reused is None or start < reused)
        )
    return found


def described(losses: Iterable[tuple[Loss, int]]) -> str:
    """How many rows of a window are missing, and from which files.

    Args:
        losses: each loss with how many rows of the window it misses.
    """
    named: dict[str, Loss] = {}
    counts: Counter[str] = Counter()
    for loss, missing in losses:
        named[loss.path] = loss
        counts[loss.path] += missing
    largest = [named[path] for path, _ in counts.most_common(3)]
    more = f"; and {plural(len(counts) - len(largest), 'more file')}" if len(counts) > len(largest) else ""
    lost = plural(counts.total(), "indexed row")
    return f"{lost} cannot be read any more: {'; '.join(map(str, largest))}{more}"
