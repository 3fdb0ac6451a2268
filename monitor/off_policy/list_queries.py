"""The sums of the estimates of whole lists, computed in the engine.

Each row of a list has three weights: its own, the product from the first position to its own (the cascade),
and the product of all rows of its list. Products are sums of logarithms, so none overflows. Only their ratio
to the largest becomes a number.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import POSITION, REQUEST_ID, USER_ID
from monitor.metrics.feedback.business import ratio_columns
from monitor.off_policy.queries import ALONE, REWARD, W
from monitor.off_policy.reward_model import ROWS


class Kind(StrEnum):
    """Which positions decide on the reward of a row: its own, those above too, or the whole list."""

    POSITION = "by_position"
    CASCADE = "by_cascade"
    LIST = "by_list"

    @property
    def log(self) -> str:
        """The column of the logarithm of the weight; null for a weight of 0."""
        return f"log_{self}"


FAULT: Final = "list_fault"
NO_WEIGHT: Final = "a row without a weight"
LISTS, LONGEST, EMPTY = "lists", "longest", "empty"
VALUE, NORMALISED, WEIGHT = "value", "normalised", "weight"
PART, SQUARE = "part", "square"
_SIZE, _SAME, _LOG, _ZERO, _FIRST = "size", "same", "log", "zero", "first"
_LIST: Final = (REQUEST_ID, USER_ID, ALONE)


def listed(rows: ir.Table, ordered: bool) -> ir.Table:
    """One row an exposure: the logarithm of each of its three weights, and the fault of its list, or null.

    Args:
        rows: of `queries.weighted`.
        ordered: whether the log has positions. If not, the cascade has no order and is not to be used.
    """
    whole = ibis.window(group_by=list(_LIST))
    place = ibis.window(group_by=[*_LIST, POSITION])
    rows = rows.mutate(
        **{
            _SAME: rows.count().over(place),
            _LOG: rows[W].nullif(0.0).ln(),
            _ZERO: (rows[W] == 0).cast("int64").fill_null(0),
        }
    )
    faults = [(rows[W].isnull().cast("int64").max().over(whole) > 0, NO_WEIGHT)]
    if ordered:
        span = rows[POSITION].max().over(whole) - rows[POSITION].min().over(whole)
        faults += [
            (rows[POSITION].isnull().cast("int64").max().over(whole) > 0, "a row without a position"),
            (rows[_SAME].max().over(whole) > 1, "a position twice"),
            (span + 1 > rows.count().over(whole), "a gap in the positions"),
        ]
    above = ibis.cumulative_window(group_by=list(_LIST), order_by=POSITION)
    null = ibis.null("float64")

    def product(window: Any) -> Any:
        log = rows[_LOG].sum().over(window)
        return ibis.ifelse(rows[_ZERO].max().over(window) > 0, null, log)

    return rows.mutate(
        **{
            FAULT: ibis.cases(*faults),
            _SIZE: rows.count().over(whole),
            _FIRST: (ibis.row_number().over(whole) == 0).cast("int64"),
            Kind.POSITION.log: rows[_LOG],
            Kind.CASCADE.log: product(above),
            Kind.LIST.log: product(whole),
        }
    )


def list_faults(rows: ir.Table) -> ir.Table:
    """One row for each fault of lists, null for none: `lists`, and the `longest`."""
    return rows.aggregate(by=FAULT, **{LISTS: rows[_FIRST].sum(), LONGEST: rows[_SIZE].max()})


def largest(rows: ir.Table, kind: Kind) -> ir.Table:
    """One row: the logarithm `largest` of the largest weight, null if all are 0; and the `longest` list."""
    rows = _usable(rows, kind)
    return rows.aggregate(largest=rows[kind.log].max(), **{LONGEST: rows[_SIZE].max()})


def list_totals(rows: ir.Table, kind: Kind, largest_log: float) -> ir.Table:
    """One row: the sums over units of the value, plain and self-normalised, and of the weights over rows.

    All weights are divided by the largest. A self-normalised value divides by the mean weight at each
    position (of whole lists: of all rows). It is summed as its first-order terms, w (r - R) / m + R, with R
    the weighted reward and m the mean weight. They have the same sum, and the variance of the delta method.

    Args:
        rows: of `listed`, in a table of the engine.
        kind: which weight.
        largest_log: of `largest`.
    """
    rows = _usable(rows, kind)
    log = rows[kind.log]
    rows = rows.mutate(**{PART: ibis.ifelse(log.isnull(), 0.0, (log - largest_log).exp())})
    rows = rows.mutate(**{VALUE: rows[PART] * rows[REWARD], SQUARE: rows[PART] * rows[PART]})
    place = ibis.window(group_by=[] if kind is Kind.LIST else [POSITION])
    mean, value = rows[PART].mean().over(place), rows[VALUE].mean().over(place)
    rows = rows.mutate(mean=mean, rate=value / mean.nullif(0.0))
    rows = rows.mutate(
        **{
            NORMALISED: rows[PART] * (rows[REWARD] - rows.rate) / rows["mean"] + rows.rate,
            EMPTY: (rows["mean"] == 0).cast("int64"),
            ROWS: 1.0,
        }
    )
    summed = (VALUE, NORMALISED, PART, SQUARE, EMPTY, ROWS)
    lists = rows.aggregate(by=list(_LIST), **{name: rows[name].sum() for name in summed})
    units = lists.aggregate(
        by=[USER_ID, ALONE],
        **{LISTS: lists.count().cast("float64")},
        **{name: lists[name].sum() for name in summed},
    )
    return units.aggregate(
        **ratio_columns(VALUE, units[VALUE], units[LISTS]),
        **ratio_columns(NORMALISED, units[NORMALISED], units[LISTS]),
        **ratio_columns(WEIGHT, units[PART], units[ROWS]),
        **{name: units[name].sum() for name in (PART, SQUARE, EMPTY, ROWS, LISTS)},
    )


def _usable(rows: ir.Table, kind: Kind) -> ir.Table:
    """The rows of the lists that can be used. Without a row a list is not whole, so its value is too low.

    A row's own weight needs no order of the rows; a product needs one.
    """
    usable = rows[FAULT].isnull()
    return rows.filter(usable | (rows[FAULT] != NO_WEIGHT) if kind is Kind.POSITION else usable)
