"""The index of a log's files: rows by window, the newest time and bad values, from one scan of each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.digest import digest
from monitor.core.redaction import redact
from monitor.core.results import Window
from monitor.core.text import REASON_LENGTH, cut
from monitor.engines.duckdb import DeadlineExceeded, Engine, deadline
from monitor.logs.canonical import TIMESTAMP, bad_values, json_ids, json_instead_of_ids
from monitor.logs.files import NOT_UTF8, ONE_OBJECT, STILL_WRITTEN, UTF16, LogFile, format_of, unfinished
from monitor.logs.guesses import corrected, unlike
from monitor.logs.limits import MOST_WINDOWS, BeyondLimit, check_rows, check_size, too_slow
from monitor.logs.mapping import column_problems
from monitor.logs.reading import Shape, id_types, read, sniff
from monitor.settings.logs import LogSettings, TimeSettings

_SCAN = "scan_file"
_LIMIT = "latest_time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READING = 6  # raise this when the same file and settings give other rows: files are then read again
_EARLIEST = datetime(1000, 1, 1)  # an older time is a fault; Python's calendar begins at year 1
_LIMITS = {"file_deadline", "max_file_size", "max_rows", "max_columns"}
_JSON = "__monitor_json_"
_BUCKET = "__monitor_bucket"
_NOT_WHOLE = (
    "is no whole Parquet file: still being written, cut short, or of another format; if it stays so, "
    "write it again"
)
_CAUSES = {
    "This file is not utf-8 encoded": NOT_UTF8,
    "invalid UTF-8 encoding in string": NOT_UTF8,
    "UTF-16 encoding is not supported": UTF16,
    "No magic bytes found at end of file": _NOT_WHOLE,
    "too small to be a Parquet file": _NOT_WHOLE,
    "Footer length error in file": _NOT_WHOLE,
    "CSV Parser state machine": "its lines end in different ways; write LF in all, such as with `dos2unix`",
    "Try auto-detecting the JSON format": f"a line is no whole JSON object; {ONE_OBJECT}",
}
"""What the engine says of a file that it cannot read, and what we say."""
DUPLICATE = "duplicate: holds the same rows as "
_Sums = Callable[[ir.Table], dict[str, ir.IntegerScalar]]  # of rows: further sums that a scan makes


@dataclass(frozen=True, slots=True)
class Bucket:
    """The rows of one file in one window; the checksum does not depend on their order."""

    rows: int
    checksum: int
    bad_values: int = 0


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of the index; with a `reason` why it could not be read, it has no buckets."""

    file: LogFile
    digest: str  # of the settings it was read with; other settings make the entry void
    shape: Shape | None = None
    reason: str | None = None
    buckets: Mapping[int, Bucket] = field(default_factory=dict)  # start of the window, seconds since 1970
    newest: datetime | None = None
    unplaced: int = 0  # rows without a usable time or request; of a log without times, without an id
    future: int = 0  # rows that claim to be later than their file
    tries: int = field(default=0, compare=False)  # how often it could not be read, as it is
    again: datetime | None = field(default=None, compare=False)  # not tried again before this time

    @property
    def rows(self) -> int:
        return sum(bucket.rows for bucket in self.buckets.values()) + self.unplaced + self.future

    @property
    def is_duplicate(self) -> bool:
        """Whether it was skipped because another file holds the same rows."""
        return self.reason is not None and self.reason.startswith(DUPLICATE)

    @property
    def is_being_written(self) -> bool:
        """Whether it was skipped because its writer is at work; it is whole at one of the next looks."""
        return self.reason == STILL_WRITTEN

    @property
    def content(self) -> tuple[object, ...]:
        """Equal for two files that hold the same rows."""
        placed = tuple(sorted((start, b.rows, b.checksum) for start, b in self.buckets.items()))
        return (placed, self.unplaced, self.future)

    def lies_in(self, span: Window) -> bool:
        """Whether every row of the file lies in a span of whole windows."""
        start, end = seconds(span.start), seconds(span.end)
        return not self.unplaced and not self.future and all(start <= one < end for one in self.buckets)

    def newest_window(self, length: timedelta) -> Window:
        """The window that counts the rows of the file that lie in no window."""
        return Window.of(self.newest or self.file.modified, length)


