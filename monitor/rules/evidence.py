"""Evidence of a violation: a few rows, with values that can be stored and shown anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monitor.core.columns import ITEM_ID, POSITION, REQUEST_ID, SCORE, TS, USER_ID
from monitor.core.digest import digest
from monitor.core.json_value import json_value
from monitor.core.text import EVIDENCE_LENGTH
from monitor.rules.list_tables import AHEAD_SECONDS, WRITTEN_AT
from monitor.rules.rule import LoadedRule

MAX_COLUMNS = 16  # of a row that a rule's own query gives
_ALWAYS = (REQUEST_ID, USER_ID, ITEM_ID, TS, POSITION, SCORE, AHEAD_SECONDS, WRITTEN_AT)
_OF_USERS = re.compile(rf"(?i){USER_ID}(_\d+)*")
"""DuckDB numbers columns of the same name, as in a query that joins the rows with themselves: `user_id_1`."""
_ORDER = (TS, REQUEST_ID, USER_ID, ITEM_ID, POSITION)


def columns_of(rule: LoadedRule, present: Iterable[str]) -> list[str]:
    """The columns to show: who was shown what and when, then the columns that the rule mentions."""
    present = list(present)
    shown = [name for name in _ALWAYS if name in present]
    return shown + [name for name in present if name not in shown and rule.mentions(name)]


def order_of(present: Iterable[str]) -> list[str]:
    """The columns to sort by, so that the same window gives the same evidence."""
    present = set(present)
    return [name for name in _ORDER if name in present]


def readable_rows(
    rows: Sequence[Mapping[str, Any]], *, salt: str | None, extra: Mapping[str, Any] | None = None
) -> tuple[Mapping[str, Any], ...]:
    """The rows with values that JSON can hold; user ids hashed with the salt unless it is None.

    >>> readable_rows([{"user_id": "u1", "note": "b"}], salt="s")
    ({'user_id': 'e500bb1b574a', 'note': 'b'},)
    """
    return tuple(
        {
            **{
                name: _hashed(value, salt)
                if salt is not None and _OF_USERS.fullmatch(name)
                else json_value(value, longest=EVIDENCE_LENGTH, depth=0)
                for name, value in list(row.items())[:MAX_COLUMNS]
            },
            **(extra or {}),
        }
        for row in rows
    )


def _hashed(user: Any, salt: str) -> str | None:
    if user is None:
        return None
    return digest(f"{salt}\0{user}".encode("utf-8", "replace"), 12)
