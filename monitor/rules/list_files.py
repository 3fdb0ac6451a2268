"""Lists of ids in files, such as blacklists, which may change while the monitor runs.

A list is a file, never part of a suite: a hundred thousand ids inside a suite cost eleven seconds of
Python a run. The file is hashed and parsed from the same bytes, so the evidence names the version that was
used.
"""

from __future__ import annotations

import csv
import io
import os
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from monitor.core.columns import ITEM_ID
from monitor.core.digest import digest
from monitor.core.text import NAME_LENGTH, visible

FORMATS = (".csv", ".txt", ".parquet")
_NAME_IT = "set the pack's parameter blacklist_column, or list_column in your own suite"
_KEPT = 32  # contents kept in memory; a monitor has a handful of lists
_KEPT_VERSIONS = 2  # of one list: a window that is being judged may use the one before
_SIGNED_LIMIT = 2**63
_WHOLE = range(-_SIGNED_LIMIT, 2**64)  # what a signed or an unsigned column of 64 bits can hold
_WHOLE_TYPE = pa.decimal128(20, 0)  # holds all of them


class ListFileError(ValueError):
    """A list file is missing, unreadable, or not in one of the forms below."""


@dataclass(frozen=True)
class ListContent:
    """The ids of one version of a list file.

    `version` is the first 12 hexadecimal digits of the SHA-256 of the file's bytes and of the column's
    name. `values` are distinct, in the file's order, and strings whatever the file held; an id with blanks
    around it is there with and without them.
    """

    path: str
    column: str
    version: str
    values: tuple[str, ...]

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """The ids that are whole numbers of 64 bits, signed or unsigned: integer columns hold no others."""
        return tuple(dict.fromkeys(number for text in self.values if (number := _integer(text)) is not None))

    def bans_a_number(self, signed: bool) -> bool:
        """Whether a column of numbers, of at most 64 bits with a sign if `signed`, can hold an id."""
        return any(not signed or number < _SIGNED_LIMIT for number in self.integers)

    def arrow(self, as_integers: bool) -> pa.Table:
        """One column `value`: whole numbers, wide enough for every id, or strings."""
        if as_integers:
            wide = any(number >= _SIGNED_LIMIT for number in self.integers)
            return pa.table({"value": pa.array(self.integers, _WHOLE_TYPE if wide else pa.int64())})
        return pa.table({"value": pa.array(self.values, pa.string())})