def seconds(moment: datetime) -> int:
    """Whole seconds since 1970.

    >>> seconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400
    """
    return int((moment - _EPOCH) // timedelta(seconds=1))


def settings_digest(
    settings: LogSettings, time: TimeSettings, *, limits: bool = False, renamed: str = ""
) -> str:
    """Changes when a file has to be read again; with `limits`, also when a skipped file may be readable.

    `renamed` is what a table says of its columns, see `TableColumns`.
    """
    exclude = {"path", "storage_options", "catalog", "stalled_after"} | (set() if limits else _LIMITS)
    parts = _READING, settings.model_dump_json(exclude=exclude), time.window, time.future_tolerance
    return digest(repr((*parts, renamed) if renamed else parts), 16)


def file_digest(settings: LogSettings, time: TimeSettings, file: LogFile, *, limits: bool = False) -> str:
    """The digest of the settings that a file is read with."""
    renamed = "" if file.columns is None else file.columns.renamed
    return settings_digest(settings, time, limits=limits, renamed=renamed)


def index_file(
    engine: Engine, log: str, settings: LogSettings, file: LogFile, time: TimeSettings, now: datetime
) -> FileEntry:
    """Scan one file. If it cannot be read, or not in time, the entry has the reason and no rows."""
    digest = file_digest(settings, time, file)

    def index(stop: Callable[[], bool]) -> FileEntry | str:
        check_size(settings, file.size)
        if format_of(file.path, settings) != "parquet":
            why = unfinished(settings, file, now, stop=stop)
            if why is not None:
                return why
        shape = sniff(engine, _SCAN, settings, file)
        if not shape.columns:
            return FileEntry(file, digest, shape)
        if problems := column_problems(log, settings, shape.types):
            return cut("; ".join(problems), REASON_LENGTH)
        entry = scan(engine, log, settings, file, shape, digest, time)
        check_rows(settings, entry.rows)
        return entry

    try:
        with deadline(settings.file_deadline.total_seconds(), engine.interrupt) as over:
            found = index(over.is_set)
    except DeadlineExceeded:
        found = too_slow(settings)
    except duckdb.InterruptException:
        raise
    except Exception as exc:  # a broken file or server must not hide the other files
        found = readable(exc)
    finally:
        engine.drop(_SCAN)
    if isinstance(found, FileEntry):
        return found
    return FileEntry(file, file_digest(settings, time, file, limits=True), reason=found)


def readable(exc: BaseException) -> str:
    """An engine's message on one line, without the query and the advice that follow it.

    Where the cause is known, a sentence on it and on what to do comes before the first line.

    >>> readable(ValueError("cannot  read\\n\\nPossible fixes: many"))
    'cannot read'
    """
    text = redact(str(exc))
    for pattern, cause in _CAUSES.items():
        if pattern in text:
            return cut(f"{cause}: {text.splitlines()[0]}", REASON_LENGTH)
    for advice in ("Possible ", "\n\n  file", "\nLINE ", "\nTry setting "):
        text = text.split(advice)[0]
    return cut(" ".join(text.split()), REASON_LENGTH) or type(exc).__name__


def scan(
    engine: Engine,
    log: str,
    settings: LogSettings,
    file: LogFile,
    shape: Shape,
    digest: str,
    time: TimeSettings,
) -> FileEntry:
    """Count the rows of a file by window, in one scan."""
    types = id_types(log, settings, shape)
    rows = read(engine, _SCAN, log, settings, shape, [file.path], types, keep_raw=True)

    def sums(rows: ir.Table) -> dict[str, ir.IntegerScalar]:
        return _json_sums(rows, log) | unlike(rows, log, settings, shape)

    if c.TS not in c.TYPES[log]:
        found = _rows_of(engine, engine.once(("whole", rows.op(), log), lambda: _whole(rows, log, sums)))
        _refuse_json(found)
        (row,) = found
        without_id = row["unplaced"] or 0
        placed = {0: Bucket(row["rows"] - without_id, seconds(file.modified), row["bad"] or 0)}
        kinds = corrected(shape, log, settings, found)
        return FileEntry(file, digest, kinds, buckets=placed, unplaced=without_id)
    # A named value keeps the query the same for all files: compiling it takes longer than running it.
    engine.remember(_LIMIT, (file.modified + time.future_tolerance).replace(tzinfo=None))
    length = int(time.window.total_seconds())
    by_window = engine.once(
        ("by_window", rows.op(), log, length), lambda: _by_window(engine, rows, log, length, sums)
    )
    found = _rows_of(engine, by_window)
    if len(found) > MOST_WINDOWS:
        raise BeyondLimit(f"its rows lie in more than {MOST_WINDOWS:,} windows")
    _refuse_json(found)
    buckets, rest, newest = {}, Counter[str](), []
    for row in found:
        if row[_BUCKET] is None:
            rest.update({name: row[name] or 0 for name in ("rows", "future", "timeless")})
            continue
        buckets[row[_BUCKET]] = Bucket(row["rows"], row["checksum"], row["bad"] or 0)
        newest.append(row["newest"])
    return FileEntry(
        file, digest, corrected(shape, log, settings, found), buckets=buckets,
        newest=max(newest).replace(tzinfo=UTC) if newest else None,
        future=rest["future"],
        unplaced=rest["rows"] - rest["future"] - rest["timeless"],
    )  # fmt: skip


def _rows_of(engine: Engine, expression: ir.Table) -> list[dict[str, Any]]:
    return engine.rows(engine.select(expression), expression.schema())


def _whole(rows: ir.Table, log: str, sums: _Sums) -> ir.Table:
    """One row for a log without times."""
    usable = ibis.and_(*(rows[name].notnull() for name in c.INDISPENSABLE[log]))
    return rows.aggregate(
        rows=rows.count(),
        bad=bad_values(rows, log).sum(where=usable),
        unplaced=(~usable).sum(),
        **sums(rows),
    )


def _by_window(engine: Engine, rows: ir.Table, log: str, length: int, sums: _Sums) -> ir.Table:
    """One row for each window of `length` seconds, and one for the rows that lie in none."""
    if c.TS not in rows.columns:  # training and test samples may have no time
        rows = rows.mutate(**{c.TS: ibis.null(TIMESTAMP)})
    key = [name for name in c.TYPES[log] if name in rows.columns]
    rows = rows.mutate(
        __monitor_future=(rows[c.TS] > engine.remembered(_LIMIT)).fill_null(False),
        __monitor_usable=ibis.and_(
            rows[c.TS] >= ibis.literal(_EARLIEST), *(rows[name].notnull() for name in c.INDISPENSABLE[log])
        ).fill_null(False),
        __monitor_bad=bad_values(rows, log),
        __monitor_timeless=_needs_no_time(rows, log),
        # Summed and not xor-ed, or two equal rows would vanish.
        __monitor_hash=ibis.struct({name: rows[name] for name in key}).hash() & 0x7FFFFFFF,
        **{_BUCKET: (rows[c.TS].epoch_seconds() // length) * length},
    )
    placed = ~(rows["__monitor_future"] | ~rows["__monitor_usable"])
    rows = rows.mutate(**{_BUCKET: placed.ifelse(rows[_BUCKET], ibis.null("int64"))})
    grouped = rows.group_by(_BUCKET).aggregate(
        rows=lambda t: t.count(),
        checksum=lambda t: t["__monitor_hash"].sum(),
        bad=lambda t: t["__monitor_bad"].sum(),
        future=lambda t: (t["__monitor_future"] & t["__monitor_usable"]).sum(),
        timeless=lambda t: (t["__monitor_timeless"] & ~t["__monitor_usable"]).sum(),
        newest=lambda t: t[c.TS].max(where=t[_BUCKET].notnull()),
        **sums(rows),
    )
    return grouped.limit(MOST_WINDOWS + 1)


def _json_sums(rows: ir.Table, log: str) -> dict[str, ir.IntegerScalar]:
    """For each column of ids, how many of them begin like JSON."""
    return {f"{_JSON}{name}": flag.sum() for name, flag in json_ids(rows, log).items()}


def _refuse_json(found: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if the ids are records or lists written as JSON."""
    counts: Counter[str] = Counter()
    for row in found:
        counts.update({name: row[name] or 0 for name in row if name.startswith(_JSON)})
    named = {name.removeprefix(_JSON): count for name, count in counts.items()}
    if why := json_instead_of_ids(named, sum(row["rows"] for row in found)):
        raise ValueError(why)


def _needs_no_time(rows: ir.Table, log: str) -> ir.BooleanValue:
    """Whether a row needs no time: training and test samples do not."""
    if log != c.SAMPLES:
        return ibis.literal(False)
    return rows[c.SPLIT].isin((c.TRAIN, c.TEST)).fill_null(False)
