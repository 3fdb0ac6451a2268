"""The grammar of a path to values inside records: `ab.exp`, `recs[].iid`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.core.text import quoted

_PLACE_IN_LIST = re.compile(r"\[(-?\d+|-?\d*:-?\d*|\*)\]")
LIST = "[]"


@dataclass(frozen=True, slots=True)
class Path:
    """The fields from a file's column down to a value.

    Attributes:
        fields: the column, then one field for each record on the way.
        list_at: how many of the fields lead to the list whose records are walked, None without a list.
    """

    fields: tuple[str, ...]
    list_at: int | None = None

    def __str__(self) -> str:
        parts = (f"{one}{LIST}" if n == self.list_at else one for n, one in enumerate(self.fields, start=1))
        return ".".join(parts)

    @property
    def list_name(self) -> str | None:
        """The list that is walked, as a path.

        >>> parse("a.recs[].iid").list_name
        'a.recs'
        """
        return None if self.list_at is None else ".".join(self.fields[: self.list_at])


def is_path(text: str) -> bool:
    """Whether a name can be read as a path; a file's column of that very name still wins.

    >>> [is_path(one) for one in ("item", "ab.exp", "recs[].iid", "No.", "price [EUR]")]
    [False, True, True, False, False]
    """
    return (LIST in text or "." in text) and problem(text) is None and "" not in text.split(".")


def parse(text: str) -> Path:
    """The path that a text is; a plain name is a path of one field.

    >>> parse("recs[].meta.iid")
    Path(fields=('recs', 'meta', 'iid'), list_at=1)
    """
    if not is_path(text):
        return Path((text,))
    parts = text.split(".")
    lists = [number for number, one in enumerate(parts, start=1) if one.endswith(LIST)]
    return Path(tuple(one.removesuffix(LIST) for one in parts), lists[0] if lists else None)


def problem(text: str) -> str | None:
    """Why a text is neither a plain name nor a path, and what to write instead.

    >>> problem("recs[0].iid")
    "'recs[0].iid' picks one place of a list; write [] for all its records, as in recs[].iid"
    >>> problem("recs[1:].iid") == problem("recs[0].iid").replace("[0]", "[1:]")
    True
    >>> problem("recs[].iid")
    """
    shown = quoted(text)
    if _PLACE_IN_LIST.search(text):
        return f"{shown} picks one place of a list; write [] for all its records, as in recs[].iid"
    if ".." in text:
        return f"{shown} has two dots in a row; write a path as ab.exp or recs[].iid"
    if LIST not in text:
        return None
    parts = text.split(".")
    if any(LIST in one and (one.count(LIST) > 1 or not one.endswith(LIST) or one == LIST) for one in parts):
        return f"{shown} is not a path: write [] after the name of a list and before a dot, as in recs[].iid"
    if parts[-1].endswith(LIST):
        plain = text.removesuffix(LIST)
        return (
            f"{shown} names no field: write {plain} for a list of plain values, "
            f"or {plain}[].FIELD for a list of records"
        )
    if sum(one.endswith(LIST) for one in parts) > 1:
        return (
            f"{shown} goes through a list inside a list, but a path may have only one []: write one row for "
            "each outer record"
        )
    if "" in parts:
        return f"{shown} has a dot without a name on both sides; write a path as ab.exp or recs[].iid"
    return None
