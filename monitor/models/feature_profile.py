"""How the values of a feature are spread, where rows cannot be paired: counts over bins of the reference.

Bins come from a reference (the rows that the model was trained on) and stay, so that profiles of any rows can
be put beside each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.text import EVIDENCE_LENGTH
from monitor.models.feature_values import (
    Kind,
    as_number,
    batches,
    exactly,
    grouped_as,
    kind_of,
    known,
    written,
)
from monitor.statistics.distances import jensen_shannon, ks_of_counts, psi

BINS: Final = 10
VALUES: Final = 20


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of a feature, from its reference.

    A number lies in the first bin whose edge it does not exceed, or in one more beyond them all; infinities
    lie in the outer ones. A text lies in the bin of its value, or in one more for all other values. The last
    bin of both kinds is for what is missing.
    """

    feature: str
    kind: Kind
    edges: tuple[float, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FeatureProfile:
    """One feature of some rows, over the bins of a reference.

    `counts` has one number a bin. `distinct` values are there, the commonest of them `top` in `top_count`
    rows (the smallest of those as common); None where all are missing.
    """

    bins: Bins
    counts: tuple[int, ...]
    distinct: int
    top: str | None = None
    top_count: int = 0

    @property
    def feature(self) -> str:
        return self.bins.feature

    @property
    def rows(self) -> int:
        return sum(self.counts)

    @property
    def missing(self) -> int:
        return self.counts[-1]

    @property
    def null_share(self) -> float | None:
        """Missing values / rows; None where there is no row."""
        return self.missing / self.rows if self.rows else None

    @property
    def top_share(self) -> float | None:
        """Rows with the commonest value / rows; None where there is no row."""
        return self.top_count / self.rows if self.rows else None

    @property
    def constant(self) -> bool:
        """Whether the rows say nothing apart: one value in all of them, or none in any."""
        return self.rows > 0 and max(self.top_count, self.missing) == self.rows


@dataclass(frozen=True, slots=True)
class Comparison:
    """A feature's profile beside that of its reference; a distance is None where one side has no row.

    `ks` is None for text, which has no order; a missing number counts as one beyond all bins.
    """

    reference: FeatureProfile
    current: FeatureProfile
    psi: float | None
    jensen_shannon: float | None
    ks: float | None

    @property
    def feature(self) -> str:
        return self.reference.feature


def bins_of(
    reference: ir.Table, features: Sequence[str], *, bins: int = BINS, values: int = VALUES
) -> tuple[Bins, ...]:
    """The bins of each feature.

    Of numbers: edges at the exact quantiles i / bins of the finite values; a value that several quantiles
    have gets a bin of its own, so that a feature of few values (0 and 1; nearly always 0) is parted as well.
    Of the rest: the commonest values, but for those too long or too odd for a query, which count as others.
    No edge and no value where all is missing.

    Args:
        reference: rows with the features.
        features: columns of it.
        bins: at most so many bins of equal numbers.
        values: at most so many values of a text; of those as common the smaller first.

    >>> rows = ibis.memtable({"age": range(101), "city": ["a", "b", "a"] + ["c"] * 98})
    >>> ages, cities = bins_of(rows, ["age", "city"], bins=4, values=2)
    >>> ages.edges, cities.values
    ((25.0, 50.0, 75.0), ('c', 'a'))
    """
    kinds = {name: kind_of(reference[name].type()) for name in features}
    at = [number / bins for number in range(1, bins)]
    edges: dict[str, tuple[float, ...]] = {}
    for batch in batches([name for name in features if kinds[name] == "number"]):
        numbers = {f"n_{i}": known(as_number(reference[name])) for i, name in enumerate(batch)}
        finite = {name: ibis.ifelse(one.isinf(), None, one) for name, one in numbers.items()}
        rows = reference.select(**finite)
        row = _one(rows.aggregate(**{name: rows[name].quantile(at) for name in finite})) if at else {}
        edges |= {name: _edges(row.get(f"n_{i}")) for i, name in enumerate(batch)}
    return tuple(
        Bins(name, "number", edges=edges[name])
        if kinds[name] == "number"
        else Bins(name, "text", values=_values(_top(reference, name, "text", values)))
        for name in features
    )


def _edges(quantiles: Iterable[float] | None) -> tuple[float, ...]:
    found = Counter(one + 0.0 for one in quantiles or () if one is not None and math.isfinite(one))
    below = {math.nextafter(one, -math.inf) for one, times in found.items() if times > 1}
    return tuple(sorted(one for one in found.keys() | below if math.isfinite(one)))


def _values(top: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    # No engine takes a NUL within a query.
    values = (str(row["value"]) for row in top)
    return tuple(value for value in values if len(value) <= EVIDENCE_LENGTH and "\0" not in value)


def profiles(rows: ir.Table, bins: Sequence[Bins], *, described: bool = True) -> tuple[FeatureProfile, ...]:
    """The profile of each feature of these rows: one query for the counts of many, one for each top value.

    Unless `described`, only the counts are there, which are all that a distance needs: the values of a
    feature cost a query of their own. A column of another type than that of the reference is read as that
    one's: text that is no number is missing where the reference has numbers.

    Raises ValueError where the rows lack a feature.

    >>> rows = ibis.memtable({"age": [10.0, 20.0, 20.0, None]})
    >>> (found,) = profiles(rows, [Bins("age", "number", edges=(15.0,))])
    >>> found.counts, found.top, found.top_share, found.null_share
    ((1, 2, 1), '20', 0.5, 0.25)
    """
    by_name = {one.feature: one for one in bins}
    lacking = [name for name in by_name if name not in rows.columns]
    if lacking:
        raise ValueError(f"the rows have no column {lacking[0]!r}")
    found = []
    for batch in batches(list(by_name)):
        counts = _counts(rows, [by_name[name] for name in batch])
        for name, counted in zip(batch, counts, strict=True):
            plain = FeatureProfile(by_name[name], counted, 0)
            found.append(with_values(rows, plain) if described else plain)
    return tuple(found)


def with_values(rows: ir.Table, plain: FeatureProfile) -> FeatureProfile:
    """A profile of these rows that has only its counts, with what its values are: a query.

    >>> rows = ibis.memtable({"age": [10.0, 20.0, 20.0, None]})
    >>> (plain,) = profiles(rows, [Bins("age", "number", edges=(15.0,))], described=False)
    >>> found = with_values(rows, plain)
    >>> plain.top, found.top, found.distinct
    (None, '20', 2)
    """
    top = _top(rows, plain.feature, plain.bins.kind, 1)
    if not top:
        return plain
    value, distinct, n = written(top[0]["value"]), int(top[0]["distinct"]), int(top[0]["n"])
    return replace(plain, distinct=distinct, top=value, top_count=n)


def _top(rows: ir.Table, feature: str, kind: Kind, most: int) -> list[dict[str, Any]]:
    """The commonest values with how many rows have each, `n`, and how many values there are, `distinct`."""
    rows = rows.select(value=grouped_as(rows[feature], kind))
    rows = rows.filter(rows.value.notnull())
    counted = rows.aggregate(by="value", n=rows.count())
    counted = counted.mutate(distinct=counted.count().over(ibis.window()))
    top: list[dict[str, Any]] = counted.order_by(ibis.desc("n"), "value").limit(most).to_pyarrow().to_pylist()
    return top


def _counts(rows: ir.Table, bins: Sequence[Bins]) -> list[tuple[int, ...]]:
    columns = {
        f"c_{i}": known(as_number(rows[one.feature]))
        if one.kind == "number"
        else grouped_as(rows[one.feature], "text")
        for i, one in enumerate(bins)
    }
    table = rows.select(**columns)
    sums = {"rows": table.count()}
    for i, one in enumerate(bins):
        column = table[f"c_{i}"]
        sums[f"there_{i}"] = column.count()
        within = (
            [column <= exactly(edge) for edge in one.edges]
            if one.kind == "number"
            else [column == ibis.literal(value) for value in one.values]
        )
        sums |= {f"bin_{i}_{at}": table.count(where=where) for at, where in enumerate(within)}
    row = _one(table.aggregate(**sums))
    total = int(row["rows"])
    found = []
    for i, one in enumerate(bins):
        there = int(row[f"there_{i}"])
        each = [int(row[f"bin_{i}_{at}"] or 0) for at in range(len(one.edges or one.values))]
        if one.kind == "number":
            each = [upto - below for below, upto in pairwise([0, *each, there])]
        else:
            each.append(there - sum(each))
        found.append((*each, total - there))
    return found


def compare(reference: FeatureProfile, current: FeatureProfile) -> Comparison:
    """How far the current rows are from the reference, by the counts over its bins.

    Raises ValueError where they are not of the same bins.

    >>> bins = Bins("age", "number", edges=(15.0,))
    >>> found = compare(FeatureProfile(bins, (50, 50, 0), 2), FeatureProfile(bins, (25, 75, 0), 2))
    >>> found.ks, round(found.psi, 4), round(found.jensen_shannon, 4)
    (0.25, 0.2747, 0.2209)
    """
    if reference.bins != current.bins:
        raise ValueError(f"two profiles of other bins: {reference.feature!r} and {current.feature!r}")
    p, q = reference.counts, current.counts
    ks = ks_of_counts(p, q) if reference.bins.kind == "number" else None
    return Comparison(reference, current, psi(p, q), jensen_shannon(p, q), ks)


def _one(table: ir.Table) -> dict[str, Any]:
    row: dict[str, Any] = table.to_pyarrow().to_pylist()[0]
    return row
