"""Serving skew: compares the features that a request was scored with to those joined for it offline.

Rows of both sides are paired by key, and each feature of a pair is compared. The result is a few numbers for
each feature; no row leaves the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.metrics.plans import ASK_ONCE, Ask, Build
from monitor.models.feature_values import (
    as_text,
    batches,
    grouped_as,
    kind_of,
    known,
    same,
    written,
)

TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the rows of both sides were paired.

    Attributes:
        keys: the columns of the pairing; empty if the sides share none.
        online, offline: the rows of each side.
        unknown: rows of both sides with a null or a NaN in a key, which have no pair.
        ambiguous: keys on both sides, but more than once on one of them; they are left out.
    """

    keys: tuple[str, ...]
    online: int
    offline: int
    pairs: int = 0
    unknown: int = 0
    ambiguous: int = 0


@dataclass(frozen=True, slots=True)
class FeatureSkew:
    """One feature over the paired rows.

    A wrong pair is `missing` (offline only), `extra` (online only) or `different`.

    Attributes:
        stale: wrong pairs whose online value is older; None if the feature has no time of its own.
        commonest, commonest_count: the online value of most wrong pairs, which are almost all if it is a
            default; None if there is none or it was not looked up.
    """

    feature: str
    pairs: int
    missing: int
    extra: int
    different: int
    stale: int | None = None
    commonest: str | None = None
    commonest_count: int = 0

    @property
    def wrong(self) -> int:
        return self.missing + self.extra + self.different


@dataclass(frozen=True, slots=True)
class Skew:
    """The pairing, the features in the given order, and the tolerance for numbers."""

    pairing: Pairing
    features: tuple[FeatureSkew, ...]
    tolerance: float = TOLERANCE


def measure_skew(
    online: ir.Table,
    offline: ir.Table,
    features: Sequence[str],
    keys: Sequence[str],
    *,
    tolerance: float = TOLERANCE,
    times: Mapping[str, str] | None = None,
    looked_up: int = 20,
    ask: Ask = ASK_ONCE,
) -> Skew:
    """Compare the features of paired rows.

    Null and NaN both count as missing and equal each other; `feature_values.same` defines equality of other
    values. Each query reads some of the features, so that memory does not grow with their number.

    Args:
        online: the served rows: keys, features, their times.
        offline: the same requests from the offline pipeline.
        features: columns that both sides have.
        keys: the columns that pair rows; columns that a side lacks are not used.
        tolerance: numbers that differ by at most this share of the larger are the same.
        times: feature -> the column (of both sides) with the time of its value.
        looked_up: the commonest wrong value is queried for this many features, those that differ most.
        ask: runs the queries.

    Raises ValueError if a side lacks a feature or a time.

    >>> online = ibis.memtable({"request_id": ["a", "b", "c"], "age": [31.0, 0.0, 0.0]})
    >>> offline = ibis.memtable({"request_id": ["a", "b", "c"], "age": [31.0, 52.0, 18.0]})
    >>> skew = measure_skew(online, offline, ["age"], ["request_id"])
    >>> skew.pairing.pairs, skew.features[0].different, skew.features[0].commonest
    (3, 2, '0')
    """
    times = {name: at for name, at in (times or {}).items() if name in features}
    for side, rows in (("online", online), ("offline", offline)):
        lacking = [name for name in (*features, *times.values()) if name not in rows.columns]
        if lacking:
            raise ValueError(f"the {side} rows have no column {lacking[0]!r}")
    shared = [key for key in keys if key in online.columns and key in offline.columns]
    both = _Sides(online, offline, shared, ask)
    pairing = both.pairing()
    if pairing.pairs == 0:
        return Skew(pairing, tuple(FeatureSkew(name, 0, 0, 0, 0) for name in features), tolerance)
    found: list[FeatureSkew] = []
    for number, batch in enumerate(batches(features)):
        found += _compared(both, batch, tolerance, times, pairing, f"skew {number}")
    worst = sorted((one for one in found if one.extra + one.different), key=lambda one: -one.wrong)
    named = {one.feature: _commonest(both, one, tolerance, pairing) for one in worst[:looked_up]}
    return Skew(pairing, tuple(named.get(one.feature, one) for one in found), tolerance)


