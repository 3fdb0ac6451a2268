"""A bounded look at one log: its files, the rows of a few of them, and what could not be read.

It reads the newest files and the oldest one with the functions of the daemon. It judges nothing: `findings`
says what is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.text import NAME_LENGTH, quoted
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import RAW, IdType, bad_by_column, json_ids, json_instead_of_ids
from monitor.logs.files import STILL_WRITTEN, WHEN_READ, LogFile, format_of, unfinished
from monitor.logs.index import FileEntry, readable
from monitor.logs.lake.table import LakeTable
from monitor.logs.listing import LogListingError, list_log
from monitor.logs.mapping import column_problems, flat_types, source_names
from monitor.logs.reading import Shape, open_filesystems, read, sniff
from monitor.settings.logs import LogSettings

NEWEST_FILES: Final = 4
SAMPLE_ROWS: Final = 200_000
WHOLE_BYTES: Final = 32 << 20
"""Files of up to this size are read as a whole, larger ones up to SAMPLE_ROWS rows."""
_UNPACKING_SECONDS: Final = 5.0
_EARLIEST: Final = datetime(1000, 1, 1)
_VIEW: Final = "look_file"
_NO_EXAMPLE: Final = (c.USER_ID,)  # a message must not name a person


@dataclass(frozen=True, slots=True)
class ColumnSeen:
    """The values of one of our columns: `present` were read, `bad` could not be; other rows have none."""

    theirs: str
    dtype: str
    present: int = 0
    bad: int = 0
    example: str | None = None

    def plus(self, other: ColumnSeen) -> ColumnSeen:
        example = self.example if self.example is not None else other.example
        present, bad = self.present + other.present, self.bad + other.bad
        return replace(self, present=present, bad=bad, example=example)


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """What the rows of one file hold."""

    rows: int = 0
    usable: int = 0
    future: int = 0  # rows later than their file
    first: datetime | None = None
    last: datetime | None = None
    requests: int | None = None
    columns: Mapping[str, ColumnSeen] = field(default_factory=dict)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class FileSeen:
    """One file that was looked at.

    Attributes:
        reason: why it cannot be read.
        problems: the columns that it lacks or has in a form that cannot be read.
    """

    file: LogFile
    shape: Shape | None = None
    reason: str | None = None
    problems: tuple[str, ...] = ()
    rows: RowsSeen | None = None

    @property
    def is_empty(self) -> bool:
        return self.reason is None and self.shape is not None and not self.shape.columns

    @property
    def is_sound(self) -> bool:
        return self.reason is None and not self.problems and not self.is_empty

    def entry(self) -> FileEntry:
        """The file as the index of a log has it."""
        return FileEntry(self.file, digest="", shape=self.shape)


@dataclass(slots=True)
class LogSeen:
    """One log: every file that matches, and a look at a few of them."""

    name: str
    settings: LogSettings
    files: tuple[LogFile, ...] = ()
    unlisted: tuple[str, ...] = ()
    error: str | None = None
    looked: list[FileSeen] = field(default_factory=list)
    tables: tuple[LakeTable, ...] = ()

    @property
    def sound(self) -> list[FileSeen]:
        return [one for one in self.looked if one.is_sound]

    @property
    def measured(self) -> list[RowsSeen]:
        return [one.rows for one in self.looked if one.rows is not None]

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.measured)

    @property
    def is_whole(self) -> bool:
        """Whether every row of every file was looked at."""
        return len(self.measured) == len(self.files) and all(one.whole for one in self.measured)

    @property
    def mapped(self) -> dict[str, str]:
        """The columns of the looked-at files: our name -> the name in the files."""
        found: dict[str, str] = {}
        for shape in {one.shape for one in self.sound if one.shape is not None}:
            for ours, theirs in source_names(self.name, self.settings, _flat(self.settings, shape)).items():
                # A name from the config wins, if any file has it.
                if found.get(ours) != self.settings.columns.get(ours, ours):
                    found[ours] = theirs
        return found

    @property
    def names(self) -> frozenset[str]:
        """Our names of the columns of the looked-at files; lists of items have positions too."""
        mapped = self.mapped
        if self.name != c.EXPOSURES or c.ITEM_ID not in mapped:
            return frozenset(mapped)
        shapes = [one.shape for one in self.sound if one.shape is not None]
        kinds = [_flat(self.settings, shape).get(mapped[c.ITEM_ID]) for shape in shapes]
        lists = self.settings.list_separator is not None or any(kind.is_array() for kind in kinds if kind)
        return frozenset({*mapped, c.POSITION} if lists else mapped)

    @property
    def theirs(self) -> tuple[str, ...]:
        """The files' own names of their columns."""
        shapes = {one.shape: None for one in self.looked if one.shape is not None}
        return tuple(dict.fromkeys(name for one in shapes for name in one.names))

    @property
    def columns(self) -> dict[str, ColumnSeen]:
        found: dict[str, ColumnSeen] = {}
        for one in self.measured:
            for name, column in one.columns.items():
                found[name] = found[name].plus(column) if name in found else column
        return found

    @property
    def first(self) -> datetime | None:
        return min((one.first for one in self.measured if one.first is not None), default=None)

    @property
    def last(self) -> datetime | None:
        return max((one.last for one in self.measured if one.last is not None), default=None)


