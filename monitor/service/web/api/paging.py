"""Pages of rows. A cursor is the key of the last row, so a row that comes or goes moves no other row."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from monitor.core.text import encodable
from monitor.service.web.api.answers import PageOf
from monitor.service.web.api.parameters import Paging
from monitor.service.web.api.refusal import Refusal, wrong_parameter

KeyPart = str | int
Key = tuple[KeyPart, ...]
Row = TypeVar("Row")
Shown = TypeVar("Shown")
_LARGEST: Final = 2**62  # what a database takes as a number


def page_of(
    rows: Iterable[Row],
    asked: Paging,
    key: Callable[[Row], Key],
    shown: Callable[[Row], Shown],
    *,
    newest_first: bool = False,
) -> PageOf[Shown]:
    """The page that is asked for, of all rows in memory.

    Args:
        rows: all rows in any order.
        asked: the limit and the cursor.
        key: of a row: no two have the same, and all have parts of the same types.
        shown: the answer for a row.
        newest_first: the largest key comes first.
    """
    ordered = sorted(((key(row), row) for row in rows), key=lambda one: one[0], reverse=newest_first)
    if asked.cursor is not None and ordered:
        last = read_cursor(asked.cursor, [type(part) for part in ordered[0][0]])
        ordered = [one for one in ordered if (one[0] < last if newest_first else one[0] > last)]
    page = ordered[: asked.limit]
    return PageOf(
        data=[shown(row) for _, row in page],
        next_cursor=cursor_of(page[-1][0]) if len(ordered) > len(page) else None,
    )


def cursor_of(key: Key) -> str:
    """The cursor after the row with this key.

    >>> read_cursor(cursor_of(("rules", 7)), [str, int])
    ('rules', 7)
    """
    return base64.urlsafe_b64encode(json.dumps(key).encode("ascii")).decode("ascii").rstrip("=")


def read_cursor(cursor: str, types: Sequence[type]) -> Key:
    """The key in a cursor; Refusal if it is not one of this address."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, ValueError, RecursionError):
        key = None
    fits = isinstance(key, list) and [type(part) for part in key] == list(types)
    if not fits or not all(map(_is_possible, key)):
        raise wrong_cursor()
    return tuple(key)


def wrong_cursor() -> Refusal:
    """The refusal of a cursor that is none of the address."""
    expected = "the `next_cursor` of a page of this address"
    return wrong_parameter("cursor", f"This cursor is not of this address; expected is {expected}.", expected)


def _is_possible(part: object) -> bool:
    """Whether the database can take a part of a key: numbers within bounds, texts in Unicode."""
    return abs(part) <= _LARGEST if isinstance(part, int) else str(part) == encodable(str(part))
