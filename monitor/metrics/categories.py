"""The categories of items as small numbers, and how lists and users spread over them.

An item with k categories gives each of them 1 / k of its exposures; as a vector it has 1 / sqrt(k)
at each, so that the cosine of two items is 1 for the same set of categories and 0 for disjoint
ones. An item that the catalog does not hold, or holds without a category, has the code UNKNOWN,
which is a category of its own.
"""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from monitor.logs.columns import ITEM_ID, REQUEST_ID, USER_ID
from monitor.metrics.shared import EXPOSURES, Shared, listed

UNKNOWN = -1
CODE = "code"
_SHORT = 32  # from about this length on, counting by group is as fast


def item_categories(shared: Shared, column: str) -> ir.Table:
    """One row for each category of each item: item_id, code, share = 1 / k, unit = 1 / sqrt(k)."""
    return shared.once("item_categories", column, lambda: _item_categories(shared, column))


def _item_categories(shared: Shared, column: str) -> ir.Table:
    assert shared.catalog is not None
    rows = shared.catalog.select(ITEM_ID, category=shared.catalog[column])
    if rows.category.type().is_array():
        rows = rows.unnest("category")
    rows = rows.select(ITEM_ID, category=rows.category.cast("string"))
    # A CSV writes a missing category as an empty text.
    pairs = rows.filter([rows[ITEM_ID].notnull(), rows.category.notnull(), rows.category != ""]).distinct()
    names = pairs.select("category").distinct()
    codes = names.mutate(**{CODE: ibis.row_number().over(order_by=names.category).cast("int32")})
    sizes = pairs.aggregate(by=ITEM_ID, k=pairs.count().cast("float64"))
    joined = pairs.join(codes, "category").join(sizes, ITEM_ID)
    return joined.select(ITEM_ID, CODE, share=1.0 / joined.k, unit=1.0 / joined.k.sqrt())


def category_totals(shared: Shared, column: str) -> ir.Table:
    """One row: `categories` of the catalog, and `uncategorised`, its items without any."""
    categories = item_categories(shared, column)
    items = shared.catalog_items
    return categories.aggregate(categories=categories[CODE].nunique()).cross_join(
        items.anti_join(categories, ITEM_ID).aggregate(uncategorised=ibis._.count())
    )


def with_categories(shared: Shared, rows: ir.Table, column: str) -> ir.Table:
    """The rows, once for each category of their item, with its code, share and unit."""
    items = item_categories(shared, column).rename(known_item=ITEM_ID)
    joined = rows.left_join(items, rows[ITEM_ID] == items.known_item)
    return joined.select(
        *rows.columns,
        code=joined.code.fill_null(UNKNOWN),
        share=joined.share.fill_null(1.0),
        unit=joined.unit.fill_null(1.0),
    )


def _spread(shared: Shared, column: str, owner: str, key: str | None) -> ir.Table:
    """One row an owner: `length` (its exposures), `entropy_sum` = sum c ln c, `squares` = sum v^2, `most`.

    c is an owner's exposures of a category, v the sum of its items' unit entries there. `most` is the
    number of items of the known category that has most of them; null where no category is known.
    """
    coded = _coded(shared, column, owner, key)
    by = [owner, *listed(key)]
    if _several(shared, column):
        cells = coded.aggregate(
            by=[*by, CODE], exposures=coded.share.sum(), unit=coded.unit.sum(), items=coded.count()
        )
    else:  # every share is 1, and counting is cheaper than adding up
        cells = coded.aggregate(by=[*by, CODE], exposures=coded.count().cast("float64"))
        cells = cells.mutate(unit=cells.exposures, items=cells.exposures.cast("int64"))
    return _spread_of_cells(cells, by)


def _spread_of_cells(cells: ir.Table, by: list[str]) -> ir.Table:
    return cells.aggregate(
        by=by,
        length=cells.exposures.sum().round().cast("int64"),
        entropy_sum=(cells.exposures * cells.exposures.ln()).sum(),
        squares=(cells.unit * cells.unit).sum(),
        most=cells["items"].max(where=cells[CODE] != UNKNOWN),
    )


def _several(shared: Shared, column: str) -> bool:
    """Whether an item can have several categories."""
    assert shared.catalog is not None
    return bool(shared.catalog[column].type().is_array())


def _coded(shared: Shared, column: str, owner: str, key: str | None) -> ir.Table:
    rows = shared.shown(key)
    rows = rows.filter(rows[owner].notnull()).select(owner, ITEM_ID, *listed(key))
    return with_categories(shared, rows, column)


def _spread_of_short_lists(shared: Shared, column: str, key: str | None) -> ir.Table:
    """What `_spread` gives by request, in half the time, for items with one category each.

    With c_i the count of item i's category in its list, the sum over items of ln c_i is the sum
    over categories of c ln c, and that of c_i is that of c^2. This compares every item with every
    other, so lists that are not short take the way of `_spread`.
    """
    by = [REQUEST_ID, *listed(key)]
    coded = _coded(shared, column, REQUEST_ID, key)
    lists = shared.once(
        f"list_codes_{column}", key, lambda: coded.aggregate(by=by, codes=coded[CODE].collect())
    )
    short = lists.filter(lists.codes.length() <= _SHORT)
    counted = short.mutate(
        counts=short.codes.map(
            lambda one: short.codes.filter(lambda other: other == one).length().cast("float64")
        )
    )
    known = counted.codes.filter(lambda one: one != UNKNOWN)
    most_known = known.map(lambda one: known.filter(lambda other: other == one).length()).maxs()
    of_short = counted.select(
        *by,
        length=counted.codes.length().cast("int64"),
        entropy_sum=counted.counts.map(lambda c: c.ln()).sums(),
        squares=counted.counts.sums(),
        # Nearly every list is known in whole, and its counts are there already.
        most=ibis.ifelse(counted.codes.contains(UNKNOWN), most_known, counted.counts.maxs().cast("int64")),
    )
    long = lists.filter(lists.codes.length() > _SHORT).unnest("codes").rename({CODE: "codes"})
    cells = long.aggregate(by=[*by, CODE], exposures=long.count().cast("float64"), items=long.count())
    return of_short.union(_spread_of_cells(cells.mutate(unit=cells.exposures), by))


def list_spread(shared: Shared, column: str, key: str | None) -> ir.Table:
    """How each list spreads over the categories; see `_spread`."""

    def build() -> ir.Table:
        if _several(shared, column):
            return _spread(shared, column, REQUEST_ID, key)
        return _spread_of_short_lists(shared, column, key)

    return shared.once(f"list_spread_{column}", key, build)


def user_spread(shared: Shared, column: str, key: str | None) -> ir.Table:
    """How all that a user was shown spreads over the categories; see `_spread`."""
    return shared.once(f"user_spread_{column}", key, lambda: _spread(shared, column, USER_ID, key))


def overall_spread(shared: Shared, column: str, key: str | None) -> ir.Table:
    """One row a group: `exposures`, `entropy_sum` and the exposures of `unknown` category."""
    counts = shared.item_counts(key)
    coded = with_categories(shared, counts, column)
    by = listed(key)
    cells = coded.aggregate(by=[*by, CODE], exposures=(coded[EXPOSURES].cast("float64") * coded.share).sum())
    return cells.aggregate(
        by=by,
        exposures=cells.exposures.sum().round().cast("int64"),
        entropy_sum=(cells.exposures * cells.exposures.ln()).sum(),
        unknown=ibis.ifelse(cells[CODE] == UNKNOWN, cells.exposures, 0.0).sum().round().cast("int64"),
    )
