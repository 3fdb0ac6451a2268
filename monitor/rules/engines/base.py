"""What the rule engines on DuckDB and Spark share: how Great Expectations counts, and what it counted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import great_expectations as gx
from great_expectations.core import ExpectationSuite
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.expectations.core.expect_column_proportion_of_non_null_values_to_be_between import (
    ExpectColumnProportionOfNonNullValuesToBeBetween,
)
from great_expectations.expectations.core.expect_column_stdev_to_be_between import (
    ExpectColumnStdevToBeBetween,
)
from great_expectations.expectations.expectation import ColumnAggregateExpectation, Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.registry import get_metric_kwargs
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.metrics_calculator import MetricsCalculator

from monitor.rules.expectations import custom, types  # noqa: F401 - importing registers them with GX
from monitor.rules.gx.internals import condition_from_text
from monitor.rules.gx.messages import short_message
from monitor.rules.gx.plan import FORMAT
from monitor.rules.queries import check_conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What GX counted for one expectation.

    Attributes:
        samples: the rows judged; for a column, the rows with a value.
        violations: the rows that failed.
        whole: the expectation is about the table as a whole: one sample, and 0 or 1 violations.
        error: why nothing could be counted, in a sentence.
    """

    samples: int = 0
    violations: int = 0
    whole: bool = False
    error: str | None = None


class RuleEngine(Protocol):
    """Judges rules on the tables of one engine. It belongs to one thread; any thread may interrupt it."""

    def columns(self, table: str) -> dict[str, str]:
        """The columns of a table and their types."""

    def judge(self, table: str, expectations: Sequence[Expectation]) -> list[Outcome]:
        """Count the violations of each expectation on one table, in the order given.

        GX puts the counts of one domain into one query. An expectation that cannot be evaluated gets an
        `error`, and the others get their counts.

        Raises:
            duckdb.InterruptException: `interrupt` was called.
        """

    def judge_groups(
        self, table: str, expectations: Sequence[Expectation], by: str, groups: Sequence[Hashable]
    ) -> dict[Hashable, dict[int, Outcome]]:
        """For each group, what `judge` would give for its rows alone, by the number of the expectation.

        Those that cannot be counted so are left out: of a whole table, in SQL, or failed.

        Args:
            table: the rows of all groups.
            expectations: what to count.
            by: the column of the groups.
            groups: its values.

        Raises:
            duckdb.InterruptException: `interrupt` was called.
        """

    def evidence(
        self, table: str, expectation: Expectation, columns: Sequence[str], order: Sequence[str], limit: int
    ) -> list[dict[str, Any]]:
        """At most `limit` rows that violate the expectation, in the order of the columns in `order`.

        An expectation about a table as a whole has no such rows.

        Raises:
            duckdb.InterruptException: `interrupt` was called.
        """

    def release(self) -> None:
        """Free the copies that rules in SQL were judged on; their tables may change now."""

    def interrupt(self) -> None:
        """Stop what runs; from any thread. The running call and all later ones raise: close the engine."""

    def close(self) -> None:
        """Close every connection."""


def build(config: dict[str, Any]) -> Expectation:
    """An expectation from GX's serialised form: `type`, `kwargs`, and optionally `meta`, `severity`.

    A row condition as text becomes a condition object here, because GX will drop the text form.

    Raises what GX raises: its registry's error for an unknown type, pydantic's for wrong arguments; and
    ValueError for a row condition in the syntax of another engine.
    """
    kwargs = dict(config.get("kwargs") or {})
    if isinstance(condition := kwargs.get("row_condition"), str):
        parser = kwargs.pop("condition_parser", None)
        if parser not in (None, "great_expectations", "great_expectations__experimental__"):
            raise ValueError(f"a row condition for {parser} does not run here; write it as a mapping")
        kwargs["row_condition"] = condition_from_text(condition)
    expectation = ExpectationConfiguration(**{**config, "kwargs": kwargs}).to_domain_obj()
    check_conditions(expectation)
    return expectation


