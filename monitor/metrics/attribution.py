"""The join of feedback and exposures: the list that each action belongs to.

An action belongs to at most one list:

1. the list that its request id names;
2. else the latest list with the item that was shown to its user within `attribution` before the action;
3. else the user's latest list in that time: it could have shown the item and did not.

Actions without a list are counted. The large table, the exposures, is only probed by the few rows of
feedback.
"""

from __future__ import annotations

from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import EVENT, ITEM_ID, POSITION, REQUEST_ID, SCORE, TS, USER_ID, VALUE
from monitor.metrics.history import WINDOW
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

ACTION: Final = "action"  # the number of an action
FOUND: Final = "found"  # how its list was found
BY_REQUEST: Final = "request"
BY_USER: Final = "user"
NOT_SHOWN: Final = "not_shown"
UNATTRIBUTED: Final = "unattributed"

COUNT: Final = "n"
VALUES: Final = "values"
COMPLETABLE: Final = "completable"
COMPLETED: Final = "completed"
GRADE: Final = "grade"
RELEVANCE: Final = "relevance"
_LISTED_AT: Final = "listed_at"
_HELD: Final = "held"


def of_event(column: str, number: int) -> str:
    """The name of a column of sums for the event of this number in the settings.

    >>> of_event(COUNT, 0)
    'n_0'
    """
    return f"{column}_{number}"


def attributed(shared: Shared, settings: MetricSettings) -> ir.Table:
    """The window's actions, each with the list that it belongs to, if any.

    Columns: `action`, `found` (request, user, not_shown, unattributed), user_id, item_id, ts, event,
    request_id of the list (null if `unattributed`), `n` (how often the same action was logged), `value` (the
    sum of its values), `values` (their number), `completable`, `completed`, `grade`.

    Every action is in exactly one window: that of its list, or without a list that of its own time. Of
    several windows that are measured together, it is in the column `WINDOW`.
    """
    return shared.once("attributed", None, lambda: _attributed(shared, settings))


def relevant(shared: Shared, settings: MetricSettings) -> ir.Table:
    """One row a list of the window and item acted on: `relevance` (the highest grade) and sums by event.

    `shown` is 1 if the list held the item. For the event of number i in the settings there are `n_i`,
    `value_i`, `values_i`, `completable_i` and `completed_i`.
    """
    return shared.once("relevant", None, lambda: _relevant(shared, settings))


