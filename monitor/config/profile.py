"""Looks at the files of a log and says of each column what its values are: the ground for guessing."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.logs.engine import Engine
from monitor.logs.files import LogFile, LogListingError, list_files, unfinished
from monitor.logs.index import readable
from monitor.logs.reading import Shape, open_filesystems, open_shape, sniff
from monitor.logs.settings import LogSettings

SAMPLE_ROWS = 100_000
SAMPLE_FILES = 4
TABLE = "sample"
_OFFSET = r":\d{2}(\.\d+)?\s*(Z|z|[+-]\d{2}(:?\d{2})?)$"
_DATE = r"^\s*\d{4}[-/]\d{1,2}[-/]\d{1,2}"
_PACKED = r"^\s*\[.*\]\s*$|^\w+([,;|]\s*\w+)+$|^\d+( +\d+)+$"
_UNITS = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800  # the years 2000 and 2100


class CannotProfile(Exception):
    """The log cannot be looked at; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Column:
    """What the sampled values of one column are. Shares are of the values that are there.

    `lists` says that the column holds a list a row; then everything else is about the lists' entries.
    """

    name: str
    dtype: str
    lists: bool = False
    present: int = 0
    distinct: int = 0
    numbers: float = 0.0  # the share that can be read as a number
    whole: float = 0.0
    times: float = 0.0  # the share that can be read as a time written out
    offsets: float = 0.0  # the share that carries its distance from UTC
    lowest: float | None = None
    highest: float | None = None
    packed: float = 0.0  # the share of texts that seem to be several values in one
    readable: bool = True

    @property
    def is_time(self) -> bool:
        return self.times >= 0.95 or self.epoch_unit is not None

    @property
    def epoch_unit(self) -> str | None:
        """The unit, where the values are numbers that count from 1970 to a day of this century."""
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
        return (
            self.numbers >= 0.95
            and self.lowest is not None
            and self.highest is not None
            and self.lowest >= 0
            and self.highest <= 1
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """A log as it was found. The sampled rows are the engine's table `sample`."""

    settings: LogSettings
    kind: str
    files: tuple[LogFile, ...]
    rows: int  # in the sample
    columns: tuple[Column, ...]
    complete: bool  # whether the sample is the whole log
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        return next(one for one in self.columns if one.name == name)

    @property
    def written(self) -> datetime:
        """When the newest file was last changed."""
        return max(one.modified for one in self.files)


def patterns(arguments: Sequence[str]) -> tuple[str, ...]:
    """What the user names as globs: a file by its own name, a folder by the files in it."""
    found: list[str] = []
    for argument in arguments:
        if "://" in argument:
            found.append(argument)
            continue
        path = Path(argument)
        try:
            if path.is_dir():
                found.append(_in_folder(path))
            elif path.is_file():
                found.append(glob.escape(argument))
            else:
                found.append(argument)
        except (OSError, ValueError) as exc:
            raise CannotProfile(f"{argument!r} is no path: {exc}") from None
    return tuple(dict.fromkeys(found))


def _in_folder(folder: Path) -> str:
    endings = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz")
    base = glob.escape(str(folder))
    for ending in endings:
        for inner in (f"*{ending}", f"**/*{ending}"):
            if list_files(LogSettings(path=f"{base}/{inner}")):
                return f"{base}/{inner}"
    raise CannotProfile(f"{folder} holds no Parquet, CSV or JSON lines file")


def profile(engine: Engine, settings: LogSettings) -> Profile:
    """Sample a log and measure every column of it.

    Raises:
        CannotProfile: no file matches, or none can be read.
    """
    shown = ", ".join(settings.paths)
    try:
        open_filesystems(engine, settings)
        files = list_files(settings)
    except (LogListingError, OSError, ImportError, ValueError) as exc:
        raise CannotProfile(f"{shown} cannot be listed: {exc}") from None
    if not files:
        raise CannotProfile(f"no file matches {shown}; put a pattern in quotes, as 'log/*.parquet'")
    shape, sound, notes = _shape(engine, settings, files)
    chosen = _spread(sound)
    limit = SAMPLE_ROWS // len(chosen)
    try:
        parts = [
            engine.create(
                f"{TABLE}_{number}",
                open_shape(engine, f"{TABLE}_file", shape, [file.path]).limit(limit),
            )
            for number, file in enumerate(chosen)
        ]
        table = engine.create(TABLE, ibis.union(*parts, distinct=False) if len(parts) > 1 else parts[0])
        counts = [int(part.count().execute()) for part in parts]
        columns = tuple(_columns(table))
    except (duckdb.Error, OSError, ValueError) as exc:
        raise CannotProfile(f"{chosen[0].path} cannot be read: {readable(exc)}") from None
    if sum(counts) == 0:
        raise CannotProfile(f"{chosen[0].path} holds no row; name a file that has some")
    complete = len(chosen) == len(files) and max(counts) < limit
    return Profile(settings, shape.kind, tuple(sound), sum(counts), columns, complete, tuple(notes))


def _shape(
    engine: Engine, settings: LogSettings, files: Sequence[LogFile]
) -> tuple[Shape, list[LogFile], list[str]]:
    """The shape that most of the looked-at files have, those files, and what is wrong with the others."""
    found: dict[Shape, list[LogFile]] = {}
    notes = []
    for file in _spread(files):
        try:
            shape = sniff(engine, f"{TABLE}_file", settings, file)
            why = unfinished(settings, file, datetime.now(UTC)) if shape.kind != "parquet" else None
            if not shape.columns:
                why = why or "it is empty"
        except Exception as exc:  # an engine's or a codec's, of any kind: the file is the user's
            why = readable(exc)
        if why is None:
            found.setdefault(shape, []).append(file)
        else:
            notes.append(f"{file.path}: {why}")
    if not found:
        raise CannotProfile(f"no file could be read; {notes[0]}")
    shape = max(found, key=lambda one: len(found[one]))
    others = [file.path for one, several in found.items() if one != shape for file in several]
    notes += [f"{path}: has other columns than {found[shape][0].path}" for path in others]
    looked_at = {file.path for file in _spread(files)}
    sound = [file for file in files if file in found[shape] or file.path not in looked_at]
    return shape, sound, notes


def _spread(files: Sequence[LogFile]) -> list[LogFile]:
    """A few files, the first and the last among them."""
    if len(files) <= SAMPLE_FILES:
        return list(files)
    last = len(files) - 1
    return [files[number * last // (SAMPLE_FILES - 1)] for number in range(SAMPLE_FILES)]


def _columns(table: ir.Table) -> Iterable[Column]:
    for name, dtype in table.schema().items():
        kind = dtype.value_type if dtype.is_array() else dtype
        if kind.is_nested() or kind.is_binary():
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
        dated = text.re_search(_DATE) & text.try_cast("timestamp").notnull()
        moments = number.isnull() & dated
    row = values.aggregate(
        present=text.count(),
        distinct=text.nunique(),
        numbers=number.count(),
        whole=(number == number.floor()).sum(),
        times=moments.sum(),
        offsets=text.re_search(_OFFSET).sum(),
        packed=text.re_search(_PACKED).sum(),
        lowest=number.min(),
        highest=number.max(),
    ).execute()
    one = row.fillna(0).iloc[0].to_dict()
    present = int(one["present"])
    has_offset = kind.is_timestamp() and kind.timezone is not None
    return Column(
        name=name,
        dtype=dtype,
        lists=lists,
        present=present,
        distinct=int(one["distinct"]),
        numbers=_share(one["numbers"], present),
        whole=_share(one["whole"], present),
        times=_share(one["times"], present),
        packed=_share(one["packed"], present),
        offsets=1.0 if has_offset else _share(one["offsets"], present),
        lowest=float(one["lowest"]) if one["numbers"] else None,
        highest=float(one["highest"]) if one["numbers"] else None,
    )


def _share(part: float, whole: int) -> float:
    return float(part) / whole if whole else 0.0
