"""The items of lists in their order, and the places of the relevant ones.

Every metric of lists at k uses these tables, so the exposures are sorted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, POSITION, REQUEST_ID, SCORE, USER_ID
from monitor.metrics.attribution import RELEVANCE, acted_rows, relevant
from monitor.metrics.shared import LENGTH, Shared, listed
from monitor.settings.metrics import MetricSettings

PLACE: Final = "place"  # 1 is the top of the list; null where the list did not show the item
FOUND: Final = "found"  # 1 for the first relevant item of the list, 2 for the second, ...
IDEAL: Final = "ideal"  # the place of the item in the best possible list


def no_order(shared: Shared) -> str | None:
    """Why the items of lists have no order; None if they have one."""
    if shared.lack(f"exposures.{POSITION}") is None or shared.lack(f"exposures.{SCORE}") is None:
        return None
    return "needs the column position or score of the log exposures"


def in_order(rows: ir.Table, owner: Sequence[str]) -> ir.Table:
    """The rows with `place`, counted from 1 within each `owner`.

    Sorted by position, then by score from the highest, then by item; null and NaN come last. Both copies of a
    repeated item take a place.

    Filter the result by `place` before you join anything to it: if `rows` is a join, Ibis would put the new
    join before the counting.
    """
    order = []
    if POSITION in rows.columns:
        order.append(ibis.asc(_known(rows[POSITION]), nulls_first=False))
    if SCORE in rows.columns:
        order.append(ibis.desc(_known(rows[SCORE]), nulls_first=False))
    window = ibis.window(group_by=list(owner), order_by=[*order, rows[ITEM_ID]])
    return rows.mutate(**{PLACE: ibis.row_number().over(window) + 1})


def ordering(rows: ir.Table) -> list[str]:
    """The columns that define the order of a list."""
    return [column for column in (POSITION, SCORE) if column in rows.columns]


def relevant_places(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """One row a list (and group) and item that its user acted on with a grade above 0, shown by it or not.

    Columns: request_id, the group, `user_id` and `length` of the list, `relevance`, `place`, `found` and
    `ideal`. Lists without such an item have no row.
    """
    build = partial(_relevant_places, shared, settings)
    return shared.grouped("relevant_places", key, (REQUEST_ID,), build)


def _relevant_places(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    owner = [REQUEST_ID, *listed(key)]
    actions = relevant(shared, settings)
    liked = actions.filter(actions[RELEVANCE] > 0)
    every = shared.requests(key)
    lists = every.select(*owner, USER_ID, LENGTH)
    by_position = settings.unrated == "as_negative" and "straight" in every.columns
    ranked = _ranked(shared, settings, actions, liked, key, every if by_position else None)
    # Joined after the counting: the sort is cheaper with fewer columns.
    hits = ranked.filter(ranked[PLACE] > 0).semi_join(liked, [REQUEST_ID, ITEM_ID])
    hits = hits.select(*owner, ITEM_ID, PLACE)
    if by_position:
        hits = hits.union(_of_straight_lists(shared, settings, every, key))
    hits = hits.aggregate(by=[*owner, ITEM_ID], **{PLACE: hits[PLACE].min()})
    if settings.unrated != "as_negative":
        left = ranked.aggregate(by=owner, left=ranked.count())
        lists = lists.left_join(left, owner)
        lists = lists.select(*owner, USER_ID, **{LENGTH: lists["left"].fill_null(0)})
    rows = lists.join(liked.select(REQUEST_ID, ITEM_ID, RELEVANCE), REQUEST_ID)
    rows = rows.left_join(hits, [*owner, ITEM_ID]).select(*owner, USER_ID, LENGTH, RELEVANCE, PLACE)
    by_place = ibis.window(group_by=owner, order_by=ibis.asc(PLACE, nulls_first=False))
    best_first = ibis.window(group_by=owner, order_by=ibis.desc(RELEVANCE))
    return rows.mutate(
        **{FOUND: ibis.row_number().over(by_place) + 1, IDEAL: ibis.row_number().over(best_first) + 1}
    )


def _of_straight_lists(
    shared: Shared, settings: MetricSettings, lists: ir.Table, key: str | None
) -> ir.Table:
    """The relevant rows of lists whose positions say the place: request_id, the group, item_id, place."""
    owner = [REQUEST_ID, *listed(key)]
    rows = acted_rows(shared, settings, key)
    rows = rows.filter(rows[RELEVANCE] > 0)
    straight = lists.filter(lists.straight).select(*owner, "position_min")
    rows = rows.join(straight, owner)
    return rows.select(*owner, ITEM_ID, **{PLACE: rows[POSITION] - rows.position_min + 1})


def _ranked(
    shared: Shared,
    settings: MetricSettings,
    actions: ir.Table,
    liked: ir.Table,
    key: str | None,
    lists: ir.Table | None,
) -> ir.Table:
    """The items of the lists that hold a relevant one, in order; `unrated` says which rows count.

    With `lists`, those of `requests`, without the straight ones.
    """
    owner = [REQUEST_ID, *listed(key)]
    rows = shared.shown(key)
    rows = rows.filter(rows[REQUEST_ID].notnull())
    rows = rows.select(*owner, ITEM_ID, *ordering(rows))
    if settings.unrated == "as_negative":
        wanted = liked.filter(liked.shown == 1).select(REQUEST_ID)
        if lists is not None:
            wanted = lists.filter(~lists.straight).select(*owner).semi_join(wanted, REQUEST_ID)
        rows = rows.semi_join(wanted, wanted.columns)
    else:
        kept = actions if settings.unrated == "ignore" else liked
        rows = rows.semi_join(kept.filter(kept.shown == 1), [REQUEST_ID, ITEM_ID])
    return in_order(rows, owner)


def _known(column: ir.Column) -> ir.Column:
    return column.nullif(float("nan")) if column.type().is_floating() else column
