"""One log: the index of its files, their rows by window, and the rows that were lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from monitor.core import columns as c
from monitor.core.digest import digest
from monitor.core.redaction import redact
from monitor.core.results import Window
from monitor.core.text import plural
from monitor.engines.duckdb import Engine
from monitor.logs.elsewhere import index_elsewhere
from monitor.logs.files import STILL_WRITTEN, LogFile, local_file
from monitor.logs.index import DUPLICATE, Bucket, FileEntry, file_digest, index_file, seconds
from monitor.logs.limits import too_slow
from monitor.logs.listing import Listing, LogListingError, Unlisted, belongs, hiding, list_log
from monitor.logs.losses import (
    GONE,
    NOT_IN_TABLE,
    Loss,
    described,
    fallen,
    replaced,
    rewritten,
    rotated,
    together,
    unread_archive,
)
from monitor.logs.pace import allowed_silence
from monitor.logs.reading import Shape, open_filesystems
from monitor.settings.logs import LogSettings, TimeSettings

Progress = Callable[[str], None]
_APPENDED: Final = 3  # a file that has grown at so many looks is appended to, not just being written
_NOTHING: Final = Bucket(0, 0)
_FIRST_WAIT: Final = timedelta(minutes=1)
_LONGEST_WAIT: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Scan:
    """The result of one look at a log.

    Attributes:
        changed: the entries that are new or changed.
        gone: the paths that are no longer listed.
        lost: the files that miss rows since this look.
        error: why the log cannot be listed.
        differs: whether the index must be stored again.
        is_cut: a file took too long, and the others are left for the next look.
    """

    changed: tuple[FileEntry, ...] = ()
    gone: tuple[str, ...] = ()
    lost: tuple[Loss, ...] = ()
    error: str | None = None
    differs: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Contents:
    """The rows of all files of a log. A window is known by its start, in seconds since 1970."""

    read: tuple[FileEntry, ...]
    skipped: tuple[FileEntry, ...]
    files: Mapping[int, Sequence[FileEntry]]  # the read files with rows of a window
    shapes: tuple[Shape, ...]  # of the read files, each once; that of the oldest file first
    watermark: datetime | None
    buckets: Mapping[int, Bucket]
    unplaced: Mapping[int, int]  # rows in no window, by the window that counts them
    windows: frozenset[Window]  # also those whose rows are lost or still being written
    missing: Mapping[int, Bucket]  # indexed rows that cannot be read now
    lost: Mapping[int, Sequence[tuple[Loss, int]]]  # the missing rows that were not rotated away
    rotated: Mapping[str, frozenset[int]]  # by file: the windows whose rows were rotated away
    gone_with_age: frozenset[int]  # the windows of `rotated`, over all files


class Log:
    """One log and the index of its files."""

    def __init__(self, name: str, settings: LogSettings, time: TimeSettings) -> None:
        self.name = name
        self.settings = settings
        self.time = time
        self.entries: dict[str, FileEntry] = {}  # by path
        self.losses: dict[str, Loss] = {}  # by path; the file itself may be there, with fewer rows
        self.unlisted: tuple[Unlisted, ...] = ()
        self.error: str | None = None
        self._digests: dict[tuple[str, bool], str] = {}  # of the settings; see `_digest_of`
        self._contents: Contents | None = None
        self._growths: Counter[str] = Counter()  # by path: the looks at which a file had grown

    @property
    def has_windows(self) -> bool:
        """Whether its rows have times; those of a catalog or of users have none."""
        return c.TS in c.TYPES[self.name]

    @property
    def is_required(self) -> bool:
        """Whether a window without rows of this log cannot be judged."""
        return self.name == c.EXPOSURES

    def open(self, engine: Engine) -> None:
        """Let the engine reach the files. It may be new since the last look."""
        open_filesystems(engine, self.settings, self.entries if self.settings.is_table else ())

    def restore(
        self, entries: Iterable[FileEntry], losses: Iterable[Loss] = (), unlisted: Iterable[Unlisted] = ()
    ) -> None:
        """Restore a stored index, so that a restart does not read every file again."""
        self.entries = {one.file.path: one for one in entries}
        self.losses = {one.path: one for one in losses}
        self.unlisted = tuple(unlisted)
        self._contents = None

    def _listed(self, engine: Engine) -> Listing:
        """What there is now, with a way for the engine to reach it."""
        if not self.settings.is_table:
            open_filesystems(engine, self.settings)
            return list_log(self.settings)
        listing = list_log(self.settings)
        open_filesystems(engine, self.settings, listing.files)  # they may lie elsewhere than the table
        return listing

    def refresh(self, engine: Engine, now: datetime, progress: Progress = lambda _: None) -> Scan:
        """List the files, and read those that are new, changed, or could not be read before.

        A file that takes too long ends the look, so that other recommenders get their turn. Rows that were
        indexed and are missing now become losses.
        """
        try:
            listing = self._listed(engine)
        except (LogListingError, OSError, ImportError, ValueError) as exc:
            why = redact(str(exc))
            self.error = f"{self.name}: {why}"
            unlisted, self.unlisted = self.unlisted, (Unlisted(", ".join(self.settings.paths), why),)
            return Scan(error=self.error, differs=unlisted != self.unlisted)
        self.error = None
        files = {path: self._stamped(file, now) for path, file in listing.files.items()}
        before, errors, losses = self.contents.buckets, self.unlisted, dict(self.losses)
        changed, tried = [], False
        elsewhere = index_elsewhere(
            engine, self.name, self.settings, self.time, now,
            [file for path, file in files.items() if self._is_to_be_read(path, file, now)], progress,
        )  # fmt: skip
        for path, file in files.items():
            known, lost = self.entries.get(path), self.losses.get(path)
            if known is None and lost is not None and self._is_current(lost.entry, file):
                self.entries[path] = lost.entry  # it is back as it was
                del self.losses[path]
                continue
            if known is not None and self._is_current(known, file):
                continue
            if known is not None and self._waits(known, file, now):
                if known.file != file:  # its windows reach up to the new time of change
                    self.entries[path], self._contents = replace(known, file=file), None
                continue
            entry = elsewhere.get(path)
            if entry is None:
                progress(path)
                entry = index_file(engine, self.name, self.settings, file, self.time, now)
            if entry.reason is not None and not entry.is_being_written:
                entry = self._to_be_tried_again(entry, known, now)
                tried = True
            if entry != known:
                changed.append(entry)
            if known is not None and file.size > known.file.size:
                self._growths[path] += 1
            self._compare(path, known, entry)
            self.entries[path] = entry
            if entry.reason == too_slow(self.settings) and path not in elsewhere:
                self._contents = None
                return Scan(tuple(changed), differs=True, is_cut=True)
        gone = self._missing(files, listing)
        self._drop_ahead(now)
        self.unlisted = tuple(
            one
            for one in listing.errors
            if not one.is_missing or any(map(one.hides, [*self.entries, *self.losses]))
        )
        if changed or gone or self.losses != losses:
            self._contents = None
            self._settle(losses, before)
        return Scan(
            tuple(changed),
            gone,
            lost=tuple(loss for path, loss in self.losses.items() if losses.get(path) != loss),
            differs=bool(changed or gone or tried) or self.losses != losses or self.unlisted != errors,
        )

    def _is_to_be_read(self, path: str, file: LogFile, now: datetime) -> bool:
        known, lost = self.entries.get(path), self.losses.get(path)
        if known is None:
            return lost is None or not self._is_current(lost.entry, file)
        return not self._is_current(known, file) and not self._waits(known, file, now)

    def _is_current(self, entry: FileEntry, file: LogFile) -> bool:
        return entry.file == file and entry.reason is None and entry.digest == self._digest_of(file)

    def _digest_of(self, file: LogFile, *, limits: bool = False) -> str:
        """As `file_digest`, which takes long for thousands of files."""
        key = "" if file.columns is None else file.columns.renamed, limits
        if key not in self._digests:
            self._digests[key] = file_digest(self.settings, self.time, file, limits=limits)
        return self._digests[key]

    def _waits(self, entry: FileEntry, file: LogFile, now: datetime) -> bool:
        """Whether it is too early to read a broken file again."""
        if entry.again is None or not self._is_as_bad(entry, file):
            return False
        if entry.digest != self._digest_of(file, limits=True):
            return False
        return now < entry.again <= now + _LONGEST_WAIT  # else the clock was set back

    def _is_as_bad(self, entry: FileEntry, file: LogFile) -> bool:
        """Whether a broken file has not changed, or was too slow and has only grown.

        Reading it again would end every look, and the files after it would never be read.
        """
        has_grown = file.size >= entry.file.size and file.path == entry.file.path
        return entry.file == file or (has_grown and entry.reason == too_slow(self.settings))

    def _to_be_tried_again(self, entry: FileEntry, known: FileEntry | None, now: datetime) -> FileEntry:
        """The entry of a broken file with the time of its next try; the wait doubles with each try."""
        same = known is not None and known.digest == entry.digest and self._is_as_bad(known, entry.file)
        tries = known.tries + 1 if known is not None and same else 1
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(tries - 1, 10))
        return replace(entry, tries=tries, again=now + wait)

    def retry(self) -> None:
        """Try every broken file again at the next look."""
        for path, entry in self.entries.items():
            self.entries[path] = replace(entry, tries=0, again=None)

    def _compare(self, path: str, known: FileEntry | None, entry: FileEntry) -> None:
        """Note the rows that a file has lost since it was read before."""
        lost = self.losses.pop(path, None)
        if lost is not None and entry.buckets == lost.entry.buckets:
            return  # it is back as it was before the loss
        before = known if known is not None and known.reason is None else None
        if lost is not None:  # windows that are still missing count as they were before the loss
            of_old = {start: lost.entry.buckets[start] for start in lost.missing}
            before = replace(lost.entry, buckets={**(before.buckets if before else {}), **of_old})
        if before is None or not self.has_windows:
            return
        is_growing = entry.is_being_written and entry.file.size >= before.file.size
        if entry.reason is None and (before.digest != entry.digest or self.name == c.SAMPLES):
            return  # read with other settings, or samples that were drawn again
        missing = fallen(before.buckets, entry.buckets)
        had = plural(before.rows, "row")
        reason = entry.reason or f"it held {had} when it was read last, and now {entry.rows:,}"
        if missing:
            self.losses[path] = Loss(before, reason, missing, is_growing=is_growing)

    def _missing(self, files: Mapping[str, LogFile], listing: Listing) -> tuple[str, ...]:
        """Remove the files that are gone from the index, and note their rows as losses; their paths."""
        errors = {one.path: one for one in listing.errors}
        gone = tuple(
            path
            for path in self.entries
            # A catalog that cannot be listed stays in the index: reading it then says what is wrong.
            if path not in files and (self.has_windows or hiding(errors, path) is None)
        )
        for path in gone:
            del self._growths[path]
            entry, lost = self.entries.pop(path), self.losses.pop(path, None)
            if not self.has_windows or not belongs(self.settings, path, listing.tables):
                continue
            held = {} if entry.reason is not None else dict(entry.buckets)
            if lost is not None:
                entry = lost.entry
                held |= {start: entry.buckets[start] for start in lost.missing}
            if held:
                copy = unread_archive(path, self.entries)
                gone_why = NOT_IN_TABLE if self.settings.is_table else GONE
                why = (
                    gone_why
                    if copy is None
                    else f"{GONE}, and {copy.file.path} cannot be read: {copy.reason}"
                )
                self.losses[path] = Loss(replace(entry, buckets=held), why, held)
        for path, lost in list(self.losses.items()):
            if path in files:
                continue
            error = hiding(errors, path)
            if not belongs(self.settings, path, listing.tables):
                del self.losses[path]
            elif error is not None and (lost.is_hidden or path in gone):
                self.losses[path] = replace(lost, reason=str(error), is_hidden=True)
            elif lost.is_hidden:
                self.losses[path] = replace(lost, reason=GONE, is_hidden=False)
        return gone

    def _settle(self, losses_before: Mapping[str, Loss], before: Mapping[int, Bucket]) -> None:
        """Forget the losses whose rows are in other files."""
        new = {path: loss for path, loss in self.losses.items() if losses_before.get(path) != loss}
        # Rows that were missing before, for another reason, were not found elsewhere by this look.
        again = (losses_before[path].missing for path in new if path in losses_before)
        before = together([before, *again])
        judged = _without_copies(self.entries)
        after = together(one.buckets for one in judged if one.reason is None)
        settled = replaced(new, self.losses, before, after, self.entries.values())
        for path, starts in settled.items():
            self._drop(path, starts)
        if self.settings.is_table:
            left = {path: self.losses[path] for path in new if path in self.losses}
            self.losses |= rewritten(left, fallen(before, after))
        self._contents = None

    def _drop(self, path: str, starts: Iterable[int]) -> None:
        """Forget a file's losses in these windows."""
        left = self.losses[path].without(starts)
        if left.missing:
            self.losses[path] = left
        else:
            del self.losses[path]

    def _drop_ahead(self, now: datetime) -> None:
        """Forget the losses of windows that have not begun yet.

        Their times come from a clock that ran ahead. They are no real losses, and would keep the watermark
        in the future.
        """
        latest = now + self.time.future_tolerance
        for path, loss in list(self.losses.items()):
            if loss.entry.newest is not None and loss.entry.newest > latest:
                self._drop(path, [start for start in loss.missing if start > seconds(latest)])

    def forget(self, before: datetime) -> bool:
        """Drop the losses of windows before a time, which are never judged again; whether there were any."""
        start = seconds(before)
        old = [path for path, loss in self.losses.items() if max(loss.missing) < start]
        for path in old:
            del self.losses[path]
        self._contents = None
        return bool(old)

    def accept(self, window: Window) -> bool:
        """Drop the losses of a window that was judged without these rows; whether there were any."""
        start = seconds(window.start)
        found = [path for path, loss in self.losses.items() if start in loss.missing and not loss.is_hidden]
        for path in found:
            self._drop(path, [start])
        self._contents = None
        return bool(found)

    def _stamped(self, file: LogFile, now: datetime) -> LogFile:
        """The file, with the time of its change set to now if it lies in the future.

        Rows may not be later than their file. So a clock that ran ahead would leave a watermark in the
        future, and no window before it would be judged.
        """
        if file.modified <= now + self.time.future_tolerance:
            return file
        known = self.entries.get(file.path)
        if known is not None and known.file.size == file.size and known.file.modified <= now:
            return known.file
        return replace(file, modified=now)

    @property
    def contents(self) -> Contents:
        """The rows of all files; computed once after each change."""
        if self._contents is None:
            judged = _without_copies(self.entries) if self.has_windows else self.entries.values()
            self._contents = _together(list(judged), list(self.losses.values()), self.time)
        return self._contents

    @property
    def read_entries(self) -> tuple[FileEntry, ...]:
        """The files that count: readable, and no copies of others."""
        return self.contents.read

    def files_in(self, span: Window) -> list[FileEntry]:
        """The files that count and have a row in a span of whole windows, by path."""
        files = self.contents.files
        found = {one.file.path: one for start in self._starts(span) for one in files.get(start, ())}
        return [found[path] for path in sorted(found)]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the files that count, each once; that of the oldest file first."""
        return self.contents.shapes

    @property
    def skipped(self) -> tuple[FileEntry, ...]:
        """The files that do not count, each with its reason."""
        return self.contents.skipped

    @property
    def watermark(self) -> datetime | None:
        """The newest time that the log has reached, by present and missing rows.

        Times later than their file do not count.
        """
        return self.contents.watermark

    def allowed_silence(self, now: datetime, every: timedelta) -> timedelta | None:
        """The age of the newest row at which the log counts as stalled; None if it is unknown.

        It cannot be learned from files that keep growing, which hide when rows arrived, nor while a folder
        cannot be listed.
        """
        if self.settings.stalled_after is not None:
            return self.settings.stalled_after
        if self.error is not None or self.unlisted or max(self._growths.values(), default=0) >= _APPENDED:
            return None
        entries = self.read_entries
        return allowed_silence(((e.file.modified, e.newest) for e in entries if e.newest), now, every)

    def windows(self) -> frozenset[Window]:
        """Every window with at least one row, present or lost."""
        return self.contents.windows

    def lost(self, span: Window) -> str | None:
        """How many indexed rows of a span were lost, and from which files; None if none was."""
        found = [(loss, rows) for loss, rows in self._missing_in(span) if not loss.is_growing]
        return described(found) if found else None

    def awaits(self, span: Window) -> str | None:
        """The files with rows of a span that are just being appended to; None if there is none."""
        growing = sorted({loss.path for loss, _ in self._missing_in(span) if loss.is_growing})
        return f"{', '.join(growing[:3])}: {STILL_WRITTEN}" if growing else None

    def has_rotated(self, span: Window) -> bool:
        """Whether rows of a span were rotated away."""
        gone = self.contents.gone_with_age
        return bool(gone) and any(start in gone for start in self._starts(span))

    def has_changed(self, span: Window) -> bool:
        """Whether a local file with rows of a span has changed since it was indexed."""
        held = (one.file for one in self.files_in(span) if one.file.is_local)
        try:
            return any(local_file(file.path) != file for file in held)
        except OSError:  # it cannot be looked at any more
            return True

    def is_rotated(self, loss: Loss) -> bool:
        """Whether all missing rows of a file were rotated away."""
        return loss.missing.keys() <= self.contents.rotated.get(loss.path, frozenset())

    def known_rows(self, window: Window) -> int:
        """The rows of a window, including those that are lost or still being written."""
        return self.rows(window) + sum(rows for _, rows in self._missing_in(window))

    def _missing_in(self, span: Window) -> Iterator[tuple[Loss, int]]:
        """The missing rows of a span that were not rotated away, by file and window."""
        lost = self.contents.lost
        for start in self._starts(span) if lost else ():
            yield from lost.get(start, ())

    def _starts(self, span: Window) -> range:
        return range(seconds(span.start), seconds(span.end), int(self.time.window.total_seconds()))

    def unread(self, window: Window) -> list[FileEntry]:
        """Skipped files that may hold rows of this window: those written while its rows were due.

        If the window needs rows and has none, files written up to `catch_up` windows later count too: a copy
        or an archive is younger than its rows. Files that are still being written do not: they are complete
        at one of the next looks. A file written before the window began holds none of its rows.
        """
        due = longest = self.time.lateness
        if self.is_required and self.rows(window) == 0:
            longest = max(due, self.time.catch_up * self.time.window)
        return [
            one
            for one in self.skipped
            if not one.is_duplicate
            and window.start <= one.file.modified <= window.end + (due if one.is_being_written else longest)
        ]

    def fingerprint(self, window: Window, *, present: bool = False) -> str:
        """Changes when the indexed rows of the window change; missing rows count as if they were there.

        With `present`, only the rows that are there count.
        """
        bucket = self._bucket(window)
        missing = None if present else self.contents.missing.get(seconds(window.start))
        if missing is not None:
            bucket = Bucket(bucket.rows + missing.rows, bucket.checksum + missing.checksum)
        return digest(repr((self.name, bucket.rows, bucket.checksum)), 12)

    def rows(self, window: Window) -> int:
        return self._bucket(window).rows

    def rows_in(self, span: Window) -> int:
        """The rows of a span of whole windows."""
        return sum(self.contents.buckets.get(start, _NOTHING).rows for start in self._starts(span))

    def bad_values(self, window: Window) -> int:
        """Values of the window that could not be read, and rows that could not be placed in any.

        Of a log without windows: of all its files, with the rows that have no id.
        """
        if not self.has_windows:
            return sum(bucket.bad_values for bucket in self.contents.buckets.values()) + sum(
                one.unplaced for one in self.read_entries
            )
        return self._bucket(window).bad_values + self.contents.unplaced.get(seconds(window.start), 0)

    def _bucket(self, window: Window) -> Bucket:
        return self.contents.buckets.get(seconds(window.start), _NOTHING)


def _without_copies(entries: Mapping[str, FileEntry]) -> Iterator[FileEntry]:
    """The entries by path; one with the same rows as an earlier one is marked as its duplicate."""
    first: dict[tuple[object, ...], str] = {}
    for path in sorted(entries):
        entry = entries[path]
        if entry.reason is None and entry.buckets:  # rows in no window have no checksum
            original = first.setdefault(entry.content, path)
            if original != path:
                entry = replace(entry, reason=DUPLICATE + original, buckets={})
        yield entry


def _together(entries: Sequence[FileEntry], losses: Sequence[Loss], time: TimeSettings) -> Contents:
    read = tuple(one for one in entries if one.reason is None)
    buckets = together(one.buckets for one in read)
    unplaced: Counter[int] = Counter()
    for one in read:
        if one.unplaced:
            unplaced[seconds(one.newest_window(time.window).start)] += one.unplaced
    files: dict[int, list[FileEntry]] = {}
    for one in read:
        for start in one.buckets:
            files.setdefault(start, []).append(one)
    by_age = sorted(read, key=lambda one: one.file.modified)
    went = rotated(losses, {one.file.path: one for one in entries}, time.window)
    lost: dict[int, list[tuple[Loss, int]]] = {}
    for loss in losses:
        for start in loss.missing.keys() - went.get(loss.path, frozenset()):
            lost.setdefault(start, []).append((loss, loss.missing[start].rows))
    edges = (datetime.fromtimestamp(start, UTC) for start in buckets.keys() | lost.keys())
    reached = [one.newest for one in read] + [loss.newest(time.window) for loss in losses]
    return Contents(
        read=read,
        skipped=tuple(one for one in entries if one.reason is not None),
        files=files,
        shapes=tuple(dict.fromkeys(one.shape for one in by_age if one.shape is not None)),
        watermark=max((newest for newest in reached if newest is not None), default=None),
        buckets=buckets,
        unplaced=unplaced,
        windows=frozenset(Window(edge, edge + time.window) for edge in edges),
        missing=together(loss.missing for loss in losses),
        lost=lost,
        rotated=went,
        gone_with_age=frozenset().union(*went.values()),
    )
