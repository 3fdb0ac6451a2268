"""The tables that several metrics of a window need, each computed once.

Metrics ask for them by name, with or without the key of a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import (
    ARM,
    FAILURES,
    FEEDBACK,
    ITEM_ID,
    MODEL,
    POSITION,
    REQUEST_ID,
    SCENE,
    SCORE,
    STATUS,
    TS,
    USER_ID,
)
from monitor.core.columns import EXPOSURES as EXPOSURES_PART
from monitor.metrics.history import EXPOSURES, WINDOW, DayCounts, History, HistoryOfWindows
from monitor.metrics.plans import WINDOW_EDGES, Executor, Materialise, Records, keep_lazy

LENGTH = "length"
USER_ITEMS: Final = "user_items"
ITEM_COUNTS: Final = "item_counts"
CATALOG = "catalog"
NO_SLICE = "unknown"
ITEMS: Final = "items"
_LOW, _HIGH = "position_min", "position_max"
_ROWS, _PLACES = "__monitor_rows", "__monitor_places"
_ONE: Final = ibis.literal(1, "int8").cast("int64")  # as a plain literal, engines would take it for an int32
_OF_LIST: Final = (TS, SCENE, MODEL, ARM)
_NAMES: Final = (LENGTH, ITEMS, _LOW, _HIGH, "scored", "score_min", "score_max", "straight")
_MOST_PLACES: Final = 61  # one bit of an int64 each
_TODAY = "the pairs of today"
_OF_LISTS = "of lists: "
_SEVERAL, _ONE_OF_LIST = "__monitor_several_", "__monitor_one_"


@ibis.udf.agg.builtin(name="bit_or")  # type: ignore[untyped-decorator]
def _bits_of_all(bits: int) -> int:  # type: ignore[empty-body]
    """The bits that any row has."""


class Shared:
    """A window's logs and the tables derived from them so far.

    Args:
        exposures: one row an item shown (item_id null: the request returned nothing). A row without an item
            whose `status` is a failure is a request without an answer: it is in `attempts` alone.
        catalog: one row an item.
        feedback: the window's actions.
        history_user_items: user_id, item_id, exposures: what was shown before the window.
        lasting_user_items: the same for a part of the history that `history_user_items` leaves out, because
            other windows share it; see `monitor.metrics.history`.
        history_counts: how often the history shows each user and each item, if that was counted before.
        history_actions: user_id, item_id: what the users acted on before the window.
        previous_day_user_items: user_id, item_id of the whole day before.
        today_user_items: the same of the day up to the window's end, or what makes it at the first use. Of
            windows that are measured together, it ends before the first one.
        day_counts: what both days had shown before the window, if there are too many pairs to compare them
            all in each window.
        attempts: the rows of `exposures` with the failed requests, if `exposures` lacks these already.
        responses: the actions that may belong to the window's lists: of its own time and of the
            attribution after it; unless given, `feedback`.
        around: the exposures of the window and of the attribution before and after it: an action
            belongs to one list only, and that may be one of another window; unless given, `exposures`.
        window: the window's [start, end) as times without a zone; unless given, everything is in it.
        materialise: stores an expression under a name and gives the stored table.
        asked: runs the queries; by default everything is built, and stored by `materialise`.
        store_history: whether `history_user_items` is small enough to be stored at its first use.
        length: that of each window, if `window` is a span of several that are measured together, each a
            group of the key `WINDOW`. Then `history_user_items` have the number of their window.
        reach: how many windows such a window looks back on; 0 if the history is not given.
        part: the part of the window whose metrics ask, exposures or feedback; None if both may. It says what
            `requests` have.
        distributed: whether the engine spreads rows over tasks, as Spark does. One task would sort all rows,
            so groups of them are sorted; and a join that several metrics read is stored.
        divided_by: the columns of the exposures that keys follow from; see `add_key`.

    `answers` are the rows that were asked for without a key, by name.

    A user id that is null (or NaN) belongs to no user: such rows count in everything by request
    and by item, and in nothing by user. A row without a request id belongs to no list.
    """

    def __init__(
        self,
        exposures: ir.Table,
        *,
        catalog: ir.Table | None = None,
        feedback: ir.Table | None = None,
        history_user_items: ir.Table | None = None,
        lasting_user_items: ir.Table | None = None,
        history_counts: Mapping[str, ir.Table] | None = None,
        history_actions: ir.Table | None = None,
        previous_day_user_items: ir.Table | None = None,
        today_user_items: ir.Table | Callable[[], ir.Table | None] | None = None,
        day_counts: DayCounts | None = None,
        attempts: ir.Table | None = None,
        responses: ir.Table | None = None,
        around: ir.Table | None = None,
        window: tuple[datetime, datetime] | None = None,
        materialise: Materialise = keep_lazy,
        asked: Executor | None = None,
        store_history: bool = False,
        length: timedelta | None = None,
        reach: int = 0,
        part: str | None = None,
        distributed: bool = False,
        divided_by: Collection[str] = (),
    ) -> None:
        self.attempts = _without_nan_ids(exposures if attempts is None else attempts)
        shown = _without_nan_ids(exposures)
        self.exposures = answered(shown) if attempts is None else shown
        self.catalog = catalog
        self.feedback = feedback
        self.history_user_items = history_user_items
        self.lasting_user_items = lasting_user_items
        self.history_counts = history_counts
        self.history_actions = history_actions
        self.previous_day_user_items = previous_day_user_items
        self._today_user_items = today_user_items
        self.knows_today = today_user_items is not None
        self.day_counts = day_counts
        self._responses = responses
        self._around = around
        self._window = window
        self._keys: dict[str, Callable[[ir.Table], ir.Table]] = {}
        self._follows: dict[str, str] = {}
        self._divided_by = sorted(set(divided_by) - {ITEM_ID})
        self._of_lists: dict[str, bool] = {}
        self._store_history = store_history
        self._part = part
        self.distributed = distributed
        self._rows: dict[str, ir.Table] = {}
        self._asked = Executor(materialise) if asked is None else asked
        self._made: dict[str, ir.Table] = {}
        self.answers: dict[str, Records] = {}
        self._scalars: dict[str, Any] = {}
        self._measured: Mapping[str, Records] = {}
        self.length = length
        self.reach = reach
        if length is not None:
            self.add_key(WINDOW, self._numbered)

    def lack(self, need: str) -> str | None:
        """Why the need `log` or `log.column` is not met, as half a sentence; None if it is met.

        >>> shared = Shared(ibis.table({"item_id": "string"}, name="exposures"))
        >>> shared.lack("exposures.score"), shared.lack("catalog"), shared.lack("exposures.item_id")
        ('needs the column score of the log exposures', 'needs the log catalog', None)
        """
        log, _, column = need.partition(".")
        table: ir.Table | None = getattr(self, log)
        if table is None:
            return f"needs the log {log}"
        if column and column not in table.columns:
            return f"needs the column {column} of the log {log}"
        return None

    def once(
        self, name: str, key: str | None, build: Callable[[], ir.Table], *, lasting: str | None = None
    ) -> ir.Table:
        """The table of `build`, built and stored at the first call.

        A `lasting` one reads nothing but what is known under that name, such as the catalog: it stays from
        window to window while that does.
        """
        full = name if key is None else f"{name}_by_{key}"
        if full not in self._made:
            self._made[full] = self._asked.stored(full, build, lasting=lasting)
        self._asked.used(full)
        return self._made[full]

    def grouped(
        self,
        name: str,
        key: str | None,
        of: Collection[str],
        build: Callable[[str | None], ir.Table],
        *,
        by_list: bool = False,
        stored: bool = False,
    ) -> ir.Table:
        """As `once`, for a table of which each row has one value of each column of `of`.

        A key that follows from one of these is added to the rows of the whole, because it takes longer to
        group the exposures again.

        Args:
            name: as in `once`.
            key: as in `once`.
            of: user_id, item_id or request_id. A key follows from the last if each list has one value of it.
            build: gives the table by a key, or the whole.
            by_list: whether the values are those of lists. Then a key also needs one value in each list.
            stored: whether the rows of the whole are stored with the key, because many metrics read them.
        """
        if key is None or not self._follows_from(key, of, by_list=by_list):
            return self.once(name, key, lambda: build(key))

        def whole_with_key() -> ir.Table:
            whole = self.once(name, None, lambda: build(None))
            if self._follows[key] in of:
                return self._with_key(whole, key)
            return whole.join(self.requests(key).select(REQUEST_ID, key), REQUEST_ID)

        return self.once(name, key, whole_with_key) if stored else whole_with_key()

    def _follows_from(self, key: str, of: Collection[str], *, by_list: bool) -> bool:
        """Whether a key follows from one of these columns."""
        column = self._follows.get(key)
        if column in of:
            return not by_list or column == ITEM_ID or self.of_lists(key)
        return REQUEST_ID in of and self.of_lists(key)

    def answer(self, name: str, key: str | None, build: Callable[[], ir.Table]) -> Records:
        """The rows of `build`; the name must be unique."""
        if key is None and name in self._measured:
            found = self._measured[name]
        else:
            found = self._asked.answer(name if key is None else f"{name}_by_{key}", build)
        if key is None:
            self.answers[name] = found
        return found

    def take(self, measured: Mapping[str, Records]) -> None:
        """Answer by these rows, by name, where there is no key: several windows were measured together."""
        self._measured = measured

    def scalar(self, name: str, expression: ir.Scalar) -> Any:
        """The value of a scalar, computed at the first call.

        Call it only while building the expression that needs it: kept statements must not depend on a value
        of this window.
        """
        self._asked.varies()
        if name not in self._scalars:
            self._scalars[name] = expression.as_table().to_pyarrow().column(0)[0].as_py()
        return self._scalars[name]

    @property
    def responses(self) -> ir.Table:
        """The actions that may belong to the window's lists."""
        found = self.feedback if self._responses is None else self._responses
        if found is None:
            raise ValueError("there is no feedback")
        return found

    @property
    def today_user_items(self) -> ir.Table | None:
        """The pairs of the day up to the window's end."""
        if callable(self._today_user_items):
            self._today_user_items = self._today_user_items()
        if self._today_user_items is not None:
            self._asked.read(_TODAY, self._today_user_items.op())
        return self._today_user_items

    def know_today(self, pairs: Callable[[], ir.Table | None]) -> None:
        """Give the pairs of the day later than the other logs, because they are made from these."""
        self._today_user_items, self.knows_today = pairs, True

    @cached_property
    def history(self) -> History | HistoryOfWindows | None:
        """What was shown before the window; None if nothing was."""
        recent, lasting = self.history_user_items, self.lasting_user_items
        if self.reach:
            return HistoryOfWindows(self, recent, lasting, self.reach)
        if recent is None and lasting is None:
            return None
        return History(self, recent, lasting, store=self._store_history, counts=self.history_counts)

    def look(self, name: str) -> Hashable:
        """How that looks which was read under this name."""
        if name.startswith(_OF_LISTS):
            return self.of_lists(name.removeprefix(_OF_LISTS))
        part = self.today_user_items if name == _TODAY else self.rows(name)
        return None if part is None else part.op()

    @cached_property
    def around(self) -> ir.Table:
        """The exposures whose lists an action of `responses` may belong to."""
        return self.attempts if self._around is None else _without_nan_ids(self._around)

    def in_window(self, moment: ir.Column) -> ir.BooleanValue:
        """Whether a time lies in the window."""
        if self._window is None:
            return ibis.literal(True)
        edges = zip(WINDOW_EDGES, self._window, strict=True)
        start, end = (self._asked.moment(name, edge).cast("timestamp(6)") for name, edge in edges)
        return (moment >= start) & (moment < end)

    def number_of(self, moment: ir.Column) -> ir.IntegerValue:
        """The number of the window that a time is in; below 0 before the first of the span."""
        assert self._window is not None
        assert self.length is not None
        start = self._asked.moment(WINDOW_EDGES[0], self._window[0]).cast("timestamp(6)")
        since = (moment.truncate("s").epoch_seconds() - start.epoch_seconds()).cast("float64")
        return (since / self.length.total_seconds()).floor().cast("int64")

    def _numbered(self, rows: ir.Table) -> ir.Table:
        return rows.mutate(**{WINDOW: self.number_of(rows[TS])})

    def actions(self, key: str | None = None) -> ir.Table:
        """The window's actions, of several windows with their key; a slice has none of its own."""
        assert self.feedback is not None
        if key is None:
            return self.feedback
        if key != WINDOW:
            raise ValueError("actions have no slices")
        return self._numbered(self.feedback)

    def nothing(self) -> ir.Table:
        """A table of users and items without rows, with ids of this log's types."""
        return self.exposures.select(USER_ID, ITEM_ID).limit(0)

    def groups(self, key: str) -> ir.Table:
        """The values of a slice's key, one row each, also those of failed requests alone."""
        return self.once("groups", key, lambda: self._groups(key))

    def _groups(self, key: str) -> ir.Table:
        if not self.of_lists(key):
            return self.attempted(key).select(key).distinct()
        rest = self.attempted(key)
        no_list = rest[REQUEST_ID].isnull()
        if STATUS in rest.columns:
            no_list |= _without_answer(rest)
        return self.requests(key).select(key).union(rest.filter(no_list).select(key)).distinct()

    def side_by_side(self, key: str | None, *tables: ir.Table) -> ir.Table:
        """Aggregates of the same groups in one row each.

        Without a key every table has one row. With one there is a row for every group of the
        window; a group that is missing from a table gets nulls there.
        """
        if key is None:
            joined = tables[0]
            for other in tables[1:]:
                joined = joined.cross_join(other)
            return joined
        joined = self.groups(key)
        for other in tables:
            renamed = other.rename({"other_group": key})
            joined = joined.left_join(renamed, joined[key] == renamed["other_group"]).drop("other_group")
        return joined

    def add_key(
        self, key: str, added: Callable[[ir.Table], ir.Table], follows_from: str | None = None
    ) -> None:
        """Register a key that is not a column.

        Args:
            key: its name.
            added: gives the rows with it, as text.
            follows_from: the column of the exposures that alone says the value, if there is one. Then `added`
                takes every table with this column.
        """
        self._keys[key] = added
        if follows_from is not None:
            self._follows[key] = follows_from

    def of_lists(self, key: str) -> bool:
        """Whether it is known that all rows of a list have the same value of a key."""
        if key not in self._of_lists:
            column = self._follows.get(key)
            can_be = column is not None and column in self._divided_by and not self.distributed
            self._of_lists[key] = can_be and self._is_of_lists(str(column))
        self._asked.read(f"{_OF_LISTS}{key}", self._of_lists[key])
        return self._of_lists[key]

    def _is_of_lists(self, column: str) -> bool:
        lists = self._lists(None)
        flags = [name for name in lists.columns if name.startswith(_SEVERAL)]
        if f"{_SEVERAL}{column}" not in flags:
            return False
        build = lambda: lists.aggregate(**{flag: lists[flag].any() for flag in flags})  # noqa: E731
        (found,) = self._asked.answer("lists_divided", build)
        return not found[f"{_SEVERAL}{column}"]

    def rows(self, key: str | None = None) -> ir.Table:
        """The exposures, with the key of a slice as text that is never null."""
        if key is None:
            return self.exposures
        if key not in self._rows:
            added = self._keys.get(key, lambda rows: _with_text(rows, key))
            self._rows[key] = added(self.exposures)
        self._asked.read(key, self._rows[key].op())
        return self._rows[key]

    def _with_key(self, table: ir.Table, key: str) -> ir.Table:
        """A table with the column that a key follows from, and with the key."""
        self.rows(key)  # what `added` reads changes if that changes
        return self._keys[key](table)

    def attempted(self, key: str | None = None) -> ir.Table:
        """As `rows`, with the requests that got no answer."""
        if key is None:
            return self.attempts
        rows = self.rows(key)  # what this is built from changes if that changes
        if STATUS not in self.attempts.columns:
            return rows
        return self._keys.get(key, lambda table: _with_text(table, key))(self.attempts)

    def shown(self, key: str | None = None) -> ir.Table:
        """The exposures that show an item."""
        rows = self.rows(key)
        return rows.filter(rows[ITEM_ID].notnull())

    def requests(self, key: str | None = None) -> ir.Table:
        """One row a request (and group): its `user_id` and `length`.

        For the part of exposures also its time, scene, model and arm, its `items` as an array (repeats
        included; null if there is none), and the bounds of its positions and scores. For that of feedback,
        where the rows have positions, `position_min` and `straight`: whether the list shows an item at each
        position from the lowest to the highest, so that the place of an item needs no sorting. Only a list at
        positions 0 to 61 is called so.
        """
        lists = self._lists(key)
        return lists.drop(*(name for name in lists.columns if name.startswith((_SEVERAL, _ONE_OF_LIST))))

    def _lists(self, key: str | None) -> ir.Table:
        """`requests`, with what it does not show: the values that keys follow from."""
        return self.once("requests", key, lambda: self._requests(key))

    def _lists_with(self, key: str) -> ir.Table:
        """`requests` with a key of lists, without their items."""
        lists, column = self._lists(None), self._follows[key]
        shown = [name for name in self.requests().columns if name != ITEMS]
        value = lists[column if column in shown else _ONE_OF_LIST + column]
        others = [name for name in shown if name != column]
        return self._with_key(lists.select(*others, **{column: value}), key).select(*shown, key)

    def _requests(self, key: str | None) -> ir.Table:
        if key is not None and self.of_lists(key):
            return self._lists_with(key)
        rows = self.rows(key)
        rows = rows.filter(rows[REQUEST_ID].notnull())
        item = rows[ITEM_ID]
        # The smallest, not any: a broken log with two users in a request gives the same result each time.
        sums: dict[str, Any] = {USER_ID: rows[USER_ID].min(), LENGTH: item.count()}
        if self._part != FEEDBACK:
            kept = [c for c in _OF_LIST if c in rows.columns and c != key]
            sums |= {column: rows[column].min() for column in kept}
            sums |= {ITEMS: item.collect()}
            if POSITION in rows.columns:
                sums |= {_LOW: rows[POSITION].min(), _HIGH: rows[POSITION].max()}
            if SCORE in rows.columns:
                score = rows[SCORE]
                sums |= {"scored": score.count(), "score_min": score.min(), "score_max": score.max()}
        if key is None:
            sums |= self._divided(rows, sums)
        by = [REQUEST_ID, *listed(key)]
        if self._part == EXPOSURES_PART or POSITION not in rows.columns:
            return rows.aggregate(by=by, **sums)
        position = rows[POSITION]
        seen = position.between(0, _MOST_PLACES).ifelse(position, ibis.null("int64")).cast("int32")
        sums |= {_LOW: position.min(), _HIGH: position.max(), _ROWS: rows.count()}
        found = rows.aggregate(by=by, **sums, **{_PLACES: _bits_of_all(_ONE << seen)})
        low, high, length = found[_LOW], found[_HIGH], found[LENGTH]
        full = (found[_ROWS] == length) & (low >= 0) & (high <= _MOST_PLACES) & (high - low + 1 == length)
        # As many positions as there are from the lowest to the highest: none is missing or repeated.
        first, last = (one.clip(0, _MOST_PLACES).cast("int32") for one in (low, high))
        every = (_ONE << (last + 1)) - (_ONE << first)
        straight = ibis.ifelse(full, found[_PLACES] == every, False)
        return found.mutate(straight=straight.fill_null(False)).drop(_ROWS, _PLACES)

    def _divided(self, rows: ir.Table, known: Collection[str]) -> dict[str, ir.Value]:
        """The columns that keys follow from, unless they are known, and whether a list has several values."""
        found: dict[str, ir.Value] = {}
        for column in self._divided_by:
            if column in rows.columns and column not in _NAMES and _has_order(rows[column]):
                value = rows[column]
                differ = (value.min() != value.max()).fill_null(False)
                some = (value.count() > 0) & (value.count() < rows.count())
                found |= {f"{_SEVERAL}{column}": differ | some}
                found |= {} if column in known else {f"{_ONE_OF_LIST}{column}": value.min()}
        return found

    def list_items(self, key: str | None = None) -> ir.Table:
        """One row a request (and group) that shows an item: its `items` as an array, repeats included."""
        lists = self.requests(key)
        if key is not None and self.of_lists(key):
            items = self.requests().select(REQUEST_ID, ITEMS)
            lists = lists.select(REQUEST_ID, LENGTH, key).join(items, REQUEST_ID)
        return lists.filter(lists[LENGTH] > 0).select(REQUEST_ID, *listed(key), ITEMS)

    def user_items(self, key: str | None = None) -> ir.Table:
        """The distinct pairs of a user and an item shown to them, with `exposures` = how often."""
        pair = [USER_ID, ITEM_ID]
        return self.grouped(USER_ITEMS, key, pair, partial(self._counted, pair), stored=True)

    def item_counts(self, key: str | None = None) -> ir.Table:
        """The items shown, with `exposures` = how often, users without an id included."""
        return self.grouped(ITEM_COUNTS, key, [ITEM_ID], partial(self._counted, [ITEM_ID]), stored=True)

    def _counted(self, by: list[str], key: str | None) -> ir.Table:
        rows = self.rows(key)
        rows = rows.filter([rows[column].notnull() for column in by])
        return rows.aggregate(by=[*by, *listed(key)], **{EXPOSURES: rows.count()})

    @property
    def catalog_items(self) -> ir.Table:
        """The distinct item ids of the catalog."""
        if self.catalog is None:
            raise ValueError("there is no catalog")
        items = self.catalog.select(ITEM_ID)
        distinct = items.filter(items[ITEM_ID].notnull()).distinct()
        return self.once("catalog_items", None, lambda: distinct, lasting=CATALOG)