class ListFiles:
    """Reads list files, and reads a file again only when it has changed.

    A version stays in memory for a while, so that a rule's count and its evidence use the same content even
    if the file is replaced in between.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._newest: dict[tuple[str, str], tuple[tuple[int, ...], str]] = {}
        self._contents: OrderedDict[tuple[str, str, str], ListContent] = OrderedDict()

    def read(
        self,
        path: str | Path,
        column: str = ITEM_ID,
        version: str | None = None,
        *,
        allow_empty: bool = False,
    ) -> ListContent:
        """The file's present content, or that of a version which is still in memory.

        An empty list bans nothing. It is more often a failed export, or a file that is just being written,
        than a list that is meant to be empty. So the config must allow it.

        Args:
            path: a `.csv` with a header line (the ids are in `column`), a `.txt` with one id a line and
                no header, or a `.parquet` (the ids are in `column`, or in its only column).
            column: the column that holds the ids; not used for `.txt`.
            version: the version to read; the present one if it is None or no longer in memory.
            allow_empty: whether a list without ids is accepted. A blank id does not count, and neither does
                a line that begins with `#` if all lines do.

        Raises:
            ListFileError: the file cannot be read, is not understood, or holds no id.
        """
        path = str(path)
        with self._lock:
            content = self._contents.get((path, column, version or ""))
        content = content or self._present(path, column)
        if not allow_empty and all(value.lstrip().startswith("#") for value in content.values):
            raise ListFileError(
                f"the list file {path} is empty: it holds no id. If this is intended, set allow_empty: true"
            )
        return content

    def _present(self, path: str, column: str) -> ListContent:
        if "\0" in path:
            raise ListFileError(f"the list file {path!r} cannot be read: no file has such a name")
        try:
            stat = os.stat(path)
            stamp = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
            with self._lock:
                newest_stamp, version = self._newest.get((path, column), ((), ""))
                content = self._contents.get((path, column, version))
            if newest_stamp == stamp and content is not None:
                return content
            data = Path(path).read_bytes()
        except OSError as error:
            raise ListFileError(f"the list file {path} cannot be read: {error.strerror}") from error
        version = digest(column.encode() + b"\0" + data, 12)
        content = ListContent(path, column, version, _parse(path, column, data))
        with self._lock:
            self._newest[(path, column)] = (stamp, version)
            self._contents[(path, column, version)] = content
            self._contents.move_to_end((path, column, version))
            versions = [key for key in self._contents if key[:2] == (path, column)]
            for key in versions[:-_KEPT_VERSIONS]:
                del self._contents[key]
            while len(self._contents) > _KEPT:
                self._contents.popitem(last=False)
        return content


FILES = ListFiles()
"""Shared by all expectations: GX makes their classes, so it cannot be passed to them."""


def _parse(path: str, column: str, data: bytes) -> tuple[str, ...]:
    suffix = Path(path).suffix.lower()
    try:
        if suffix == ".parquet":
            values = _parquet(path, column, data)
        elif suffix == ".csv":
            values = _csv(path, column, data.decode("utf-8-sig"))
        elif suffix == ".txt":
            values = [line.rstrip("\r") for line in data.decode("utf-8-sig").split("\n")]
        else:
            raise ListFileError(
                f"the list file {path} has an unknown format; use one of {', '.join(FORMATS)}"
            )
    except UnicodeDecodeError as error:
        raise ListFileError(f"the list file {path} is not UTF-8 text (byte {error.start})") from error
    except (pa.ArrowException, OSError, csv.Error) as error:  # Arrow says OSError of a broken footer
        raise ListFileError(f"the list file {path} cannot be read as {suffix[1:]}: {error}") from error
    # A blank at the end of a line is invisible, and it must not lift the ban.
    forms = (form for value in values if value.strip() for form in (value, value.strip()))
    return tuple(dict.fromkeys(forms))


def _csv(path: str, column: str, text: str) -> list[str]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(rows, [])
    if column not in header:
        found = ", ".join(visible(name, NAME_LENGTH) for name in header[:5]) or "nothing"
        raise ListFileError(
            f"the list file {path} has no column {column!r} (its first line holds: {found}); {_NAME_IT}, "
            "or use a .txt with one id a line"
        )
    place = header.index(column)
    return [row[place] for row in rows if len(row) > place]


def _parquet(path: str, column: str, data: bytes) -> list[str]:
    table = pq.read_table(pa.BufferReader(data))
    if column not in table.column_names:
        if table.num_columns != 1:
            raise ListFileError(f"the list file {path} has no column {column!r}; {_NAME_IT}")
        column = table.column_names[0]
    ids = table.column(column).drop_null()
    if pa.types.is_nested(ids.type):
        raise ListFileError(
            f"the list file {path} holds no ids in its column {column!r} but values of the type {ids.type}; "
            "write one id a row"
        )
    return [_text(value) for value in ids.to_pylist() if value == value]  # noqa: PLR0124 - NaN is no id


def _text(value: object) -> str:
    """An id as text: a whole number with gaps, as pandas writes it, and bytes, as Hive writes text, too."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _integer(text: str) -> int | None:
    whole, dot, fraction = text.partition(".")
    try:
        number = int(whole if dot and fraction and not fraction.strip("0") else text)
    except ValueError:
        return None
    return number if number in _WHOLE and text.strip() == text and "_" not in text else None
