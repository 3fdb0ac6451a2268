"""Rules counted by the kept statements of GX: the same counts as GX gives, whatever the next window holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from great_expectations.expectations.expectation import Expectation

from monitor.rules.engines import duckdb as engines
from monitor.rules.engines.base import build, count_violations
from monitor.rules.engines.duckdb import DuckDBRuleEngine
from monitor.rules.list_files import FILES

BETWEEN = "expect_column_values_to_be_between"
ROW = {"type": "nullity", "column": {"name": "item"}, "is_null": False}


class Asked:
    """Counts how many expectations were given to GX."""

    def __init__(self) -> None:
        self.expectations: list[int] = []

    def __call__(self, batch: Any, expectations: Any, count_rows: Any) -> Any:
        self.expectations.append(len(expectations))
        return count_violations(batch, expectations, count_rows)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    spy = Asked()
    monkeypatch.setattr(engines, "count_violations", spy)
    return spy


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[DuckDBRuleEngine]:
    made = DuckDBRuleEngine(f"plan_{abs(hash(request.node.name))}")
    yield made
    made.close()


def rule(kind: str, **kwargs: Any) -> Expectation:
    return build({"type": kind, "kwargs": kwargs})


def fill(engine: DuckDBRuleEngine, rows: pd.DataFrame) -> None:
    engine.connection.register("given", rows)
    engine.connection.execute(
        "CREATE OR REPLACE TABLE t AS SELECT item::VARCHAR AS item, user::BIGINT AS user, "
        "score::DOUBLE AS score, TIMESTAMP '2026-03-02' AS ts FROM given"
    )
    engine.connection.unregister("given")


def rows(seed: int, count: int) -> pd.DataFrame:
    """Rows with repeated, missing, infinite and tiny values."""
    rng = np.random.default_rng(seed)
    score = rng.choice([0.0, 0.5, 1.0, 7.0, np.nan, np.inf, -np.inf, 5e-324], count)
    item = rng.choice(np.array(["a", "b", "c", "", None], object), count)
    user = pd.array(rng.integers(0, 5, count), "Int64")
    user[rng.random(count) < 0.2] = pd.NA
    return pd.DataFrame({"item": pd.Series(item, dtype=object), "user": user, "score": score})


def every_kind(folder: Path) -> list[Expectation]:
    banned = folder / "banned.txt"
    banned.write_text("a\nb\n")
    return [
        rule(BETWEEN, column="score", min_value=0, max_value=1),
        rule(BETWEEN, column="score", min_value=0, row_condition=ROW),
        rule("expect_column_values_to_not_be_null", column="user"),
        rule("expect_column_values_to_not_be_null", column="user", row_condition=ROW),
        rule("expect_column_values_to_be_in_set", column="item", value_set=["a", "c"]),
        rule("expect_column_values_to_not_be_in_set", column="item", value_set=["b"]),
        rule("expect_column_values_to_match_regex", column="item", regex="^[ab]$"),
        rule("expect_compound_columns_to_be_unique", column_list=["item", "user"]),
        rule("expect_column_values_to_be_finite", column="score"),
        rule("expect_column_values_to_be_unique", column="item"),
        rule("expect_columns_to_not_be_zero", column_list=["user", "score"]),
        rule("expect_column_max_to_be_between", column="user", max_value=3),
        rule("expect_column_values_to_not_be_in_list_file", column="item", list_path=str(banned),
             list_version=FILES.read(str(banned), "item_id").version),
        rule("expect_column_values_to_be_in_catalog", column="item", catalog_table="catalog"),
        rule("expect_column_values_to_be_on_shelf", column="item", catalog_table="catalog",
             status_column="active"),
    ]  # fmt: skip


def test_the_counts_are_those_of_gx_whatever_the_next_table_holds(
    engine: DuckDBRuleEngine, asked: Asked, tmp_path: Path
) -> None:
    engine.connection.execute(
        "CREATE TABLE catalog AS "
        "SELECT * FROM (VALUES ('a', true), ('b', false), (NULL, true)) c(item_id, active)"
    )
    rules = every_kind(tmp_path)
    first = True
    planned = 0
    for seed, count in ((1, 60), (2, 0), (3, 1), (4, 500), (5, 60), (1, 60)):
        fill(engine, rows(seed, count))
        before = sum(asked.expectations)
        found = engine.judge("t", rules)
        by_gx = sum(asked.expectations) - before
        expected = engine._by_gx("t", dict(enumerate(rules)))
        assert found == [expected[number] for number in range(len(rules))], seed
        assert by_gx == len(rules) if first else by_gx < len(rules)
        planned = len(rules) - by_gx
        first = False
    assert planned == len(rules) - 1  # the maximum of a column is no count


def test_what_is_asked_of_gx_once_is_not_asked_again(engine: DuckDBRuleEngine, asked: Asked) -> None:
    rules = [rule(BETWEEN, column="score", max_value=1), rule(BETWEEN, column="user", max_value=3)]
    for seed in range(3):
        fill(engine, rows(seed, 50))
        engine.judge("t", rules)
    assert asked.expectations == [2]
    engine.judge("t", rules[:1])  # other rules make another plan
    assert asked.expectations == [2, 1]


def test_other_columns_make_another_plan(engine: DuckDBRuleEngine, asked: Asked) -> None:
    within = [rule(BETWEEN, column="n", max_value=10.25)]  # no other test has planned it in this process
    for query, violations in (("5 AS n", 0), ("50::DOUBLE AS n", 1), ("'nan'::DOUBLE AS n", 1)):
        engine.connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {query}")
        assert engine.judge("t", within)[0].violations == violations
    assert asked.expectations == [1, 1]
    engine.connection.execute("CREATE OR REPLACE TABLE t AS SELECT 'x' AS n")
    assert "has no range" in (engine.judge("t", within)[0].error or "")


def test_a_replaced_list_is_the_one_that_counts(engine: DuckDBRuleEngine, tmp_path: Path) -> None:
    banned = tmp_path / "banned.txt"
    fill(engine, pd.DataFrame({"item": ["a", "b", "b"], "user": [1, 2, 3], "score": [1.0, 1.0, 1.0]}))
    for content, violations in (("a", 1), ("b", 2), ("a", 1), ("z", 0)):
        banned.write_text(content + "\n")
        version = FILES.read(str(banned), "item_id").version
        kept = rule(
            "expect_column_values_to_not_be_in_list_file",
            column="item",
            list_path=str(banned),
            list_version=version,
        )
        without = rule("expect_column_values_to_not_be_in_list_file", column="item", list_path=str(banned))
        assert [one.violations for one in engine.judge("t", [kept, without])] == [violations] * 2
        assert [one.violations for one in engine.judge("t", [kept, without])] == [violations] * 2


def test_a_statement_that_fails_later_is_an_error_of_its_rule_alone(
    engine: DuckDBRuleEngine, asked: Asked
) -> None:
    fill(engine, rows(1, 50))
    engine.connection.execute("CREATE TABLE catalog AS SELECT 'a' AS item_id")
    rules = [
        rule(BETWEEN, column="score", max_value=1),
        rule("expect_column_values_to_be_in_catalog", column="item", catalog_table="catalog"),
    ]
    good, catalog = engine.judge("t", rules)
    assert (good.error, catalog.error) == (None, None)
    engine.connection.execute("DROP TABLE catalog")
    again, missing = engine.judge("t", rules)
    assert again == good
    assert "catalog" in (missing.error or "")
    engine.connection.execute("CREATE TABLE catalog AS SELECT 'b' AS item_id")
    assert engine.judge("t", rules)[1].error is None


def test_a_rule_that_compares_with_a_statistic_of_the_rows_is_planned_for_each_table(
    engine: DuckDBRuleEngine,
) -> None:
    name = "expect_column_value_z_scores_to_be_less_than"
    rules = [rule(name, column="x", threshold=1.5, double_sided=True)]
    shown = []
    for level in (0, 100, -7):
        values = ", ".join(f"({level + one}::DOUBLE)" for one in (1.0, 1.1, 0.9, 1.0, 5.0))
        engine.connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES {values}) AS t(x)")
        (found,) = engine.judge("t", rules)
        assert (found.samples, found.violations) == (5, 1)
        shown.append(engine.evidence("t", rules[0], ["x"], ["x"], 9))
    assert shown == [[{"x": 5.0}], [{"x": 105.0}], [{"x": -2.0}]]
    query = "CREATE TABLE every AS SELECT x, 0 AS g FROM t UNION ALL SELECT x + 1000, 1 FROM t"
    engine.connection.execute(query)
    assert engine.judge_groups("every", rules, "g", [0, 1]) == {0: {}, 1: {}}
