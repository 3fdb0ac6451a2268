"""How alike two items are: by the cosine of their sets of categories, or of their vectors."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Literal

import ibis
import ibis.expr.types as ir

from monitor.core.columns import CATEGORY, ITEM_ID, VECTOR
from monitor.metrics.shared import CATALOG, Shared
from monitor.settings.metrics import MetricSettings

Similarity = Literal["category", "vector"]


def similarity_of(shared: Shared, settings: MetricSettings) -> Similarity:
    """As the settings say; by default `vector` if the catalog has vectors."""
    if settings.similarity is not None:
        return settings.similarity
    return "vector" if _no_vectors(shared) is None else "category"


def range_of(settings: MetricSettings) -> tuple[float, float]:
    """The range of 1 - similarity: vectors can point in opposite directions, sets of categories cannot.

    >>> range_of(MetricSettings(similarity="category")), range_of(MetricSettings(similarity="vector"))
    ((0.0, 1.0), (0.0, 2.0))
    """
    return (0.0, 2.0) if settings.similarity == "vector" else (0.0, 1.0)


def no_similarity(shared: Shared, settings: MetricSettings) -> str | None:
    """What the chosen similarity needs and lacks, as half a sentence; None if nothing."""
    if similarity_of(shared, settings) == "vector":
        return _no_vectors(shared)
    return shared.lack(f"catalog.{CATEGORY}")


def _no_vectors(shared: Shared) -> str | None:
    if missing := shared.lack(f"catalog.{VECTOR}"):
        return missing
    assert shared.catalog is not None
    if shared.catalog[VECTOR].type().is_array():
        return None
    return f"needs lists of numbers in the column {VECTOR} of the log catalog (a CSV: list_separator)"


def item_vectors(shared: Shared) -> tuple[ir.Table, list[str]]:
    """The items with a usable vector, scaled to length 1, one column a component; and these columns.

    A vector is usable if it is as long as most of the catalog's, all of it is finite, and it is
    not all 0 (it would have no direction).
    """
    vectors = shared.once("item_vectors", None, lambda: _item_vectors(shared), lasting=CATALOG)
    return vectors, [name for name in vectors.columns if name != ITEM_ID]


def _item_vectors(shared: Shared) -> ir.Table:
    assert shared.catalog is not None
    width = shared.scalar("vector_width", _usual_length(shared.catalog)) or 0
    return _unit_vectors(shared.catalog, [f"x{i}" for i in range(width)])


def _usual_length(catalog: ir.Table) -> ir.IntegerScalar:
    """The most frequent length of vectors, the longer one of a tie; null without a vector.

    Not the longest: one broken row would make all other items unusable.
    """
    lengths = catalog.select(width=catalog[VECTOR].length())
    lengths = lengths.filter(lengths.width > 0)
    counts = lengths.aggregate(by="width", items=lengths.count())
    usual = counts.order_by(counts["items"].desc(), counts.width.desc()).limit(1)
    return usual.width.max()


def _unit_vectors(catalog: ir.Table, columns: list[str]) -> ir.Table:
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
