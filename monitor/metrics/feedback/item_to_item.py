"""Item-to-item recall: does the list on an item's page hold the next item of its users?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ibis
import ibis.expr.types as ir

from monitor.core.columns import EVENT, ITEM_ID, REQUEST_ID, TS, USER_ID
from monitor.core.results import Result
from monitor.logs.canonical import identifier
from monitor.metrics.family import AggregateRow, Family, MetricSpec, Theme, make
from monitor.metrics.feedback.ranked import PLACE, in_order, no_order, ordering
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

ITEM_TO_ITEM_RECALL = MetricSpec(
    name="item_to_item_recall",
    better="higher",
    theme=Theme.LISTS,
    help="Share of users' steps from one item to the next whose second item was in the first k places of "
    "the first item's list.",
    unit="ratio",
    labels=("k",),
    interval="Wilson",
    parameters=("events", "seed_item"),
    formula="over the pairs of two actions of a user that follow each other in time: pairs whose second "
    "item is in the first k places of the list of the first item / pairs whose first item has a list. "
    "Actions are those of the window with a grade above 0, those on one item at one moment being one. The "
    "list of an item is the latest of the window that was shown on its page (`seed_item`).",
    answers="Do 'similar items' and 'people also bought' show the items that users go to next?",
    misleads="The list itself influences the next item. A step from an item to itself (a click, then the "
    "purchase) always misses. Two actions an hour apart are a step, just like two within a minute. Pairs of "
    "one user are not independent, so the interval is a little too narrow.",
    requires=(
        "the column of exposures that `seed_item` names",
        "exposures.position or exposures.score",
        "feedback",
    ),
    samples="pairs of following actions whose first item has a list",
    no_data="nobody acted twice; no item acted on first has a list",
)
_SEED = "seed"
_NEXT = "next_item"
_PAIRS = "pairs"


class ItemToItem(Family):
    """The list looked up from one action, scored against the next."""

    name = "item_to_item"
    outputs = ((ITEM_TO_ITEM_RECALL, ()),)
    needs = ("feedback",)
    together = False

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        missing = super().reason_not(shared, settings)
        if missing is None and settings.seed_item is None:
            return "needs the setting seed_item: a column with the item on whose page a list was shown"
        return missing or shared.lack(f"exposures.{settings.seed_item}") or no_order(shared)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        pairs = shared.once("steps", None, lambda: _steps(shared, settings))
        lists = shared.once("seed_lists", key, lambda: _latest_lists(shared, settings, pairs, key))
        places = shared.once("seed_places", key, lambda: _places(shared, settings, lists, pairs, key))
        judged = lists.join(pairs, _SEED)
        judged = judged.aggregate(by=by, judged=judged[_PAIRS].sum())
        sums: dict[str, Any] = {
            f"hits_{k}": ibis.ifelse(places[PLACE] <= k, places[_PAIRS], 0).sum() for k in settings.k
        }
        every = pairs.aggregate(pairs=pairs[_PAIRS].sum())
        return shared.side_by_side(key, judged, places.aggregate(by=by, **sums)).cross_join(every)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        pairs, judged = int(row["pairs"] or 0), int(row["judged"] or 0)
        nothing = "no item that was acted on first has a list" if pairs else "nobody acted twice"
        left_out = f"left out: {pairs - judged:,} of {pairs:,} pairs without a list" if judged < pairs else ""
        for k in settings.k:
            builder = make(ITEM_TO_ITEM_RECALL, settings, k=str(k))
            yield builder.share(row[f"hits_{k}"], judged, nothing, detail=left_out)


def _steps(shared: Shared, settings: MetricSettings) -> ir.Table:
    """`pairs`: the number of steps from the item `seed` to `next_item`."""
    rows = shared.feedback
    assert rows is not None
    liked = [event for event, one in settings.events.items() if one.grade > 0]
    known = [rows[column].notnull() for column in (USER_ID, ITEM_ID, TS)]
    rows = rows.filter(rows[EVENT].isin(liked), *known).select(USER_ID, TS, ITEM_ID).distinct()
    in_time = ibis.window(group_by=USER_ID, order_by=[rows[TS], rows[ITEM_ID]])
    rows = rows.select(**{_SEED: rows[ITEM_ID].cast("string"), _NEXT: rows[ITEM_ID].lead().over(in_time)})
    rows = rows.filter(rows[_NEXT].notnull())
    return rows.aggregate(by=[_SEED, _NEXT], **{_PAIRS: rows.count()})


def _latest_lists(shared: Shared, settings: MetricSettings, pairs: ir.Table, key: str | None) -> ir.Table:
    """`seed`, the group and the request_id of the latest list on the page of each item of a step."""
    rows = _on_pages(shared, settings, key)
    rows = rows.semi_join(pairs, _SEED)
    shown = rows.aggregate(by=[_SEED, REQUEST_ID, *listed(key)], **{TS: rows[TS].max()})
    newest_first = ibis.window(
        group_by=[_SEED, *listed(key)], order_by=[ibis.desc(TS), ibis.desc(REQUEST_ID)]
    )
    shown = shown.mutate(nth=ibis.row_number().over(newest_first))
    return shown.filter(shown.nth == 0).select(_SEED, REQUEST_ID, *listed(key))


def _places(
    shared: Shared, settings: MetricSettings, lists: ir.Table, pairs: ir.Table, key: str | None
) -> ir.Table:
    """One row a step (and group) whose list held the next item: its `place`, and the number of `pairs`."""
    owner = [_SEED, REQUEST_ID, *listed(key)]
    rows = _on_pages(shared, settings, key)
    rows = rows.filter(rows[ITEM_ID].notnull()).semi_join(lists, owner)
    columns = rows.columns
    next_item = {ITEM_ID: pairs[_NEXT]}
    rows = rows.left_join(pairs.select(_SEED, _PAIRS, **next_item), [_SEED, ITEM_ID])
    ranked = in_order(rows.select(*columns, _PAIRS), owner)
    hits = ranked.filter(ranked[_PAIRS].notnull())
    return hits.aggregate(
        by=[_SEED, ITEM_ID, *listed(key)], **{PLACE: hits[PLACE].min(), _PAIRS: hits[_PAIRS].min()}
    )


def _on_pages(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    """The exposures on an item's page, with that item as text in `seed`, read as the logs' own ids are."""
    rows = shared.rows(key)
    assert settings.seed_item is not None
    rows = rows.mutate(**{_SEED: identifier(rows[settings.seed_item], "string")})
    rows = rows.filter(rows[_SEED].notnull(), rows[REQUEST_ID].notnull())
    return rows.select(_SEED, REQUEST_ID, TS, ITEM_ID, *listed(key), *ordering(rows))
