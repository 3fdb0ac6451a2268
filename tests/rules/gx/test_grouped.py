"""Counts by group: each group gets what it gets as a table of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.rules.engines.base import Outcome
from monitor.rules.engines.duckdb import DuckDBRuleEngine
from monitor.rules.gx.datasource import Compiled
from monitor.rules.gx.grouped import GroupedPlan
from monitor.rules.gx.plan import Counts, Plan, Statement
from tests.rules.gx.test_plan import every_kind, fill, rows, rule

ROWS = "(SELECT * FROM t WHERE true) AS a"


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[DuckDBRuleEngine]:
    made = DuckDBRuleEngine(f"grouped_{abs(hash(request.node.name))}")
    made.connection.execute(
        "CREATE TABLE catalog AS "
        "SELECT * FROM (VALUES ('a', true), ('b', false), (NULL, true)) c(item_id, active)"
    )
    yield made
    made.close()


def of_each(
    engine: DuckDBRuleEngine, groups: list[pd.DataFrame], rules: list[Any]
) -> list[dict[int, Outcome]]:
    """What the rules give for each group as a table of its own."""
    found = []
    for one in groups:
        fill(engine, one)
        found.append(dict(enumerate(engine.judge("t", rules))))
    return found


def fill_all(engine: DuckDBRuleEngine, groups: list[pd.DataFrame]) -> None:
    engine.connection.execute("DROP TABLE IF EXISTS every")
    for number, one in enumerate(groups):
        fill(engine, one)
        query = f"SELECT *, {number} AS g FROM t"
        engine.connection.execute(
            f"INSERT INTO every {query}" if number else f"CREATE TABLE every AS {query}"
        )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from([0, 1, 3, 40])), min_size=1, max_size=5))
def test_each_group_gets_what_it_gets_alone(
    engine: DuckDBRuleEngine, tmp_path: Path, drawn: list[tuple[int, int]]
) -> None:
    groups = [rows(seed, count) for seed, count in drawn]
    rules = every_kind(tmp_path)
    alone = of_each(engine, groups, rules)
    fill_all(engine, groups)
    found = engine.judge_groups("every", rules, "g", range(len(groups)))
    assert list(found) == list(range(len(groups)))
    for number, outcomes in found.items():
        for one, outcome in outcomes.items():
            assert outcome == alone[number][one], (number, rules[one])


def test_rules_that_look_at_other_rows_or_at_the_whole_table_are_left_out(
    engine: DuckDBRuleEngine, tmp_path: Path
) -> None:
    rules = every_kind(tmp_path)
    query = "SELECT * FROM {batch} WHERE score > 1"
    rules += [
        rule("unexpected_rows_expectation", unexpected_rows_query=query),
        rule("expect_table_row_count_to_be_between", max_value=3),
    ]
    fill_all(engine, [rows(1, 30), rows(2, 30)])
    found = engine.judge_groups("every", rules, "g", [0, 1])
    left = {type(one).__name__ for number, one in enumerate(rules) if number not in found[0]}
    assert left == {
        "ExpectColumnValuesToBeUnique",
        "ExpectCompoundColumnsToBeUnique",
        "ExpectColumnMaxToBeBetween",
        "ExpectTableRowCountToBeBetween",
        "UnexpectedRowsExpectation",
    }
    assert found[0].keys() == found[1].keys()


def test_a_rule_that_fails_is_left_out_alone(engine: DuckDBRuleEngine) -> None:
    fill_all(engine, [rows(1, 30)])
    rules = [
        rule("expect_column_values_to_not_be_null", column="nowhere"),
        rule("expect_column_values_to_not_be_null", column="item"),
    ]
    assert list(engine.judge_groups("every", rules, "g", [0])[0]) == [1]


def test_a_group_without_rows_has_nothing_to_judge(engine: DuckDBRuleEngine) -> None:
    fill_all(engine, [rows(1, 30)])
    rules = [rule("expect_column_values_to_be_between", column="score", max_value=1)]
    found = engine.judge_groups("every", rules, "g", [0, 7])
    assert found[7] == {0: Outcome()}
    assert found[0][0].samples > 0


def test_a_kept_plan_counts_the_rows_of_the_next_table(engine: DuckDBRuleEngine) -> None:
    rules = [rule("expect_column_values_to_not_be_null", column="item")]
    counts = []
    for count in (5, 9):
        one = rows(3, count).assign(item=None)
        fill_all(engine, [one, one])
        counts.append(engine.judge_groups("every", rules, "g", [0, 1])[1][0])
    assert counts == [Outcome(samples=5, violations=5), Outcome(samples=9, violations=9)]


def test_an_interrupt_is_raised(engine: DuckDBRuleEngine) -> None:
    fill_all(engine, [rows(1, 30)])
    engine.interrupt()
    with pytest.raises(duckdb.InterruptException):
        engine.judge_groups("every", [rule("expect_column_values_to_not_be_null", column="item")], "g", [0])


def plan_of(text: str, name: str = "some_count") -> Plan:
    metric = (name, "rows", "")
    return Plan([Statement(Compiled(text, ()), [metric])], {0: Counts(metric, metric)})


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT count(*) FROM {ROWS} WHERE x IN (SELECT x FROM t GROUP BY x HAVING count(*) > 1)",
        f"SELECT sum(CASE WHEN count(*) OVER (PARTITION BY x) > 1 THEN 1 ELSE 0 END) FROM {ROWS}",
        f"SELECT max(x) FROM {ROWS}",
        f"SELECT coalesce(sum(x), 0) FROM {ROWS}",
        f"SELECT count(*), count(x) FROM {ROWS}",
        "SELECT count(*) FROM other",
        "SELECT count(*) FROM (SELECT x FROM t) AS a",
        "SELECT count(*) FROM (SELECT * FROM t LIMIT 3) AS a",
        "SELECT n FROM (SELECT count(*) AS n FROM t) AS a",
        f"SELECT count(*) FROM {ROWS} GROUP BY x",
        f"SELECT count(*) FROM {ROWS} LIMIT 1",
        "this is no SQL (",
    ],
)
def test_a_statement_that_groups_would_change_is_refused(text: str) -> None:
    found = GroupedPlan.of(plan_of(text), "t", "g")
    assert found.statements == []
    assert found.counts == {}


def test_only_the_shelf_may_read_its_rows_a_second_time() -> None:
    text = f"SELECT count(*) FROM {ROWS} WHERE x > (SELECT min(x) FROM t)"
    assert GroupedPlan.of(plan_of(text), "t", "g").statements == []
    (statement,) = GroupedPlan.of(
        plan_of(text, "column_values.on_shelf.unexpected_count"), "t", "g"
    ).statements
    assert statement.query.text.endswith('GROUP BY "g"')


def test_each_count_is_that_of_its_group() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 0), (5, 0), (9, 1), (NULL, 1)) t(x, g)")
    text = f"SELECT count(*), sum(CASE WHEN x > $1 THEN $2 ELSE $3 END) FROM {ROWS}"
    every, large = ("every_count", "t", ""), ("large_count", "t", "")
    plan = Plan([Statement(Compiled(text, (3, 1, 0)), [every, large])], {7: Counts(large, every)})
    found = GroupedPlan.of(plan, "t", "g").run(
        lambda query: connection.execute(query.text, query.values), [0, 1, 2]
    )
    assert found == {0: {7: (2, 1)}, 1: {7: (2, 1)}, 2: {7: (0, 0)}}
