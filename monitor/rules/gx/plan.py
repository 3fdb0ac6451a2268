"""What Great Expectations asks of a table, kept as statements and asked again for each window.

GX plans each validation anew: a graph of about twenty metrics for every expectation. For twenty rules that
takes a fifth of a second, however small the window. The statements depend only on the expectations and on the
columns of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.expectations.core.expect_column_values_to_not_be_null import (
    ExpectColumnValuesToNotBeNull,
)
from great_expectations.expectations.expectation import (
    ColumnMapExpectation,
    Expectation,
    MulticolumnMapExpectation,
)
from great_expectations.validator.metric_configuration import MetricConfiguration, MetricConfigurationID
from great_expectations.validator.validation_graph import ValidationGraph

from monitor.rules.list_files import ListContent

MetricId = MetricConfigurationID
"""How GX names a metric: its name, its rows and its arguments."""
Execute = Callable[[Any], Any]
"""Runs a query and gives its rows."""

FORMAT = {"result_format": "BASIC", "partial_unexpected_count": 0}
"""What a validation gives of each expectation: counts and no values. It is a part of some metrics' names."""
_ROWS = "table.row_count"
_NULLS = "column_values.nonnull.unexpected_count"
_STATISTIC = "column."
"""How the names of GX's metrics begin that are one value for all rows: `column.mean`, `column.max`."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A query with a single row, and the metric of each of its columns."""

    query: Any
    metrics: Sequence[MetricId]


@dataclass(slots=True)
class Record:
    """What a validation has asked: its statements, and the lists of ids that they read as tables."""

    statements: list[Statement] = field(default_factory=list)
    lists: list[tuple[ListContent, bool]] = field(default_factory=list)  # and whether as integers


@dataclass(frozen=True, slots=True)
class Counts:
    """How the two counts of an expectation come from metrics: `judged`, less `missing` where it is given."""

    violations: MetricId
    judged: MetricId
    missing: MetricId | None = None

    def needs(self) -> Iterator[MetricId]:
        """All of them."""
        yield from (self.violations, self.judged)
        if self.missing is not None:
            yield self.missing

    def of(self, values: Mapping[MetricId, int | None]) -> tuple[int, int]:
        """The rows judged and the violations among them. A sum over no rows is missing: then both are 0."""
        violations, judged = values[self.violations], values[self.judged]
        missing = 0 if self.missing is None else values[self.missing]
        if violations is None:
            return 0, 0
        return (0 if judged is None or missing is None else judged - missing), violations


@dataclass(frozen=True, slots=True)
class Plan:
    """The statements that count the violations of some expectations, by their numbers.

    An engine needs the tables of the `lists` before it runs them.
    """

    statements: Sequence[Statement]
    counts: Mapping[int, Counts]
    lists: Sequence[tuple[ListContent, bool]] = ()

    @classmethod
    def of(cls, counts: Mapping[int, Counts], record: Record) -> Self:
        """The plan of those expectations whose metrics are all among the recorded statements."""
        known = {metric for one in record.statements for metric in one.metrics}
        kept = {number: one for number, one in counts.items() if known.issuperset(one.needs())}
        needed = {metric for one in kept.values() for metric in one.needs()}
        asked = [one for one in record.statements if needed.intersection(one.metrics)]
        return cls(asked, kept, tuple(record.lists))

    def run(self, execute: Execute) -> dict[int, tuple[int, int]]:
        """The rows judged and the violations of each expectation."""
        values: dict[MetricId, int | None] = {}
        for one in self.statements:
            (row,) = execute(one.query).fetchall()
            values |= zip(one.metrics, (None if value is None else int(value) for value in row), strict=True)
        return {number: one.of(values) for number, one in self.counts.items()}

    def without(self, numbers: set[int]) -> Plan:
        """The plan of the others."""
        kept = {number: one for number, one in self.counts.items() if number not in numbers}
        return Plan.of(kept, Record(list(self.statements), list(self.lists)))


def is_fixed(expectation: Expectation, batch: str, engine: ExecutionEngine[Any]) -> bool:
    """Whether equal arguments give the same statements on any rows.

    A list without a version may hold other ids by now. A rule that compares each value with a statistic of
    its column, such as the mean, writes the value of that into its statement.
    """
    if getattr(expectation, "list_path", None) and not getattr(expectation, "list_version", None):
        return False
    graph = ValidationGraph(execution_engine=engine)
    for one in _asked_of(expectation, batch, engine).values():
        graph.build_metric_dependency_graph(one, runtime_configuration={"result_format": dict(FORMAT)})
    return not any(edge.left.metric_name.startswith(_STATISTIC) for edge in graph.edges)


def _asked_of(
    expectation: Expectation, batch: str, engine: ExecutionEngine[Any]
) -> dict[str, MetricConfiguration]:
    """The metrics that an expectation needs, by name."""
    configuration = expectation.configuration
    configuration.kwargs["batch_id"] = batch
    asked = configuration.to_domain_obj().get_validation_dependencies(
        execution_engine=engine, runtime_configuration={"result_format": dict(FORMAT)}
    )
    return asked.metric_configurations


def counts_of(expectation: Expectation, batch: str, engine: ExecutionEngine[Any]) -> Counts | None:
    """Which metrics give the counts of an expectation on a batch, as GX itself adds them up.

    None for one that adds up in another way, or that is not fixed.
    """
    own = type(expectation)._validate
    if own not in (_OF_COLUMN, _OF_COLUMNS, _OF_NULLS) or not is_fixed(expectation, batch, engine):
        return None
    ids = {name: one.id for name, one in _asked_of(expectation, batch, engine).items()}
    violations = ids[f"{getattr(expectation, 'map_metric', '')}.unexpected_count"]
    if own is _OF_COLUMN:
        return Counts(violations, ids[_ROWS], ids[_NULLS])
    if own is _OF_NULLS:
        return Counts(violations, ids[_ROWS])
    return Counts(violations, ids[f"{getattr(expectation, 'map_metric', '')}.filtered_row_count"])


_OF_COLUMN = ColumnMapExpectation._validate
_OF_COLUMNS = MulticolumnMapExpectation._validate
_OF_NULLS = ExpectColumnValuesToNotBeNull._validate
