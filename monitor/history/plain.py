"""Values of a log as plain JSON, bounded: what evidence is kept and printed as."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

from monitor.core.text import STORED_LENGTH, cut

LONGEST_LIST: Final = 50
_DEEPEST: Final = 5


def iso(moment: datetime) -> str:
    """A time in ISO 8601 with Z.

    >>> iso(datetime(2026, 1, 1, 10, tzinfo=UTC)), iso(datetime(2026, 1, 1, 10, 0, 0, 500000, tzinfo=UTC))
    ('2026-01-01T10:00:00Z', '2026-01-01T10:00:00.500000Z')
    """
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def plain(value: Any, _depth: int = 0) -> Any:  # noqa: PLR0912
    """The value as JSON can say it; long texts and lists are cut, since evidence is to be read by a person.

    >>> plain({"score": float("nan"), "ts": datetime(2026, 1, 1), "ids": (1, "a")})
    {'score': 'nan', 'ts': '2026-01-01T00:00:00Z', 'ids': [1, 'a']}
    """
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a numpy scalar
        value = value.item()
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) < 2**63 else _text(str(value))
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return _text(value)
        case datetime():  # a time without a zone is UTC everywhere in the monitor
            return iso(value if value.tzinfo else value.replace(tzinfo=UTC)) if value == value else None  # noqa: PLR0124
        case date() | time():
            return value.isoformat()
        case Decimal():
            return _text(str(value))
        case bytes():
            return _text(value[:STORED_LENGTH].decode("utf-8", "backslashreplace"))
        case _ if _depth >= _DEEPEST:
            return _text(str(type(value).__name__))
        case Mapping():
            return {_text(str(key)): plain(inner, _depth + 1) for key, inner in _first(value.items())}
        case _ if isinstance(value, Iterable):
            return [plain(inner, _depth + 1) for inner in _first(value)]
        case _:
            return _text(str(value))


def _first(values: Iterable[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if len(kept) == LONGEST_LIST:
            break
        kept.append(value)
    return kept


def _text(value: str) -> str:
    return cut(value, STORED_LENGTH, "…")
