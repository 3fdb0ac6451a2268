"""Ibis' own DuckDB backend, which writes an expression as SQL once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import ibis.expr.operations as ops
import ibis.expr.types as ir
from ibis.backends.duckdb import Backend

_MOST: Final = 128  # expressions: a window asks some dozens that another asked before it


class DuckDBBackend(Backend):  # type: ignore[misc]
    """Remembers the SQL of the expressions that were compiled last.

    To write an expression as SQL takes longer than to run it on an hour of a log, and the next window asks
    the same: its tables have the same names, and expressions are equal where they say the same.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known: OrderedDict[ops.Node, str] = OrderedDict()

    def compile(self, expr: ir.Expr, /, **options: Any) -> str:
        """The SQL of an expression."""
        if any(value is not None for value in options.values()):
            return str(super().compile(expr, **options))
        op = expr.op()
        sql = self._known.pop(op, None)
        if sql is None:
            sql = str(super().compile(expr))
            if len(self._known) >= _MOST:
                self._known.popitem(last=False)
        self._known[op] = sql
        return sql
