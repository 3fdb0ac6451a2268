"""Ibis' Spark backend, changed so that an expression means the same as on the embedded engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.backends.pyspark import Backend
from ibis.backends.sql.compilers.pyspark import PySparkCompiler
from ibis.formats.pyarrow import PyArrowData

ibis.pyspark.name  # noqa: B018 - registers the backend's options, without which nothing compiles

# Text that the embedded engine reads as a number or a time. Spark also reads `7d` and `2026-01`.
_NUMBER = r"(?i)^\s*[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*$"
_ZONE = r"(Z|z|[+-]\d{2}(:?\d{2})?)?"
_TIME = rf"^\s*\d{{1,6}}-\d{{1,2}}-\d{{1,2}}(([T ]\d{{1,2}}:\d{{1,2}}(:\d{{1,2}}(\.\d+)?)?)?\s*{_ZONE})?\s*$"


_FUNCTIONS: dict[str, Callable[..., sge.Expression]] = {
    "make_timestamp": lambda f, micros: f.timestamp_micros(micros),
    "list_position": lambda f, items, one: f.array_position(items, one),
    "list_unique": lambda f, items: f.size(f.array_distinct(f.array_compact(items))),
}


class SparkCompiler(PySparkCompiler):  # type: ignore[misc]
    """Ibis' compiler for Spark, changed where the meaning differs from the embedded engine."""

    def visit_IsNull(self, op: ops.IsNull, *, arg: sge.Expression) -> Any:  # noqa: ARG002, N802
        """NaN is not null. In Ibis' compiler it is, whatever the option `treat_nan_as_null` says."""
        return arg.is_(sge.null())

    def visit_NotNull(self, op: ops.NotNull, *, arg: sge.Expression) -> Any:  # noqa: ARG002, N802
        """See `visit_IsNull`."""
        return arg.is_(sge.not_(sge.null()))

    def visit_IsInf(self, op: ops.IsInf, *, arg: sge.Expression) -> Any:  # noqa: N802
        """Ibis' compiler compares two Python objects, which is false for every number."""
        return self.f.abs(arg).eq(self.POS_INF) if op.arg.dtype.is_floating() else sge.false()

    def visit_TryCast(self, op: ops.TryCast, *, arg: sge.Expression, to: Any) -> Any:  # noqa: N802
        """Text becomes a number or a time only if the embedded engine would read it so."""
        read = super().visit_TryCast(op, arg=arg, to=to)
        if not op.arg.dtype.is_string():
            return read
        form = _NUMBER if to.is_floating() else _TIME if to.is_timestamp() else None
        if form is None:
            return read
        return self.if_(self.f.anon.rlike(arg, sge.Literal.string(form)), read, sge.null())

    def visit_ArrayIndex(self, op: ops.ArrayIndex, *, arg: sge.Expression, index: Any) -> Any:  # noqa: ARG002, N802
        """An element beyond the end of a list is null."""
        return self.f.anon.try_element_at(arg, index + sge.convert(1))

    def visit_ExtractEpochSeconds(self, op: ops.ExtractEpochSeconds, *, arg: sge.Expression) -> Any:  # noqa: ARG002, N802
        """With the fraction of the second."""
        micros = self.cast(self.f.anon.unix_micros(self.cast(arg, dt.timestamp)), dt.float64)
        return sge.paren(micros / sge.convert(1e6))

    def visit_ScalarUDF(self, op: Any, **kw: Any) -> Any:  # noqa: N802
        """Functions of the embedded engine, by their names in Spark."""
        if (named := _FUNCTIONS.get(op.__func_name__)) is not None:
            return named(self.f.anon, *kw.values())
        return super().visit_ScalarUDF(op, **kw)


def _precise(kind: ibis.DataType) -> ibis.DataType:
    return dt.Timestamp(timezone=kind.timezone, scale=6) if kind.is_timestamp() else kind


class SparkBackend(Backend):  # type: ignore[misc]
    """Runs every query within a context, and returns results by Arrow.

    Ibis' backend goes through pandas, in which whole numbers beside nulls lose digits.

    Args:
        running: entered around code that starts jobs.
    """

    compiler = SparkCompiler()

    def __init__(self, running: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self._running = running

    def get_schema(self, table_name: str, **kwargs: Any) -> ibis.Schema:
        """As in Ibis, but times have microseconds, as all times of the monitor."""
        found = super().get_schema(table_name, **kwargs)
        precise = {name: _precise(kind) for name, kind in found.items()}
        return ibis.schema(precise)

    def to_pyarrow(
        self, expr: ir.Expr, /, *, params: Any = None, limit: Any = None, **kwargs: Any
    ) -> pa.Table | pa.Array | pa.Scalar:
        table = expr.as_table()
        with self._running():
            self._run_pre_execute_hooks(table)
            query = self.compile(table, params=params, limit=limit, **kwargs)
            found = PyArrowData.convert_table(self._session.sql(query).toArrow(), table.schema())
        return expr.__pyarrow_result__(found)

    def execute(self, expr: ir.Expr, /, *, params: Any = None, limit: Any = None, **kwargs: Any) -> Any:
        with self._running():
            return super().execute(expr, params=params, limit=limit, **kwargs)
