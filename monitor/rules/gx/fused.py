"""The counts of several statements over the same rows by one statement, which reads the rows once.

Great Expectations asks in a query of its own for each rule with several columns, and for each row condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlglot
import sqlglot.expressions as exp

from monitor.rules.gx.datasource import Compiled
from monitor.rules.gx.plan import MetricId, Statement

_DIALECT = "duckdb"


@dataclass(slots=True)
class _OfTable:
    """What is counted in one table."""

    counts: list[exp.Expression] = field(default_factory=list)
    values: list[object] = field(default_factory=list)
    metrics: list[MetricId] = field(default_factory=list)


def fused(statements: Sequence[Statement]) -> list[Statement]:
    """Statements that give the same counts, as few as possible; their queries are `Compiled`.

    A statement that does more than count rows of one table stays as it is.
    """
    tables: dict[str, _OfTable] = {}
    rest: list[Statement] = []
    for one in statements:
        found = _counts_of(one.query)
        if found is None or len(found[1]) != len(one.metrics):
            rest.append(one)
            continue
        name, counts = found
        table = tables.setdefault(name, _OfTable())
        table.counts += [_renumbered(count, len(table.values)) for count in counts]
        table.values += one.query.values
        table.metrics += one.metrics
    return [*(_statement(name, table) for name, table in tables.items()), *rest]


def _statement(name: str, table: _OfTable) -> Statement:
    query = exp.select(*table.counts).from_(exp.to_table(name, dialect=_DIALECT))
    return Statement(Compiled(query.sql(_DIALECT), tuple(table.values)), tuple(table.metrics))


def _counts_of(query: Compiled) -> tuple[str, list[exp.Expression]] | None:
    """The table that a query counts in, as SQL, and its counts; None if it is another kind of query."""
    try:
        tree = sqlglot.parse_one(query.text, dialect=_DIALECT)
    except sqlglot.ParseError:
        return None
    select = _plain(tree)
    if select is None:
        return None
    counts = [one.unalias() for one in select.expressions]
    if len(counts) == 1 and isinstance(counts[0], exp.Column):  # SELECT n FROM (SELECT sum(c) AS n FROM ...)
        (name,) = (one.name for one in counts)
        inner = _source(select)
        if inner is None or [one.alias for one in inner.expressions] != [name]:
            return None
        select, counts = inner, [inner.expressions[0].unalias()]
    if len(counts) == 1 and isinstance(counts[0], exp.Sum) and isinstance(counts[0].this, exp.Column):
        inner = _source(select)  # SELECT sum(c) FROM (SELECT CASE ... END AS c FROM ...)
        if inner is None or [one.alias for one in inner.expressions] != [counts[0].this.name]:
            return None
        select, counts = inner, [exp.Sum(this=inner.expressions[0].unalias())]
    if not all(isinstance(one, exp.Sum | exp.Count) for one in counts):
        return None
    rows = _rows(select)
    if rows is None:
        return None
    table, conditions = rows
    if any(column.table for one in (*counts, *conditions) for column in one.find_all(exp.Column)):
        return None  # it names a query that is not there any more
    if conditions:
        where = exp.Where(this=exp.and_(*conditions, dialect=_DIALECT))
        counts = [exp.Filter(this=one, expression=where.copy()) for one in counts]
    return table, counts


def _rows(select: exp.Select) -> tuple[str, list[exp.Expression]] | None:
    """The table that a query reads by `SELECT * FROM (...) WHERE ...`, and the conditions on its rows."""
    conditions: list[exp.Expression] = []
    level: exp.Select | None = select
    while level is not None:
        where = level.args.get("where")
        if where is not None and where.this != exp.true():
            conditions.append(where.this)
        source = level.args["from_"].this
        if isinstance(source, exp.Table):
            return source.sql(_DIALECT), conditions
        level = _source(level)
        if level is not None and not level.is_star:
            return None
    return None


def _source(select: exp.Select) -> exp.Select | None:
    """The query that this one selects from, if it is a plain one."""
    source = select.args["from_"].this
    return _plain(source.this) if isinstance(source, exp.Subquery) else None


def _plain(tree: exp.Expression) -> exp.Select | None:
    """The query if it has nothing but columns, one source and a condition."""
    if not isinstance(tree, exp.Select):
        return None
    parts = {name for name, part in tree.args.items() if part}
    return tree if parts <= {"expressions", "from_", "where"} and "from_" in parts else None


def _renumbered(count: exp.Expression, by: int) -> exp.Expression:
    count = count.copy()
    for placeholder in count.find_all(exp.Placeholder):
        placeholder.set("this", str(int(placeholder.name) + by))
    return count
