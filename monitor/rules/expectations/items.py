"""Expectations about item ids: not in a list file, in the catalog, on the shelf when shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pandas as pd
import sqlalchemy as sa
from great_expectations.expectations.expectation import ColumnMapExpectation

from monitor.core.columns import ITEM_ID, TS
from monitor.rules.gx.datasource import DuckDBExecutionEngine
from monitor.rules.gx.fast_metrics import column_type
from monitor.rules.gx.internals import (
    ColumnMapMetricProvider,
    MetricProvider,
    PandasExecutionEngine,
    column_condition,
    metric_value,
    pydantic,
)
from monitor.rules.list_files import FILES, ListContent

_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_WHOLE = (*_SIGNED, "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FRACTIONS = ("DOUBLE", "FLOAT", "REAL", "DECIMAL")


def list_content(kwargs: Mapping[str, Any]) -> ListContent:
    """The content of the list file that the arguments of the expectation name."""
    return FILES.read(
        kwargs["list_path"],
        kwargs.get("list_column") or ITEM_ID,
        kwargs.get("list_version"),
        allow_empty=bool(kwargs.get("allow_empty")),
    )


class _NotInListFile(ColumnMapMetricProvider):
    condition_metric_name = "column_values.not_in_list_file"
    condition_value_keys = ("list_path", "list_column", "list_version", "allow_empty")

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(
        cls,  # noqa: N805
        column: Any,
        _execution_engine: Any = None,
        _metrics: Any = None,
        **kwargs: Any,
    ) -> Any:
        content = list_content(kwargs)
        kind = column_type(_metrics, column.name)
        # Numbers with gaps are floating ones in many logs, where 7 is 7.0.
        number = kind in _WHOLE or kind.startswith(_FRACTIONS)
        if number and content.values and not content.bans_a_number(signed=kind in _SIGNED):
            # Nothing could violate such a list: the rule would always be ok.
            raise ValueError(
                f"no id of the list file {content.path} is a whole number that column {column.name} "
                f"({kind}) can hold"
            )
        table = _execution_engine.list_table(content, as_integers=number)
        compared = column if number or kind == "VARCHAR" else sa.cast(column, sa.String)
        return sa.not_(compared.in_(sa.select(table.c.value)))

    @column_condition(engine=PandasExecutionEngine)
    def _pandas(cls, column: Any, **kwargs: Any) -> Any:  # noqa: N805
        content = list_content(kwargs)
        if pd.api.types.is_numeric_dtype(column):
            return ~column.isin(content.integers)
        return ~column.astype(str).isin(content.values)


class ExpectColumnValuesToNotBeInListFile(ColumnMapExpectation):
    """No value is among the ids of a list file.

    The file may be replaced while the monitor runs; the next window is judged by the new one, and the
    evidence names its version. Ids are compared exactly, in the column's type: in an integer column the
    list's `7`, `007` and `7.0` are all 7, and an id that is no integer cannot occur. Blanks around an id
    do not count.

    Arguments:
        column: the column of ids.
        list_path: a `.csv` with a header, a `.txt` with one id a line, or a `.parquet`; relative to the
            config file's folder.
        list_column: the file's column that holds the ids (default `item_id`).
        allow_empty: `true` where a list without any id is meant and bans nothing (default `false`).
        mostly: the smallest share of values that must hold (soft rules).

    Errors: a file that is missing, not understood, or without any id makes the rule an error, never ok. So
    does a list without a single whole number that a column of numbers can hold.
    """

    list_path: str
    list_column: str = ITEM_ID
    allow_empty: bool = False
    list_version: str | None = None  # set for each run, so that count and evidence see one content

    map_metric: ClassVar[str] = "column_values.not_in_list_file"
    success_keys: ClassVar[tuple[str, ...]] = (
        "list_path",
        "list_column",
        "list_version",
        "allow_empty",
        "mostly",
    )


class _InCatalog(ColumnMapMetricProvider):
    condition_metric_name = "column_values.in_catalog"
    condition_value_keys = ("catalog_table", "catalog_column")

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(
        cls,  # noqa: N805
        column: Any,
        catalog_table: str = "catalog",
        catalog_column: str = ITEM_ID,
        **_: Any,
    ) -> Any:
        known: sa.ColumnClause[Any] = sa.column(catalog_column)
        # A NULL among the known ids would make every comparison unknown, and the rule blind.
        return column.in_(
            sa.select(known.label("known_item"))
            .select_from(sa.table(catalog_table))
            .where(known.is_not(None))
        )


class ExpectColumnValuesToBeInCatalog(ColumnMapExpectation):
    """Every value is an item of the catalog. Not on pandas: it looks at a second table.

    Arguments:
        column: the column of item ids.
        catalog_table: the table to look into (default `catalog`).
        catalog_column: its column of ids (default `item_id`).
        mostly: the smallest share of values that must hold (soft rules).

    Errors: without a catalog table the rule is an error.
    """

    catalog_table: str = "catalog"
    catalog_column: str = ITEM_ID

    map_metric: ClassVar[str] = "column_values.in_catalog"
    success_keys: ClassVar[tuple[str, ...]] = ("catalog_table", "catalog_column", "mostly")


_SHELF_KEYS = (
    "time_column",
    "from_column",
    "until_column",
    "status_column",
    "on_shelf_values",
    "catalog_table",
    "catalog_column",
)


class _OnShelf(ColumnMapMetricProvider):
    """The condition of a row, used for evidence: DuckDB takes a second for it on ten million rows."""

    condition_metric_name = "column_values.on_shelf"
    condition_value_keys = _SHELF_KEYS

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, _table: Any = None, **kwargs: Any) -> Any:  # noqa: N805
        off, outside = _off_shelf(_source(_table), kwargs)
        return sa.not_(sa.exists(sa.select(1).select_from(off).where(off.c.shelf_item == column, outside)))


class _OnShelfCount(MetricProvider):
    """How many rows break the condition, as a join, which takes a tenth of the time."""

    metric_name = "column_values.on_shelf.unexpected_count"
    domain_keys = ("batch_id", "table", "column", "row_condition", "condition_parser")
    value_keys = _SHELF_KEYS

    @metric_value(engine=DuckDBExecutionEngine)
    def _sqlalchemy(
        cls,  # noqa: N805
        execution_engine: DuckDBExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> int:
        exposures = _source(execution_engine.get_domain_records(metric_domain_kwargs))
        off, outside = _off_shelf(exposures, metric_value_kwargs)
        item: Any = sa.column(metric_domain_kwargs["column"])
        query = (
            sa.select(sa.func.count())
            .select_from(exposures.join(off, off.c.shelf_item == item))
            .where(outside)
        )
        return int(execution_engine.execute_query(query).scalar())


def _source(selectable: Any) -> Any:
    return selectable.subquery() if isinstance(selectable, sa.Select) else selectable


WHOLE_NUMBER = r"^(-?\d+)\.0+$"  # numbers with gaps are floating ones: 1.0 is 1
_TRUTHS = (
    {"true", "yes", "on", "1"},
    {"false", "no", "off", "0"},
)  # YAML reads `on_shelf_values: [on]` as true


def shelf_words(values: Iterable[Any] | None) -> list[str]:
    """How a status may say one of the `on_shelf_values`, in small letters."""
    return sorted({word for value in values or (True,) for word in _words(value)})


def _words(value: Any) -> set[str]:
    """How a status says this. A boolean is 1 or 0 in many exports, and to Python and GX True is 1 anyway."""
    word = str(int(value) if isinstance(value, float) and value.is_integer() else value).lower()
    return next((both for both in _TRUTHS if word in both), {word})


def _off_shelf(exposures: Any, named: Mapping[str, Any]) -> tuple[Any, Any]:
    """The items that are off the shelf at some time that was shown, and the condition that a row is then.

    Few items of a catalog come or go within one window; the rest need no look at each row. Where an item
    has several rows in the catalog, it is on the shelf where all of them say so.
    """
    shown: Any = sa.column(named.get("time_column") or TS)
    key: Any = sa.column(named.get("catalog_column") or ITEM_ID)
    catalog = sa.table(named.get("catalog_table") or "catalog")

    def edge(name: str) -> Any:
        column = named.get(name)
        return sa.cast(sa.column(column) if column else sa.null(), sa.TIMESTAMP)

    status = named.get("status_column")
    off: Any = sa.false()
    if status:
        good = shelf_words(named.get("on_shelf_values"))
        word = sa.func.lower(sa.cast(sa.column(status), sa.String))
        word = sa.func.regexp_replace(word, WHOLE_NUMBER, r"\1")
        off = sa.and_(word.is_not(None), word.not_in(good))
    first, last = (
        sa.select(end(shown)).select_from(exposures).correlate(None).scalar_subquery()
        for end in (sa.func.min, sa.func.max)
    )
    begins, ends = edge("from_column"), edge("until_column")
    items = (
        sa.select(
            key.label("shelf_item"),
            sa.func.max(begins).label("shelf_from"),
            sa.func.min(ends).label("shelf_until"),
            sa.func.bool_or(off).label("shelf_off"),
        )
        .select_from(catalog)
        .where(sa.or_(off, begins > first, ends <= last))
        .group_by(key)
        .correlate(None)
        .subquery("shelf")
    )
    return items, sa.or_(items.c.shelf_off, shown < items.c.shelf_from, shown >= items.c.shelf_until)


class ExpectColumnValuesToBeOnShelf(ColumnMapExpectation):
    """Every item was on the shelf when it was shown. Not on pandas: it looks at a second table.

    An item is off the shelf where its status is none of `on_shelf_values`, before its `from_column`, and
    from its `until_column` on; a missing start or end is no bound. An item that the catalog lacks is not
    judged here: that is `expect_column_values_to_be_in_catalog`.

    Arguments:
        column: the column of item ids.
        from_column, until_column: catalog columns with the first and the first no longer valid time.
        status_column: a catalog column, a boolean or a word; at least one of these three is given.
        on_shelf_values: what the status of an item on the shelf is (default `[true]`), compared as text
            without regard to case. true, yes, on, 1 and 1.0 are one status, and so are false, no, off, 0 and
            0.0. A missing status is not judged.
        time_column: when the item was shown (default `ts`).
        catalog_table, catalog_column: default `catalog` and `item_id`.
        mostly: the smallest share of values that must hold (soft rules).

    Errors: a catalog column that does not exist, or is no time, makes the rule an error.
    """

    time_column: str = TS
    from_column: str | None = None
    until_column: str | None = None
    status_column: str | None = None
    on_shelf_values: list[Any] = [True]  # noqa: RUF012 - pydantic copies it
    catalog_table: str = "catalog"
    catalog_column: str = ITEM_ID

    map_metric: ClassVar[str] = "column_values.on_shelf"
    success_keys: ClassVar[tuple[str, ...]] = (*_SHELF_KEYS, "mostly")

    @pydantic.root_validator
    def _says_what_shelf_means(cls, values: dict[str, Any]) -> dict[str, Any]:  # noqa: N805
        if not any(values.get(name) for name in ("from_column", "until_column", "status_column")):
            raise ValueError("give at least one of from_column, until_column and status_column")
        return values
