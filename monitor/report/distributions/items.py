"""Exposures by item: the Lorenz curve."""

from __future__ import annotations

from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID
from monitor.core.results import Result
from monitor.core.text import plural
from monitor.metrics.exposure.concentration import (
    GINI,
    GINI_EXPOSED,
    POPULARITY_SHARE,
    Concentration,
    Gini,
    catalog_size,
)
from monitor.metrics.exposure.coverage import COVERAGE, UNKNOWN_ITEMS, ItemCoverage
from monitor.metrics.history import EXPOSURES
from monitor.report import numbers
from monitor.report.distributions.figure import Axis, Figure, Line, Plot, Point, Table
from monitor.report.distributions.rows import Missing, SpanRows

POINTS: Final = 200
EMPTY: Final = Figure(
    name="items",
    title="Exposures by item",
    how="The items are sorted from the least to the most shown: the further the curve hangs below the "
    "diagonal, the fewer items take most of the exposures.",
)


def items_figure(rows: SpanRows) -> Figure:
    """The Lorenz curve of exposures over the catalog, or over the items shown if there is no catalog."""
    shared = rows.need_exposures()
    counts = shared.item_counts()
    gini = rows.result(Gini(), GINI.name)
    notes: list[str] = []
    size = None
    if shared.catalog is None:
        notes.append("There is no catalog, so that items that were never shown are not in the curve.")
    elif gini is None or gini.value is None:
        notes.append(f"The curve is over the items shown: {gini.detail if gini else 'there is no catalog'}.")
    else:
        size = int(catalog_size(shared).to_pyarrow().to_pylist()[0]["catalog_items"])
        counts = counts.semi_join(shared.catalog_items, ITEM_ID)
    found = lorenz(counts).to_pyarrow().to_pylist()
    if not found:
        raise Missing("Nothing was shown in this span: every list was empty.")
    found.sort(key=lambda row: row["rank"])
    items, total = found[-1]["rank"], found[-1]["so_far"]
    never = 0 if size is None else size - items
    over = items + never
    places = [(0.0, 0.0), *([(never / over, 0.0)] if never else [])]
    places += [((never + row["rank"]) / over, row["so_far"] / total) for row in found]
    what = "catalog" if size is not None else "items shown"
    points = tuple(Point(x, y, _said(x, y, what)) for x, y in places)
    share = Axis(f"share of the {what}", 0.0, 1.0), Axis("share of exposures", 0.0, 1.0)
    unknown = rows.result(ItemCoverage(), UNKNOWN_ITEMS.name)
    if unknown is not None and unknown.value:
        notes.append(f"Items shown that the catalog does not hold: {numbers.count(unknown.value)}.")
    return Figure(
        EMPTY.name,
        EMPTY.title,
        EMPTY.how,
        rests_on=f"{plural(total, 'exposure')} of {plural(items, 'item')}",
        plots=(Plot("", *share, lines=(Line(0, points),), reference=((0.0, 0.0), (1.0, 1.0))),),
        facts=_facts(rows, gini, never if size is not None else None),
        notes=tuple(notes),
        table=Table((f"share of the {what}", "share of exposures"), tuple(places)),
    )


def lorenz(counts: ir.Table) -> ir.Table:
    """Points of the curve: `rank` least shown items have `so_far` exposures together.

    Args:
        counts: one row an item, with its exposures.
    """
    counts = counts.select(ITEM_ID, EXPOSURES)
    n = counts[EXPOSURES]
    order = [n, counts[ITEM_ID]]
    ranked = counts.select(
        n=n,
        rank=ibis.row_number().over(order_by=order) + 1,
        so_far=n.sum().over(ibis.cumulative_window(order_by=order)),
        items=counts.count().over(ibis.window()),
    )
    # The last item of each part is a point, so the most shown item of all is one too.
    part = (((ranked["rank"] - 1) * POINTS) // ranked["items"]).cast("int64")
    return ranked.aggregate(by=[part.name("part")], rank=ranked["rank"].max(), so_far=ranked.so_far.max())


def _said(x: float, y: float, what: str) -> str:
    return f"the least shown {numbers.share(x)} of the {what}: {numbers.share(y)} of exposures"


def _facts(rows: SpanRows, gini: Result | None, never: int | None) -> tuple[tuple[str, str], ...]:
    concentration, coverage = Concentration(), ItemCoverage()
    found: list[tuple[str, Result | None, bool]] = [
        ("Gini over the catalog", gini, False),
        ("Gini over the items shown", rows.result(concentration, GINI_EXPOSED.name), False),
        *(
            (f"Exposures of the {words}", rows.result(concentration, POPULARITY_SHARE.name, by=by), True)
            for by, words in (
                ("top_1_percent", "top 1 % of items"),
                ("top_10_percent", "top 10 % of items"),
                ("top_item", "top item"),
            )
        ),
        ("Catalog that was shown", rows.result(coverage, COVERAGE.name, by="item"), True),
    ]
    facts = [
        (name, (numbers.share if is_share else numbers.number)(one.value))
        for name, one, is_share in found
        if one is not None and one.value is not None
    ]
    if never is not None:
        facts.append(("Catalog items never shown", numbers.count(never)))
    return tuple(facts)
