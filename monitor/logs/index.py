"""The index of a log's files: rows by window, the newest time and bad values, from one scan of each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import duckdb
import ibis
import ibis.expr.types as ir
import pandas as pd

from monitor.core import columns as c
from monitor.core.digest import digest
from monitor.core.redaction import redact
from monitor.core.results import Window
from monitor.core.text import REASON_LENGTH, cut
from monitor.engines.duckdb import DeadlineExceeded, Engine, deadline
from monitor.logs.canonical import TIMESTAMP, bad_values, json_ids, json_instead_of_ids
from monitor.logs.files import LogFile, format_of, unfinished
from monitor.logs.limits import MOST_WINDOWS, BeyondLimit, check_rows, check_size, too_slow
from monitor.logs.mapping import column_problems
from monitor.logs.reading import Shape, id_types, read, sniff
from monitor.settings.logs import LogSettings, TimeSettings

_SCAN = "scan_file"
_LIMIT = "latest_time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READING = 2  # raise this when the same file and settings give other rows: files are then read again
_EARLIEST = datetime(1000, 1, 1)  # an older time is a fault; Python's calendar begins at year 1
_LIMITS = {"file_deadline", "max_file_size", "max_rows", "max_columns"}
_JSON = "__json_"
DUPLICATE = "duplicate: holds the same rows as "


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
    unplaced: int = 0  # rows without a usable time or request
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
    def content(self) -> tuple[object, ...]:
        """Equal for two files that hold the same rows."""
        placed = tuple(sorted((start, b.rows, b.checksum) for start, b in self.buckets.items()))
        return (placed, self.unplaced, self.future)

    def holds(self, span: Window) -> bool:
        """Whether a row lies in a span of one or more whole windows."""
        start, end = seconds(span.start), seconds(span.end)
        return start in self.buckets or any(start <= one < end for one in self.buckets)

    def newest_window(self, length: timedelta) -> Window:
        """The window that counts the rows of the file that lie in no window."""
        return Window.of(self.newest or self.file.modified, length)


def seconds(moment: datetime) -> int:
    """Whole seconds since 1970.

    >>> seconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400
    """
    return int((moment - _EPOCH) // timedelta(seconds=1))


def settings_digest(settings: LogSettings, time: TimeSettings, *, limits: bool = False) -> str:
    """Changes when a file has to be read again; with `limits`, also when a skipped file may be readable."""
    exclude = {"path", "storage_options", "stalled_after"} | (set() if limits else _LIMITS)
    parts = _READING, settings.model_dump_json(exclude=exclude), time.window, time.future_tolerance
    return digest(repr(parts), 16)


def index_file(
    engine: Engine, log: str, settings: LogSettings, file: LogFile, time: TimeSettings, now: datetime
) -> FileEntry:
    """Scan one file. If it cannot be read, or not in time, the entry has the reason and no rows."""
    digest = settings_digest(settings, time)

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
    return FileEntry(file, settings_digest(settings, time, limits=True), reason=found)


def readable(exc: BaseException) -> str:
    """An engine's message on one line, without the query and the advice that follow it.

    >>> readable(ValueError("cannot  read\\n\\nPossible fixes: many"))
    'cannot read'
    """
    text = redact(str(exc)).split("Possible ")[0].split("\n\n  file")[0].split("\nLINE ")[0]
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
    rows = read(
        engine, _SCAN, log, settings, shape, [file.path], id_types(log, settings, shape), keep_raw=True
    )
    if c.TS not in c.TYPES[log]:
        found = engine.backend.execute(
            rows.aggregate(rows=rows.count(), bad=bad_values(rows, log).sum(), **_json_sums(rows, log))
        )
        _refuse_json(found)
        bad = int(found["bad"].fillna(0).iloc[0])
        placed = {0: Bucket(int(found["rows"].iloc[0]), seconds(file.modified), bad)}
        return FileEntry(file, digest, shape, buckets=placed)
    if c.TS not in rows.columns:  # training and test samples may have no time
        rows = rows.mutate(**{c.TS: ibis.null(TIMESTAMP)})
    # A named value keeps the query the same for all files: compiling it takes longer than running it.
    engine.remember(_LIMIT, (file.modified + time.future_tolerance).replace(tzinfo=None))
    key = [name for name in c.TYPES[log] if name in rows.columns]
    length = int(time.window.total_seconds())
    rows = rows.mutate(
        __future=(rows[c.TS] > engine.remembered(_LIMIT)).fill_null(False),
        __usable=ibis.and_(
            rows[c.TS] >= ibis.literal(_EARLIEST), *(rows[name].notnull() for name in c.INDISPENSABLE[log])
        ).fill_null(False),
        __bad=bad_values(rows, log),
        __timeless=_needs_no_time(rows, log),
        # Summed and not xor-ed, or two equal rows would vanish.
        __hash=ibis.struct({name: rows[name] for name in key}).hash() & 0x7FFFFFFF,
        __bucket=(rows[c.TS].epoch_seconds() // length) * length,
    )
    grouped = rows.mutate(
        __bucket=(rows["__future"] | ~rows["__usable"]).ifelse(ibis.null("int64"), rows["__bucket"])
    )
    sums = _json_sums(grouped, log)
    grouped = grouped.group_by("__bucket").aggregate(
        rows=lambda t: t.count(),
        checksum=lambda t: t["__hash"].sum(),
        bad=lambda t: t["__bad"].sum(),
        future=lambda t: (t["__future"] & t["__usable"]).sum(),
        timeless=lambda t: (t["__timeless"] & ~t["__usable"]).sum(),
        newest=lambda t: t[c.TS].max(where=t["__bucket"].notnull()),
        **sums,
    )
    found = engine.backend.execute(grouped.limit(MOST_WINDOWS + 1))
    if len(found) > MOST_WINDOWS:
        raise BeyondLimit(f"its rows lie in more than {MOST_WINDOWS:,} windows")
    _refuse_json(found)
    placed = found[found["__bucket"].notna()]
    rest = found[found["__bucket"].isna()]
    future, timeless = int(rest["future"].sum()), int(rest["timeless"].sum())
    buckets = {
        int(start): Bucket(int(n), int(checksum), int(bad))
        for start, n, checksum, bad in zip(
            placed["__bucket"], placed["rows"], placed["checksum"], placed["bad"], strict=True
        )
    }
    newest = placed["newest"].max().to_pydatetime().replace(tzinfo=UTC) if len(placed) else None
    return FileEntry(
        file, digest, shape, buckets=buckets, newest=newest, future=future,
        unplaced=int(rest["rows"].sum()) - future - timeless,
    )  # fmt: skip


def _json_sums(rows: ir.Table, log: str) -> dict[str, ir.IntegerScalar]:
    """For each column of ids, how many of them begin like JSON."""
    return {f"{_JSON}{name}": flag.sum() for name, flag in json_ids(rows, log).items()}


def _refuse_json(found: pd.DataFrame) -> None:
    """Raise ValueError if the ids are records or lists written as JSON."""
    names = [str(name) for name in found.columns if str(name).startswith(_JSON)]
    counts = {name.removeprefix(_JSON): int(found[name].sum()) for name in names}
    if why := json_instead_of_ids(counts, int(found["rows"].sum())):
        raise ValueError(why)


def _needs_no_time(rows: ir.Table, log: str) -> ir.BooleanValue:
    """Whether a row needs no time: training and test samples do not."""
    if log != c.SAMPLES:
        return ibis.literal(False)
    return rows[c.SPLIT].isin((c.TRAIN, c.TEST)).fill_null(False)
