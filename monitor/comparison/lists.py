"""The lists of two sides: how alike they are, and which items and users gain and lose by B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import ibis
import ibis.expr.types as ir
import pyarrow.parquet as pq

from monitor.core.columns import EXPOSURES, FEEDBACK, ITEM_ID, POSITION, REQUEST_ID, SCORE, USER_ID
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.empty import feedback_of
from monitor.logs.source import Source
from monitor.logs.windows import Parts
from monitor.metrics.attribution import COUNT, acted, of_event
from monitor.metrics.feedback.business import ratio_columns, ratio_sums
from monitor.metrics.shared import Shared
from monitor.rules.evidence import readable_rows
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.effects import Estimate, ratio_delta
from monitor.statistics.intervals import Interval, wilson

MOST: Final = 5
"""How many items and users of each kind are named, and how many items of an example's list."""
_EXAMPLES: Final = 3
_PLACE, _ACTED, _ROWS, _UNIT = "place", "acted", "rows", "unit"


@dataclass(frozen=True, slots=True)
class Moved:
    """An item or a user, with its value on both sides."""

    name: str
    one: float
    other: float


@dataclass(frozen=True, slots=True)
class Example:
    """A request that both sides answered, and the first items of both lists."""

    request: str
    one: Sequence[str]
    other: Sequence[str]


@dataclass(frozen=True, slots=True)
class Users:
    """Users whom both sides served, by their actions on the shown items.

    Attributes:
        more, fewer, same: how many users have more, fewer or equally many actions under B.
        share: of `more` among the users whose actions differ; None without one.
        interval: of that share; users are independent.
        winners, losers: the actions of those that differ most.
    """

    event: str
    more: int
    fewer: int
    same: int
    share: float | None
    interval: Interval | None
    winners: Sequence[Moved]
    losers: Sequence[Moved]


@dataclass(frozen=True, slots=True)
class Lists:
    """What the lists of both sides have in common.

    Attributes:
        requests: of A and of B.
        common: the requests that both answered.
        both_empty: common requests for which neither side shows an item; no overlap is known of them.
        overlap: the items on both lists, as a share of those on either (Jaccard), mean over common requests.
        rank: Spearman's correlation of the order of the items on both lists, mean over common requests with
            two such items or more; None if no position or score gives an order.
        ranked: the number of these requests.
        winners, losers: the items whose share of the exposures grew and shrank most.
        users: None if a side has no feedback, or they serve no user in common.
        examples: the common requests whose lists have least in common.
    """

    requests: tuple[int, int]
    common: int
    both_empty: int
    overlap: Estimate | None
    rank: Estimate | None
    ranked: int
    winners: Sequence[Moved]
    losers: Sequence[Moved]
    users: Users | None
    examples: Sequence[Example]


def shown_items(shared: Shared, settings: MetricSettings, event: str | None) -> ir.Table:
    """One row a request and item of it: its user, place and actions; the item is null for an empty list.

    Ids are text, so that logs with other types of ids can be compared. `place` is the position, or counts
    down with the score; null if the log has neither. An item that a list repeats counts once.

    Args:
        shared: the logs of a side.
        settings: of its metrics.
        event: whose actions are counted; None if the side has no feedback.
    """
    rows = shared.rows()
    place = rows[POSITION] if POSITION in rows.columns else -rows[SCORE] if SCORE in rows.columns else None
    placed = ibis.null("float64") if place is None else place.cast("float64")
    rows = rows.mutate(**{_PLACE: placed})
    rows = rows.filter(rows[REQUEST_ID].notnull())
    lists = rows.aggregate(
        by=[REQUEST_ID, ITEM_ID],
        **{USER_ID: rows[USER_ID].min(), _PLACE: rows[_PLACE].min(), _ROWS: rows.count()},
    )
    counted: ir.Value = ibis.null("float64")
    if event is not None:
        of = of_event(COUNT, list(settings.events).index(event))
        done = acted(shared, settings)
        done = done.select(done_request=done[REQUEST_ID], done_item=done[ITEM_ID], done=done[of])
        same = [lists[REQUEST_ID] == done.done_request, lists[ITEM_ID] == done.done_item]
        lists = lists.left_join(done, same)
        counted = lists.done.cast("float64").fill_null(0.0)
    ids = {name: lists[name].cast("string") for name in (REQUEST_ID, USER_ID, ITEM_ID)}
    return lists.select(**ids, **{_PLACE: lists[_PLACE], _ROWS: lists[_ROWS], _ACTED: counted})


