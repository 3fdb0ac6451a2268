"""Detects the format of a file by its content, for files whose names do not show it."""

from __future__ import annotations

import csv
import re
from typing import Final

from monitor.core.text import NAME_LENGTH, quoted
from monitor.logs.files import LogFile, first_bytes, first_line, format_of
from monitor.settings.logs import LogSettings

_UNREAD: Final = (
    (b"BZh", "is compressed with bzip2, which is not supported; compress it with gzip (.gz) or zstd (.zst)"),
    (
        b"\xfd7zXZ",
        "is compressed with xz, which is not supported; compress it with gzip (.gz) or zstd (.zst)",
    ),
    (b"\x1f\x8b", "is compressed with gzip, but its name does not end in .gz; rename the file"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd, but its name does not end in .zst; rename the file"),
    (b"PK\x03\x04", "is a zip archive or an Excel file, which is not supported; write it as CSV or Parquet"),
    (b"ORC", "is an ORC file, which is not supported; write it as Parquet"),
    (b"Obj\x01", "is an Avro file, which is not supported; write it as Parquet"),
    (b"SQLite", "is an SQLite database, which is not supported; export the table as CSV or Parquet"),
)
_ENDINGS: Final = {"gzip": ".gz", "zstd": ".zst"}
_VALUE: Final = re.compile(r"\s*(-?\d+\.\d+|\d{6,}|\d{4}-\d{1,2}-\d{1,2}.*)\s*")


def format_by_content(settings: LogSettings, file: LogFile) -> str:
    """`parquet`, `csv` or `json`, by the first bytes of the file.

    Raises:
        ValueError: it has another format; the message says what to do.
    """
    start = first_bytes(settings, file)
    if start.startswith(b"PAR1"):
        return "parquet"
    packed = file.path.lower().endswith(tuple(_ENDINGS.values()))
    for magic, why in _UNREAD:
        if start.startswith(magic) and not (packed and why.endswith(tuple(_ENDINGS.values()))):
            raise ValueError(why)
    line = first_line(settings, file).strip()
    if line.startswith("{"):
        return "json"
    if line.startswith("["):
        raise ValueError("holds one JSON array; write one JSON object per line")
    if "::" in line:
        raise ValueError("separates its columns by '::', which is not supported; use commas or tabs")
    if any(mark in line for mark in ",\t;|"):
        return "csv"
    raise ValueError("does not look like Parquet, CSV or JSON lines (judged by its first line)")


def named_format(settings: LogSettings, file: LogFile) -> str | None:
    """The format by the settings or by the file's name; None if neither shows it."""
    try:
        return format_of(file.path, settings)
    except ValueError:
        return None


def no_header(settings: LogSettings, file: LogFile) -> str | None:
    """Why line 1 of a CSV file cannot be its header, or None.

    Names of columns are no fractions, no long numbers and no dates.
    """
    line = first_line(settings, file)
    names = next(csv.reader([line], delimiter=max(",\t;|", key=line.count)), [])
    values = [name for name in names if _VALUE.fullmatch(name)]
    if not values:
        return None
    shown = quoted(values[0].strip(), NAME_LENGTH)
    return f"line 1 holds values instead of column names ({shown}); add a header line"
