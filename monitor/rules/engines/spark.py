"""The rule engine on Spark: GX's own Spark data source over the tables of a SparkEngine.

The same suite files as on the embedded engine, and the same counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.expectations.expectation import Expectation
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from monitor.engines.spark import SparkEngine
from monitor.rules.engines import spark_metrics  # noqa: F401 - importing it registers its metrics
from monitor.rules.engines.base import Outcome, count_violations, new_context, violating_rows
from monitor.rules.engines.spark_metrics import quoted
from monitor.rules.queries import over, query_of

_BROKEN = "__monitor_broken"


class SparkRuleEngine:
    """A GX context on one SparkEngine; like it, it belongs to one thread."""

    def __init__(self, engine: SparkEngine) -> None:
        self.engine = engine
        self._context = new_context()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._datasource = self._context.data_sources.add_spark("monitor", persist=False)
        self._datasource._spark = engine.session  # the one that has the tables

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their Spark types."""
        return dict(self.engine.stored(table).dtypes)

    def judge(self, table: str, expectations: Sequence[Expectation]) -> list[Outcome]:
        """See `RuleEngine.judge`."""
        with self.engine.running():
            frame = self.engine.stored(table)
            outcomes = count_violations(self._batch(table, frame), dict(enumerate(expectations)), frame.count)
        with self.engine.running():  # GX makes a result of every error, an interrupt's too
            return list(outcomes.values())

    def judge_groups(
        self,
        table: str,  # noqa: ARG002
        expectations: Sequence[Expectation],  # noqa: ARG002
        by: str,  # noqa: ARG002
        groups: Sequence[Hashable],
    ) -> dict[Hashable, dict[int, Outcome]]:
        """See `RuleEngine.judge_groups`. Here no statement is kept, so every group is judged by itself."""
        return {group: {} for group in groups}

    def evidence(
        self, table: str, expectation: Expectation, columns: Sequence[str], order: Sequence[str], limit: int
    ) -> list[dict[str, Any]]:
        """See `RuleEngine.evidence`."""
        with self.engine.running():
            frame = self.engine.stored(table)
            query = query_of(expectation)
            if query is not None:
                violating = self.engine.session.sql(over(query, quoted(table)))
            else:
                filtered = self._violating_rows(self._batch(table, frame), expectation)
                if filtered is None:
                    return []
                violating = filtered.orderBy(*map(quoted, order)).select(*map(quoted, columns))
            rows: list[dict[str, Any]] = violating.limit(max(limit, 0)).toArrow().to_pylist()
            return rows

    def release(self) -> None:
        """Nothing is copied here."""

    def interrupt(self) -> None:
        """See `RuleEngine.interrupt`."""
        self.engine.interrupt()

    def close(self) -> None:
        """Give back what the engine holds."""
        self.engine.close()

    def _batch(self, table: str, frame: DataFrame) -> Batch:
        if table not in self._datasource.get_asset_names():
            self._datasource.add_dataframe_asset(name=table)
        asset = self._datasource.get_asset(table)
        batch: Batch = asset.get_batch(asset.build_batch_request(options={"dataframe": frame}))
        return batch

    def _violating_rows(self, batch: Batch, expectation: Expectation) -> DataFrame | None:
        violating = violating_rows(self._datasource.get_execution_engine(), batch, expectation)
        if violating is None:
            return None
        rows, condition = violating
        try:
            filtered: DataFrame = rows.filter(condition)
        except AnalysisException:  # a condition with a window function works as a column only
            filtered = rows.withColumn(_BROKEN, condition).filter(quoted(_BROKEN))
        return filtered
