"""Update rate: how much of a list is new compared with the list before it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial, reduce

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, REQUEST_ID, SCENE, TS, USER_ID
from monitor.core.results import Result
from monitor.core.text import plural
from monitor.metrics.family import AggregateRow, Family, MetricSpec, make
from monitor.metrics.history import DayCounts
from monitor.metrics.shared import ITEMS, LENGTH, Shared, listed
from monitor.settings.metrics import MetricSettings

UPDATE_RATE = MetricSpec(
    name="update_rate",
    help="Items of a list that were not in the previous list, divided by the length of the previous list.",
    unit="ratio",
    by=("refresh", "day"),
    interval="Wilson of means",
    range=(0.0, math.inf),
    formula="for two consecutive lists of the same user in the same scene: items of the newer list that "
    "are not in the older / length of the older; mean over pairs. refresh: each request against the "
    "user's previous one in the window (by ts, then request_id). day: a user's set of the day against "
    "the day before's. Where a pair passes 1, the interval is the normal one from 0 on.",
    answers="Do returning users see something new?",
    misleads="It can exceed 1 if the newer list is longer. Pairs with an empty older list are left out. The "
    "first request of every user in a window has no older one. Pairs of one user are not independent, so "
    "the interval is somewhat too narrow. day compares the day so far with the whole day before, so it "
    "grows during the day: compare the same hours, or the last window of each day. day is not measured if "
    "windows do not divide a day, such as windows of 7h or 2d.",
    requires=("exposures", "the pairs of two days (day)"),
    samples="pairs of lists; users seen on both days",
    no_data="no user with two lists; nothing known of the day before; no user seen on both days",
    undefined="the older list of every pair is empty",
)

_SHORT = 32 * 32  # up to so many comparisons, comparing all items with all is cheapest
_PAIR = [USER_ID, ITEM_ID]


class RefreshRate(Family):
    """Each request against the same user's previous one in the same scene."""

    name = "update_rate"
    outputs = ((UPDATE_RATE, ("refresh",)),)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        kept = shared.grouped("list_rates", key, (USER_ID,), partial(self._rates, shared), by_list=True)
        sums = kept.aggregate(
            by=listed(key),
            pairs=kept.rate.count(),
            empty=(kept.older_length == 0).sum(),
            total=kept.rate.sum(),
            squares=(kept.rate * kept.rate).sum(),
            most=kept.rate.max(),
        )
        return shared.side_by_side(key, sums)

    def _rates(self, shared: Shared, key: str | None) -> ir.Table:
        """One row a request with an older one: its user, the length of the older list, and the rate."""
        pairs = shared.once("list_pairs", key, lambda: self._pairs(shared, key))
        short = pairs[LENGTH] * pairs.older_length <= _SHORT
        kept = self._kept_of_short_lists(shared, pairs.filter(short), key)
        kept = kept.union(self._kept_of_long_lists(shared, pairs.filter(~short), key))
        return kept.select(
            USER_ID,
            *listed(key),
            "older_length",
            rate=(kept[LENGTH] - kept.kept).cast("float64") / kept.older_length.cast("float64").nullif(0.0),
        )

    @staticmethod
    def _pairs(shared: Shared, key: str | None) -> ir.Table:
        """The requests that have an older one of the same user and scene, with its id and length."""
        requests = shared.requests(key)
        requests = requests.filter(requests[USER_ID].notnull())
        scene = [SCENE] if SCENE in requests.columns else []
        course = ibis.window(
            group_by=[USER_ID, *scene, *(c for c in listed(key) if c not in scene)], order_by=[TS, REQUEST_ID]
        )
        pairs = requests.select(
            REQUEST_ID,
            USER_ID,
            LENGTH,
            *listed(key),
            older=requests[REQUEST_ID].lag().over(course),
            older_length=requests[LENGTH].lag().over(course),
        )
        return pairs.filter(pairs.older.notnull())

    @staticmethod
    def _kept_of_short_lists(shared: Shared, pairs: ir.Table, key: str | None) -> ir.Table:
        """The pairs, with `kept`: how many items of the newer list are in the older one.

        Every item is compared with every item of the older list, which is cheapest for short lists.
        """
        by = listed(key)
        lists = shared.list_items(key)
        older = lists.select("items", *by, older=REQUEST_ID).rename(older_items="items")
        both = pairs.join(lists, [REQUEST_ID, *by]).join(older, ["older", *by])
        in_older = lambda one: both.older_items.contains(one)  # noqa: E731, PLW0108 - Ibis passes it by name
        kept = both.select(REQUEST_ID, *by, kept=both["items"].filter(in_older).length())
        return _with_kept(pairs, kept, by)

    @staticmethod
    def _kept_of_long_lists(shared: Shared, pairs: ir.Table, key: str | None) -> ir.Table:
        """The same by a join, whose cost does not grow with the square of the length."""
        by = listed(key)
        lists = shared.list_items(key)
        newer = pairs.select(REQUEST_ID, "older", *by).join(lists, [REQUEST_ID, *by]).unnest("items")
        older = lists.semi_join(pairs, [lists[REQUEST_ID] == pairs.older, *by]).unnest("items")
        older = older.select("items", *by, older=REQUEST_ID).distinct()
        both = newer.semi_join(older, ["older", "items", *by])
        return _with_kept(pairs, both.aggregate(by=[REQUEST_ID, *by], kept=both.count()), by)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        builder = make(UPDATE_RATE, settings, "refresh").up_to(row["most"])
        pairs, empty = row["pairs"] or 0, row["empty"] or 0
        if pairs == 0 and empty:
            yield builder.undefined(f"the older list of every pair is empty ({plural(empty, 'pair')})", 0)
            return
        left_out = f"left out: {plural(empty, 'pair')} whose older list is empty" if empty else ""
        nothing = "no user has two lists in the window"
        yield builder.mean(pairs, row["total"], row["squares"], nothing, detail=left_out)


