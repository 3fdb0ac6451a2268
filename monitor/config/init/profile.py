"""Samples the files of a log and measures the values of each column, so that roles can be guessed."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
from pydantic import ValidationError

from monitor.config.init.formats import format_by_content, named_format, no_header
from monitor.config.init.synonyms import SYNONYMS, likeness
from monitor.core import columns as c
from monitor.core.errors import ExpectedError
from monitor.core.record_path import parse, problem
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import split_list, to_text, to_time
from monitor.logs.files import ENDINGS, STILL_WRITTEN, WHEN_READ, LogFile, first_line, unfinished
from monitor.logs.index import readable
from monitor.logs.lake.table import table_format
from monitor.logs.listing import LogListingError, list_files, no_file
from monitor.logs.mapping import describe, is_flat, readable_paths
from monitor.logs.reading import Shape, open_filesystems, open_shape, sniff, union
from monitor.settings.logs import LogSettings

Only = tuple[str, tuple[str, ...]]  # a column, and its values in the rows that belong to a log
SAMPLE_ROWS = 100_000
SAMPLE_FILES = 4
TABLE = "sample"
_PLAIN = LogSettings(path="-")  # reads times as any log does
_OFFSET = r":\d{2}([.,]\d+)?\s*(?i:Z|UTC|GMT|[+-]\d{2}(:?\d{2})?)$"
_DATE = r"^\s*\d{4}[-/]\d{1,2}[-/]\d{1,2}"
# A day and a time that are not read: the day or the month first, or digits without a mark between them.
_DAY_FIRST = r"\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})[,\sT]+\d{1,2}[:h.]\d{2}"
_DIGITS = r"(19|20)\d{6}[\sT_-]+[0-2]\d[0-5]\d{3}\s*$"
_OTHER_DATE = rf"^\s*({_DAY_FIRST}|{_DIGITS})"
_JSON = r"(?s)^\s*(\[\s*)?\{.*\}(\s*\])?\s*$"
_BRACKETS = r"(?s)^\s*\[.*\]\s*$"
# A text that lists values: the separator, and the pattern of such a text.
_LISTS = (
    (",", r"^[^,;|\s{\[]+(\s*,\s*[^,;|\s]+)+$"),
    ("|", r"^[^|{\[]+(\|[^|]+)+$"),
    (";", r"^[^;{\[]+(;[^;]+)+$"),
    (" ", r"^[^\s{\[]*\d\S*( +\S*\d\S*)+$"),  # with a digit in every word, or sentences would be lists
)
_DECIMAL_COMMA = r"^\s*-?\d+,\d+\s*$"
_LABELLED = r"^\w+-[01]$"
_CLEAR_NAME = 0.5
_LISTED_ROLES = (c.ITEM_ID, c.POSITION, c.SCORE, c.PROPENSITY, c.CATEGORY, c.TAGS, c.VECTOR)
_UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800  # the years 2000 and 2100


class CannotProfile(ExpectedError):
    """The log cannot be looked at; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Column:
    """What the sampled values of one column are. Shares are of the values that are not empty.

    `lists`: the column holds a list a row, and all other fields describe the entries of the lists.
    """

    name: str
    dtype: str
    lists: bool = False
    present: int = 0
    distinct: int = 0
    numbers: float = 0.0  # the share that can be read as a number
    whole: float = 0.0
    times: float = 0.0  # the share that can be read as a time written out
    days: float = 0.0  # the share of days without a time of day
    offsets: float = 0.0  # the share that carries its distance from UTC
    lowest: float | None = None
    highest: float | None = None
    decimal_commas: float = 0.0  # the share of numbers that are written as 0,5
    other_dates: float = 0.0  # the share of times that are written in a form that is not read
    json: float = 0.0  # the share of texts that are JSON records, or lists of them
    labelled: float = 0.0  # the share of texts that end in a label, as N123-0
    separator: str | None = None  # of lists that are written as one text
    readable: bool = True

    @property
    def listing(self) -> tuple[str | None, str | None] | None:
        """The list in its path and the separator of its text; None for a column without lists."""
        return (parse(self.name).list_name, self.separator) if self.lists else None

    @property
    def is_path(self) -> bool:
        """Whether it lies inside records. Such a column is read only if `columns` names it."""
        return len(parse(self.name).fields) > 1

    @property
    def is_time(self) -> bool:
        return self.times >= 0.95 or self.epoch_unit is not None

    @property
    def epoch_unit(self) -> str | None:
        """The unit of numbers that count from 1970 to a day of this century."""
        if self.whole < 0.95 and not self.dtype.startswith("float"):
            return None
        if self.lowest is None or self.highest is None or self.times >= 0.95:
            return None
        for unit, scale in _UNITS:
            if self.lowest / scale >= _EARLIEST and self.highest / scale <= _LATEST:
                return unit
        return None

    @property
    def in_unit_interval(self) -> bool:
        return self.numbers >= 0.95 and self.between(0, 1)

    def between(self, low: float, high: float) -> bool:
        """Whether it has numbers, and all of them lie in this range."""
        if self.lowest is None or self.highest is None:
            return False
        return low <= self.lowest and self.highest <= high


