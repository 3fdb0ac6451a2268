"""Intra-list diversity: how unlike each other the items of one list are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add

import ibis
import ibis.expr.types as ir

from monitor.core.columns import CATEGORY, ITEM_ID, REQUEST_ID
from monitor.core.results import Result
from monitor.metrics.exposure.categories import list_spread
from monitor.metrics.exposure.similarity import item_vectors, no_similarity, range_of, similarity_of
from monitor.metrics.family import ALL, AddsUp, AggregateRow, Family, MetricSpec, make
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

INTRA_LIST_DIVERSITY = MetricSpec(
    name="intra_list_diversity",
    help="Mean dissimilarity of the items of one list; 0: all alike, 1: nothing in common.",
    interval="Wilson of means",
    range=(0.0, 1.0),
    parameters=("similarity",),
    formula="mean over lists with l >= 2 of the mean over unordered pairs of 1 - s(i, j). By category: "
    "s = 1 for the same category, else 0; for items with several, |A and B| / sqrt(|A| |B|) of their "
    "sets, which is the same for one each. By vector: s = the cosine of the items' vectors. With v_i "
    "the items' unit vectors, the sum of s over the pairs is (|sum v_i|^2 - l) / 2, so no pair is ever "
    "built.",
    answers="Do users get a choice, or ten similar items?",
    misleads="Random lists are diverse too: read it together with a relevance metric. Items without a "
    "category count as alike; items without a usable vector are left out of their list.",
    requires=("exposures", "catalog.vector or catalog.category"),
    samples="lists with l >= 2",
    no_data="no list with two items (with a vector)",
)

# More sums at once would need more memory for every list.
_COMPONENTS_AT_ONCE = 16


class IntraListDiversity(Family):
    """The mean dissimilarity within a list."""

    name = "intra_list_diversity"
    outputs = ((INTRA_LIST_DIVERSITY, ()),)
    needs = ("catalog",)
    adds_up = AddsUp(columns=(ALL,))

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        return super().reason_not(shared, settings) or no_similarity(shared, settings)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        if similarity_of(shared, settings) == "vector":
            lists = vector_lists(shared, key)
        else:
            lists = list_spread(shared, CATEGORY, key)
        lists = lists.filter(lists.length >= 2)
        length = lists.length.cast("float64")
        alike = (lists.squares - length) / (length * (length - 1.0))
        # The squares of several categories' shares round to just above those of one.
        valued = lists.mutate(diversity=ibis.greatest(1.0 - alike, 0.0))
        sums = valued.aggregate(
            by=listed(key),
            lists=valued.count(),
            total=valued.diversity.sum(),
            squares=(valued.diversity * valued.diversity).sum(),
        )
        return shared.side_by_side(key, sums)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        builder = replace(make(INTRA_LIST_DIVERSITY, settings), bounds=range_of(settings))
        yield builder.mean(
            row["lists"], row["total"], row["squares"], "no list holds two items that can be compared"
        )


def vector_lists(shared: Shared, key: str | None) -> ir.Table:
    """One row a list: `length` (items with a vector) and `squares`, the squared length of their sum."""
    vectors, columns = item_vectors(shared)
    rows = shared.shown(key)
    rows = rows.filter(rows[REQUEST_ID].notnull()).select(REQUEST_ID, ITEM_ID, *listed(key))
    by = [REQUEST_ID, *listed(key)]
    parts = []
    for start in range(0, max(len(columns), 1), _COMPONENTS_AT_ONCE):
        chunk = columns[start : start + _COMPONENTS_AT_ONCE]
        both = rows.join(vectors.select(ITEM_ID, *chunk), ITEM_ID)
        sums = both.aggregate(by=by, length=both.count(), **{c: both[c].sum() for c in chunk})
        squares = reduce(add, (sums[c] * sums[c] for c in chunk)) if chunk else sums.length.cast("float64")
        parts.append(sums.select(*by, "length", squares=squares))
    if len(parts) == 1:
        return parts[0]
    stacked = reduce(ir.Table.union, parts)
    return stacked.aggregate(by=by, length=stacked.length.max(), squares=stacked.squares.sum())
