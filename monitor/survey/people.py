"""The users whom a survey could reach: who was served, who was asked, and the groups that they are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import QUESTION, USER_ID
from monitor.survey.answers import VALUE
from monitor.window.slices import text_of, value_names

ACTIVITY: Final = "activity"
SEVERAL: Final = "(several)"
_NO: Final = ("false", "f", "0", "0.0", "no", "n")
_CLASSES: Final = 10


def served(lists: ir.Table) -> ir.Table:
    """One row a user with a list: how many lists, as `activity`."""
    rows = lists.filter(lists[USER_ID].notnull())
    return rows.aggregate(by=USER_ID, **{ACTIVITY: rows.count()})


def marked(rows: ir.Table, column: str) -> ir.Table:
    """The users with a row whose column says yes: any value but empty, false, no and 0."""
    text = text_of(rows[column]).strip().lower()
    yes = text.notnull() & ~text.isin(_NO).fill_null(False)
    return rows.filter(rows[USER_ID].notnull(), yes).select(USER_ID).distinct()


def value_of_each(rows: ir.Table, column: str) -> ir.Table:
    """One row a user: the value of a column in all of their rows; SEVERAL if it differs, null if it is null.

    Rows in which it is null do not count beside others.
    """
    rows = rows.filter(rows[USER_ID].notnull())
    text = text_of(rows[column])
    found = rows.mutate(own=ibis.ifelse(text == SEVERAL, f'"{SEVERAL}"', text))
    found = found.aggregate(by=USER_ID, low=found.own.min(), high=found.own.max())
    return found.select(USER_ID, **{VALUE: ibis.ifelse(found.low != found.high, SEVERAL, found.low)})


def named(values: ir.Table, most: int) -> ir.Table:
    """The values of `value_of_each` as slices are named: the `most` of most users, the rest as `other`."""
    counts = values.group_by(VALUE).aggregate(n=values.count())
    return values.mutate(**{VALUE: value_names(counts, most)(values[VALUE])})


def in_question(table: ir.Table, question: str) -> ir.Table:
    """The rows of a table that are of one question, without that column."""
    return table.filter(table[QUESTION] == question).drop(QUESTION)


def activity_bounds(asked: ir.Table, respondents: ir.Table) -> list[float]:
    """The bounds between classes of activity.

    There are up to ten classes of equally many users who were asked. A class with fewer than five respondents
    joins the next one, so that no answer gets the weight of many silent users.
    """
    aggregates: dict[str, Any] = {
        f"bound_{number}": asked[ACTIVITY].cast("float64").quantile(number / _CLASSES)
        for number in range(1, _CLASSES)
    }
    (found,) = asked.aggregate(**aggregates).to_pyarrow().to_pylist()
    bounds = sorted({float(one) for one in found.values() if one is not None})
    own = asked.semi_join(respondents, USER_ID)
    own = own.mutate(place=activity_class(own, bounds))
    counted = own.aggregate(by="place", n=own.count()).to_pyarrow().to_pylist()
    counts = {int(row["place"]): int(row["n"]) for row in counted}
    return merged(bounds, [counts.get(place, 0) for place in range(len(bounds) + 1)])


def merged(bounds: Sequence[float], counts: Sequence[int], least: int = 5) -> list[float]:
    """The bounds that are left if each class has at least so many respondents.

    >>> merged([1.0, 2.0, 3.0], [2, 4, 9, 1])
    [2.0]
    """
    kept: list[float] = []
    so_far = 0
    for bound, count in zip(bounds, counts, strict=False):
        so_far += count
        if so_far >= least:
            kept.append(bound)
            so_far = 0
    if kept and so_far + counts[len(bounds)] < least:
        kept.pop()
    return kept


def activity_class(users: ir.Table, bounds: Sequence[float]) -> ir.Value:
    """The number of the class that a user is in: how many bounds are below the user's activity."""
    found: ir.Value = ibis.literal(0)
    for bound in bounds:
        found = found + ibis.ifelse(users[ACTIVITY] > bound, 1, 0)
    return found


def some(users: ir.Table, most: int) -> ir.Table:
    """Up to so many users, drawn by a hash of their id: the same ones each time."""
    rows = users.select(USER_ID).distinct()
    return rows.order_by(rows[USER_ID].cast("string").hash(), rows[USER_ID]).limit(most)