@dataclass(frozen=True, slots=True)
class Profile:
    """A log's files and columns. The sampled rows are the engine's table `table`."""

    settings: LogSettings
    shape: Shape
    files: tuple[LogFile, ...]
    rows: int  # in the sample
    columns: tuple[Column, ...]
    complete: bool  # whether the sample is the whole log
    notes: tuple[str, ...] = ()
    table: str = TABLE

    @property
    def kind(self) -> str:
        """`parquet`, `csv` or `json`."""
        return self.shape.kind

    @property
    def usable(self) -> list[Column]:
        """The columns that hold values that can be read."""
        return [one for one in self.columns if one.readable and one.present]

    def empty(self, column: Column) -> float:
        """The share of the sampled rows that have no value in a column."""
        return 0.0 if column.lists else 1 - column.present / self.rows

    def column(self, name: str) -> Column:
        return next(one for one in self.columns if one.name == name)

    @property
    def written(self) -> datetime:
        """When the newest file was last changed."""
        return max(one.modified for one in self.files)


def patterns(arguments: Sequence[str]) -> tuple[str, ...]:
    """The user's arguments as globs: a file by its own name, a folder by the files in it."""
    return tuple(dict.fromkeys(pattern for one in arguments for pattern in _patterns(one)))


def named_log(arguments: Sequence[str], kind: str = "auto") -> LogSettings:
    """The log that the user named: files, or tables if their folders say so.

    Raises:
        CannotProfile: a path is empty, or no config may have it.
    """
    formats = {None if "://" in one else table_format(Path(one)) for one in arguments}
    if kind == "auto" and len(formats) == 1:
        kind = formats.pop() or kind
    try:
        given = LogSettings.model_validate({"path": tuple(arguments), "format": kind})
    except ValidationError as exc:  # its own text would show the path, which may hold a password
        why = "; ".join(one["msg"].removeprefix("Value error, ") for one in exc.errors())
        raise CannotProfile(f"a path of the log {why}" if why.startswith("must") else why) from None
    return given if given.is_table else given.model_copy(update={"path": patterns(arguments)})


def _patterns(argument: str) -> tuple[str, ...]:
    if "://" in argument:
        return (argument,)
    path = Path(argument)
    try:
        if path.is_dir():
            return in_folder(path)
        return (glob.escape(argument) if path.is_file() else argument,)
    except (OSError, ValueError) as exc:
        raise CannotProfile(f"{argument!r} is no path: {exc}") from None


def in_folder(folder: Path, *, deep: bool = True) -> tuple[str, ...]:
    """The globs of the files in a folder, one for each ending.

    Args:
        folder: the folder of a log, or of several.
        deep: at any depth; otherwise the first ending that is found down to two levels below the folder.

    Raises:
        CannotProfile: it holds no file of a format that is read.
    """
    try:
        return (deep and _every_ending(folder)) or (_glob_of(folder, deep=deep),)
    except LogListingError as exc:
        raise CannotProfile(f"{folder} cannot be listed: {exc}") from None


