"""Counts over the same rows are asked in one statement, with the values that belong to each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from monitor.rules.engines.duckdb import DuckDBRuleEngine
from monitor.rules.gx.datasource import Compiled
from monitor.rules.gx.fused import fused
from monitor.rules.gx.plan import Plan, Statement
from tests.rules.gx.test_plan import every_kind, fill, rows

SUMS = (
    "SELECT count(*) AS n, sum(CASE WHEN (x > $1) THEN $2 ELSE $3 END) AS s "
    "FROM (SELECT * FROM t WHERE true) AS a"
)
FILTERED = "SELECT count(*) AS n FROM (SELECT * FROM (SELECT * FROM t WHERE true) AS b WHERE y = $1) AS a"
NESTED = (
    'SELECT "U".n FROM (SELECT sum(c) AS n FROM ('
    "SELECT CASE WHEN (NOT (x != $1 AND y != $2)) THEN CAST($3 AS NUMERIC) ELSE CAST($4 AS NUMERIC) END AS c "
    'FROM (SELECT * FROM (SELECT * FROM t WHERE true) AS d WHERE x IS NOT NULL) AS b) AS a) AS "U"'
)


def statement(text: str, *values: Any, metrics: int = 1) -> Statement:
    return Statement(Compiled(text, values), [(text, str(n), "") for n in range(metrics)])


@pytest.fixture
def table() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (0, 'b'), (5, 'a'), (NULL, 'q''')) t(x, y)"
    )
    connection.execute("CREATE TABLE other AS FROM t LIMIT 2")
    return connection


def answers(connection: duckdb.DuckDBPyConnection, statements: list[Statement]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for one in statements:
        (row,) = connection.execute(one.query.text, one.query.values).fetchall()
        found |= zip(one.metrics, row, strict=True)
    return found


def test_counts_of_one_table_become_one_statement(table: duckdb.DuckDBPyConnection) -> None:
    asked = [
        statement(SUMS, 0, 1, 0, metrics=2),
        statement(FILTERED, "q'"),
        statement(NESTED, 0, "a", 1, 0),
        statement(SUMS.replace("FROM t", "FROM other"), 4, 1, 0, metrics=2),
        statement(FILTERED.replace("y = $1", "x > $1 OR y = $2"), 4, "b"),
    ]
    found = fused(asked)
    assert len(found) == 2
    assert answers(table, found) == answers(table, asked)
    assert answers(table, asked)[asked[0].metrics[1]] == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM t JOIN other USING (x)",
        "SELECT count(*) FROM t GROUP BY y LIMIT 1",
        "SELECT max(x) FROM t",
        "SELECT x FROM t LIMIT 1",
        "SELECT count(a.x) FROM t AS a",
        "SELECT count(DISTINCT x) FROM (SELECT DISTINCT x FROM t) AS a",
        "SELECT n FROM (SELECT sum(x) AS m, count(*) AS n FROM t) AS a",
        "SELECT count(*) FROM (SELECT x + 1 AS x FROM t) AS a WHERE x > 1",
        "SELECT 1",
        "this is no SQL (",
    ],
)
def test_another_kind_of_query_stays_as_it_is(text: str) -> None:
    asked = [statement(text)]
    assert fused(asked) == asked


def test_rows_without_any_give_no_sum_as_before(table: duckdb.DuckDBPyConnection) -> None:
    table.execute("DELETE FROM t")
    asked = [statement(SUMS, 0, 1, 0, metrics=2), statement(NESTED, 0, "a", 1, 0)]
    assert answers(table, fused(asked)) == answers(table, asked)
    assert answers(table, asked)[asked[1].metrics[0]] is None


def test_the_rules_of_a_table_are_counted_in_few_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []
    own = Plan.run
    monkeypatch.setattr(Plan, "run", lambda plan, execute: (plans.append(plan), own(plan, execute))[1])
    engine = DuckDBRuleEngine("fused")
    engine.connection.execute("CREATE TABLE catalog AS SELECT 'a' AS item_id, true AS active")
    fill(engine, rows(7, 50))
    rules = every_kind(tmp_path)
    engine.judge("t", rules)
    engine.close()
    (plan,) = plans
    assert len(plan.counts) == len(rules) - 1
    assert len(plan.statements) <= 5
