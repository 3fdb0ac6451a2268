"""Concentration: how unevenly exposures fall on items, compared with the users' own actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import EVENT, ITEM_ID
from monitor.core.results import Result
from monitor.metrics.family import NOTHING_SHOWN, AddsUp, AggregateRow, Family, MetricSpec, make
from monitor.metrics.history import EXPOSURES
from monitor.metrics.shared import ITEM_COUNTS, Shared, listed
from monitor.settings.metrics import MetricSettings

GINI = MetricSpec(
    name="gini",
    help="Gini index of exposures over all catalog items; 0: all items are equal, 1: one item has all "
    "exposures.",
    formula="items of I sorted by exposures n_(1) <= ... <= n_(N), zeros included: sum((2i - N - 1) "
    "n_(i)) / ((N - 1) sum n)",
    answers="Is the traffic concentrated on few items of the catalog?",
    misleads="If the catalog is much larger than a window's exposures, the value is always high: watch its "
    "change, and gini_exposed too.",
    requires=("exposures", "catalog"),
    samples="items of the catalog",
    no_data="no exposures",
    undefined="a catalog of fewer than two items; nothing shown that is in the catalog",
)
GINI_EXPOSED = MetricSpec(
    name="gini_exposed",
    help="Gini index of exposures over the items shown at least once.",
    formula="as gini, over the items with n >= 1, whether the catalog holds them or not",
    answers="Among the shown items, do a few take most of the traffic?",
    misleads="It falls when weak items are no longer shown at all: read it together with coverage by item.",
    requires=("exposures",),
    samples="items shown",
    no_data="no exposures",
    undefined="one item only",
)
POPULARITY_SHARE = MetricSpec(
    name="popularity_share",
    help="Share of all exposures that the most shown items take.",
    unit="ratio",
    by=("top_1_percent", "top_10_percent", "top_item"),
    formula="exposures of the top ceil(k / 100), ceil(k / 10), 1 of the k items shown / exposures",
    answers="How much of the traffic do the most shown items take?",
    misleads="Under 100 items shown, the top 1 % is the top item.",
    requires=("exposures",),
    samples="exposures",
    no_data="no exposures",
)
MATTHEW_EFFECT = MetricSpec(
    name="matthew_effect",
    help="How much more concentrated exposures are than the users' own actions.",
    parameters=("action_events",),
    formula="gini of exposures - gini of the users' actions, both over the items of I, in the same window",
    answers="Does the recommender concentrate more (> 0) than its users do?",
    misleads="A few actions over a large catalog always have a high gini, which lowers the value. Actions "
    "follow exposures, so the two are not independent. Not given by slice: actions carry none.",
    requires=("exposures", "catalog", "feedback"),
    samples="items of the catalog",
    no_data="no exposures or no actions",
    undefined="a catalog of fewer than two items; nothing shown, or nothing acted on, that is in the catalog",
)

ACTED_ITEMS: Final = "acted_items"
ONE_ITEM = "the catalog holds fewer than two items"


class Gini(Family):
    """The gini index over the catalog."""

    name = "gini"
    outputs = ((GINI, ()),)
    needs = ("catalog",)
    adds_up = AddsUp(tables=(ITEM_COUNTS,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        shown = shared.item_counts(key)
        known = ranked_sums(shown.semi_join(shared.catalog_items, ITEM_ID), key)
        all_shown = shown.aggregate(by=listed(key), exposures=shown[EXPOSURES].sum())
        return shared.side_by_side(key, all_shown, known).cross_join(catalog_size(shared))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        builder = make(GINI, settings)
        size = row["catalog_items"]
        if not row["exposures"]:
            yield builder.no_data(NOTHING_SHOWN)
        elif size < 2:
            yield builder.undefined(ONE_ITEM, size)
        elif not row["total"]:
            yield builder.undefined("no item shown is in the catalog", size)
        else:
            yield builder.value(gini_index(row["items"], row["total"], row["ranked"], size), size)


class Concentration(Family):
    """The gini index over the items shown, and the share of the top items."""

    name = "concentration"
    outputs = ((GINI_EXPOSED, ()), (POPULARITY_SHARE, POPULARITY_SHARE.by))
    adds_up = AddsUp(tables=(ITEM_COUNTS,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        return shared.side_by_side(key, ranked_sums(shared.item_counts(key), key))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        items, total = row["items"] or 0, row["total"] or 0
        exposed = make(GINI_EXPOSED, settings)
        if items == 0:
            yield exposed.no_data(NOTHING_SHOWN)
        elif items == 1:
            yield exposed.undefined("one item only was shown", 1)
        else:
            yield exposed.value(gini_index(items, total, row["ranked"], items), items)
        for by in POPULARITY_SHARE.by:
            yield make(POPULARITY_SHARE, settings, by).share(row[by], total, NOTHING_SHOWN)


class MatthewEffect(Family):
    """The gini index of exposures minus that of the users' actions."""

    name = "matthew_effect"
    outputs = ((MATTHEW_EFFECT, ()),)
    needs = ("catalog", "feedback")
    sliced = False
    adds_up = AddsUp(tables=(ITEM_COUNTS, ACTED_ITEMS))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        counts = acted_items(shared, settings, key)
        shown = shared.item_counts(key)
        by, tables = listed(key), []
        for prefix, table in (("shown", shown), ("done", counts)):
            known = ranked_sums(table.semi_join(shared.catalog_items, ITEM_ID), key)
            every = table.aggregate(by=by, **{f"{prefix}_all": table[EXPOSURES].sum()})
            tables += [
                every,
                known.select(*by, **{f"{prefix}_{c}": known[c] for c in ("items", "total", "ranked")}),
            ]
        return shared.side_by_side(key, *tables).cross_join(catalog_size(shared))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        builder = make(MATTHEW_EFFECT, settings)
        size = row["catalog_items"]
        if not row["shown_all"]:
            yield builder.no_data(NOTHING_SHOWN)
        elif not row["done_all"]:
            yield builder.no_data("the window holds no actions")
        elif size < 2:
            yield builder.undefined(ONE_ITEM, size)
        elif not row["shown_total"] or not row["done_total"]:
            which = "acted on" if row["shown_total"] else "shown"
            yield builder.undefined(f"no item {which} is in the catalog", size)
        else:
            shown, done = (
                gini_index(row[f"{p}_items"], row[f"{p}_total"], row[f"{p}_ranked"], size)
                for p in ("shown", "done")
            )
            yield builder.value(shown - done, size)