def _every_ending(folder: Path) -> tuple[str, ...]:
    base = glob.escape(str(folder))
    every = [file.path for file in list_files(LogSettings(path=f"{base}/**/*"))]
    found = []
    for ending in ENDINGS:
        depths = {path.count("/") for path in every if path.endswith(ending)}
        if depths:
            is_flat = depths == {str(folder.absolute()).rstrip("/").count("/") + 1}
            found.append(f"{base}/{'*' if is_flat else '**/*'}{ending}")
    return tuple(found)


def _glob_of(folder: Path, *, deep: bool) -> str:
    base = glob.escape(str(folder))
    levels = ("*", "**/*") if deep else ("*", "*/*", "*/*/*")
    for ending in ENDINGS:
        for level in levels:
            if list_files(LogSettings(path=f"{base}/{level}{ending}")):
                return f"{base}/{level}{ending}"
    why = "the folder is empty"
    for level in levels:
        for file in list_files(LogSettings(path=f"{base}/{level}"))[:SAMPLE_FILES]:
            try:
                format_by_content(LogSettings(path=file.path), file)
            except (ValueError, OSError) as exc:
                why = f"{file.path} {exc}"
                continue
            return f"{base}/{level.removesuffix('*')}{_names_like(Path(file.path).name)}"
    raise CannotProfile(f"{folder} holds no Parquet, CSV or JSON lines file; {why}")


def _names_like(name: str) -> str:
    """A glob of the files that are named alike but for their numbers.

    >>> [_names_like(name) for name in ("events.2026-01-05", "part-0", "2026-01-05.log")]
    ['events.*', 'part-*', '*.log']
    """
    ending = Path(name).suffix
    if ending and not re.search(r"\d", ending):
        return f"*{glob.escape(ending)}"
    return f"{glob.escape(re.split(r'[0-9]', name)[0])}*"


def profile(engine: Engine, settings: LogSettings, table: str = TABLE) -> Profile:
    """Sample a log and measure every column of it.

    Args:
        engine: gets the sampled rows as a table.
        settings: the paths, and the format where it is known.
        table: the name of the table.

    Raises:
        CannotProfile: no file matches, or none can be read.
    """
    shown = ", ".join(settings.paths)
    try:
        files = list_files(settings)
        open_filesystems(engine, settings, [file.path for file in files] if settings.is_table else ())
    except (LogListingError, OSError, ImportError, ValueError) as exc:
        raise CannotProfile(f"{shown} cannot be listed: {exc}") from None
    if not files and settings.is_table:
        raise CannotProfile(no_file(settings))
    if not files:
        advice = "correct the path"
        if any(one.startswith("~") for one in settings.paths):
            advice = "a ~ in quotes is not expanded; write the whole path"
        raise CannotProfile(f"{no_file(settings)}; {advice}")
    settings = _with_format(settings, files)
    shapes, sound, notes = _shapes(engine, settings, files)
    chosen = spread(sound, SAMPLE_FILES)
    limit = SAMPLE_ROWS // len(chosen)
    shape = max(shapes.values(), key=list(shapes.values()).count)
    fields = list(readable_paths(shape.types))
    parts, counts, read = [], [], chosen[0]
    try:
        for number, read in enumerate(chosen):
            view, own = f"{table}_file", shapes.get(read.path, shape)
            rows = open_shape(engine, view, own, [read.path], fields=fields).limit(limit)
            parts.append(engine.create(f"{table}_{number}", rows))
            counts.append(int(parts[-1].count().execute()))
        columns = (*_create(engine, table, union(parts)), *_unreadable(shape, fields))
    except (duckdb.Error, OSError, ValueError) as exc:
        raise CannotProfile(f"{read.path} cannot be read: {readable(exc)}") from None
    if sum(counts) == 0:
        raise CannotProfile(f"{chosen[0].path} holds no row; name a file with rows")
    complete = len(chosen) == len(files) and max(counts) < limit
    return Profile(settings, shape, tuple(sound), sum(counts), columns, complete, tuple(notes), table)