class DayRate(Family):
    """The items of a user on a day compared with those of the day before."""

    name = "update_rate_day"
    outputs = ((UPDATE_RATE, ("day",)),)
    sliced = False
    looks_back = True

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        return None if shared.knows_today else "needs windows that divide a day"

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        if key is not None:
            return _of_windows(shared, key)
        if shared.day_counts is not None:
            return _from_counts(shared, shared.day_counts)
        before, now = shared.previous_day_user_items, shared.today_user_items
        assert now is not None
        if before is None:
            return (
                shared.nothing()
                .aggregate(pairs=ibis._.count())
                .mutate(known=False, total=0.0, squares=0.0, most=0.0)
            )
        before, now = (_distinct_pairs(table, _PAIR) for table in (before, now))
        older = before.aggregate(by=USER_ID, older_length=before.count().cast("float64"))
        seen = now.select(USER_ID).distinct()
        new = now.anti_join(before, _PAIR)
        new = new.aggregate(by=USER_ID, new=new.count().cast("float64"))
        pairs = older.semi_join(seen, USER_ID).left_join(new, USER_ID)
        return _rates(pairs.select("new", "older_length")).mutate(known=True)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        nothing = "no user was shown an item on both days"
        if not row["known"]:
            nothing = "the history has no exposures of the day before yet"
        builder = make(UPDATE_RATE, settings, "day").up_to(row["most"])
        yield builder.mean(row["pairs"], row["total"], row["squares"], nothing)


def _from_counts(shared: Shared, days: DayCounts) -> ir.Table:
    """The sums where the pairs of both days were counted up to the window."""
    shown = _distinct_pairs(shared.user_items(), _PAIR)
    new = shown.anti_join(days.shown, _PAIR)
    parts = [new.aggregate(by=USER_ID, new=new.count()), shown.select(USER_ID, new=ibis.literal(0, "int64"))]
    if days.new is not None:
        parts.append(days.new.select(USER_ID, new=days.new[ITEMS]))
    every = reduce(lambda one, other: one.union(other), parts)
    users = every.aggregate(by=USER_ID, new=every.new.sum().cast("float64"))
    older = days.items.select(USER_ID, older_length=days.items[ITEMS].cast("float64"))
    pairs = older.join(users, USER_ID)
    return _rates(pairs.select("new", "older_length")).mutate(known=True)


def _of_windows(shared: Shared, key: str) -> ir.Table:
    """The sums of windows that are measured together: each has the pairs of the day up to its own end."""
    before, earlier = shared.previous_day_user_items, shared.today_user_items
    windows = shared.groups(key)
    if before is None:
        return windows.mutate(pairs=0, known=False, total=0.0, squares=0.0, most=0.0)
    before = _distinct_pairs(before, _PAIR)
    older = before.aggregate(by=USER_ID, older_length=before.count().cast("float64"))
    shown = shared.user_items(key).select(*_PAIR, since=key)
    if earlier is not None:
        shown = shown.union(_distinct_pairs(earlier, _PAIR).mutate(since=ibis.literal(0, "int64")))
    seen = shown.aggregate(by=USER_ID, seen_since=shown.since.min())
    new = shown.anti_join(before, _PAIR)
    new = new.aggregate(by=_PAIR, since=new.since.min())
    new = new.aggregate(by=[USER_ID, "since"], items=new.count().cast("float64"))
    users = older.join(seen, USER_ID)
    users = users.join(windows, users.seen_since <= windows[key]).drop("seen_since")
    both = users.left_join(new, [users[USER_ID] == new[USER_ID], new.since <= users[key]])
    both = both.select(USER_ID, key, "older_length", "items")
    pairs = both.aggregate(by=[USER_ID, key], older_length=both.older_length.max(), new=both["items"].sum())
    return shared.side_by_side(key, _rates(pairs, key)).mutate(known=True)


def _rates(pairs: ir.Table, key: str | None = None) -> ir.Table:
    """The sums over users of the new items as a share of those of the day before."""
    rate = pairs.new.fill_null(0.0) / pairs.older_length
    return pairs.aggregate(
        by=listed(key), pairs=pairs.count(), total=rate.sum(), squares=(rate * rate).sum(), most=rate.max()
    )


def _with_kept(pairs: ir.Table, kept: ir.Table, by: list[str]) -> ir.Table:
    joined = pairs.left_join(kept, [REQUEST_ID, *by])
    return joined.select(USER_ID, *by, LENGTH, "older_length", kept=joined.kept.fill_null(0))


def _distinct_pairs(table: ir.Table, columns: list[str]) -> ir.Table:
    table = table.select(*columns)
    return table.filter([table[USER_ID].notnull(), table[ITEM_ID].notnull()]).distinct()
