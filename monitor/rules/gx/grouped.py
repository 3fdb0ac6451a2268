"""The counts of a plan for each group of rows, such as each of several windows, by the same few queries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import sqlglot
import sqlglot.expressions as exp

from monitor.rules.gx.datasource import Compiled
from monitor.rules.gx.plan import Counts, Execute, MetricId, Plan, Statement
from monitor.rules.list_files import ListContent

_DIALECT = "duckdb"
_ONLY_FASTER: Final = "column_values.on_shelf.unexpected_count"
"""It reads its own rows a second time, to leave out of the catalog what no row can violate. With the rows of
several groups it leaves out less, which changes no count."""


@dataclass(frozen=True, slots=True)
class GroupedPlan:
    """The statements that count the violations of some expectations in each group, by their numbers.

    Attributes:
        statements: each gives a row for each group, with the group first.
        counts: as in `Plan`.
        lists: as in `Plan`.
        nothing: what each metric is in a group without a row: 0 of a count, None of a sum.
    """

    statements: Sequence[Statement]
    counts: Mapping[int, Counts]
    lists: Sequence[tuple[ListContent, bool]]
    nothing: Mapping[MetricId, int | None]

    @classmethod
    def of(cls, plan: Plan, table: str, by: str) -> Self:
        """The part of a plan that gives the counts of each group by itself.

        A condition on a row that looks at other rows of its table, as of a column whose values are unique,
        would see the rows of other groups. Those expectations are left out.

        Args:
            plan: its queries are `Compiled`.
            table: the table that it counts in.
            by: the column of the groups.
        """
        statements: list[Statement] = []
        nothing: dict[MetricId, int | None] = {}
        for one in plan.statements:
            select = _by_group(one, table, by)
            if select is None:
                continue
            for metric, count in zip(one.metrics, _counts(select)[1:], strict=True):
                nothing[metric] = 0 if isinstance(count, exp.Count) else None
            statements.append(Statement(Compiled(select.sql(_DIALECT), one.query.values), one.metrics))
        kept = {number: one for number, one in plan.counts.items() if nothing.keys() >= set(one.needs())}
        return cls(statements, kept, plan.lists, nothing)

    def run(self, execute: Execute, groups: Sequence[Hashable]) -> dict[Hashable, dict[int, tuple[int, int]]]:
        """The rows judged and the violations of each expectation in each of these groups."""
        values = {group: dict(self.nothing) for group in groups}
        for one in self.statements:
            for group, *row in execute(one.query).fetchall():
                if group in values:
                    numbers = (None if value is None else int(value) for value in row)
                    values[group] |= zip(one.metrics, numbers, strict=True)
        return {
            group: {number: one.of(known) for number, one in self.counts.items()}
            for group, known in values.items()
        }


def _by_group(statement: Statement, table: str, by: str) -> exp.Select | None:
    """The query that gives the counts of a statement by group; None if it must not be grouped."""
    try:
        select = sqlglot.parse_one(statement.query.text, dialect=_DIALECT)
    except sqlglot.ParseError:
        return None
    if not isinstance(select, exp.Select) or not _has_only(select, "expressions", "where", "joins"):
        return None
    counts = _counts(select)
    add_up = all(isinstance(one, exp.Sum | exp.Count) for one in counts)
    if not add_up or len(counts) != len(statement.metrics):
        return None
    rows = _rows(select)
    if rows is None or rows.name != table or select.find(exp.Window) is not None:
        return None
    looks_again = any(one.name == table and one is not rows for one in select.find_all(exp.Table))
    if looks_again and [metric[0] for metric in statement.metrics] != [_ONLY_FASTER]:
        return None
    group = exp.column(by, quoted=True)
    select.set("expressions", [group, *select.expressions])
    return select.group_by(group, copy=False)


def _counts(select: exp.Select) -> list[exp.Expression]:
    """What a query selects, without names and filters."""
    selected = (one.unalias() for one in select.expressions)
    return [one.this if isinstance(one, exp.Filter) else one for one in selected]


def _rows(select: exp.Select) -> exp.Table | None:
    """The table T of `FROM (SELECT * FROM (SELECT * FROM T))`, with conditions or without."""
    source = select.args["from_"].this
    while isinstance(source, exp.Subquery):
        inner = source.this
        if not isinstance(inner, exp.Select) or not inner.is_star:
            return None
        if not _has_only(inner, "expressions", "where"):
            return None
        source = inner.args["from_"].this
    return source if isinstance(source, exp.Table) else None


def _has_only(select: exp.Select, *parts: str) -> bool:
    """Whether a query has a source, and of the other parts these alone."""
    return {name for name, part in select.args.items() if part} - set(parts) == {"from_"}