def narrowed(engine: Engine, found: Profile, column: str, values: Sequence[str], table: str) -> Profile:
    """The profile of the rows whose column has one of the values, kept as another table."""
    rows = engine.backend.table(found.table)
    hidden = tuple(one for one in found.columns if one.name not in rows.columns)
    columns = _create(engine, table, rows.filter(to_text(rows[column]).isin(list(values))))
    count = int(engine.backend.table(table).count().execute())
    return replace(found, rows=count, columns=(*columns, *hidden), table=table)


def _unreadable(shape: Shape, fields: Sequence[str]) -> Iterable[Column]:
    """The columns of a file that no path can read values from."""
    for name, kind in shape.types.items():
        if not is_flat(kind) and not any(parse(one).fields[0] == name for one in fields):
            yield Column(name, describe(kind), readable=False)


def _create(engine: Engine, name: str, rows: ir.Table) -> tuple[Column, ...]:
    """Store sampled rows, split lists that are written as texts, and measure the columns."""
    separators = {column: found for column in rows.columns if (found := _separator(rows, column))}
    lists = {column: split_list(rows[column], found) for column, found in separators.items()}
    table = engine.create(name, rows.mutate(**lists) if lists else rows)
    return tuple(replace(one, separator=separators.get(one.name)) for one in _columns(table))


def _separator(rows: ir.Table, name: str) -> str | None:
    """The separator of a text column that holds several values in one text, or None."""
    column = rows[name]
    if not column.type().is_string() or not _may_hold_lists(name):
        return None
    text = column.nullif("")
    others = (_DATE, _OTHER_DATE, _DECIMAL_COMMA, _JSON)
    bracketed = text.re_search(_BRACKETS)
    counts: dict[str, ir.Value] = {sep: text.re_search(look).sum() for sep, look in _LISTS}
    found = rows.aggregate(
        present=text.count(),
        bracketed=bracketed.sum(),
        with_comma=(bracketed & text.contains(",")).sum(),
        with_space=(bracketed & text.re_search(r"\S\s+\S") & ~text.contains(",")).sum(),
        other=ibis.or_(*(text.re_search(look) for look in others)).sum(),
        **{f"list_{number}": count for number, count in enumerate(counts.values())},
    ).execute().fillna(0).iloc[0].to_dict()  # fmt: skip
    half = found["present"] / 2
    if not found["present"] or found["other"] > half:
        return None
    if found["bracketed"] > half:
        return " " if found["with_space"] > found["with_comma"] else ","
    best = max(range(len(_LISTS)), key=lambda number: found[f"list_{number}"])
    return _LISTS[best][0] if found[f"list_{best}"] > half else None


def _may_hold_lists(name: str) -> bool:
    """Whether a column may hold lists, by its name: most names of one value a request exclude them."""
    of_lists = max(likeness(name, role) for role in _LISTED_ROLES)
    of_requests = max(likeness(name, role) for role in SYNONYMS if role not in _LISTED_ROLES)
    return of_lists >= of_requests or of_requests < _CLEAR_NAME


def _with_format(settings: LogSettings, files: Sequence[LogFile]) -> LogSettings:
    """The settings, with the detected format if the files' names do not show it."""
    kinds: list[str] = []
    faults = []
    looked_at = spread(files, SAMPLE_FILES)
    for file in looked_at:
        if named_format(settings, file) is None:
            try:
                kinds.append(format_by_content(settings, file))
            except (ValueError, OSError) as exc:
                faults.append(f"{file.path} {exc}")
    if len(faults) == len(looked_at):
        raise CannotProfile(f"no file could be read; {faults[0]}")
    if not kinds:
        return settings
    return settings.model_copy(update={"format": max(kinds, key=kinds.count)})