def acted_items(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """The items of the feedback, with how often they were acted on in the column `exposures`."""

    def build() -> ir.Table:
        done = actions(shared, settings, key)
        return done.aggregate(by=[ITEM_ID, *listed(key)], **{EXPOSURES: done.count()})

    return shared.once(ACTED_ITEMS, key, build)


def actions(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """The window's feedback on items, of the events in `action_events`."""
    rows = shared.actions(key)
    return of_events(rows.filter(rows[ITEM_ID].notnull()), settings)


def of_events(feedback: ir.Table, settings: MetricSettings) -> ir.Table:
    """The rows of the events in `action_events`; all rows if the log has no events."""
    if settings.action_events is None or EVENT not in feedback.columns:
        return feedback
    return feedback.filter(feedback[EVENT].isin(settings.action_events))


def catalog_size(shared: Shared) -> ir.Table:
    """One row: `catalog_items`, the number of items in the catalog."""
    return shared.catalog_items.aggregate(catalog_items=shared.catalog_items.count())


def ranked_sums(counts: ir.Table, key: str | None) -> ir.Table:
    """One row a group: `items`, `total`, `ranked` = sum i n_(i), i = 1 for the least, and the top shares.

    Items that were never shown need no row: they only raise the ranks of the others.
    """
    counts = counts.select(ITEM_ID, EXPOSURES, *listed(key))
    n = counts[EXPOSURES]
    least_first = ibis.window(group_by=listed(key) or None, order_by=[n, counts[ITEM_ID]])
    whole = ibis.window(group_by=listed(key) or None)
    rows = counts.select(
        *listed(key), n=n, rank=ibis.row_number().over(least_first) + 1, k=counts.count().over(whole)
    )
    above = rows.k - rows["rank"]  # how many items are shown more often, ties by id
    return rows.aggregate(
        by=listed(key),
        items=rows.count(),
        total=rows.n.sum(),
        ranked=(rows["rank"].cast("float64") * rows.n.cast("float64")).sum(),
        top_1_percent=ibis.ifelse(above * 100 < rows.k, rows.n, 0).sum(),
        top_10_percent=ibis.ifelse(above * 10 < rows.k, rows.n, 0).sum(),
        top_item=rows.n.max(),
    )


def gini_index(items: int, total: float, ranked: float, size: int) -> float:
    """The gini index of `size` items of which `items` are above 0, from the sums of `ranked_sums`.

    >>> round(gini_index(4, 7, 1 * 1 + 2 * 1 + 3 * 2 + 4 * 3, 6), 6)  # 0, 0, 1, 1, 2, 3
    0.6
    """
    zeros = size - items
    return float((2.0 * ranked + (2.0 * zeros - size - 1.0) * total) / ((size - 1.0) * total))
