"""How alike two items are: by the cosine of their sets of categories, or of their vectors."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Literal

import ibis
import ibis.expr.types as ir

from monitor.logs.columns import CATEGORY, ITEM_ID, VECTOR
from monitor.metrics.settings import MetricSettings
from monitor.metrics.shared import Shared

Similarity = Literal["category", "vector"]


def similarity_of(shared: Shared, settings: MetricSettings) -> Similarity:
    """What the settings say; unless they do, by vector where the catalog has the column."""
    if settings.similarity is not None:
        return settings.similarity
    return "vector" if shared.lack(f"catalog.{VECTOR}") is None else "category"


def needed_column(shared: Shared, settings: MetricSettings) -> str:
    """The need that the chosen similarity has, as `Shared.lack` reads it."""
    return f"catalog.{VECTOR if similarity_of(shared, settings) == 'vector' else CATEGORY}"


def item_vectors(shared: Shared) -> tuple[ir.Table, list[str]]:
    """The items with a usable vector, scaled to length 1, one column a component; and these columns.

    A vector is usable if it is as long as the catalog's longest, all of it is finite, and it is
    not all 0 (it would have no direction).
    """
    assert shared.catalog is not None
    width = shared.scalar("vector_width", shared.catalog[VECTOR].length().max()) or 0
    columns = [f"x{i}" for i in range(width)]
    return shared.once("item_vectors", None, lambda: _unit_vectors(shared.catalog, columns)), columns


def _unit_vectors(catalog: ir.Table | None, columns: list[str]) -> ir.Table:
    assert catalog is not None
    vector = catalog[VECTOR]
    rows = catalog.filter([catalog[ITEM_ID].notnull(), vector.length() == len(columns)])
    rows = rows.select(ITEM_ID, **{c: rows[VECTOR][i].cast("float64") for i, c in enumerate(columns)})
    rows = rows.distinct(on=ITEM_ID, keep="first")
    if not columns:
        return rows.limit(0)
    # Divided by the largest component first, so that no square overflows or vanishes.
    largest = ibis.greatest(*(rows[c].abs() for c in columns)) if len(columns) > 1 else rows[columns[0]].abs()
    rows = rows.mutate(largest=largest)
    rows = rows.filter([rows.largest > 0, rows.largest < math.inf])
    rows = rows.mutate(**{c: rows[c] / rows.largest for c in columns})
    rows = rows.mutate(norm=reduce(add, (rows[c] * rows[c] for c in columns)).sqrt())
    rows = rows.filter(rows.norm.notnull())  # a null among the components
    return rows.select(ITEM_ID, **{c: rows[c] / rows.norm for c in columns})