def _shapes(
    engine: Engine, settings: LogSettings, files: Sequence[LogFile]
) -> tuple[dict[str, Shape], list[LogFile], list[str]]:
    """The shapes of the sampled files, by path, all files that may be like them, and why others are left out.

    Files are alike if their columns have the same names. Types may differ: the folder `hour=02` gives a text,
    and `hour=12` a number.
    """
    found: dict[object, dict[str, Shape]] = {}
    notes = []
    looked_at = spread(files, SAMPLE_FILES)
    for file in looked_at:
        try:
            why = _why_not(settings, file)
            shape = sniff(engine, f"{TABLE}_file", settings, file) if why is None else Shape("")
            if why is None and not shape.columns:
                why = "it is empty"
        except Exception as exc:  # an engine's or a codec's, of any kind: the file is the user's
            why = readable(exc)
        if why is None:
            found.setdefault(frozenset(shape.names), {})[file.path] = shape
        else:
            notes.append(f"{file.path}: {why}")
    if not found:
        raise CannotProfile(f"no file could be read; {notes[0]}")
    alike = max(found.values(), key=len)
    others = [path for several in found.values() if several is not alike for path in several]
    notes += [f"{path}: has other columns than {next(iter(alike))}" for path in others]
    known = {file.path for file in looked_at}
    sound = [file for file in files if file.path in alike or file.path not in known]
    return alike, sound, notes


def _why_not(settings: LogSettings, file: LogFile) -> str | None:
    kind = named_format(settings, file)
    if kind == "parquet" or not file.size:
        return None
    if kind is None:
        format_by_content(settings, file)
    if kind == "json" and first_line(settings, file).lstrip().startswith("["):
        return "it holds one JSON array; write one JSON object per line"
    why = no_header(settings, file) if kind == "csv" else None
    why = why or unfinished(settings, file, datetime.now(UTC))
    return f"{why}; {WHEN_READ}" if why == STILL_WRITTEN else why


def spread(files: Sequence[LogFile], count: int) -> list[LogFile]:
    """At most this many files (2 or more), spread evenly, the first and the last among them."""
    if len(files) <= count:
        return list(files)
    last = len(files) - 1
    return [files[number * last // (count - 1)] for number in range(count)]


def _columns(table: ir.Table) -> Iterable[Column]:
    for name, dtype in table.schema().items():
        kind = dtype.value_type if dtype.is_array() else dtype
        if kind.is_nested() or kind.is_binary() or problem(name):
            yield Column(name, str(dtype), lists=dtype.is_array(), readable=False)
            continue
        values = table.select(v=table[name].unnest() if dtype.is_array() else table[name])
        yield _measure(values, name, str(kind), dtype.is_array())


def _measure(values: ir.Table, name: str, dtype: str, lists: bool) -> Column:
    value = values.v
    kind = value.type()
    text = value.cast("string").nullif("")
    if kind.is_temporal():
        number = value.isnull().ifelse(ibis.null("float64"), ibis.null("float64"))  # a column of nothing
        moments = value.notnull()
    else:
        number = value.cast("float64") if kind.is_numeric() else text.try_cast("float64")
        number = (number.isnan() | number.isinf()).ifelse(ibis.null("float64"), number)
        # A bare number is never a written-out time, whatever an engine would make of it.
        # Nor is a text such as "1 2 3", that an engine takes for a day of the year 1.
        dated = text.re_search(_DATE) & to_time(text, _PLAIN).notnull()
        moments = number.isnull() & dated
    row = values.aggregate(
        present=text.count(),
        distinct=text.nunique(),
        numbers=number.count(),
        whole=(number % 1 == 0).sum(),  # floor would cast to 64 bits, and fail on 1e20
        times=moments.sum(),
        days=text.re_search(rf"{_DATE}\s*$").sum(),
        offsets=text.re_search(_OFFSET).sum(),
        decimal_commas=text.re_search(_DECIMAL_COMMA).sum(),
        other_dates=text.re_search(_OTHER_DATE).sum(),
        json=text.re_search(_JSON).sum(),
        labelled=text.re_search(_LABELLED).sum(),
        lowest=number.min(),
        highest=number.max(),
    ).execute()
    found = {key: float(value) for key, value in row.fillna(0).iloc[0].to_dict().items()}
    present, distinct = int(found.pop("present")), int(found.pop("distinct"))
    lowest, highest = found.pop("lowest"), found.pop("highest")
    shares: dict[str, Any] = {key: count / present if present else 0.0 for key, count in found.items()}
    if kind.is_timestamp() and kind.timezone is not None:
        shares["offsets"] = 1.0
    column = Column(name, dtype, lists, present, distinct, **shares)
    return replace(column, lowest=lowest, highest=highest) if found["numbers"] else column
