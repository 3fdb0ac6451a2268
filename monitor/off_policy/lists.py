"""What a whole list would have earned: by each position alone, by those above too, and by the whole list."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import ibis.expr.types as ir

from monitor.core.results import Result
from monitor.engines.duckdb import Engine
from monitor.metrics.feedback.business import ratio_sums
from monitor.off_policy import list_queries as q
from monitor.off_policy.list_queries import Kind
from monitor.off_policy.results import NOT_1, POLICY_OVERLAP, Question, result_of, value_of, why_none
from monitor.off_policy.reward_model import ROWS
from monitor.statistics.effects import RatioSums, effective_size, ratio_delta
from monitor.statistics.off_policy import LEAST_EFFECTIVE, MOST_UNSEEN, from_sums

PLAIN: Final = "ips_"
SELF_NORMALISED: Final = "self_normalised_"
_LARGEST_LOG: Final = 709.0  # its exponential is a float64
_UNORDERED: Final = "the log has no positions, so nobody knows which items are above another"
_TOO_LARGE: Final = "the products of weights are too large for a number"
_TOO_SMALL: Final = "the products of weights are too small for a number"
_EMPTY: Final = "at one position all weights are 0 or vanish beside the largest, so its reward is unknown"


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a log, and their weights of each kind.

    Attributes:
        faults: lists that cannot be used whole, by the fault.
        whole: lists that can.
        kinds: the sums of each kind.
    """

    faults: Mapping[str, int]
    whole: int
    kinds: Mapping[Kind, Weighted]

    @property
    def all(self) -> int:
        return self.whole + sum(self.faults.values())

    def usable(self, kind: Kind) -> int:
        """The lists that have a weight of this kind. One by position needs no order of the rows."""
        return self.all - self.faults.get(q.NO_WEIGHT, 0) if kind is Kind.POSITION else self.whole


@dataclass(frozen=True, slots=True)
class Weighted:
    """The weights of one kind.

    Attributes:
        scale: the logarithm of the largest weight; all sums are of weights divided by it.
        sums: of `list_queries.list_totals`; empty if no weight is above 0.
        longest: rows of the longest list that is used: no list earns more.
        reason: why there cannot be a value, without a look at the overlap.
    """

    scale: float = 0.0
    sums: Mapping[str, Any] | None = None
    longest: int = 0
    reason: str = ""

    @property
    def rows(self) -> float:
        """The effective number of rows."""
        return effective_size(self.sums[q.PART], self.sums[q.SQUARE]) if self.sums else 0.0

    @property
    def lists(self) -> float:
        """The effective number of lists: rows, divided by the mean length of a list."""
        return self.rows * self.sums[q.LISTS] / self.sums[ROWS] if self.sums else 0.0

    def scaled(self, name: str) -> RatioSums:
        """The sums of a ratio whose numerator has the weights, as they are."""
        assert self.sums is not None
        # Beyond float64 this is infinite; then there is no estimate.
        factor = math.exp(self.scale) if self.scale < _LARGEST_LOG else math.inf
        part = ratio_sums(self.sums, name)
        return part._replace(
            numerator=part.numerator * factor,
            numerator_squared=part.numerator_squared * factor * factor,
            product=part.product * factor,
        )


def read(engine: Engine, rows: ir.Table, ordered: bool) -> Lists | None:
    """The lists of the rows of `queries.weighted`; None if each has a single row."""
    listed = engine.create("weighted_lists", q.listed(rows, ordered))
    counted = q.list_faults(listed).to_pyarrow().to_pylist()
    longest = max((int(row[q.LONGEST]) for row in counted), default=0)
    if longest < 2:
        return None
    faults = {row[q.FAULT]: int(row[q.LISTS]) for row in counted}
    whole = faults.pop(None, 0)
    return Lists(faults, whole, {kind: _weighted(listed, kind, ordered) for kind in Kind})


def _weighted(rows: ir.Table, kind: Kind, ordered: bool) -> Weighted:
    if kind is Kind.CASCADE and not ordered:
        return Weighted(reason=_UNORDERED)
    (most,) = q.largest(rows, kind).to_pyarrow().to_pylist()
    scale = most["largest"]
    if scale is None:
        return Weighted()
    (sums,) = q.list_totals(rows, kind, scale).to_pyarrow().to_pylist()
    return Weighted(scale, sums, most[q.LONGEST])


def overlap_of_lists(question: Question, lists: Lists) -> Iterator[Result]:
    """The lists that cannot be used whole, and what the others are worth by each kind of weight."""
    left = ", ".join(f"{count} with {name}" for name, count in sorted(lists.faults.items()))
    count = float(lists.all - lists.whole)
    yield result_of(question, POLICY_OVERLAP, "lists_without_weight", count, samples=lists.all, detail=left)
    for kind, of in lists.kinds.items():
        value = None if of.reason else of.lists
        yield result_of(
            question, POLICY_OVERLAP, f"effective_lists_{kind}", value, samples=lists.all, detail=of.reason
        )


def values_of_lists(question: Question, lists: Lists, reason: str) -> Iterator[Result]:
    """The values of whole lists.

    Args:
        question: what is estimated.
        lists: of `read`.
        reason: why the rows give no estimate at all; empty if they do.
    """
    for kind, of in lists.kinds.items():
        why = reason or _reason(kind, lists, of)
        samples = int(of.sums[q.LISTS]) if of.sums else 0
        if why or not of.sums:
            for name in (PLAIN, SELF_NORMALISED):
                yield value_of(question, f"{name}{kind}", None, samples, why)
            continue
        detail = "" if kind is Kind.POSITION else _odd_mean(of)
        bounds = (0.0, float(of.longest))
        for name, sums, fault in (
            (PLAIN, of.scaled(q.VALUE), _scale_fault(of)),
            (SELF_NORMALISED, ratio_sums(of.sums, q.NORMALISED), _EMPTY if of.sums[q.EMPTY] else ""),
        ):
            value = None if fault else from_sums(sums, bounds, of.rows)
            yield value_of(question, f"{name}{kind}", value, samples, fault or why_none(sums), detail)


def _reason(kind: Kind, lists: Lists, of: Weighted) -> str:
    """Why there is no value of this kind; empty if there can be one."""
    if of.reason:
        return of.reason
    used = lists.usable(kind)
    left = lists.all - used
    if left > MOST_UNSEEN * lists.all:
        return f"{left:,} of {lists.all:,} lists cannot be used whole, more than {MOST_UNSEEN:.0%}"
    if of.lists < LEAST_EFFECTIVE:
        are, their = ("list is", "its") if used == 1 else ("lists are", "their")
        return f"{used} {are} worth {of.lists:.3g} by {their} weights, less than {LEAST_EFFECTIVE}"
    return ""


def _scale_fault(of: Weighted) -> str:
    """Why the sums of squares of the weights are no numbers: they overflow or vanish. Empty if they are."""
    sums = of.scaled(q.VALUE)
    weight = of.scaled(q.WEIGHT)
    if not all(math.isfinite(one) for one in (*sums, *weight)):
        return _TOO_LARGE
    return "" if weight.numerator_squared > 0 else _TOO_SMALL


def _odd_mean(of: Weighted) -> str:
    """A warning if the mean of the products is not 1."""
    mean = ratio_delta(of.scaled(q.WEIGHT))
    if mean is None:
        return f"{_TOO_LARGE}; their mean is not 1: {NOT_1}"
    if mean.interval.lower <= 1 <= mean.interval.upper:
        return ""
    lower, upper = mean.interval
    return f"the mean product of weights is {mean.value:.3g} ({lower:.3g} to {upper:.3g}); {NOT_1}"
