"""The type of a column, by the names that DuckDB has for types."""

from __future__ import annotations

import pytest

from monitor.rules.queries import REFUSED_ON
from monitor.rules.suites import load_rules
from monitor.settings.rules import RuleSettings
from tests.rules.expectations.counting import expectation


@pytest.fixture
def engine(shared_engine):
    shared_engine.connection.execute(
        "CREATE OR REPLACE TABLE t AS SELECT 'a' AS name, 1.5::DOUBLE AS score, 1.50::DECIMAL(9, 2) AS price"
    )
    return shared_engine


@pytest.mark.parametrize(
    ("column", "type_", "violations"),
    [
        ("name", "VARCHAR", 0),
        ("name", "text", 0),
        ("score", "DOUBLE", 0),
        ("score", "double precision", 0),
        ("score", "BIGINT", 1),
        ("price", "DECIMAL", 0),
        ("price", "DECIMAL(9,2)", 0),
        ("price", "DECIMAL(18,3)", 1),
    ],
)
def test_a_column_is_of_its_type_by_any_of_its_names(engine, column, type_, violations):
    rules = [
        expectation("expect_column_values_to_be_of_type", column=column, type_=type_),
        expectation("expect_column_type_to_be", column=column, type_=type_),
        expectation(
            "expect_column_values_to_be_in_type_list", column=column, type_list=[type_, "StringType"]
        ),
    ]
    outcomes = engine.judge("t", rules)
    assert [(one.samples, one.violations, one.error) for one in outcomes] == [(1, violations, None)] * 3


def test_a_type_of_another_database_is_an_error_that_names_the_columns_own(engine):
    rule = expectation("expect_column_values_to_be_of_type", column="score", type_="DoubleType")
    assert engine.judge("t", [rule])[0].error == "DuckDB has no type DoubleType; this column is DOUBLE"


def test_spark_does_not_leave_a_rule_on_a_type_to_duckdb(world):
    source = world.suite(
        "  - {type: expect_column_type_to_be, kwargs: {column: score, type_: DoubleType},"
        " meta: {rule: a, kind: hard}}\n"
        "  - {type: expect_column_values_to_be_finite, kwargs: {column: score},"
        " meta: {rule: b, kind: hard}}\n"
    )
    assert [rule.speaks_a_dialect for rule in world.rules(source)] == [True, False]


def test_spark_does_not_leave_to_duckdb_what_duckdb_cannot_judge(tmp_path):
    for kind in REFUSED_ON["duckdb"].keys() - REFUSED_ON["spark"].keys():
        kwargs = "{column: a, json_schema: {}}"
        suite = f"expectations:\n  - {{type: {kind}, kwargs: {kwargs}, meta: {{rule: form, kind: hard}}}}\n"
        (tmp_path / "ours.yaml").write_text(suite)
        (rule,) = load_rules([RuleSettings(suite="ours.yaml")], tmp_path, dialect="spark")
        assert rule.speaks_a_dialect
