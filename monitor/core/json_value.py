"""Values of a log as JSON, bounded in length and depth: how evidence is stored, printed and shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from monitor.core.text import STORED_LENGTH, encodable, fit

_LONGEST_LIST: Final = 50


def iso(moment: datetime) -> str:
    """A time in ISO 8601 with Z. A time without a zone is UTC, as everywhere in the monitor.

    >>> iso(datetime(2026, 1, 1, 10)), iso(datetime(2026, 1, 1, 10, 0, 0, 500000, tzinfo=UTC))
    ('2026-01-01T10:00:00Z', '2026-01-01T10:00:00.500000Z')
    """
    utc = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return utc.isoformat() + "Z"


def json_value(value: Any, *, longest: int = STORED_LENGTH, depth: int = 5) -> Any:
    """The value as JSON can hold it. A person reads it, so long texts and lists are cut.

    NaN and infinity become words, and whatever JSON has no type for becomes text.

    Args:
        value: any value of a row, or a whole row.
        longest: the most characters of a text.
        depth: how many levels of mappings and lists are kept; the levels below become text.

    >>> json_value({"score": float("nan"), "ts": datetime(2026, 1, 1), "ids": (1, "a")})
    {'score': 'NaN', 'ts': '2026-01-01T00:00:00Z', 'ids': [1, 'a']}
    >>> json_value(["a", "b"], depth=0), len(json_value("x" * 5000, longest=200))
    ("['a', 'b']", 200)
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a numpy scalar
        value = value.item()
    match value:
        case None | bool():
            return value
        case int() if abs(value) < 2**63:
            return value
        case float() | Decimal():
            return _number(float(value))
        case datetime():
            return iso(value) if value == value else None  # noqa: PLR0124 - NaT is not equal to itself
        case date() | time():
            return value.isoformat()
        case bytes():
            return fit(value[:longest].decode("utf-8", "backslashreplace"), longest)
        case Mapping() if depth > 0:
            return {
                _text(key, longest): json_value(inner, longest=longest, depth=depth - 1)
                for key, inner in islice(value.items(), _LONGEST_LIST)
            }
        case Iterable() if depth > 0 and not isinstance(value, str):
            return [
                json_value(inner, longest=longest, depth=depth - 1) for inner in islice(value, _LONGEST_LIST)
            ]
        case _:
            return _text(value, longest)


def _text(value: object, longest: int) -> str:
    return fit(encodable(str(value)), longest)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
