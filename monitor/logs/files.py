"""One file of a log: its format, its first line, and whether it is complete."""

from __future__ import annotations

import codecs
import os
import stat
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.core import url_to_fs

from monitor.logs.limits import check_line, check_size
from monitor.settings.logs import LogSettings

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
ENDINGS: Final = tuple(
    ending + packed
    for ending, kind in _FORMATS.items()
    for packed in (("",) if kind == "parquet" else ("", *_COMPRESSIONS))
)
"""The ends of names of the files that can be read."""
_CHUNK = 1 << 20
NOT_UTF8: Final = "is not UTF-8 text; convert it, such as with `iconv -f LATIN1 -t UTF-8`"
UTF16: Final = "is UTF-16 text and not UTF-8; convert it, such as with `iconv -f UTF-16 -t UTF-8`"
ONE_OBJECT: Final = "write one object a line, as `jq -c` does"
STILL_WRITTEN: Final = "its last line has no end yet: still being written"
SETTLE_SECONDS: Final = 60
WHEN_READ: Final = f"it is read {SETTLE_SECONDS} s after its last change, or once its last line ends"


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What a table says about the columns of its files.

    Attributes:
        folders: the columns that only the folders of a file's path hold, with their types in SQL.
        ids: the table's columns with the ids that files repeat; empty if files have no ids.
        names: the name of each id, nested ones too.
        needed: the columns whose value is not null where a file lacks them, but known to the table alone.
        renamed: changes when a column is renamed or a name is used again; empty if neither ever happened.
    """

    folders: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    renamed: str = ""


@dataclass(frozen=True, slots=True, order=True)
class LogFile:
    """One file; `path` is what an engine can open (a local path or a URL).

    `columns` is what the table says that the file belongs to; None for a plain file.
    """

    path: str
    size: int
    modified: datetime
    columns: TableColumns | None = field(default=None, compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        return "://" not in self.path


def local_file(path: str) -> LogFile | None:
    """The file at a path or behind a link; None if there is none. Raises OSError."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return LogFile(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def modified(fs: fsspec.AbstractFileSystem, name: str, info: Mapping[str, Any]) -> datetime:
    """When a file was changed, by its entry in a listing of fsspec."""
    stamp = info.get("LastModified") or info.get("mtime") or info.get("last_modified") or info.get("updated")
    if isinstance(stamp, int | float):
        return datetime.fromtimestamp(stamp, UTC)
    if isinstance(stamp, datetime):
        return stamp.astimezone(UTC)
    moment: datetime = fs.modified(name)
    return moment.astimezone(UTC)


def format_of(path: str, settings: LogSettings) -> str:
    """`parquet`, `csv` or `json`, from the settings or from the name (before `.gz`).

    >>> format_of("log/2026-01-01.csv.gz", LogSettings(path="log/*"))
    'csv'
    """
    if settings.is_table:
        return "parquet"
    ending = Path(path).suffix
    if ending.lower() in _COMPRESSIONS and ending not in _COMPRESSIONS:  # an engine would not unpack it
        raise ValueError(f"its name ends in {ending}; rename it to end in {ending.lower()}, in small letters")
    if settings.format != "auto":
        return settings.format
    if (found := _named_format(path)) is not None:
        return found
    raise ValueError("the format is unknown from the name's ending; set format: parquet, csv or json")


def is_named(path: str) -> bool:
    """Whether the name of a file says its format.

    >>> is_named("log/2026-01-01.csv.gz"), is_named("README")
    (True, False)
    """
    return _named_format(path) is not None


def _named_format(path: str) -> str | None:
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    return next((kind for ending, kind in _FORMATS.items() if name.endswith(ending)), None)


