"""Conditions on numbers that every engine understands alike."""

from __future__ import annotations

import math

import ibis.expr.types as ir


def infinite(number: ir.FloatingValue) -> ir.BooleanValue:
    """Whether a number is plus or minus infinity. Ibis' own `isinf` is always false on Spark."""
    return number.abs() == math.inf


def finite(number: ir.FloatingValue) -> ir.BooleanValue:
    """Whether a number is neither NaN nor infinite; null for null.

    >>> import ibis
    >>> rows = ibis.memtable({"x": [1.5, math.inf, -math.inf, math.nan]})
    >>> rows.filter(finite(rows.x)).count().execute().item()
    1
    """
    return ~number.isnan() & ~infinite(number)
