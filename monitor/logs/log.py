"""One log: the index of its files, and what they hold together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from monitor.logs import columns as c
from monitor.logs.engine import Engine
from monitor.logs.files import STILL_WRITTEN, LogFile, LogListingError, list_files
from monitor.logs.index import DUPLICATE, Bucket, FileEntry, index_file, seconds, settings_digest
from monitor.logs.reading import open_filesystems
from monitor.logs.settings import LogSettings, TimeSettings
from monitor.results import Window

Progress = Callable[[str], None]
_NOTHING: Final = Bucket(0, 0)


@dataclass(frozen=True, slots=True)
class Scan:
    """What one look at a log found: the entries that are new or changed, and the paths that are gone."""

    changed: tuple[FileEntry, ...] = ()
    gone: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """What the files of a log hold together; windows are known by their start, seconds since 1970."""

    read: tuple[FileEntry, ...]
    skipped: tuple[FileEntry, ...]
    watermark: datetime | None
    buckets: Mapping[int, Bucket]
    unplaced: Mapping[int, int]  # rows in no window, by the window that answers for them
    windows: frozenset[Window]


class Log:
    """One log and the index of its files."""

    def __init__(self, name: str, settings: LogSettings, time: TimeSettings) -> None:
        self.name = name
        self.settings = settings
        self.time = time
        self.entries: dict[str, FileEntry] = {}
        self.error: str | None = None
        self._digest = settings_digest(settings, time.window, time.future_tolerance)
        self._contents: Contents | None = None

    @property
    def has_windows(self) -> bool:
        """Whether its rows can lie in time; those of a catalog, or of the users, do not."""
        return c.TS in c.TYPES[self.name]

    @property
    def is_required(self) -> bool:
        """Whether a window without a row of it cannot be judged."""
        return self.name == c.EXPOSURES

    def restore(self, entries: Iterable[FileEntry]) -> None:
        """Take over an index that was kept, so that a restart does not read every file again."""
        self.entries = {one.file.path: one for one in entries if one.digest == self._digest}
        self._contents = None

    def refresh(self, engine: Engine, now: datetime, progress: Progress = lambda _: None) -> Scan:
        """Look at the files again; read those that are new, changed, or could not be read before."""
        try:
            open_filesystems(engine, self.settings)
            files = {file.path: self._stamped(file, now) for file in list_files(self.settings)}
        except (LogListingError, OSError, ImportError, ValueError) as exc:
            self.error = f"{self.name}: {exc}"
            return Scan(error=self.error)
        self.error = None
        changed = []
        for path, file in files.items():
            known = self.entries.get(path)
            if known is not None and known.file == file and known.reason is None:
                continue
            progress(path)
            entry = index_file(
                engine, self.name, self.settings, file,
                window=self.time.window, future_tolerance=self.time.future_tolerance, now=now,
            )  # fmt: skip
            if entry != known:
                changed.append(entry)
            self.entries[path] = entry
        gone = tuple(path for path in self.entries if path not in files)
        for path in gone:
            del self.entries[path]
        if changed or gone:
            self._contents = None
        return Scan(tuple(changed), gone)

    def _stamped(self, file: LogFile, now: datetime) -> LogFile:
        """The file, as of now where it claims to have been changed later.

        Rows are held against the time of their file: a clock that ran ahead for a while would otherwise
        leave a watermark in years to come, and no window between would be looked at.
        """
        if file.modified <= now + self.time.future_tolerance:
            return file
        known = self.entries.get(file.path)
        if known is not None and known.file.size == file.size and known.file.modified <= now:
            return known.file
        return replace(file, modified=now)

    @property
    def contents(self) -> Contents:
        """What the files hold together; worked out once after each change, however many windows ask."""
        if self._contents is None:
            judged = _without_copies(self.entries) if self.has_windows else self.entries.values()
            self._contents = _together(list(judged), self.time)
        return self._contents

    @property
    def read_entries(self) -> tuple[FileEntry, ...]:
        """The files that count: readable, and not the same rows over again."""
        return self.contents.read

    @property
    def skipped(self) -> tuple[FileEntry, ...]:
        """The files that do not count, each with its reason."""
        return self.contents.skipped

    @property
    def watermark(self) -> datetime | None:
        """The newest time that the log has reached; times ahead of their file do not count."""
        return self.contents.watermark

    def windows(self) -> frozenset[Window]:
        """Every window that holds at least one row."""
        return self.contents.windows

    def unread(self, window: Window) -> list[FileEntry]:
        """Skipped files that may hold rows of this window: those written while its rows were due.

        Where a window that needs rows has none, those written later as well: a copy or an archive is younger
        than its rows. They count up to `catch_up` windows later, when no window is judged again; not what is
        being written now, which is whole at one of the next looks and would change the verdict each time. A
        file that was written before the window began holds none of it, however long it is skipped.
        """
        due = longest = self.time.lateness
        if self.is_required and self.rows(window) == 0:
            longest = max(due, self.time.catch_up * self.time.window)
        return [
            one
            for one in self.skipped
            if not one.is_duplicate
            and window.start
            <= one.file.modified
            <= window.end + (due if one.reason == STILL_WRITTEN else longest)
        ]

    def fingerprint(self, window: Window) -> str:
        """Changes when the rows of the window change."""
        bucket = self._bucket(window)
        return hashlib.sha256(repr((self.name, bucket.rows, bucket.checksum)).encode()).hexdigest()[:12]

    def rows(self, window: Window) -> int:
        return self._bucket(window).rows

    def bad_values(self, window: Window) -> int:
        """Values of the window that could not be read, and rows that could not be placed in any."""
        return self._bucket(window).bad_values + self.contents.unplaced.get(seconds(window.start), 0)

    def _bucket(self, window: Window) -> Bucket:
        return self.contents.buckets.get(seconds(window.start), _NOTHING)


def _without_copies(entries: Mapping[str, FileEntry]) -> Iterator[FileEntry]:
    """Every entry by path, those that hold the same rows as an earlier one marked as its duplicate."""
    first: dict[tuple[object, ...], str] = {}
    for path in sorted(entries):
        entry = entries[path]
        if entry.reason is None and entry.buckets:  # what is in no window has no checksum to go by
            original = first.setdefault(entry.content, path)
            if original != path:
                entry = replace(entry, reason=DUPLICATE + original, buckets={})
        yield entry


def _together(entries: Sequence[FileEntry], time: TimeSettings) -> Contents:
    read = tuple(one for one in entries if one.reason is None)
    sums: dict[int, list[int]] = {}
    unplaced: Counter[int] = Counter()
    for one in read:
        for start, bucket in one.buckets.items():
            total = sums.setdefault(start, [0, 0, 0])
            total[0] += bucket.rows
            total[1] += bucket.checksum
            total[2] += bucket.bad_values
        if one.unplaced:
            unplaced[seconds(one.newest_window(time.window).start)] += one.unplaced
    edges = (datetime.fromtimestamp(start, UTC) for start in sums)
    return Contents(
        read=read,
        skipped=tuple(one for one in entries if one.reason is not None),
        watermark=max((one.newest for one in read if one.newest is not None), default=None),
        buckets={start: Bucket(*total) for start, total in sums.items()},
        unplaced=unplaced,
        windows=frozenset(Window(edge, edge + time.window) for edge in edges),
    )
