"""Expectations about the hazards of arithmetic: not finite, zero factors and denominators, underflow."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import sqlalchemy as sa
from great_expectations.expectations.expectation import ColumnMapExpectation, MulticolumnMapExpectation

from monitor.rules.gx.datasource import DuckDBExecutionEngine
from monitor.rules.gx.internals import (
    ColumnMapMetricProvider,
    MulticolumnMapMetricProvider,
    PandasExecutionEngine,
    column_condition,
    columns_condition,
    pydantic,
)

SMALLEST_NORMAL = 2.2250738585072014e-308  # of a 64-bit float; what is nearer to 0 has lost digits


class _Finite(ColumnMapMetricProvider):
    condition_metric_name = "column_values.finite"
    condition_value_keys = ()

    @column_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column: Any, **_: Any) -> Any:  # noqa: N805
        return sa.func.isfinite(sa.cast(column, sa.Double))

    @column_condition(engine=PandasExecutionEngine)
    def _pandas(cls, column: Any, **_: Any) -> Any:  # noqa: N805
        return pd.Series(np.isfinite(column.to_numpy(dtype=float)), index=column.index)


class ExpectColumnValuesToBeFinite(ColumnMapExpectation):
    """Every value is a finite number: not NaN, not plus or minus infinity.

    Arguments:
        column: a column of numbers.
        mostly: the smallest share of values that must hold (soft rules).
    """

    map_metric: ClassVar[str] = "column_values.finite"
    success_keys: ClassVar[tuple[str, ...]] = ("mostly",)


class _OneColumnWillDo(MulticolumnMapExpectation):
    """GX wants two columns at least, on every engine, so a single one is named twice."""

    @pydantic.validator("column_list", allow_reuse=True)
    def _validate_column_list(cls, v: list[str]) -> list[str]:  # noqa: N805
        if not v:
            raise ValueError("column_list must name at least one column")
        return v * 2 if len(v) == 1 else v


class _NotZero(MulticolumnMapMetricProvider):
    condition_metric_name = "columns.not_zero"
    condition_value_keys = ()

    @columns_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(cls, column_list: Any, **_: Any) -> Any:  # noqa: N805
        # Compared with a whole number, the text 0.4 would be read as one: 0.
        return sa.and_(*[sa.cast(column, sa.Double) != 0 for column in column_list])

    @columns_condition(engine=PandasExecutionEngine)
    def _pandas(cls, column_list: Any, **_: Any) -> Any:  # noqa: N805
        return ~(column_list == 0).any(axis=1)


class ExpectColumnsToNotBeZero(_OneColumnWillDo):
    """No row has a zero in any of the columns: the denominators of a ratio, the factors of a product.

    One zero factor makes a multiplied score 0 whatever the others say; one zero denominator makes it
    infinite or NaN. Minus zero is zero; a missing value and NaN are not.

    Arguments:
        column_list: the columns, one or more.
        ignore_row_if: `all_values_are_missing` (default), `any_value_is_missing` or `never`.
        mostly: the smallest share of rows that must hold (soft rules).
    """

    map_metric: ClassVar[str] = "columns.not_zero"


class _NotUnderflow(MulticolumnMapMetricProvider):
    condition_metric_name = "columns.not_underflow"
    condition_value_keys = ("smallest", "zero_is_underflow")

    @columns_condition(engine=DuckDBExecutionEngine)
    def _sqlalchemy(
        cls,  # noqa: N805
        column_list: Any,
        smallest: float = SMALLEST_NORMAL,
        zero_is_underflow: bool = False,
        **_: Any,
    ) -> Any:
        held: list[Any] = []
        for column in column_list:
            size = sa.func.abs(sa.cast(column, sa.Double))
            large = size >= sa.literal(smallest, sa.Double)
            held.append(large if zero_is_underflow else sa.or_(large, size == 0))
        return sa.and_(*held)

    @columns_condition(engine=PandasExecutionEngine)
    def _pandas(
        cls,  # noqa: N805
        column_list: Any,
        smallest: float = SMALLEST_NORMAL,
        zero_is_underflow: bool = False,
        **_: Any,
    ) -> Any:
        size = column_list.abs()
        small = (size < smallest) & ((size > 0) | bool(zero_is_underflow))
        return ~small.any(axis=1)


class ExpectColumnsToNotUnderflow(_OneColumnWillDo):
    """No row has a number that is too near to 0 in any of the columns.

    Below 2.2250738585072014e-308 a 64-bit float is denormal: it loses digits, slows the arithmetic, and
    the next multiplication makes it 0. A product that has already become 0 shows as exactly 0.

    Arguments:
        column_list: the columns, one or more.
        smallest: the smallest size that is large enough (default: the smallest normal 64-bit float).
        zero_is_underflow: whether an exact 0 counts as well (default no).
        ignore_row_if: `all_values_are_missing` (default), `any_value_is_missing` or `never`.
        mostly: the smallest share of rows that must hold (soft rules).
    """

    smallest: float = SMALLEST_NORMAL
    zero_is_underflow: bool = False

    map_metric: ClassVar[str] = "columns.not_underflow"
    success_keys: ClassVar[tuple[str, ...]] = ("smallest", "zero_is_underflow", "mostly")
