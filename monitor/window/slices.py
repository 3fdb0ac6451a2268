"""The slices of a window: the value of each dimension for a row of the exposures.

Only configured dimensions are joined, read or counted. The table of exposures does not change: a dimension is
added to its rows only when a metric is measured by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core.columns import CATALOG, CREATED_AT, EXPOSURES, ITEM_ID, POSITION, SCORE, TS, USER_ID, USERS
from monitor.core.results import Window
from monitor.logs.canonical import to_text
from monitor.metrics.history import EXPOSURES as COUNT
from monitor.metrics.history import History
from monitor.metrics.shared import Shared
from monitor.settings.recommender import (
    HOUR,
    ITEM_POPULARITY,
    NEW_ITEM,
    USER_ACTIVITY,
    USER_GROUP,
    USER_GROUPS,
    SliceSettings,
    group_within,
    sliced_column,
)

OTHER = "other"
NONE = "(none)"
UNKNOWN = "unknown"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HEAD, _TORSO = 50, 90  # percent of the history's exposures
_ID, _VALUE, _PART = "__monitor_slice_id", "__monitor_slice_value", "__monitor_slice_part"

Order = Literal["rows", "rows_then_number", "number"]
Text = Callable[[ir.Value], ir.Value]
LoadUsers = Callable[[Sequence[str]], ir.Table | None]


@dataclass(frozen=True, slots=True)
class _Dimension:
    """How to get the value of a row: by its id in `lookup`, which has unique ids, else by `otherwise`.

    `values` is the largest possible number of values, if it is known beforehand. `order` says which values
    keep their name if there are more than the budget, `every` that all do. With `within`, only rows that have
    this value of another dimension have one here.
    """

    otherwise: Callable[[ir.Table], ir.Value]
    lookup: ir.Table | None = None
    on: str = ""
    values: int | None = None
    order: Order = "rows"
    every: bool = False
    within: tuple[_Dimension, str] | None = None

    def added(self, rows: ir.Table, name: str, text: Text) -> ir.Table:
        """The rows with a further column: their value, written by `text`."""
        if self.within is not None:
            other, value = self.within
            part = other.added(rows, _PART, lambda column: column)
            own = replace(self, within=None).added(part, name, lambda column: column)
            inside = (own[_PART] == value).fill_null(False)
            kept = ibis.ifelse(inside, own[name], ibis.null("string"))
            return own.mutate(**{name: text(kept)}).drop(_PART)
        if self.lookup is None:
            return rows.mutate(**{name: text(self.otherwise(rows))})
        known = self.lookup.select(_ID, **{_VALUE: text(self.lookup[_VALUE])})
        joined = rows.left_join(known, rows[self.on] == known[_ID])
        value = ibis.coalesce(joined[_VALUE], text(self.otherwise(joined)))
        return joined.select(*rows.columns, **{name: value})


def add_slices(
    shared: Shared, settings: SliceSettings, window: Window, known: frozenset[str], load_users: LoadUsers
) -> dict[str, str]:
    """Add the slices to `shared`: name of a dimension -> its key for `shared.rows`.

    A column that its log lacks gives no dimension. If a dimension fails, every metric by it fails.

    Args:
        shared: the window's logs.
        settings: the dimensions.
        window: the window.
        known: the columns that the exposures have in any window.
        load_users: loads these columns of the users.
    """
    users: list[ir.Table | None] = []

    def all_users() -> ir.Table | None:
        if not users:
            users.append(load_users(settings.columns(USERS)))
        return users[0]

    dimensions = {}
    for number, name in enumerate(settings.by):
        key = f"__monitor_slice_{number}"
        try:
            found = _dimension(name, shared, settings, window, known, all_users)
            if found is None:
                continue
            text = _names(found, shared.exposures, settings.budget)
        except duckdb.InterruptException:
            raise
        except Exception as error:
            shared.add_key(key, _failing(error))
        else:
            shared.add_key(key, _adding(found, key, text), follows_from(name))
        dimensions[name] = key
    return dimensions


def follows_from(name: str) -> str | None:
    """The column of the exposures that alone says the value of a dimension; None if there is none.

    >>> follows_from("users.country"), follows_from("scene"), follows_from("hour")
    ('user_id', 'scene', 'ts')
    """
    if (within := group_within(name)) is not None:
        return USER_ID if follows_from(within[0]) == USER_ID else None
    match sliced_column(name):
        case (log, column) if log == EXPOSURES:
            return column
        case (log, _):
            return ITEM_ID if log == CATALOG else USER_ID
    if name in (USER_ACTIVITY, USER_GROUP):
        return USER_ID
    return ITEM_ID if name in (ITEM_POPULARITY, NEW_ITEM) else TS


def divided_by(settings: SliceSettings) -> set[str]:
    """The columns that the dimensions follow from and that a list may have one value of."""
    return {one for one in map(follows_from, settings.by) if one not in (None, ITEM_ID, POSITION, SCORE)}


def _adding(found: _Dimension, key: str, text: Text) -> Callable[[ir.Table], ir.Table]:
    return lambda rows: found.added(rows, key, text)


def _failing(error: Exception) -> Callable[[ir.Table], ir.Table]:
    def fail(_rows: ir.Table) -> ir.Table:
        raise error

    return fail


def _dimension(
    name: str,
    shared: Shared,
    settings: SliceSettings,
    window: Window,
    known: frozenset[str],
    users: Callable[[], ir.Table | None],
) -> _Dimension | None:
    if (within := group_within(name)) is not None:
        of, value = within
        found = _dimension(of, shared, settings, window, known, users)
        return None if found is None else replace(_user_group(), within=(found, value))
    match sliced_column(name):
        case (log, column) if log == EXPOSURES:
            return _of_exposures(shared.exposures, column, known)
        case (log, column) if log == CATALOG:
            return _of_column(shared.catalog, column, ITEM_ID)
        case (_, column):
            return _of_column(users(), column, USER_ID)
    if name == USER_ACTIVITY:
        return _user_activity(shared, settings.heavy)
    if name == ITEM_POPULARITY:
        return _item_popularity(shared)
    if name == NEW_ITEM:
        return _new_item(shared.catalog, settings, window)
    if name == USER_GROUP:
        return _user_group()
    return _hour() if name == HOUR else _weekday()


def _names(found: _Dimension, rows: ir.Table, budget: int) -> Text:
    """How to write the values: unchanged if there are few, else by `value_names`."""
    if found.every or (found.values is not None and found.values <= budget):
        return lambda value: value.fill_null(NONE)
    values = found.added(rows, _VALUE, lambda value: value).select(_VALUE)
    return value_names(values.group_by(_VALUE).aggregate(n=values.count()), budget, found.order)


def value_names(counts: ir.Table, budget: int, order: Order = "rows") -> Text:
    """How to write values: up to the budget, those with most rows keep their name; the rest becomes `other`.

    A value of the log that equals a bucket's name is quoted. So is one that already has such quotes.

    Args:
        counts: the value (text or null) in the first column, and its number of rows `n`.
        budget: how many values keep their name.
        order: which values come first. `rows`: most rows, ties by text. `rows_then_number`: most rows, ties
            by
            number. `number`: the smallest numbers, whatever their rows.
    """
    name = counts.columns[0]
    number = counts[name].cast("float64").asc(nulls_first=False) if order != "rows" else counts[name]
    by = [number] if order == "number" else [ibis.desc("n"), number]
    largest = counts.order_by(*by).limit(budget + 1)
    names: list[str | None] = [row[name] for row in largest.to_pyarrow().to_pylist()]
    every, names = len(names) <= budget, names[:budget]
    quoted = {name: f'"{name}"' for name in names if name and name.strip('"') in (OTHER, NONE)}
    plain = [name for name in names if name is not None and name not in quoted]

    def text(value: ir.Value) -> ir.Value:
        rest = value if every else ibis.ifelse(value.isin(plain), value, OTHER)
        cases = [(value.isnull(), ibis.literal(NONE if every or None in names else OTHER))]
        cases += [(value == ibis.literal(name), ibis.literal(shown)) for name, shown in quoted.items()]
        return ibis.cases(*cases, else_=rest)

    return text


def text_of(column: ir.Value) -> ir.Value:
    """A column as text, as `to_text` writes it. Empty text is null. Of a list, take the smallest value."""
    if column.type().is_array():
        if column.type().value_type.is_string():
            column = column.filter(lambda element: element != "")
        column = column.mins()
    return to_text(column).nullif("")


def _nothing(_rows: ir.Table) -> ir.Value:
    return ibis.null("string")


def _of_exposures(rows: ir.Table, column: str, known: frozenset[str]) -> _Dimension | None:
    if column in rows.columns:
        whole = rows[column].type().is_integer()
        order: Order = "number" if whole and column == POSITION else "rows_then_number" if whole else "rows"
        return _Dimension(lambda table: text_of(table[column]), order=order)
    return _Dimension(_nothing, values=1) if column in known else None


def _of_column(table: ir.Table | None, column: str, on: str) -> _Dimension | None:
    if table is None or column not in table.columns:
        return None
    lookup = table.select(**{_ID: table[on], _VALUE: text_of(table[column])})
    return _Dimension(_nothing, lookup, on)


def _user_activity(shared: Shared, heavy: int) -> _Dimension:
    history = shared.history
    if not isinstance(history, History):
        return _Dimension(lambda _: ibis.literal(UNKNOWN), values=1)

    def build() -> ir.Table:
        shown = history.by_user()
        activity = ibis.ifelse(shown[COUNT] >= heavy, "heavy", "light")
        return shown.select(**{_ID: shown[USER_ID], _VALUE: activity})

    lookup = shared.once(f"slice_{USER_ACTIVITY}", None, build)
    new = lambda rows: ibis.ifelse(rows[USER_ID].isnull(), UNKNOWN, "new")  # noqa: E731
    return _Dimension(new, lookup, USER_ID, values=4)


def _item_popularity(shared: Shared) -> _Dimension:
    """Items by exposures in the history: the head has the first 50 %, the torso up to 90 %."""
    history = shared.history
    if history is None:
        return _Dimension(lambda rows: _of_items(rows, UNKNOWN), values=2)

    def build() -> ir.Table:
        shown = history.by_item().rename(n=COUNT)
        so_far = shown.n.sum().over(ibis.cumulative_window(order_by=[shown.n.desc(), shown[ITEM_ID]]))
        placed = shown.select(ITEM_ID, before=(so_far - shown.n) * 100, total=shown.n.sum().over())
        part = ibis.cases(
            (placed.before < placed.total * _HEAD, "head"),
            (placed.before < placed.total * _TORSO, "torso"),
            else_="tail",
        )
        return placed.select(**{_ID: placed[ITEM_ID], _VALUE: part})

    lookup = shared.once(f"slice_{ITEM_POPULARITY}", None, build)
    return _Dimension(lambda rows: _of_items(rows, "new"), lookup, ITEM_ID, values=5)


def _user_group() -> _Dimension:
    """A random group of users, the same for a user in each log; null without a user."""

    def group(rows: ir.Table) -> ir.Value:
        number = rows[USER_ID].cast("string").hash() % USER_GROUPS
        number = (number + USER_GROUPS) % USER_GROUPS  # a hash may be negative
        return ibis.ifelse(rows[USER_ID].isnull(), ibis.null("string"), number.cast("string"))

    return _Dimension(group, every=True)


def _new_item(catalog: ir.Table | None, settings: SliceSettings, window: Window) -> _Dimension | None:
    if catalog is None or CREATED_AT not in catalog.columns:
        return None
    since = ibis.literal((window.end - settings.new_for).replace(tzinfo=None)).cast("timestamp(6)")
    created = catalog[CREATED_AT]
    answer = ibis.cases((created.isnull(), UNKNOWN), (created >= since, "yes"), else_="no")
    lookup = catalog.select(**{_ID: catalog[ITEM_ID], _VALUE: answer})
    return _Dimension(lambda rows: _of_items(rows, UNKNOWN), lookup, ITEM_ID, values=4)


def _of_items(rows: ir.Table, value: str) -> ir.Value:
    """The value if the row shows an item; null for an empty list."""
    return ibis.ifelse(rows[ITEM_ID].notnull(), value, ibis.null("string"))


def _hour() -> _Dimension:
    return _Dimension(lambda rows: rows[TS].hour().cast("string").lpad(2, "0"), values=24)


def _weekday() -> _Dimension:
    def day(rows: ir.Table) -> ir.Value:
        number = rows[TS].day_of_week.index()
        return ibis.cases(*((number == place, name) for place, name in enumerate(_DAYS)))

    return _Dimension(day, values=len(_DAYS))