def answered(rows: ir.Table) -> ir.Table:
    """The rows without those of failed requests, which got no list, not an empty one."""
    if STATUS not in rows.columns:
        return rows
    return rows.filter(~_without_answer(rows))


def _without_answer(rows: ir.Table) -> ir.BooleanValue:
    """Whether a row is a failed request."""
    return (rows[ITEM_ID].isnull() & rows[STATUS].cast("string").isin(FAILURES)).fill_null(False)


def listed(key: str | None) -> list[str]:
    """The key as the list of columns to group by, empty without one."""
    return [] if key is None else [key]


def _has_order(column: ir.Column) -> bool:
    """Whether equal values can be told by the smallest and the largest one."""
    kind = column.type()
    return bool(kind.is_string() or kind.is_integer() or kind.is_boolean() or kind.is_temporal())


def _with_text(rows: ir.Table, key: str) -> ir.Table:
    column = rows[key]
    text = column if column.type().is_string() else column.cast("string")
    return rows.mutate(**{key: text.fill_null(NO_SLICE)})


def _without_nan_ids(table: ir.Table) -> ir.Table:
    """Ids read as floats (a pandas export with gaps) hold NaN in place of null."""
    floating = [
        c for c in (USER_ID, ITEM_ID, REQUEST_ID) if c in table.columns and table[c].type().is_floating()
    ]
    if not floating:
        return table
    return table.mutate(
        **{c: ibis.ifelse(table[c].isnan(), ibis.null(table[c].type()), table[c]) for c in floating}
    )
