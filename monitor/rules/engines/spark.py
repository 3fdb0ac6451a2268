"""The rule engine on Spark: GX's own Spark data source over the tables of a SparkEngine.

The same suite files as on the embedded engine, and the same counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationSuite
from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.registry import get_metric_kwargs
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.metrics_calculator import MetricsCalculator
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from monitor.engines.spark import SparkEngine
from monitor.rules.engines import spark_metrics  # noqa: F401 - importing it registers its metrics
from monitor.rules.engines.duckdb import BASIC, Outcome, marked, outcome_of
from monitor.rules.engines.spark_metrics import quoted

_BROKEN = "__broken"


class SparkRuleEngine:
    """A GX context on one SparkEngine; like it, it belongs to one thread."""

    def __init__(self, engine: SparkEngine) -> None:
        self.engine = engine
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._datasource = context.data_sources.add_spark("monitor", persist=False)
        self._datasource._spark = engine.session  # the one that has the tables
        self._context = context  # GX finds it through a weak reference

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their Spark types."""
        return dict(self.engine.stored(table).dtypes)

    def judge(self, table: str, expectations: Sequence[Expectation]) -> list[Outcome]:
        """Count the violations of each expectation; see `monitor.rules.engines.duckdb.RuleEngine.judge`."""
        placed = [marked(expectation, place) for place, expectation in enumerate(expectations)]
        outcomes = [Outcome(error="Great Expectations gave no result") for _ in placed]
        with self.engine.running():
            frame = self.engine.stored(table)
            batch = self._batch(table, frame)
            for place, outcome in self._validate(batch, frame, placed):
                outcomes[place] = outcome
            failed = [one for place, one in enumerate(placed) if outcomes[place].error is not None]
            if len(placed) > 1:
                # Of several failures in one query GX gives the last message to all: ask for each alone.
                for one in failed:
                    for place, outcome in self._validate(batch, frame, [one]):
                        outcomes[place] = outcome
        with self.engine.running():  # GX makes a result of every error, an interrupt's too
            return outcomes

    def _validate(
        self, batch: Batch, frame: DataFrame, placed: list[Expectation]
    ) -> Iterator[tuple[int, Outcome]]:
        suite = ExpectationSuite(name="window", expectations=placed)
        for result in batch.validate(suite, result_format=BASIC).results:
            meta = result.expectation_config.meta or {}  # type: ignore[union-attr]
            yield int(meta["place"]), outcome_of(result, frame.count)

    def evidence(
        self, table: str, expectation: Expectation, columns: Sequence[str], order: Sequence[str], limit: int
    ) -> list[dict[str, Any]]:
        """At most `limit` rows that break it; see `monitor.rules.engines.duckdb.RuleEngine.evidence`."""
        with self.engine.running():
            frame = self.engine.stored(table)
            query = getattr(expectation, "unexpected_rows_query", None)
            if isinstance(query, str):
                found = self.engine.session.sql(query.format(batch=quoted(table)))
            else:
                broken = self._violating_rows(table, frame, expectation)
                if broken is None:
                    return []
                found = broken.orderBy(*map(quoted, order)).select(*map(quoted, columns))
            rows: list[dict[str, Any]] = found.limit(max(limit, 0)).toArrow().to_pylist()
            return rows

    def release(self) -> None:
        """Nothing is copied here."""

    def interrupt(self) -> None:
        """Stop whatever runs; from any thread."""
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

    def _violating_rows(self, table: str, frame: DataFrame, expectation: Expectation) -> DataFrame | None:
        metric = getattr(expectation, "map_metric", None)
        if not metric:
            return None
        batch = self._batch(table, frame)
        name = f"{metric}.condition"
        kwargs = get_metric_kwargs(name, configuration=expectation.configuration)
        domain = {**kwargs["metric_domain_kwargs"], "batch_id": batch.id}
        execution = self._datasource.get_execution_engine()
        condition, compute, accessor = MetricsCalculator(execution, show_progress_bars=False).get_metric(
            MetricConfiguration(name, domain, kwargs["metric_value_kwargs"])
        )
        rows = execution.get_domain_records({**compute, **accessor})
        try:
            return rows.filter(condition)
        except AnalysisException:  # one over a window is taken as a column only
            return rows.withColumn(_BROKEN, condition).filter(quoted(_BROKEN))
