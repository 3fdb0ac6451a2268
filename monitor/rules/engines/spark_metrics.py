"""What the own expectations, and GX's where they count otherwise, mean on Spark.

Conditions that look at a second table are subqueries, which Spark takes in a filter only, so their counts
are metrics of their own. The counts are those of the embedded engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyspark.sql.functions as f
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from pyspark.sql import Column, DataFrame

from monitor.core.columns import ITEM_ID, TS
from monitor.core.digest import digest
from monitor.rules.expectations.items import WHOLE_NUMBER, list_content, shelf_words
from monitor.rules.expectations.numbers import SMALLEST_NORMAL
from monitor.rules.gx.internals import (
    ColumnMapMetricProvider,
    ColumnValuesBetween,
    MetricProvider,
    MulticolumnMapMetricProvider,
    column_condition,
    columns_condition,
    metric_value,
)

_SIGNED = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_SIGNED, "float", "double", "decimal")
_DOMAIN = ("batch_id", "table", "column", "row_condition", "condition_parser")


def quoted(name: str) -> str:
    """A column's or table's name in Spark's SQL.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _with_subquery(
    metric: str, keys: tuple[str, ...], held: Callable[[DataFrame, str, dict[str, Any]], str]
) -> None:
    """Register a condition in SQL (that holds for a good value) and the count of the rows that break it."""

    class Condition(ColumnMapMetricProvider):
        condition_metric_name = metric
        condition_value_keys = keys

        @column_condition(engine=SparkDFExecutionEngine)
        def _spark(cls, column: Any, _table: Any = None, **kwargs: Any) -> Any:  # noqa: N805, ARG002
            name = kwargs["_accessor_domain_kwargs"]["column"]
            return f.expr(held(_table, name, kwargs))

    class Count(MetricProvider):
        metric_name = f"{metric}.unexpected_count"
        domain_keys = _DOMAIN
        value_keys = keys

        @metric_value(engine=SparkDFExecutionEngine)
        def _spark(
            cls,  # noqa: N805
            execution_engine: SparkDFExecutionEngine,
            metric_domain_kwargs: dict[str, Any],
            metric_value_kwargs: dict[str, Any],
            **_: Any,
        ) -> int:
            rows = execution_engine.get_domain_records(metric_domain_kwargs)
            name = metric_domain_kwargs["column"]
            broken = f"{quoted(name)} IS NOT NULL AND NOT ({held(rows, name, metric_value_kwargs)})"
            return int(rows.filter(broken).count())


def _not_in_list_file(rows: DataFrame, column: str, kwargs: dict[str, Any]) -> str:
    path, content = kwargs["list_path"], list_content(kwargs)
    kind = dict(rows.dtypes).get(column, "")
    number = kind.startswith(_NUMBERS)
    if number and content.values and not content.bans_a_number(signed=kind in _SIGNED):
        raise ValueError(
            f"no id of the list file {path} is a whole number that column {column} ({kind}) can hold"
        )
    place = digest(f"{path} {kwargs.get('list_column')}", 8)
    table = f"list_{place}_{content.version}_{'integers' if number else 'strings'}"
    catalog = rows.sparkSession.catalog
    if not catalog.tableExists(table):
        for old in catalog.listTables(pattern=f"list_{place}_*"):
            catalog.dropTempView(old.name)
        rows.sparkSession.createDataFrame(content.arrow(number)).createOrReplaceTempView(table)
    compared = quoted(column) if number else f"CAST({quoted(column)} AS STRING)"
    return f"NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.value = {compared})"  # noqa: S608 - our own names


def _in_catalog(_rows: DataFrame, column: str, kwargs: dict[str, Any]) -> str:
    known, table = (
        quoted(kwargs.get(key) or default)
        for key, default in (("catalog_column", ITEM_ID), ("catalog_table", "catalog"))
    )
    return (
        f"EXISTS (SELECT 1 FROM (SELECT {known} AS known_item FROM {table}) "  # noqa: S608 - quoted
        f"WHERE known_item = {quoted(column)})"
    )


