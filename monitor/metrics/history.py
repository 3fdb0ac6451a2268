"""What was shown before the window: pairs of users and items, in one or two parts.

The windows of a day share most of their history. Where windows are judged one after the other, the whole days
that all of them look back on are the *lasting* part: it is read and added up once a day. The *recent* part is
the rest, and a new one for each window. A pair may be in both, so each sum here says how the parts add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, Protocol

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, USER_ID

EXPOSURES: Final = "exposures"
USERS: Final = "users"
LASTING: Final = "history"
"""The name under which an `Executor` knows whether tables of the lasting part still hold."""
WINDOW: Final = "__monitor_window"
"""The key by which windows that are measured together are told apart: their number, from 0."""
_PAIR: Final = [USER_ID, ITEM_ID]
_NEVER, _NEVER_MORE = 2**31, -1


@dataclass(frozen=True, slots=True)
class DayCounts:
    """What a day and the day before have shown before a window.

    Attributes:
        items: the number of `items` of each user on the day before.
        new: the number of `items` of each user on this day that the user was not shown on the day before. It
            is 0 for a user who saw nothing new. None if nothing was shown on this day.
        shown: the pairs of both days; one may come several times.
    """

    items: ir.Table
    new: ir.Table | None
    shown: ir.Table


class Tables(Protocol):
    """Where tables are stored, and the window's own pairs; see `monitor.metrics.shared.Shared`."""

    def once(
        self, name: str, key: str | None, build: Callable[[], ir.Table], *, lasting: str | None = None
    ) -> ir.Table: ...

    def user_items(self, key: str | None = None) -> ir.Table: ...

    def item_counts(self, key: str | None = None) -> ir.Table: ...

    def groups(self, key: str) -> ir.Table: ...


class History:
    """The pairs shown before the window, each part with distinct pairs and their `exposures`.

    `owner` are the columns besides user and item that its tables have: none.

    Args:
        shared: stores the tables.
        recent: the part that this window alone looks back on.
        lasting: the part that other windows look back on as well.
        store: whether `recent` is small enough to be stored at its first use.
        counts: the exposures by user, and the exposures and users by item, by the column's name, if they were
            counted before. Then a pair may come several times in `recent`, and nothing is lasting.
    """

    owner: tuple[str, ...] = ()

    def __init__(
        self,
        shared: Tables,
        recent: ir.Table | None,
        lasting: ir.Table | None,
        *,
        store: bool,
        counts: Mapping[str, ir.Table] | None = None,
    ) -> None:
        self._shared = shared
        self._recent = recent
        self._lasting = lasting
        self._store = store
        self._counts = counts or {}

    @property
    def parts(self) -> list[ir.Table]:
        """The tables of pairs."""
        return [
            part()
            for part, table in ((self._new, self._recent), (self._old, self._lasting))
            if table is not None
        ]

    def any(self) -> ir.Table:
        """One row (a window) with the column `history`: 1 if anything was shown, else 0."""

        def build() -> ir.Table:
            first = _together([part.select(USER_ID).limit(1) for part in self.parts]).limit(1)
            return first.aggregate(history=ibis._.count())

        return self._shared.once("any_history", None, build)

    def known(self) -> ir.Table:
        """The window's pairs that were shown before."""

        def build() -> ir.Table:
            now = self._shared.user_items().select(_PAIR)
            if self._lasting is None:
                return now.semi_join(self._new(), _PAIR)
            return _together([part.select(_PAIR).semi_join(now, _PAIR) for part in self.parts]).distinct()

        return self._shared.once("known_pairs", None, build)

    def of_users(self, users: ir.Table) -> ir.Table:
        """The pairs of these users; one may come several times."""
        return _together([part.select(_PAIR).semi_join(users, USER_ID) for part in self.parts])

    def number_of_users(self) -> ir.Table:
        """One row (a window): `history_users`, the number of users who were shown anything."""
        return self._shared.once(
            "history_users", None, lambda: self.by_user().aggregate(history_users=ibis._.count())
        )

    def by_user(self) -> ir.Table:
        """One row for each user: `exposures`."""
        return self._by(USER_ID, lambda old: [_sums(self._new(), USER_ID), old])

    def by_item(self) -> ir.Table:
        """One row for each item (and window): `users` who were shown it, and its `exposures`."""

        def added(old: ir.Table) -> list[ir.Table]:
            new = self._new()
            both = new.semi_join(self._old(), _PAIR).group_by(ITEM_ID).aggregate(twice=ibis._.count())
            repeated = both.select(ITEM_ID, **{EXPOSURES: ibis.literal(0, "int64"), USERS: -both.twice})
            return [_sums(new, ITEM_ID), repeated, old]

        return self._by(ITEM_ID, added)

    def _by(self, column: str, added: Callable[[ir.Table], list[ir.Table]]) -> ir.Table:
        """The parts by user or item; `added` gives the tables that add up, given that of the lasting part."""

        if column in self._counts:
            return self._counts[column]

        def lasting() -> ir.Table:
            return self._shared.once(
                f"history_lasting_by_{column}", None, lambda: _sums(self._old(), column), lasting=LASTING
            )

        def build() -> ir.Table:
            if self._lasting is None:
                return _sums(self._new(), column)
            every = _together(added(lasting()))
            sums = {one: every[one].sum().cast("int64") for one in (EXPOSURES, USERS)}
            return every.group_by(column).aggregate(**sums)

        if self._recent is None:
            return lasting()
        return self._shared.once(f"history_by_{column}", None, build)

    def _new(self) -> ir.Table:
        recent = self._recent
        assert recent is not None  # it is asked for only if it is there
        return self._shared.once("history_pairs", None, lambda: recent) if self._store else recent

    def _old(self) -> ir.Table:
        lasting = self._lasting
        assert lasting is not None
        return self._shared.once("history_lasting", None, lambda: lasting, lasting=LASTING)