def items_of(
    engine: Engine, source: Source, span: Window, settings: RecommenderSettings, event: str | None
) -> ir.Table | None:
    """The table of `shown_items` of a span; None without a row in it."""
    shown = source.load(engine, EXPOSURES, span, table="compared_exposures")
    if shown is None:
        return None
    actions = around = None
    if event is not None:
        # An action belongs to one list only, and that may be one outside the span.
        reach = Parts.of(source, settings.metrics.attribution).span(span, FEEDBACK)
        actions = feedback_of(engine, source, reach, "compared_feedback")
        around = source.load(engine, EXPOSURES, reach, table="compared_around")
    edges = (span.start.replace(tzinfo=None), span.end.replace(tzinfo=None))
    shared = Shared(
        shown, feedback=actions, responses=actions, around=around, window=edges, materialise=engine.create
    )
    return engine.create("compared_items", shown_items(shared, settings.metrics, event))


def written(items: ir.Table, path: Path) -> Path:
    """The file with the table of a side, which another engine can read."""
    batches = items.to_pyarrow_batches()
    with pq.ParquetWriter(path, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return path


def compare_lists(one: ir.Table, other: ir.Table, event: str | None, salt: str | None) -> Lists:
    """Compare the tables of `shown_items` of both sides, in one engine.

    Args:
        one, other: the tables of A and B.
        event: whose actions were counted, on both sides; None without feedback.
        salt: user ids are shown hashed with it; None shows them as they are.
    """
    a, b = _lists(one), _lists(other)
    requests = tuple(int(_row(side.aggregate(n=side.count()))["n"] or 0) for side in (a, b))
    both = a.join(b, REQUEST_ID)
    shared_items = _on_both(one, other)
    together = both.left_join(shared_items, both[REQUEST_ID] == shared_items.both_request)
    together = together.mutate(on_both=together.on_both.fill_null(0))
    either = together.length + together.length_right - together.on_both
    together = together.mutate(
        overlap=ibis.ifelse(either > 0, together.on_both / either.cast("float64"), ibis.null("float64"))
    )
    sums = _row(_means(together))
    ranked = ratio_sums(sums, "rank")
    winners, losers = _items(one, other)
    return Lists(
        (requests[0], requests[1]),
        int(sums["common"] or 0),
        int(sums["both_empty"] or 0),
        _within(ratio_delta(ratio_sums(sums, "overlap")), 0.0),
        _within(ratio_delta(ranked), -1.0),
        int(ranked.denominator),
        winners,
        losers,
        None if event is None else _users(one, other, event, salt),
        _examples(one, other, together),
    )


def _lists(rows: ir.Table) -> ir.Table:
    return rows.aggregate(
        by=REQUEST_ID, **{USER_ID: rows[USER_ID].min()}, length=rows[ITEM_ID].count().cast("int64")
    )


def _on_both(one: ir.Table, other: ir.Table) -> ir.Table:
    """One row a request with an item on both lists: their number, and the rank correlation of two or more.

    With ranks 1 to m it is 1 - 6 sum d^2 / (m (m^2 - 1)). Equal places are ordered by the item.
    """
    items = one.join(other, [REQUEST_ID, ITEM_ID])
    first, second = (
        ibis.row_number().over(
            ibis.window(group_by=items[REQUEST_ID], order_by=[items[place], items[ITEM_ID]])
        )
        for place in (_PLACE, f"{_PLACE}_right")
    )
    items = items.mutate(apart=(first - second).cast("float64"))
    known = items[_PLACE].notnull() & items[f"{_PLACE}_right"].notnull()
    found = items.aggregate(
        by=REQUEST_ID,
        on_both=items.count().cast("int64"),
        placed=known.cast("int64").sum(),
        squares=(items.apart * items.apart).sum(),
    )
    m = found.on_both.cast("float64")
    has_rank = (found.on_both > 1) & (found.placed == found.on_both)
    rank = ibis.ifelse(has_rank, 1.0 - 6.0 * found.squares / (m * (m * m - 1.0)), ibis.null("float64"))
    return found.select(both_request=found[REQUEST_ID], on_both=found.on_both, rank=rank)


def _means(together: ir.Table) -> ir.Table:
    """The sums of the means over requests, by user: requests of one user are not independent."""
    unit = ibis.ifelse(
        together[USER_ID].isnull(),
        ibis.literal("request ") + together[REQUEST_ID],
        ibis.literal("user ") + together[USER_ID],
    )
    together = together.mutate(**{_UNIT: unit})
    parts = {
        f"{name}_{kind}": value
        for name in ("overlap", "rank")
        for kind, value in (
            ("sum", together[name].sum().fill_null(0.0)),
            ("count", together[name].count().cast("float64")),
        )
    }
    units = together.aggregate(by=_UNIT, n=together.count(), **parts)
    return units.aggregate(
        common=units.n.sum(),
        both_empty=(units.n.cast("float64") - units.overlap_count).sum(),
        **ratio_columns("overlap", units.overlap_sum, units.overlap_count),
        **ratio_columns("rank", units.rank_sum, units.rank_count),
    )


def _within(estimate: Estimate | None, least: float) -> Estimate | None:
    """The interval without its part below the least possible value and above 1."""
    if estimate is None:
        return None
    lower, upper = estimate.interval
    return estimate._replace(interval=Interval(max(least, lower), min(1.0, upper)))


def _items(one: ir.Table, other: ir.Table) -> tuple[Sequence[Moved], Sequence[Moved]]:
    """The items whose share of the exposures grew, and shrank, most."""

    def shares(rows: ir.Table) -> ir.Table:
        rows = rows.filter(rows[ITEM_ID].notnull())
        counts = rows.aggregate(by=ITEM_ID, n=rows[_ROWS].sum().cast("float64"))
        return counts.select(name=counts[ITEM_ID], share=counts.n / counts.n.sum().over())

    return _extremes(_side_by_side(shares(one), shares(other), "share", outer=True))


def _users(one: ir.Table, other: ir.Table, event: str, salt: str | None) -> Users | None:
    def actions(rows: ir.Table) -> ir.Table:
        rows = rows.filter(rows[USER_ID].notnull())
        counts = rows.aggregate(by=USER_ID, n=rows[_ACTED].sum())
        return counts.select(name=counts[USER_ID], n=counts.n)

    both = _side_by_side(actions(one), actions(other), "n", outer=False)
    change = both.other - both.one
    counts = _row(
        both.aggregate(
            more=(change > 0).cast("int64").sum(),
            fewer=(change < 0).cast("int64").sum(),
            same=(change == 0).cast("int64").sum(),
        )
    )
    more, fewer, same = (int(counts[name] or 0) for name in ("more", "fewer", "same"))
    if not more + fewer + same:
        return None
    changed = more + fewer
    winners, losers = _extremes(both)
    if salt is not None:
        winners, losers = ([_hashed(user, salt) for user in users] for users in (winners, losers))
    return Users(
        event, more, fewer, same, more / changed if changed else None, wilson(more, changed), winners, losers
    )


def _hashed(user: Moved, salt: str) -> Moved:
    (row,) = readable_rows([{USER_ID: user.name}], salt=salt)
    return replace(user, name=str(row[USER_ID]))


def _side_by_side(one: ir.Table, other: ir.Table, value: str, *, outer: bool) -> ir.Table:
    """`name`, and the values `one` and `other`; 0 where only the other side has it."""
    both = one.outer_join(other, "name") if outer else one.join(other, "name")
    name = ibis.coalesce(both["name"], both["name_right"]) if outer else both["name"]
    return both.select(name=name, one=both[value].fill_null(0.0), other=both[f"{value}_right"].fill_null(0.0))


def _extremes(both: ir.Table) -> tuple[Sequence[Moved], Sequence[Moved]]:
    """Those that grew most, and those that shrank most; ties by name."""
    change = both.other - both.one
    both = both.mutate(change=change)
    found = []
    for changed, order in ((both.change > 0, both.change.desc()), (both.change < 0, both.change.asc())):
        rows = both.filter(changed).order_by([order, both["name"]]).limit(MOST)
        found.append([Moved(row["name"], row["one"], row["other"]) for row in rows.to_pyarrow().to_pylist()])
    return found[0], found[1]


def _examples(one: ir.Table, other: ir.Table, together: ir.Table) -> Sequence[Example]:
    least = together.filter(together.overlap < 1).order_by([together.overlap, together[REQUEST_ID]])
    chosen = [row[REQUEST_ID] for row in least.limit(_EXAMPLES).select(REQUEST_ID).to_pyarrow().to_pylist()]
    if not chosen:
        return []
    sides = []
    for side in (one, other):
        rows = side.filter(side[REQUEST_ID].isin(chosen), side[ITEM_ID].notnull())
        rows = rows.order_by([rows[REQUEST_ID], rows[_PLACE], rows[ITEM_ID]])
        items: dict[str, list[str]] = {}
        for row in rows.select(REQUEST_ID, ITEM_ID).to_pyarrow().to_pylist():
            items.setdefault(row[REQUEST_ID], []).append(row[ITEM_ID])
        sides.append(items)
    return [Example(request, *(side.get(request, [])[:MOST] for side in sides)) for request in chosen]


def _row(table: ir.Table) -> Mapping[str, Any]:
    (row,) = table.to_pyarrow().to_pylist()
    return dict(row)