def _on_shelf(_rows: DataFrame, column: str, kwargs: dict[str, Any]) -> str:
    """As on the embedded engine: of several rows of an item, all say that it is on the shelf."""
    shown = quoted(kwargs.get("time_column") or TS)
    key = quoted(kwargs.get("catalog_column") or ITEM_ID)
    begins, ends = (
        f"CAST({quoted(name) if (name := kwargs.get(edge)) else 'NULL'} AS TIMESTAMP)"
        for edge in ("from_column", "until_column")
    )
    off = "false"
    if status := kwargs.get("status_column"):
        good = ", ".join(map(_text, shelf_words(kwargs.get("on_shelf_values"))))
        word = f"lower(CAST({quoted(status)} AS STRING))"
        word = f"regexp_replace({word}, {_text(WHOLE_NUMBER)}, '$1')"
        off = f"({word} IS NOT NULL AND {word} NOT IN ({good}))"
    items = (
        f"SELECT {key} AS shelf_item, max({begins}) AS shelf_from, min({ends}) AS shelf_until, "  # noqa: S608 - quoted
        f"bool_or({off}) AS shelf_off FROM {quoted(kwargs.get('catalog_table') or 'catalog')} GROUP BY {key}"
    )
    return (
        f"NOT EXISTS (SELECT 1 FROM ({items}) WHERE shelf_item = {quoted(column)} "  # noqa: S608
        f"AND (shelf_off OR {shown} < shelf_from OR {shown} >= shelf_until))"
    )


_with_subquery(
    "column_values.not_in_list_file",
    ("list_path", "list_column", "list_version", "allow_empty"),
    _not_in_list_file,
)
_with_subquery("column_values.in_catalog", ("catalog_table", "catalog_column"), _in_catalog)
_with_subquery(
    "column_values.on_shelf",
    (
        "time_column", "from_column", "until_column", "status_column", "on_shelf_values", "catalog_table",
        "catalog_column",
    ),
    _on_shelf,
)  # fmt: skip


def _is_finite(column: Column) -> Column:
    number = column.cast("double")
    return ~f.isnan(number) & (f.abs(number) != float("inf"))


class Finite(ColumnMapMetricProvider):
    """`expect_column_values_to_be_finite`."""

    condition_metric_name = "column_values.finite"
    condition_value_keys = ()

    @column_condition(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **_: Any) -> Any:  # noqa: N805
        return _is_finite(column)


class NotZero(MulticolumnMapMetricProvider):
    """`expect_columns_to_not_be_zero`. A missing value breaks nothing."""

    condition_metric_name = "columns.not_zero"
    condition_value_keys = ()

    @columns_condition(engine=SparkDFExecutionEngine)
    def _spark(cls, column_list: Any, **_: Any) -> Any:  # noqa: N805
        return _all(column_list, lambda column: column.cast("double") != 0)


class NotUnderflow(MulticolumnMapMetricProvider):
    """`expect_columns_to_not_underflow`. A missing value breaks nothing."""

    condition_metric_name = "columns.not_underflow"
    condition_value_keys = ("smallest", "zero_is_underflow")

    @columns_condition(engine=SparkDFExecutionEngine)
    def _spark(
        cls,  # noqa: N805
        column_list: Any,
        smallest: float = SMALLEST_NORMAL,
        zero_is_underflow: bool = False,
        **_: Any,
    ) -> Any:
        def held(column: Column) -> Column:
            size = f.abs(column.cast("double"))
            large = size >= f.lit(float(smallest))
            return large if zero_is_underflow else large | (size == 0)

        return _all(column_list, held)


def _all(rows: DataFrame, held: Callable[[Column], Column]) -> Column:
    condition = f.lit(True)
    for name in rows.columns:
        condition &= f.coalesce(held(f.col(quoted(name))), f.lit(True))
    return condition


class Between(ColumnValuesBetween):
    """`expect_column_values_to_be_between`, with NaN never in range; see `fast_metrics.Between`."""

    @column_condition(engine=SparkDFExecutionEngine)
    def _spark(
        cls,  # noqa: N805
        column: Any,
        min_value: Any = None,
        max_value: Any = None,
        strict_min: bool | None = None,
        strict_max: bool | None = None,
        _table: Any = None,
        **kwargs: Any,
    ) -> Any:
        if min_value is None and max_value is None:
            raise ValueError("min_value and max_value cannot both be missing")
        name = kwargs["_accessor_domain_kwargs"]["column"]
        kind = dict(_table.dtypes).get(name, "")
        if kind in ("string", "boolean"):
            raise ValueError(f"column {name} holds {kind}, which has no range")
        held = ~f.isnan(column) if kind in ("double", "float") else f.lit(True)
        if min_value is not None:
            held &= column > min_value if strict_min else column >= min_value
        if max_value is not None:
            held &= column < max_value if strict_max else column <= max_value
        return held


class UnexpectedRows(MetricProvider):
    """No rows: GX would fetch them all; evidence has its own LIMIT."""

    metric_name = "unexpected_rows_query.table"
    domain_keys = ("batch_id", "row_condition", "condition_parser")
    value_keys = ("unexpected_rows_query",)

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(cls, **_: Any) -> list[Any]:  # noqa: N805
        return []