class HistoryOfWindows:
    """The pairs shown before each of several windows that are measured together; see `History`.

    All windows look back on the lasting part. A recent pair was shown in one window, and those of the next
    `reach` windows look back on it. So of the windows measured here these are the first ones, up to one
    (`upto`), or all from one on (`since`).

    Args:
        shared: stores the tables.
        before: the recent pairs of windows before these, with the window's number (below 0) in `WINDOW`.
        lasting: the pairs that all look back on.
        reach: how many windows each looks back on; at least as many as are measured.
    """

    owner = (WINDOW,)

    def __init__(self, shared: Tables, before: ir.Table | None, lasting: ir.Table | None, reach: int) -> None:
        self._shared = shared
        self._before = before
        self._lasting = lasting
        self._reach = reach

    def any(self) -> ir.Table:
        groups = self._shared.groups(WINDOW)
        if self._lasting is not None:
            return groups.mutate(history=ibis.literal(1))
        pairs = self._pairs()
        edges = pairs.aggregate(upto=pairs.upto.max(), since=pairs.since.min())
        both = groups.cross_join(edges)
        return both.select(WINDOW, history=_looks_back(both).fill_null(False).cast("int64"))

    def known(self) -> ir.Table:
        def build() -> ir.Table:
            now = self._shared.user_items(WINDOW).select(WINDOW, *_PAIR)
            both = now.join(self._pairs(), _PAIR)
            found = both.filter(_looks_back(both)).select(WINDOW, *_PAIR)
            if self._lasting is None:
                return found
            return _together([found, now.semi_join(self._old(), _PAIR)]).distinct()

        return self._shared.once("known_pairs", WINDOW, build)

    def of_users(self, users: ir.Table) -> ir.Table:
        """The pairs of the users of each window; one that is in both parts comes twice."""
        owners = users.select(WINDOW, USER_ID).distinct()
        both = owners.join(self._pairs(), USER_ID)
        parts = [both.filter(_looks_back(both)).select(WINDOW, *_PAIR)]
        if self._lasting is not None:
            parts.append(owners.join(self._old(), USER_ID).select(WINDOW, *_PAIR))
        return _together(parts)

    def number_of_users(self) -> ir.Table:
        def build() -> ir.Table:
            pairs, lasting = self._pairs(), self._lasting
            users = pairs.group_by(USER_ID).aggregate(upto=pairs.upto.max(), since=pairs.since.min())
            if lasting is not None:
                users = users.anti_join(self._old(), USER_ID)
            new = _running(_changes(users, [], {USERS: ibis.literal(1)}), self._shared.groups(WINDOW), [])
            if lasting is None:
                return new.select(WINDOW, history_users=new[USERS])
            old = self._old()
            both = new.cross_join(old.aggregate(old=old[USER_ID].nunique()))
            return both.select(WINDOW, history_users=both[USERS] + both.old)

        return self._shared.once("history_users", WINDOW, build)

    def by_item(self) -> ir.Table:
        """The items that are shown in a window: no other one is compared."""

        def build() -> ir.Table:
            wanted = self._shared.item_counts(WINDOW).select(WINDOW, ITEM_ID)
            new = self._pairs()
            if self._lasting is not None:
                new = new.anti_join(self._old(), _PAIR)
            shown = self._recent()
            times = _with_edges(
                shown.group_by([ITEM_ID, WINDOW]).aggregate(**{EXPOSURES: shown[EXPOSURES].sum()}),
                self._reach,
            )
            none, one = ibis.literal(0), ibis.literal(1)
            changes = [
                *_changes(new.semi_join(wanted, ITEM_ID), [ITEM_ID], {USERS: one, EXPOSURES: none}),
                *_changes(
                    times.semi_join(wanted, ITEM_ID), [ITEM_ID], {USERS: none, EXPOSURES: times[EXPOSURES]}
                ),
            ]
            recent = _running(changes, wanted, [ITEM_ID])
            if self._lasting is None:
                return recent
            old = self._shared.once(
                f"history_lasting_by_{ITEM_ID}", None, lambda: _sums(self._old(), ITEM_ID), lasting=LASTING
            )
            both = recent.left_join(old, ITEM_ID)
            added = {one: both[one] + both[f"{one}_right"].fill_null(0) for one in (USERS, EXPOSURES)}
            return both.select(WINDOW, ITEM_ID, **added)

        return self._shared.once(f"history_by_{ITEM_ID}", WINDOW, build)

    def _recent(self) -> ir.Table:
        """The pairs of each window that only some look back on."""
        now = self._shared.user_items(WINDOW).select(WINDOW, *_PAIR, EXPOSURES)
        before = self._before
        return now if before is None else _together([now, before.select(WINDOW, *_PAIR, EXPOSURES)])

    def _pairs(self) -> ir.Table:
        """The recent pairs, each once, with `upto` and `since`."""

        def build() -> ir.Table:
            shown = _with_edges(self._recent(), self._reach)
            return shown.group_by(_PAIR).aggregate(upto=shown.upto.max(), since=shown.since.min())

        return self._shared.once("history_pairs", WINDOW, build)

    def _old(self) -> ir.Table:
        lasting = self._lasting
        assert lasting is not None
        return self._shared.once("history_lasting", None, lambda: lasting, lasting=LASTING)