def find_files(engine: Engine, name: str, settings: LogSettings) -> LogSeen:
    """The files of a log, or why they cannot be listed."""
    try:
        listing = list_log(settings)
        open_filesystems(engine, settings, listing.files if settings.is_table else ())
    except (LogListingError, OSError, ImportError, ValueError) as exc:
        return LogSeen(name, settings, error=readable(exc))
    unlisted = tuple(str(one) for one in listing.errors if not one.is_missing)
    files, tables = tuple(listing.files.values()), tuple(listing.tables)
    return LogSeen(name, settings, files, unlisted=unlisted, tables=tables)


def chosen(files: Sequence[LogFile]) -> list[LogFile]:
    """The files to look at: the newest, the newest first, and the oldest."""
    by_age = sorted(files, key=lambda one: (one.modified, one.path), reverse=True)
    return [*by_age[:NEWEST_FILES], *by_age[NEWEST_FILES:][-1:]]


def shape_of(engine: Engine, seen: LogSeen, file: LogFile, now: datetime) -> FileSeen:
    """The columns of a file, or why it cannot be read."""
    settings, began = seen.settings, time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - began > _UNPACKING_SECONDS

    try:
        text = format_of(file.path, settings) != "parquet"
        if text and file.size <= WHOLE_BYTES and (why := unfinished(settings, file, now, stop=is_over)):
            return FileSeen(file, reason=f"{why}; {WHEN_READ}" if why == STILL_WRITTEN else why)
        shape = sniff(engine, _VIEW, settings, file)
        problems = column_problems(seen.name, settings, shape.types) if shape.columns else []
        return FileSeen(file, shape, problems=tuple(problems))
    except duckdb.InterruptException:
        raise
    except Exception as exc:  # a broken file must not hide the others
        return FileSeen(file, reason=readable(exc))
    finally:
        engine.drop(_VIEW)


def rows_of(
    engine: Engine, seen: LogSeen, one: FileSeen, id_types: Mapping[str, IdType], tolerance: timedelta
) -> RowsSeen | str:
    """A summary of the rows of a file, or why they cannot be read."""
    assert one.shape is not None  # a sound file has a shape
    settings, whole = seen.settings, one.file.size <= WHOLE_BYTES
    try:
        rows = read(engine, _VIEW, seen.name, settings, one.shape, [one.file.path], id_types, keep_raw=True)
        rows = rows if whole else rows.limit(SAMPLE_ROWS)
        bad = bad_by_column(rows, seen.name)
        sums = dict(_sums(rows, seen.name, one.file.modified + tolerance))
        for name, flag in bad.items():
            sums[f"bad_{name}"] = flag.sum()
            sums[f"present_{name}"] = rows[name].count(where=flag == 0)
            raw = rows[RAW + name]
            if name not in _NO_EXAMPLE and not raw.type().is_nested():
                sums[f"example_{name}"] = raw.cast("string").arbitrary(where=flag.cast("boolean"))
        odd = json_ids(rows, seen.name)
        sums |= {f"json_{name}": flag.sum() for name, flag in odd.items()}
        (found,) = rows.aggregate(**sums).to_pyarrow().to_pylist()
    except duckdb.InterruptException:
        raise
    except Exception as exc:  # a broken file must not hide the others
        return readable(exc)
    finally:
        engine.drop(_VIEW)
    counts = {name: int(found[f"json_{name}"] or 0) for name in odd}
    if why := json_instead_of_ids(counts, int(found["rows"])):
        return why
    kinds = _flat(settings, one.shape)
    own = source_names(seen.name, settings, kinds)
    columns = {
        name: ColumnSeen(
            own.get(name, name),
            str(kinds.get(own.get(name, name), "")),
            int(found[f"present_{name}"] or 0),
            int(found[f"bad_{name}"] or 0),
            None if (value := found.get(f"example_{name}")) is None else quoted(value, NAME_LENGTH),
        )
        for name in bad
    }
    return RowsSeen(
        rows=int(found["rows"]),
        usable=int(found["usable"] or 0),
        future=int(found.get("future") or 0),
        first=_moment(found.get("first")),
        last=_moment(found.get("last")),
        requests=found.get("requests"),
        columns=columns,
        whole=whole or int(found["rows"]) < SAMPLE_ROWS,
    )


def _flat(settings: LogSettings, shape: Shape) -> dict[str, ibis.DataType]:
    """The columns and paths of such a file that hold values or lists of them, with their types."""
    return flat_types(shape.types, settings.columns.values())


def _sums(rows: ir.Table, log: str, limit: datetime) -> Iterator[tuple[str, ir.Value]]:
    yield "rows", rows.count()
    usable = rows[c.INDISPENSABLE[log][0]].notnull()
    for name in c.INDISPENSABLE[log][1:]:
        usable = usable & rows[name].notnull()
    if c.TS in rows.columns:
        at = rows[c.TS]
        placed = at >= _EARLIEST
        if c.TS in c.INDISPENSABLE[log]:
            usable = usable & placed.fill_null(False)
        yield "first", at.min(where=placed)
        yield "last", at.max(where=placed)
        yield "future", (at > limit.replace(tzinfo=None)).sum()
    yield "usable", usable.sum()
    if log == c.EXPOSURES:
        yield "requests", rows[c.REQUEST_ID].nunique()


def _moment(value: datetime | None) -> datetime | None:
    return None if value is None else value.replace(tzinfo=UTC)
