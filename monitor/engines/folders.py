"""Columns that the folders of a path hold, as in `scene=home/day=2026-03-01/part-0.parquet`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Final
from urllib.parse import unquote

import ibis.expr.datatypes as dt

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""What writers put into a folder's name in place of a null."""
Folders = Mapping[str, dt.DataType]
"""The columns to take from the folders of paths, with their types."""
NO_FOLDERS: Final[Folders] = {}
_FOLDER = re.compile(r"(?:^|(?<=/))([^/=?]+)=([^/?]*)(?=/)")
_WHOLE, _DATE = re.compile(r"-?\d{1,18}"), re.compile(r"\d{4}-\d{2}-\d{2}")


def folder_values(path: str) -> dict[str, str | None]:
    """The column of each folder named `key=value` of a path; of two with one name, the upper one counts.

    >>> folder_values("/log/scene=a%20b/day=__HIVE_DEFAULT_PARTITION__/a=b.csv")
    {'scene': 'a b', 'day': None}
    """
    found: dict[str, str | None] = {}
    for key, text in _FOLDER.findall(path):
        found.setdefault(key, None if text == NO_VALUE else unquote(text))
    return found


def folder_kind(text: str | None) -> dt.DataType:
    """The type of a folder's value: a date or a whole number if it is written as one, else text.

    The hours 07 and 10 are both numbers, so that a column has one type in all folders.

    >>> [str(folder_kind(one)) for one in ("2026-03-01", "7", "07", "2026-13-01")]
    ['date', 'int64', 'int64', 'string']
    """
    if text is not None and _WHOLE.fullmatch(text):
        return dt.int64
    if text is not None and _DATE.fullmatch(text):
        try:
            date.fromisoformat(text)
        except ValueError:
            return dt.string
        return dt.date
    return dt.string
