"""The distribution of a feature's values over bins, for rows that cannot be paired.

The bins come from a reference (the training rows) and stay the same, so that profiles of any rows are
comparable.
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
from monitor.metrics.plans import ASK_ONCE, Ask, Records
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

    A number belongs to the first bin whose edge it does not exceed, or to a further bin beyond all edges;
    infinities belong to the outer bins. A text belongs to the bin of its value, or to a further bin for all
    other values. The last bin is for missing values.
    """

    feature: str
    kind: Kind
    edges: tuple[float, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FeatureProfile:
    """One feature of some rows, over the bins of a reference.

    Attributes:
        counts: the rows of each bin.
        distinct: the number of different values.
        top, top_count: the most frequent value (of equally frequent ones the smallest) and its rows; None if
            all values are missing.
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
        """Missing values / rows; None if there are no rows."""
        return self.missing / self.rows if self.rows else None

    @property
    def top_share(self) -> float | None:
        """Rows with the most frequent value / rows; None if there are no rows."""
        return self.top_count / self.rows if self.rows else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A feature's profile and that of its reference; a distance is None if a side has no rows.

    `ks` is None for text, which has no order. A missing number counts as larger than all others.
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

    Numbers: edges at the exact quantiles i / bins of the finite values. A value at several quantiles gets its
    own bin, so that a feature with few values (0 and 1; almost always 0) has several bins too. Other types:
    the most frequent values, except those too long or invalid in a query, which count as others. No edge and
    no value if all are missing.

    Args:
        reference: rows with the features.
        features: columns of it.
        bins: the most bins of equal size.
        values: the most values of a text; of equally frequent ones the smallest.

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
        quantiles = rows.aggregate(**{name: rows[name].quantile(at) for name in finite}) if at else None
        row = {} if quantiles is None else _rows(quantiles)[0]
        edges |= {name: _edges(row.get(f"n_{i}")) for i, name in enumerate(batch)}
    return tuple(
        Bins(name, "number", edges=edges[name])
        if kinds[name] == "number"
        else Bins(name, "text", values=_values(_rows(_top(reference, name, "text", values))))
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


def profiles(
    rows: ir.Table, bins: Sequence[Bins], *, described: bool = True, ask: Ask = ASK_ONCE
) -> tuple[FeatureProfile, ...]:
    """The profile of each feature of these rows: one query for the counts of many, one for each top value.

    Without `described` there are only the counts, which are enough for distances: the values of each feature
    cost a further query. A column is read as the type of the reference: if that has numbers, other text is
    missing.

    Raises ValueError if the rows lack a feature.

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
    for number, batch in enumerate(batches(list(by_name))):
        counts = _counts(rows, [by_name[name] for name in batch], ask, f"counts {number}")
        for name, counted in zip(batch, counts, strict=True):
            plain = FeatureProfile(by_name[name], counted, 0)
            found.append(with_values(rows, plain, ask) if described else plain)
    return tuple(found)


def with_values(rows: ir.Table, plain: FeatureProfile, ask: Ask = ASK_ONCE) -> FeatureProfile:
    """Adds the values to a profile that has only counts, with one query.

    >>> rows = ibis.memtable({"age": [10.0, 20.0, 20.0, None]})
    >>> (plain,) = profiles(rows, [Bins("age", "number", edges=(15.0,))], described=False)
    >>> found = with_values(rows, plain)
    >>> plain.top, found.top, found.distinct
    (None, '20', 2)
    """
    top = ask(f"top of {plain.feature}", lambda: _top(rows, plain.feature, plain.bins.kind, 1))
    if not top:
        return plain
    value, distinct, n = written(top[0]["value"]), int(top[0]["distinct"]), int(top[0]["n"])
    return replace(plain, distinct=distinct, top=value, top_count=n)


def _top(rows: ir.Table, feature: str, kind: Kind, most: int) -> ir.Table:
    """The most frequent values with their rows `n`, and the number of values `distinct`."""
    rows = rows.select(value=grouped_as(rows[feature], kind))
    rows = rows.filter(rows.value.notnull())
    counted = rows.aggregate(by="value", n=rows.count())
    counted = counted.mutate(distinct=counted.count().over(ibis.window()))
    return counted.order_by(ibis.desc("n"), "value").limit(most)


def _counts(rows: ir.Table, bins: Sequence[Bins], ask: Ask, name: str) -> list[tuple[int, ...]]:
    """The rows in each bin of some features, by one query of this name."""
    (row,) = ask(name, lambda: _bin_sums(rows, bins))
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


def _bin_sums(rows: ir.Table, bins: Sequence[Bins]) -> ir.Table:
    """One row: of a text the rows with each value, of a number those up to each edge."""
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
    return table.aggregate(**sums)


def compare(reference: FeatureProfile, current: FeatureProfile) -> Comparison:
    """The distances of the current rows from the reference, by the counts over its bins.

    Raises ValueError if the bins differ.

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


def _rows(table: ir.Table) -> Records:
    return ASK_ONCE("", lambda: table)