def filesystem(settings: LogSettings, path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The fsspec filesystem of a path, and the path as it calls it."""
    if "://" not in path:
        return fsspec.filesystem("file"), str(Path(path).absolute())
    fs, inner = url_to_fs(path, use_listings_cache=False, **settings.storage_options.get_secret_value())
    return fs, str(inner)


def parquet_schema(settings: LogSettings, file: LogFile) -> pa.Schema:
    """The columns of a Parquet file as its footer has them."""
    with _opened(settings, file) as stream:
        return pq.read_schema(stream)


def first_bytes(settings: LogSettings, file: LogFile) -> bytes:
    """How a file begins, before any decompression."""
    with _opened(settings, file) as raw:
        return raw.read(16)


def first_line(settings: LogSettings, file: LogFile) -> str:
    """The header of a text file; raises ValueError if it cannot be unpacked, or is not UTF-8."""
    kind = _COMPRESSIONS.get(Path(file.path).suffix.lower())
    with _opened(settings, file) as raw:
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(raw), kind) if kind else raw
            line: bytes = stream.read(_CHUNK).split(b"\n", 1)[0]
        except (OSError, pa.ArrowException) as exc:
            if kind is None:
                raise
            raise ValueError(_not_valid(kind, exc)) from exc
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in line[:2]:
        raise ValueError(UTF16)
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as exc:
        raise ValueError(f"{NOT_UTF8}: line 1: {exc}") from exc


def _not_valid(kind: str, exc: Exception) -> str:
    return (
        f"is not a valid {kind} file: damaged, still being written, or not compressed at all; "
        f"write it again, or correct its name: {exc}"
    )


def unfinished(
    settings: LogSettings, file: LogFile, now: datetime, stop: Callable[[], bool] = lambda: False
) -> str | None:
    """Why a text file seems to be incomplete, or None.

    A compressed stream must reach its end: an engine reads a truncated one without an error. A plain file
    that changed within SETTLE_SECONDS must end with a line break.

    Args:
        settings: the limits, and how to open the file.
        file: the file.
        now: the time on the clock.
        stop: called for each chunk of a compressed file; TimeoutError is raised once it returns True.

    Raises:
        BeyondLimit: the content is larger than the settings allow.
    """
    if file.path.lower().endswith(".gz"):
        return _cut_gzip(settings, file, stop)
    if file.path.lower().endswith(".zst"):
        return _cut_zstd(settings, file, stop)
    if (now - file.modified).total_seconds() > SETTLE_SECONDS or file.size == 0:
        return None
    with _opened(settings, file) as stream:
        stream.seek(file.size - 1)
        last = stream.read(1)
    return None if last == b"\n" else STILL_WRITTEN


class _Content:
    """Counts the content of a compressed file, chunk by chunk; raises BeyondLimit if it is too large."""

    def __init__(self, settings: LogSettings, stop: Callable[[], bool]) -> None:
        self._settings, self._stop = settings, stop
        self._size = self._line = 0

    def add(self, chunk: bytes) -> None:
        if self._stop():
            raise TimeoutError
        self._size += len(chunk)
        end = chunk.rfind(b"\n")
        self._line = self._line + len(chunk) if end < 0 else len(chunk) - end - 1
        check_line(self._line)
        check_size(self._settings, self._size)


def _cut_gzip(settings: LogSettings, file: LogFile, stop: Callable[[], bool]) -> str | None:
    content = _Content(settings, stop)
    with _opened(settings, file) as stream:
        decoder = zlib.decompressobj(wbits=31)
        try:
            while data := stream.read(_CHUNK):
                while data:
                    # Bounded, so that a tiny file cannot fill the memory.
                    content.add(decoder.decompress(data, _CHUNK))
                    data = decoder.unconsumed_tail
                    if decoder.eof and decoder.unused_data:  # a gzip file may be several streams in a row
                        data = decoder.unused_data
                        decoder = zlib.decompressobj(wbits=31)
        except zlib.error as exc:
            return _not_valid("gzip", exc)
    if decoder.eof:
        return None
    return "the gzip stream is cut short: still being written, or truncated; if it stays so, write it again"


def _cut_zstd(settings: LogSettings, file: LogFile, stop: Callable[[], bool]) -> str | None:
    content = _Content(settings, stop)
    with _opened(settings, file) as raw:
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(raw), "zstd")
            while chunk := stream.read(_CHUNK):
                content.add(chunk)
        except TimeoutError:
            raise
        except (OSError, pa.ArrowException) as exc:
            return _not_valid("zstd", exc)
    return None


def _opened(settings: LogSettings, file: LogFile) -> AbstractContextManager[BinaryIO]:
    if file.is_local:  # fsspec would take `::` in a name for a chain of URLs
        return open(file.path, "rb")
    options = settings.storage_options.get_secret_value()
    return cast(AbstractContextManager[BinaryIO], fsspec.open(file.path, "rb", **options))
