"""The categories of items as small numbers, and how lists and users spread over them.

An item with k categories gives each of them 1 / k of its exposures. As a vector it has 1 / sqrt(k) at each,
so that the cosine of two items is 1 for equal sets of categories and 0 for disjoint ones. An item without a
category, or outside the catalog, has the code UNKNOWN, which is a category of its own.
"""

from __future__ import annotations

from functools import partial

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, REQUEST_ID, USER_ID
from monitor.metrics.arrays import all_different
from monitor.metrics.history import EXPOSURES
from monitor.metrics.shared import CATALOG, Shared, listed

UNKNOWN = -1
CODE = "code"
_SHORT = 32  # for longer lists, counting by group is as fast


def item_categories(shared: Shared, column: str) -> ir.Table:
    """One row for each category of each item: item_id, code, share = 1 / k, unit = 1 / sqrt(k)."""
    return shared.once("item_categories", column, lambda: _item_categories(shared, column), lasting=CATALOG)


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
    """One row for each row and category of its item, with code, share and unit."""
    items = item_categories(shared, column).rename(known_item=ITEM_ID)
    joined = rows.left_join(items, rows[ITEM_ID] == items.known_item)
    return joined.select(
        *rows.columns,
        code=joined.code.fill_null(UNKNOWN),
        share=joined.share.fill_null(1.0),
        unit=joined.unit.fill_null(1.0),
    )


def _spread_of_lists(shared: Shared, column: str, key: str | None) -> ir.Table:
    """`_spread_of_cells` of each request, for items with several categories."""
    coded = _coded(shared, column, key)
    by = [REQUEST_ID, *listed(key)]
    cells = coded.aggregate(
        by=[*by, CODE], exposures=coded.share.sum(), unit=coded.unit.sum(), items=coded.count()
    )
    return _spread_of_cells(cells, by)


def _spread_of_cells(cells: ir.Table, by: list[str]) -> ir.Table:
    """One row an owner: `length` (its exposures), `entropy_sum` = sum c ln c, `squares` = sum v^2, `most`.

    c is an owner's exposures of a category, v the sum of its items' unit entries there. `most` is the
    largest number of items in one known category, null if none is known; only if the cells have `items`.
    """
    most = {"most": cells["items"].max(where=cells[CODE] != UNKNOWN)} if "items" in cells.columns else {}
    return cells.aggregate(
        by=by,
        length=cells.exposures.sum().round().cast("int64"),
        entropy_sum=(cells.exposures * cells.exposures.ln()).sum(),
        squares=(cells.unit * cells.unit).sum(),
        **most,
    )


def _several(shared: Shared, column: str) -> bool:
    """Whether an item can have several categories."""
    assert shared.catalog is not None
    return bool(shared.catalog[column].type().is_array())


def _coded(shared: Shared, column: str, key: str | None) -> ir.Table:
    rows = shared.shown(key)
    rows = rows.filter(rows[REQUEST_ID].notnull()).select(REQUEST_ID, ITEM_ID, *listed(key))
    return with_categories(shared, rows, column)


def _spread_of_short_lists(shared: Shared, column: str, key: str | None) -> ir.Table:
    """`_spread_of_lists` in half the time, for items with one category each.

    With c_i the count of item i's category in its list, the sum over items of ln c_i is the sum over
    categories of c ln c, and the sum of c_i is the sum of c^2. This compares every item with every other, so
    long lists are counted by group.
    """
    by = [REQUEST_ID, *listed(key)]
    coded = _coded(shared, column, key)
    lists = shared.once(
        f"list_codes_{column}", key, lambda: coded.aggregate(by=by, codes=coded[CODE].collect())
    )
    short = lists.filter(lists.codes.length() <= _SHORT)
    counts = short.codes.map(
        lambda code: short.codes.filter(lambda other: other == code).length().cast("float64")
    )
    # None where every code occurs once: to find that out is cheap, to count is not.
    counted = short.mutate(counts=ibis.ifelse(all_different(short.codes), ibis.null(counts.type()), counts))
    length = counted.codes.length().cast("int64")
    known = counted.codes.filter(lambda code: code != UNKNOWN)
    most_known = known.map(lambda code: known.filter(lambda other: other == code).length()).maxs()
    most = counted.counts.maxs().cast("int64").fill_null(1)
    of_short = counted.select(
        *by,
        length=length,
        entropy_sum=counted.counts.map(lambda c: c.ln()).sums().fill_null(0.0),
        squares=counted.counts.sums().fill_null(length.cast("float64")),
        # Most lists have no unknown code, and their counts are already there.
        most=ibis.ifelse(counted.codes.contains(UNKNOWN), most_known, most),
    )
    long = lists.filter(lists.codes.length() > _SHORT).unnest("codes").rename({CODE: "codes"})
    cells = long.aggregate(by=[*by, CODE], exposures=long.count().cast("float64"), items=long.count())
    return of_short.union(_spread_of_cells(cells.mutate(unit=cells.exposures), by))


def list_spread(shared: Shared, column: str, key: str | None) -> ir.Table:
    """The spread of each list over the categories; see `_spread_of_cells`."""

    def build(key: str | None) -> ir.Table:
        if _several(shared, column):
            return _spread_of_lists(shared, column, key)
        return _spread_of_short_lists(shared, column, key)

    return shared.grouped(f"list_spread_{column}", key, (REQUEST_ID,), build)


def user_categories(shared: Shared, column: str, key: str | None) -> ir.Table:
    """One row for each user and each category of what they were shown: user_id, code, `exposures`, `unit`."""
    build = partial(_user_categories, shared, column)
    return shared.grouped(f"user_categories_{column}", key, (USER_ID,), build)


def _user_categories(shared: Shared, column: str, key: str | None) -> ir.Table:
    # From the distinct pairs, so that repeats are not looked up again.
    coded = with_categories(shared, shared.user_items(key), column)
    times = coded[EXPOSURES]
    sums = {EXPOSURES: times.sum()}  # every share is 1, and whole numbers are cheaper to sum
    if _several(shared, column):
        sums = {EXPOSURES: (times * coded.share).sum(), "unit": (times * coded.unit).sum()}
    return coded.aggregate(by=[USER_ID, *listed(key), CODE], **sums)


def user_spread(shared: Shared, column: str, key: str | None) -> ir.Table:
    """The spread of everything shown to a user over the categories; see `_spread_of_cells`."""

    def build(key: str | None) -> ir.Table:
        cells = user_categories(shared, column, key)
        exposures = cells[EXPOSURES].cast("float64")
        cells = cells.mutate(exposures=exposures, unit=cells.unit if "unit" in cells.columns else exposures)
        return _spread_of_cells(cells, [USER_ID, *listed(key)])

    return shared.grouped(f"user_spread_{column}", key, (USER_ID,), build)


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
