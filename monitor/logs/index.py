"""What each file of a log holds, learned in one scan: rows by window, the newest time, bad values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.logs import columns as c
from monitor.logs.canonical import TIMESTAMP, bad_values, missing_columns
from monitor.logs.engine import Engine
from monitor.logs.files import LogFile, format_of, unfinished
from monitor.logs.reading import Shape, id_types, read, sniff
from monitor.logs.settings import LogSettings
from monitor.results import Window

_SCAN = "scan_file"
_LIMIT = "latest_time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REASON_LENGTH = 400
_EARLIEST = datetime(1000, 1, 1)  # an older time is a fault, and the calendar of Python ends soon before
DUPLICATE = "duplicate: holds the same rows as "


@dataclass(frozen=True, slots=True)
class Bucket:
    """The rows of one file in one window; the checksum does not depend on their order."""

    rows: int
    checksum: int
    bad_values: int = 0


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of the index. `reason` says why it could not be read; then it has no buckets."""

    file: LogFile
    digest: str  # of the settings it was read with: others make the entry void
    shape: Shape | None = None
    reason: str | None = None
    buckets: Mapping[int, Bucket] = field(default_factory=dict)  # start of the window, seconds since 1970
    newest: datetime | None = None
    unplaced: int = 0  # rows without a usable time or request
    future: int = 0  # rows that claim to be later than their file

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
        """Whether a row lies in a window or in a longer span of whole windows."""
        start, end = seconds(span.start), seconds(span.end)
        return start in self.buckets or any(start <= one < end for one in self.buckets)

    def newest_window(self, length: timedelta) -> Window:
        """The window that answers for what of the file lies in no window."""
        return Window.of(self.newest or self.file.modified, length)


def seconds(moment: datetime) -> int:
    """Whole seconds since 1970.

    >>> seconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400
    """
    return int((moment - _EPOCH) // timedelta(seconds=1))


def settings_digest(settings: LogSettings, window: timedelta, future_tolerance: timedelta) -> str:
    """Changes when the same file would be read otherwise."""
    parts = settings.model_dump_json(exclude={"path", "storage_options"}), window, future_tolerance
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def index_file(
    engine: Engine,
    log: str,
    settings: LogSettings,
    file: LogFile,
    *,
    window: timedelta,
    future_tolerance: timedelta,
    now: datetime,
) -> FileEntry:
    """Scan one file. A file that cannot be read gives an entry with the reason and no exception."""
    digest = settings_digest(settings, window, future_tolerance)
    try:
        if format_of(file.path, settings) != "parquet" and (why := unfinished(settings, file, now)):
            return FileEntry(file, digest, reason=why)
        shape = sniff(engine, _SCAN, settings, file)
        if not shape.columns:
            return FileEntry(file, digest, shape)
        if missing := missing_columns(log, settings, shape.names):
            return FileEntry(file, digest, reason="; ".join(missing)[:_REASON_LENGTH])
        return _scan(engine, log, settings, file, shape, digest, window, future_tolerance)
    except duckdb.InterruptException:
        raise
    except Exception as exc:  # whatever a file can hold, or its server can say, the other files are read
        return FileEntry(file, digest, reason=readable(exc))
    finally:
        engine.drop(_SCAN)


def readable(exc: BaseException) -> str:
    """The first lines of an engine's message without the query it was about, short enough for a page.

    >>> readable(ValueError("cannot  read\\n\\nPossible fixes: many"))
    'cannot read'
    """
    text = str(exc).split("Possible ")[0].split("\n\n  file")[0].split("\nLINE ")[0]
    text = " ".join(text.split())
    return (text[:_REASON_LENGTH] + "...") if len(text) > _REASON_LENGTH else text or type(exc).__name__


def _scan(
    engine: Engine,
    log: str,
    settings: LogSettings,
    file: LogFile,
    shape: Shape,
    digest: str,
    window: timedelta,
    future_tolerance: timedelta,
) -> FileEntry:
    rows = read(
        engine, _SCAN, log, settings, shape, [file.path], id_types(log, settings, shape), keep_raw=True
    )
    if c.TS not in c.TYPES[log]:
        found = engine.backend.execute(rows.aggregate(rows=rows.count(), bad=bad_values(rows, log).sum()))
        bad = int(found["bad"].fillna(0).iloc[0])
        placed = {0: Bucket(int(found["rows"].iloc[0]), seconds(file.modified), bad)}
        return FileEntry(file, digest, shape, buckets=placed)
    if c.TS not in rows.columns:  # samples that lie in no time: what a model was trained or tested on
        rows = rows.mutate(**{c.TS: ibis.null(TIMESTAMP)})
    # By its name, so that the query is the same for every file: to compile it takes longer than to run it.
    engine.remember(_LIMIT, (file.modified + future_tolerance).replace(tzinfo=None))
    key = [name for name in c.TYPES[log] if name in rows.columns]
    length = int(window.total_seconds())
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
    grouped = grouped.group_by("__bucket").aggregate(
        rows=lambda t: t.count(),
        checksum=lambda t: t["__hash"].sum(),
        bad=lambda t: t["__bad"].sum(),
        future=lambda t: (t["__future"] & t["__usable"]).sum(),
        timeless=lambda t: (t["__timeless"] & ~t["__usable"]).sum(),
        newest=lambda t: t[c.TS].max(where=t["__bucket"].notnull()),
    )
    found = engine.backend.execute(grouped)
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


def _needs_no_time(rows: ir.Table, log: str) -> ir.BooleanValue:
    """Whether a row may be without a time: samples may, but for those of the service."""
    if log != c.SAMPLES:
        return ibis.literal(False)
    return rows[c.SPLIT].isin((c.TRAIN, c.TEST)).fill_null(False)