def acted_rows(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """The exposures that were acted on, an item twice in a list twice.

    Columns: request_id, item_id, user_id, the group, position and score if the log has them, and `relevance`.
    """
    of = (REQUEST_ID, USER_ID, ITEM_ID)
    return shared.grouped("acted_rows", key, of, lambda key: _acted_rows(shared, settings, key))


def acted(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """One row a list (and group) and item that it showed and that was acted on.

    Columns: those of `relevant`, the list's user_id, and `score` if the log has it.
    """
    of = (REQUEST_ID, ITEM_ID)
    return shared.grouped("acted", key, of, lambda key: _acted(shared, settings, key))


def other_events(shared: Shared, settings: MetricSettings) -> ir.Table:
    """One row: `other_events`, actions of the window whose event the settings do not name."""
    feedback = shared.feedback
    assert feedback is not None
    known = feedback[EVENT].isin(list(settings.events)).fill_null(False)
    return feedback.aggregate(other_events=(~known).sum())


def lengths_known(shared: Shared, settings: MetricSettings) -> list[str]:
    """The columns of items' lengths that the settings name and the catalog has."""
    named = {one.length for one in settings.events.values() if one.length}
    return sorted(named & set(() if shared.catalog is None else shared.catalog.columns))


def _attributed(shared: Shared, settings: MetricSettings) -> ir.Table:
    actions = shared.once("actions", None, lambda: _actions(shared, settings))
    around = shared.around.filter(shared.around[REQUEST_ID].notnull()).select(
        REQUEST_ID, USER_ID, ITEM_ID, TS
    )
    named = shared.once("named_lists", None, lambda: _named_lists(actions, around))
    found = shared.once("found_lists", None, lambda: _found(actions, around, named, settings))
    mine = found.filter(shared.in_window(found[_LISTED_AT]))
    lost = actions.anti_join(found, ACTION)
    lost = lost.filter(shared.in_window(lost[TS]))
    columns = [ACTION, FOUND, REQUEST_ID]
    if shared.length is not None:
        mine = mine.mutate(**{WINDOW: shared.number_of(mine[_LISTED_AT])})
        lost = lost.mutate(**{WINDOW: shared.number_of(lost[TS])})
        columns.append(WINDOW)
    nowhere = {
        FOUND: ibis.literal(UNATTRIBUTED),
        REQUEST_ID: ibis.null(mine[REQUEST_ID].type()),
    }
    every = mine.select(*columns).union(lost.mutate(**nowhere).select(*columns))
    return every.join(actions.drop(REQUEST_ID), ACTION)


def joins_differ(shared: Shared, settings: MetricSettings) -> ir.Table:
    """One row: `differ`, 1 if some window, by itself, would join its actions and lists in another way.

    Of windows that are measured together. A window reads the actions and lists around it, and what these
    windows read together is more. That matters only if a list has rows in two windows, or if an action names
    a list that it cannot belong to, or one of a later window.
    """
    around = shared.around.filter(shared.around[REQUEST_ID].notnull())
    number = shared.number_of(around[TS])
    lists = around.aggregate(by=REQUEST_ID, first=number.min(), last=number.max(), **{TS: around[TS].min()})
    split = lists.filter(lists["first"] != lists["last"]).limit(1)
    tables = [split.aggregate(n=split.count())]
    actions = shared.once("actions", None, lambda: _actions(shared, settings))
    named = actions.select(REQUEST_ID, acted_at=actions[TS]).join(lists, REQUEST_ID)
    seconds = int(settings.attribution.total_seconds())
    late = ~_within(named[TS], named.acted_at, seconds)
    soon = (named.acted_at < named[TS]) & _within(named.acted_at, named[TS], seconds)
    same = shared.number_of(named.acted_at) == named["first"]
    odd = named.filter(late & ~(soon & same)).limit(1)
    tables.append(odd.aggregate(n=odd.count()))
    every = tables[0].union(tables[1])
    return every.aggregate(differ=every.n.max())


def _actions(shared: Shared, settings: MetricSettings) -> ir.Table:
    """The actions of the settings' events, each once, numbered."""
    rows = shared.responses
    rows = rows.filter(rows[EVENT].isin(list(settings.events)), rows[ITEM_ID].notnull())
    request = rows[REQUEST_ID] if REQUEST_ID in rows.columns else ibis.null(shared.around[REQUEST_ID].type())
    value = _finite(rows[VALUE] if VALUE in rows.columns else ibis.null("float64"))
    rows = rows.mutate(**{REQUEST_ID: request, VALUE: value})
    completable, completed = ibis.literal(0), ibis.literal(0)
    lengths = lengths_known(shared, settings)
    if lengths and shared.catalog is not None:
        items = shared.catalog
        own = {f"length_{i}": _finite(items[name]) for i, name in enumerate(lengths)}
        items = items.select(catalog_item=items[ITEM_ID], **own)
        rows = rows.left_join(items, rows[ITEM_ID] == items.catalog_item)
        for event, one in settings.events.items():
            if one.length in lengths:
                length = rows[f"length_{lengths.index(one.length)}"]
                known = (rows[EVENT] == event) & (length > 0) & rows[VALUE].notnull()
                completable = ibis.ifelse(known.fill_null(False), 1, completable)
                done = known & (rows[VALUE] >= one.complete * length)
                completed = ibis.ifelse(done.fill_null(False), 1, completed)
    rows = rows.mutate(**{COMPLETABLE: completable, COMPLETED: completed})
    once = rows.aggregate(
        by=[TS, USER_ID, ITEM_ID, EVENT, REQUEST_ID],
        **{
            COUNT: rows.count(),
            VALUES: rows[VALUE].count(),
            VALUE: rows[VALUE].sum(),
            COMPLETABLE: rows[COMPLETABLE].sum(),
            COMPLETED: rows[COMPLETED].sum(),
        },
    )
    grades = [(once[EVENT] == event, ibis.literal(one.grade)) for event, one in settings.events.items()]
    number = ibis.row_number().over(order_by=[once[c] for c in (TS, USER_ID, ITEM_ID, EVENT, REQUEST_ID)])
    return once.mutate(**{GRADE: ibis.cases(*grades).cast("float64"), ACTION: number})


def _finite(column: Any) -> Any:
    """The column as float64; null where it is no finite number, as a text such as `n/a`."""
    number = column if column.type().is_numeric() else column.cast("string").try_cast("float64")
    number = number.cast("float64")
    return ibis.ifelse(number.isnan() | number.isinf(), ibis.null("float64"), number)


def _named_lists(actions: ir.Table, around: ir.Table) -> ir.Table:
    """`listed_at` of the lists that an action names, in one pass.

    A list has one row for each item acted on that it held (`held`), and one row with null for its other
    items.
    """
    named = actions.filter(actions[REQUEST_ID].notnull())
    pairs = named.select(acted_request=named[REQUEST_ID], **{_HELD: named[ITEM_ID]}).distinct()
    rows = around.semi_join(named, REQUEST_ID)
    rows = rows.left_join(pairs, [rows[REQUEST_ID] == pairs.acted_request, rows[ITEM_ID] == pairs[_HELD]])
    return rows.aggregate(by=[REQUEST_ID, _HELD], **{_LISTED_AT: rows[TS].min()})


def _found(actions: ir.Table, around: ir.Table, lists: ir.Table, settings: MetricSettings) -> ir.Table:
    """`action`, `found`, `request_id` and `listed_at` of the actions that belong to a list."""
    seconds = int(settings.attribution.total_seconds())
    named = actions.filter(actions[REQUEST_ID].notnull()).select(ACTION, REQUEST_ID, ITEM_ID, TS)
    held = lists.filter(lists[_HELD].notnull())
    held = held.select(REQUEST_ID, **{ITEM_ID: held[_HELD]}, shown_at=held[_LISTED_AT])
    lists = lists.aggregate(by=REQUEST_ID, **{_LISTED_AT: lists[_LISTED_AT].min()})
    known = named.join(lists, REQUEST_ID).left_join(held, [REQUEST_ID, ITEM_ID], rname="{name}_held")
    at = known.shown_at.fill_null(known[_LISTED_AT])
    by_request = known.filter(_within(at, known[TS], seconds, before=True)).select(
        ACTION,
        REQUEST_ID,
        **{
            FOUND: ibis.ifelse(known.shown_at.notnull(), BY_REQUEST, NOT_SHOWN),
            _LISTED_AT: at,
        },
    )
    rest = actions.anti_join(lists, REQUEST_ID)
    rest = rest.filter(rest[USER_ID].notnull()).select(ACTION, USER_ID, ITEM_ID, acted_at=rest[TS])
    pair = [USER_ID, ITEM_ID]
    by_user = _latest(around.semi_join(rest, pair), rest, pair, seconds).mutate(
        **{FOUND: ibis.literal(BY_USER)}
    )
    others = rest.anti_join(by_user, ACTION)
    of_user = around.semi_join(others, USER_ID)
    of_user = of_user.aggregate(by=[USER_ID, REQUEST_ID], **{TS: of_user[TS].min()})
    missed = _latest(of_user, others, [USER_ID], seconds).mutate(**{FOUND: ibis.literal(NOT_SHOWN)})
    columns = [ACTION, FOUND, REQUEST_ID, _LISTED_AT]
    return by_request.select(*columns).union(by_user.select(*columns), missed.select(*columns))


def _latest(lists: ir.Table, actions: ir.Table, same: list[str], seconds: int) -> ir.Table:
    """The latest list before each action with equal values of `same`; of two at one time, the larger id.

    Lists and actions are sorted by time and read once. A join would make a million pairs for a user who sees
    an item a thousand times and acts on it a thousand times.
    """
    shown = lists.select(*same, at=lists[TS], acts=ibis.literal(0), number=ibis.null("int64"))
    acted = actions.select(
        *same, at=actions.acted_at, acts=ibis.literal(1), number=actions[ACTION].cast("int64")
    )
    both = shown.union(acted)
    so_far = ibis.cumulative_window(group_by=same, order_by=[both.at, both.acts])
    last = ibis.ifelse(both.acts == 0, both.at, ibis.null(both.at.type())).max().over(so_far)
    found = both.select(*same, "at", **{ACTION: both.number, _LISTED_AT: last})
    found = found.filter(
        found[ACTION].notnull(), _within(found[_LISTED_AT], found.at, seconds).fill_null(False)
    )
    newest = lists.aggregate(by=[*same, TS], **{REQUEST_ID: lists[REQUEST_ID].max()})
    newest = newest.rename({_LISTED_AT: TS})
    return found.join(newest, [*same, _LISTED_AT]).select(ACTION, REQUEST_ID, _LISTED_AT)


def _within(at: Any, acted_at: Any, seconds: int, *, before: bool = False) -> Any:
    """Whether an action is within `seconds` after `at`.

    With `before` the action may also come first: a request id is stronger evidence than two clocks that
    differ.
    """
    soon = acted_at <= at + ibis.interval(seconds=seconds)
    return soon if before else soon & (acted_at >= at)


def _relevant(shared: Shared, settings: MetricSettings) -> ir.Table:
    actions = attributed(shared, settings)
    actions = actions.filter(actions[REQUEST_ID].notnull())
    sums: dict[str, Any] = {
        RELEVANCE: actions[GRADE].max(),
        "shown": (actions[FOUND] != NOT_SHOWN).cast("int64").max(),
    }
    for number, event in enumerate(settings.events):
        mine = actions[EVENT] == event
        for column in (COUNT, VALUE, VALUES, COMPLETABLE, COMPLETED):
            sums[of_event(column, number)] = ibis.ifelse(mine, actions[column], 0).sum()
    return actions.aggregate(by=[REQUEST_ID, ITEM_ID], **sums)


def _acted_rows(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    found = relevant(shared, settings)
    found = found.select(
        acted_request=found[REQUEST_ID], acted_item=found[ITEM_ID], **{RELEVANCE: found[RELEVANCE]}
    )
    rows = shared.shown(key)
    further = [name for name in (POSITION, SCORE) if name in rows.columns]
    rows = rows.select(REQUEST_ID, ITEM_ID, USER_ID, *listed(key), *further)
    same = [rows[REQUEST_ID] == found.acted_request, rows[ITEM_ID] == found.acted_item]
    return rows.join(found, same).select(*rows.columns, RELEVANCE)


def _acted(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    found = relevant(shared, settings)
    found = found.filter(found.shown == 1).drop("shown")
    rows = acted_rows(shared, settings, key)
    score = {SCORE: rows[SCORE].max()} if SCORE in rows.columns else {}
    once = rows.aggregate(by=[REQUEST_ID, ITEM_ID, *listed(key)], **{USER_ID: rows[USER_ID].min()}, **score)
    return once.join(found, [REQUEST_ID, ITEM_ID])
