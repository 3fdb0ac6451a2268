"""What is used of Great Expectations beyond its public names, in one place, because the version is pinned.

Whoever moves the pin looks here first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from great_expectations.compatibility import pydantic
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sqlalchemy_execution_engine import SqlAlchemyExecutionEngine
from great_expectations.expectations.expectation import _convert_string_to_condition as condition_from_text
from great_expectations.expectations.metrics.column_aggregate_metrics.column_outlier_statistics import (
    OutlierStatistics,
)
from great_expectations.expectations.metrics.column_map_metrics.column_values_between import (
    ColumnValuesBetween,
)
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (
    ColumnMapMetricProvider,
)
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_map_metric_provider import (
    MulticolumnMapMetricProvider,
)
from great_expectations.expectations.metrics.metric_provider import MetricProvider, metric_value

__all__ = [
    "ColumnMapMetricProvider",
    "ColumnValuesBetween",
    "MetricDomainTypes",
    "MetricProvider",
    "MulticolumnMapMetricProvider",
    "OutlierStatistics",
    "PandasExecutionEngine",
    "SqlAlchemyExecutionEngine",
    "column_condition",
    "columns_condition",
    "condition_from_text",
    "metric_value",
    "pydantic",
]

# GX warns where one of our counts or expectations takes the place of its own.
logging.getLogger("great_expectations.expectations.registry").addFilter(
    lambda record: "overwriting" not in record.getMessage().lower()
)

_Condition = TypeVar("_Condition", bound=Callable[..., Any])


def column_condition(engine: type[Any]) -> Callable[[_Condition], _Condition]:
    """GX's `column_condition_partial`: the condition that each value of a column meets."""
    return column_condition_partial(engine=engine)


def columns_condition(engine: type[Any]) -> Callable[[_Condition], _Condition]:
    """GX's `multicolumn_condition_partial`: the condition that each row meets on some columns."""
    return cast(Callable[[_Condition], _Condition], multicolumn_condition_partial(engine=engine))