def new_context() -> EphemeralDataContext:
    """A GX context in memory. Keep a reference: GX itself holds only a weak one."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    return context


def count_violations(
    batch: Batch, expectations: Mapping[int, Expectation], count_rows: Callable[[], int]
) -> dict[int, Outcome]:
    """The outcome of each expectation, by its number; `count_rows` counts the rows of the table."""
    outcomes = dict.fromkeys(expectations, Outcome(error="Great Expectations gave no result"))
    outcomes |= _validate(batch, expectations, expectations, count_rows)
    failed = [number for number, outcome in outcomes.items() if outcome.error is not None]
    if len(expectations) > 1:
        # If several counts in one query fail, GX gives all of them the last message: ask for each alone.
        for number in failed:
            outcomes |= _validate(batch, expectations, [number], count_rows)
    return outcomes


def _validate(
    batch: Batch,
    expectations: Mapping[int, Expectation],
    numbers: Iterable[int],
    count_rows: Callable[[], int],
) -> dict[int, Outcome]:
    numbered = [_numbered(expectations[number], number) for number in numbers]
    results = batch.validate(ExpectationSuite(name="window", expectations=numbered), result_format=FORMAT)
    outcomes = {}
    for result in results.results:
        number = int((result.expectation_config.meta or {})["number"])  # type: ignore[union-attr]
        outcomes[number] = _outcome_of(result, expectations[number], batch, count_rows)
    return outcomes


def _numbered(expectation: Expectation, number: int) -> Expectation:
    """A copy that knows its number, because GX gives results in an order of its own."""
    copy = expectation.copy()
    copy.meta = {**(expectation.meta or {}), "number": number}
    copy.id = None
    return copy


def _outcome_of(
    result: Any, expectation: Expectation, batch: Batch, count_rows: Callable[[], int]
) -> Outcome:
    """What one result of GX counted."""
    error = short_message(result.exception_info)
    if error is not None:
        return Outcome(error=error)
    if isinstance(expectation, ColumnAggregateExpectation):
        # The counts in its result are none of rows, and its observed value is None for NaN as for nothing.
        return _of_whole(result.success, _is_measured(expectation, batch))
    counts: dict[str, Any] = result.result or {}
    violations = counts.get("unexpected_count")
    if violations is not None:
        judged = int(counts.get("element_count") or 0) - int(counts.get("missing_count") or 0)
        return Outcome(samples=judged, violations=int(violations))
    if "element_count" in counts:  # counted over no rows, where a sum is NULL
        return Outcome()
    rows = count_rows()
    if result.expectation_config.type == "unexpected_rows_expectation":  # on Spark
        return Outcome(samples=rows, violations=min(int(counts.get("observed_value") or 0), rows))
    return _of_whole(result.success, rows > 0)


def _of_whole(success: bool, judged: bool) -> Outcome:
    return Outcome(samples=int(judged), violations=int(judged and not success), whole=True)


def _is_measured(expectation: ColumnAggregateExpectation, batch: Batch) -> bool:
    """Whether the rows give what the expectation is about, such as the maximum of a column."""
    domain = {name: getattr(expectation, name) for name in ("row_condition", "condition_parser")}
    metric, fewest = "column_values.null.unexpected_count", 1  # the rows with a value
    if isinstance(expectation, ExpectColumnProportionOfNonNullValuesToBeBetween):
        metric = "table.row_count"
    else:
        domain["column"] = expectation.column
    if isinstance(expectation, ExpectColumnStdevToBeBetween):
        fewest = 2
    engine = batch.datasource.get_execution_engine()
    found = MetricsCalculator(engine, show_progress_bars=False).get_metric(
        MetricConfiguration(metric, {**domain, "batch_id": batch.id}, {})
    )
    return int(found or 0) >= fewest


def violating_rows(
    engine: ExecutionEngine[Any], batch: Batch, expectation: Expectation
) -> tuple[Any, Any] | None:
    """The rows that GX judged, and the condition of those that violate the expectation.

    None for an expectation about a table as a whole.
    """
    metric = getattr(expectation, "map_metric", None)
    if not metric:
        return None
    name = f"{metric}.condition"
    kwargs = get_metric_kwargs(name, configuration=expectation.configuration)
    domain = {**kwargs["metric_domain_kwargs"], "batch_id": batch.id}
    engine.batch_manager.load_batch_list([batch])  # as a validation does, but a kept plan counts without one
    condition, compute, accessor = MetricsCalculator(engine, show_progress_bars=False).get_metric(
        MetricConfiguration(name, domain, kwargs["metric_value_kwargs"])
    )
    return engine.get_domain_records({**compute, **accessor}), condition
