"""GX's expectations about the type of a column, with the types of DuckDB.

GX compares types as classes of SQLAlchemy. It has none for DuckDB, so every column would be of a wrong type.
Spark's types are compared by GX.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import duckdb
from great_expectations.expectations.core import expect_column_type_to_be as type_to_be
from great_expectations.expectations.core import expect_column_values_to_be_in_type_list as in_type_list
from great_expectations.expectations.core import expect_column_values_to_be_of_type as of_type

from monitor.rules.gx.datasource import DuckDBExecutionEngine


class ExpectColumnValuesToBeOfType(of_type.ExpectColumnValuesToBeOfType):
    """GX's own expectation; on DuckDB `type_` is a name of its SQL, such as `DOUBLE` or `TEXT`."""

    def _validate_sqlalchemy(
        self, actual_column_type: str, expected_type: str, execution_engine: DuckDBExecutionEngine
    ) -> dict[str, Any]:
        return _compared(actual_column_type, [expected_type], execution_engine)


class ExpectColumnTypeToBe(type_to_be.ExpectColumnTypeToBe):
    """See `ExpectColumnValuesToBeOfType`."""

    def _validate_sqlalchemy(
        self, actual_column_type: str, expected_type: str, execution_engine: DuckDBExecutionEngine
    ) -> dict[str, Any]:
        return _compared(actual_column_type, [expected_type], execution_engine)


class ExpectColumnValuesToBeInTypeList(in_type_list.ExpectColumnValuesToBeInTypeList):
    """See `ExpectColumnValuesToBeOfType`. Names of other databases in the list are passed over."""

    def _validate_sqlalchemy(
        self,
        actual_column_type: str,
        expected_types_list: Sequence[str],
        execution_engine: DuckDBExecutionEngine,
    ) -> dict[str, Any]:
        return _compared(actual_column_type, expected_types_list, execution_engine)


def _compared(actual: str, names: Sequence[str], engine: DuckDBExecutionEngine) -> dict[str, Any]:
    known = {}
    for name in names:
        with suppress(duckdb.Error):
            known[name] = str(engine.raw.sqltype(name))
    if not known:
        raise ValueError(f"DuckDB has no type {' or '.join(names)}; this column is {actual}")
    success = any(
        kind == actual or ("(" not in name and kind.partition("(")[0] == actual.partition("(")[0])
        for name, kind in known.items()  # DECIMAL alone is any DECIMAL(p,s)
    )
    return {"success": success, "result": {"observed_value": actual}}