class _Sides:
    """The two tables, and queries of their pairs."""

    def __init__(self, online: ir.Table, offline: ir.Table, keys: Sequence[str], ask: Ask) -> None:
        self._tables = online, offline
        self._keys = list(keys)
        self.ask = ask

    def _keyed(self, side: int) -> list[ir.Value]:
        own, other = self._tables[side], self._tables[1 - side]
        alike = {key: own[key].type() == other[key].type() for key in self._keys}
        return [known(own[key]) if alike[key] else as_text(known(own[key])) for key in self._keys]

    def _rows(self, side: int, **columns: ir.Value) -> ir.Table:
        """The rows with all keys; the keys are `k_0`, ... on one side and `j_0`, ... on the other."""
        keys = self._keyed(side)
        rows = self._tables[side].filter(reduce(and_, [key.notnull() for key in keys]))
        return rows.select(**dict(zip(self._names(side), keys, strict=True)), **columns)

    def _names(self, side: int) -> list[str]:
        return [f"{'kj'[side]}_{number}" for number in range(len(self._keys))]

    def pairing(self) -> Pairing:
        """The number of pairs, from one query over the keys of both sides."""
        online, offline = (
            rows_of(self.ask, f"{name} rows", table)
            for name, table in zip(("online", "offline"), self._tables, strict=True)
        )
        if not self._keys or 0 in (online, offline):
            return Pairing(tuple(self._keys), online, offline)
        row = _one(self.ask, "pairing", self._met)
        unknown = online + offline - row["known"]
        return Pairing(tuple(self._keys), online, offline, row["pairs"], unknown, row["ambiguous"])

    def _met(self) -> ir.Table:
        """One row: the rows with `known` keys, the `pairs`, and the `ambiguous` keys."""
        names = self._names(0)
        sides = [
            self._rows(side).select(
                *(ibis._[own].name(name) for own, name in zip(self._names(side), names, strict=True)),
                left=ibis.literal(1 - side, "int64"),
                right=ibis.literal(side, "int64"),
            )
            for side in (0, 1)
        ]
        stacked = ibis.union(*sides)
        found = stacked.aggregate(by=names, left=stacked.left.sum(), right=stacked.right.sum())
        met = (found.left > 0) & (found.right > 0)
        once = (found.left == 1) & (found.right == 1)
        return found.aggregate(
            known=(found.left + found.right).sum(),
            pairs=found.count(where=once),
            ambiguous=found.count(where=met & ~once),
        )

    def paired(self, batch: Sequence[str], times: Mapping[str, str], pairing: Pairing) -> ir.Table:
        """One row for each pair: `a_0` online, `b_0` offline, their times `a_at_0` and `b_at_0`."""
        columns: list[dict[str, ir.Value]] = [{}, {}]
        for side, (table, own) in enumerate(zip(self._tables, "ab", strict=True)):
            for number, name in enumerate(batch):
                columns[side][f"{own}_{number}"] = known(table[name])
                if name in times:
                    columns[side][f"{own}_at_{number}"] = table[times[name]]
        left, right = (self._rows(side, **columns[side]) for side in (0, 1))
        if pairing.ambiguous:
            for side in (0, 1):
                twice = self._twice(side)
                on = zip(self._names(0), twice.columns, strict=True)
                left = left.anti_join(twice, [left[own] == twice[other] for own, other in on])
        on = zip(self._names(0), self._names(1), strict=True)
        return left.inner_join(right, [left[own] == right[other] for own, other in on])

    def _twice(self, side: int) -> ir.Table:
        rows = self._rows(side)
        counted = rows.aggregate(by=self._names(side), rows=rows.count())
        return counted.filter(counted.rows > 1).select(
            **{f"twice_{number}": counted[name] for number, name in enumerate(self._names(side))}
        )


def _compared(
    both: _Sides,
    batch: Sequence[str],
    tolerance: float,
    times: Mapping[str, str],
    pairing: Pairing,
    query: str,
) -> list[FeatureSkew]:
    """The skew of a batch of features, by a query of this name."""
    query = f"{query}, ambiguous: {bool(pairing.ambiguous)}"
    row = _one(both.ask, query, lambda: _sums(both, batch, tolerance, times, pairing))
    return [
        FeatureSkew(
            name,
            pairing.pairs,
            row[f"missing_{number}"],
            row[f"extra_{number}"],
            row[f"different_{number}"],
            row.get(f"stale_{number}"),
        )
        for number, name in enumerate(batch)
    ]


def _sums(
    both: _Sides, batch: Sequence[str], tolerance: float, times: Mapping[str, str], pairing: Pairing
) -> ir.Table:
    pairs = both.paired(batch, times, pairing)
    sums: dict[str, ir.Value] = {}
    for number, name in enumerate(batch):
        missing, extra, different = _wrong(pairs, number, tolerance)
        sums |= {
            f"missing_{number}": pairs.count(where=missing),
            f"extra_{number}": pairs.count(where=extra),
            f"different_{number}": pairs.count(where=different),
        }
        if name in times:
            older = (pairs[f"a_at_{number}"] < pairs[f"b_at_{number}"]).fill_null(False)
            sums[f"stale_{number}"] = pairs.count(where=older & (missing | extra | different))
    return pairs.aggregate(**sums)


def _wrong(pairs: ir.Table, number: int, tolerance: float) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Whether the feature of this number is missing, extra, or different; never null."""
    a, b = pairs[f"a_{number}"], pairs[f"b_{number}"]
    different = (a.notnull() & b.notnull() & ~same(a, b, tolerance)).fill_null(False)
    return a.isnull() & b.notnull(), a.notnull() & b.isnull(), different


def _commonest(both: _Sides, skew: FeatureSkew, tolerance: float, pairing: Pairing) -> FeatureSkew:
    def build() -> ir.Table:
        pairs = both.paired([skew.feature], {}, pairing)
        _, extra, different = _wrong(pairs, 0, tolerance)
        wrong = pairs.filter(extra | different)
        wrong = wrong.select(value=grouped_as(wrong.a_0, kind_of(wrong.a_0.type())))
        counted = wrong.aggregate(by="value", n=wrong.count())
        return counted.order_by(ibis.desc("n"), "value").limit(1)

    rows = both.ask(f"commonest of {skew.feature}, ambiguous: {bool(pairing.ambiguous)}", build)
    return replace(skew, commonest=written(rows[0]["value"]), commonest_count=int(rows[0]["n"]))


def rows_of(ask: Ask, name: str, table: ir.Table) -> int:
    """The number of rows of a table, by a query of this name."""
    return int(_one(ask, name, lambda: table.aggregate(n=table.count()))["n"])


def _one(ask: Ask, name: str, build: Build) -> dict[str, Any]:
    """The single row of sums; null becomes 0."""
    (row,) = ask(name, build)
    return {name: int(value or 0) for name, value in row.items()}