def _with_edges(shown: ir.Table, reach: int) -> ir.Table:
    """The rows of each window with the last window that looks back on them, or the first one."""
    number = shown[WINDOW]
    return shown.mutate(
        upto=ibis.ifelse(number < 0, number + reach, _NEVER_MORE),
        since=ibis.ifelse(number < 0, _NEVER, number + 1),
    )


def _looks_back(rows: ir.Table) -> ir.BooleanValue:
    """Whether the window of a row looks back on what has these edges."""
    return (rows[WINDOW] <= rows.upto) | (rows[WINDOW] >= rows.since)


def _changes(rows: ir.Table, by: list[str], values: Mapping[str, ir.Value]) -> list[ir.Table]:
    """From which window on the values count, and from which no more."""
    off = {name: -value for name, value in values.items()}
    first, gap = rows.upto >= 0, rows.since > rows.upto + 1
    ends, begins = first & gap, gap & (rows.since < _NEVER)
    found = [
        (first, ibis.literal(0), values),
        (ends, rows.upto + 1, off),
        (begins, rows.since, values),
    ]
    return [
        rows.filter(when).select(*by, **{WINDOW: number.cast("int64")}, **_whole(amounts))
        for when, number, amounts in found
    ]


def _running(changes: Sequence[ir.Table], wanted: ir.Table, by: list[str]) -> ir.Table:
    """The sums of all changes up to each wanted window."""
    names = [name for name in changes[0].columns if name not in (WINDOW, *by)]
    nothing = wanted.select(*by, WINDOW, **{name: ibis.literal(0).cast("int64") for name in names})
    every = _together([*(one.select(*by, WINDOW, *names) for one in changes), nothing])
    sums = every.group_by([*by, WINDOW]).aggregate(**{name: every[name].sum() for name in names})
    so_far = ibis.cumulative_window(group_by=by or None, order_by=sums[WINDOW])
    added = sums.select(*by, WINDOW, **{name: sums[name].sum().over(so_far).cast("int64") for name in names})
    return added.semi_join(wanted, [*by, WINDOW])


def _whole(values: Mapping[str, ir.Value]) -> dict[str, ir.Value]:
    return {name: value.cast("int64") for name, value in values.items()}


def _counted(pairs: ir.Table) -> dict[str, ir.Value]:
    return {EXPOSURES: pairs[EXPOSURES].sum().cast("int64"), USERS: pairs.count().cast("int64")}


def _sums(pairs: ir.Table, column: str) -> ir.Table:
    """By user or item: the exposures, and the number of pairs, which of an item is that of its users."""
    return pairs.group_by(column).aggregate(**_counted(pairs))


def _together(parts: Sequence[ir.Table]) -> ir.Table:
    return reduce(lambda one, other: one.union(other), parts)
