"""Columns that two logs would be joined by, although they have no value in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ibis.expr.types as ir

from monitor.config.init.shared_ids import Joins, Side
from monitor.core import columns as c
from monitor.core.text import visible

_ALIKE = 0.5  # of the shorter column's values, once both are written alike
_SHOWN = 30


@dataclass(frozen=True, slots=True)
class EmptyJoin:
    """The column of a role in a log, none of whose values the exposures' column of that role has."""

    role: str
    column: str
    theirs: str
    why: str

    def __str__(self) -> str:
        names = [repr(visible(name, _SHOWN)) for name in (self.column, self.theirs)]
        return f"no id of its {names[0]} is in {names[1]} of the exposures: {self.why}"


def empty_joins(joins: Joins, roles: Sequence[str], mine: Side, theirs: Side) -> tuple[EmptyJoin, ...]:
    """The joins by these roles that are certainly empty.

    Two samples without a common value may be of two logs that join. So they count only if one way of
    writing the ids explains why they differ.

    Args:
        joins: what compares the values.
        roles: the roles to look at.
        mine: the exposures.
        theirs: the log beside them.
    """
    found = []
    complete = mine.profile.complete and theirs.profile.complete
    for role in roles:
        one, other = mine.column(role), theirs.column(role)
        if one is None or other is None:
            continue
        seen = joins.shared(mine.profile, one, theirs.profile, other)
        if seen.common or not seen.left or not seen.right:
            continue
        shown, there = joins.values(mine.profile, one), joins.values(theirs.profile, other)
        difference = _difference(shown, there)
        if not complete and difference is None:
            continue
        examples = f"{_example(there, shown, difference)} here, {_example(shown, there, difference)} there"
        why = examples if difference is None else f"they differ in {difference} ({examples})"
        found.append(EmptyJoin(role, other, one, why))
    return tuple(found)


def joins_nothing(log: str, mine: Side, theirs: Side, empty: Sequence[EmptyJoin]) -> EmptyJoin | None:
    """The empty join for which no row of a log finds its exposure, item or user; None if rows can."""
    lost = {one.role: one for one in empty}
    if log != c.FEEDBACK:
        return next(iter(lost.values()), None)
    if c.ITEM_ID in lost or c.USER_ID not in lost:
        return lost.get(c.ITEM_ID)
    request = mine.column(c.REQUEST_ID) and theirs.column(c.REQUEST_ID)
    return None if request and c.REQUEST_ID not in lost else lost[c.USER_ID]


def _difference(one: ir.Table, other: ir.Table) -> str | None:
    """What makes most values of two columns differ, if it is how they are written."""
    for what, key in _WRITINGS.items():
        left, right = (table.select(v=key(table.v)).distinct() for table in (one, other))
        common = int(left.semi_join(right, "v").count().execute())
        fewer = min(int(left.count().execute()), int(right.count().execute()))
        if common >= _ALIKE * fewer:
            return what
    return None


def _without_zeros(text: ir.StringValue) -> ir.Value:
    return text.re_replace(r"^0+([0-9])", r"\1")


def _folded(text: ir.StringValue) -> ir.Value:
    return text.strip().lower()


_WRITINGS = {"leading zeros": _without_zeros, "case or blanks": _folded}


def _example(values: ir.Table, others: ir.Table, difference: str | None) -> str:
    """A value, one that the other column has in another writing if there is such a difference."""
    if difference is not None:
        key = _WRITINGS[difference]
        values = values.mutate(k=key(values.v)).semi_join(others.select(k=key(others.v)), "k")
        values = values.order_by("k", "v")
    else:
        values = values.order_by("v")
    return repr(visible(str(values.limit(1).execute()["v"].iloc[0]), _SHOWN))
