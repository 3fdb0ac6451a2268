"""The files of a log as they lie now: what matches the globs, with size and time of change."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import fsspec
import pyarrow as pa
from fsspec.core import url_to_fs

from monitor.logs.settings import LogSettings

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_CHUNK = 1 << 20
STILL_WRITTEN: Final = "its last line has no end yet: still being written"


@dataclass(frozen=True, slots=True, order=True)
class LogFile:
    """One file; `path` is what an engine can open (a local path or a URL)."""

    path: str
    size: int
    modified: datetime

    @property
    def is_local(self) -> bool:
        return "://" not in self.path


class LogListingError(Exception):
    """The place where a log should lie cannot be listed at all."""


def format_of(path: str, settings: LogSettings) -> str:
    """`parquet`, `csv` or `json`, from the settings or from the name (before `.gz`).

    >>> format_of("log/2026-01-01.csv.gz", LogSettings(path="log/*"))
    'csv'
    """
    if settings.format != "auto":
        return settings.format
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    for ending, name_of_format in _FORMATS.items():
        if name.endswith(ending):
            return name_of_format
    raise ValueError("the name's ending tells no format; set format: parquet, csv or json")


def filesystem(settings: LogSettings, path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The fsspec filesystem of a path, and the path as it calls it."""
    if "://" not in path:
        return fsspec.filesystem("file"), str(Path(path).absolute())
    fs, inner = url_to_fs(path, use_listings_cache=False, **settings.storage_options.get_secret_value())
    return fs, str(inner)


def list_files(settings: LogSettings) -> list[LogFile]:
    """Every file that matches the globs, in the order of their names.

    Names that start with a dot or an underscore, or end in `.tmp` or `.part`, are taken to be in the
    making, as writers that rename a finished file into place call them so.
    """
    found: dict[str, LogFile] = {}
    for pattern in settings.paths:
        fs, inner = filesystem(settings, pattern)
        try:
            matches: Mapping[str, Mapping[str, Any]] = fs.glob(inner, detail=True)
        except Exception as exc:
            raise LogListingError(f"{pattern}: cannot be listed: {exc}") from exc
        for name, info in matches.items():
            base = name.rsplit("/", 1)[-1]
            if base[:1] in "._" or base.endswith((".tmp", ".part")):
                continue
            if file := _local(name) if "://" not in pattern else _remote(fs, name, info):
                found[file.path] = file
    return sorted(found.values())


def _local(path: str) -> LogFile | None:
    """The file, or what a link leads to; None where it is none, or has gone since it was listed."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return LogFile(path, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


def _remote(fs: fsspec.AbstractFileSystem, name: str, info: Mapping[str, Any]) -> LogFile | None:
    if info.get("type") != "file":
        return None
    return LogFile(fs.unstrip_protocol(name), int(info.get("size") or 0), _modified(fs, name, info))


def _modified(fs: fsspec.AbstractFileSystem, name: str, info: Mapping[str, Any]) -> datetime:
    stamp = info.get("LastModified") or info.get("mtime") or info.get("last_modified") or info.get("updated")
    if isinstance(stamp, int | float):
        return datetime.fromtimestamp(stamp, UTC)
    if isinstance(stamp, datetime):
        return stamp.astimezone(UTC)
    moment: datetime = fs.modified(name)
    return moment.astimezone(UTC)


def first_line(settings: LogSettings, file: LogFile, limit: int = 1 << 20) -> str:
    """The header of a text file; raises ValueError when it is not UTF-8."""
    with _opened(settings, file) as raw:
        kind = _COMPRESSIONS.get(Path(file.path).suffix.lower())
        stream = pa.CompressedInputStream(pa.PythonFile(raw), kind) if kind else raw
        line: bytes = stream.read(limit).split(b"\n", 1)[0]
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as exc:
        raise ValueError(f"line 1 is not UTF-8: {exc}") from exc


def unfinished(settings: LogSettings, file: LogFile, now: datetime, settle_seconds: float = 60) -> str | None:
    """Why a text file seems to be still in the making, or None.

    A compressed stream must reach its end (an engine reads a cut one without complaint). A plain
    file that was touched just now must end with a line break.
    """
    if file.path.lower().endswith(".gz"):
        return _cut_gzip(settings, file)
    if file.path.lower().endswith(".zst"):
        return _cut_zstd(settings, file)
    if (now - file.modified).total_seconds() > settle_seconds or file.size == 0:
        return None
    with _opened(settings, file) as stream:
        stream.seek(file.size - 1)
        last = stream.read(1)
    return None if last == b"\n" else STILL_WRITTEN


def _cut_gzip(settings: LogSettings, file: LogFile) -> str | None:
    with _opened(settings, file) as stream:
        decoder = zlib.decompressobj(wbits=31)
        try:
            while data := stream.read(_CHUNK):
                while data:
                    decoder.decompress(data, _CHUNK)  # bounded, so that a tiny file cannot fill the memory
                    data = decoder.unconsumed_tail
                    if decoder.eof and decoder.unused_data:  # a gzip file may be several streams in a row
                        data = decoder.unused_data
                        decoder = zlib.decompressobj(wbits=31)
        except zlib.error as exc:
            return f"is not a sound gzip file: {exc}"
    return None if decoder.eof else "the gzip stream is cut short: truncated or still being written"


def _cut_zstd(settings: LogSettings, file: LogFile) -> str | None:
    with _opened(settings, file) as raw:
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(raw), "zstd")
            while stream.read(_CHUNK):
                pass
        except (OSError, pa.ArrowException) as exc:
            return f"is not a sound zstd file, or is still being written: {exc}"
    return None


def _opened(settings: LogSettings, file: LogFile) -> AbstractContextManager[BinaryIO]:
    if file.is_local:  # fsspec would take `::` in a name for a chain of URLs
        return open(file.path, "rb")
    options = settings.storage_options.get_secret_value()
    return cast(AbstractContextManager[BinaryIO], fsspec.open(file.path, "rb", **options))
