"""GX's own expectations where the monitor counts otherwise: hand-counted, and the same as on pandas."""

from __future__ import annotations

import pytest

from tests.rules.expectations.counting import HOSTILE, both, expectation, on_duckdb, on_pandas


@pytest.fixture
def engine(shared_engine):
    return shared_engine


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("kind", ["number", "text"])
def test_sets_short_and_long_count_like_pandas(engine, size, kind):
    known = list(range(size)) if kind == "number" else [f"id'{n}\"" for n in range(size)]
    other = [size + 5, size + 6] if kind == "number" else ["id'x", "'); --"]
    columns = {"item_id": [*known, *other, None]}
    inside = expectation("expect_column_values_to_be_in_set", column="item_id", value_set=known)
    outside = expectation("expect_column_values_to_not_be_in_set", column="item_id", value_set=known)
    assert on_duckdb(engine, columns, inside) == (size + 2, 2)
    assert on_duckdb(engine, columns, outside) == (size + 2, size)
    if kind == "text":
        assert on_pandas(columns, inside) == (size + 2, 2)
        assert on_pandas(columns, outside) == (size + 2, size)


def test_regular_expressions_count_like_pandas(engine):
    columns = {"item_id": [*HOSTILE, "abc", "xabc"]}
    match = expectation("expect_column_values_to_match_regex", column="item_id", regex="^abc$")
    unlike = expectation("expect_column_values_to_not_match_regex", column="item_id", regex="abc")
    assert both(engine, columns, match) == (10, 9)
    assert both(engine, columns, unlike) == (10, 2)


def test_compound_uniqueness_counts_every_row_of_a_repeated_group(engine):
    rule = expectation("expect_compound_columns_to_be_unique", column_list=["a", "b"])
    columns = {"a": [1, 1, 2, 2, 3], "b": ["x", "x", "x", "y", "z"]}
    assert both(engine, columns, rule) == (5, 2)
    assert engine.evidence("exposures", rule, ["a", "b"], ["a"], 10) == [{"a": 1, "b": "x"}] * 2


def test_compound_uniqueness_shows_the_rows_with_a_missing_value_that_it_counts(engine):
    rule = expectation("expect_compound_columns_to_be_unique", column_list=["a", "b"])
    columns = {"a": [1, 1, 2], "b": [None, None, "x"]}
    assert on_duckdb(engine, columns, rule) == (3, 2)
    assert engine.evidence("exposures", rule, ["a", "b"], ["a"], 10) == [{"a": 1, "b": None}] * 2


def test_compound_uniqueness_can_ignore_rows_with_missing_values(engine):
    rule = expectation(
        "expect_compound_columns_to_be_unique",
        column_list=["a", "b"],
        ignore_row_if="any_value_is_missing",
    )
    assert both(engine, {"a": [1, 1, 1, 1], "b": ["x", None, None, "x"]}, rule) == (2, 2)


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize(
    ("ids", "known"),
    [([1, 2, 99], str), (["1", "2", "x"], int), ([1, 2, 99], float), ([1, 2, 99], lambda n: f" {n}")],
)
def test_a_set_may_write_a_logs_ids_as_numbers_or_as_text(engine, size, ids, known):
    values = [known(n) for n in range(size)]
    columns = {"item_id": [*ids, None]}
    inside = expectation("expect_column_values_to_be_in_set", column="item_id", value_set=values)
    outside = expectation("expect_column_values_to_not_be_in_set", column="item_id", value_set=values)
    assert on_duckdb(engine, columns, inside) == (3, 1)
    assert on_duckdb(engine, columns, outside) == (3, 2)


def test_a_set_that_no_number_can_meet_holds_nothing(engine):
    columns = {"item_id": [1, 2]}
    inside = expectation("expect_column_values_to_be_in_set", column="item_id", value_set=["a", "b"])
    outside = expectation("expect_column_values_to_not_be_in_set", column="item_id", value_set=["a", "b"])
    assert on_duckdb(engine, columns, inside) == (2, 2)
    assert on_duckdb(engine, columns, outside) == (2, 0)


CONDITION = {"row_condition": 'col("b") == 1', "condition_parser": "great_expectations"}


@pytest.mark.parametrize("method", ["iqr", "std"])
@pytest.mark.parametrize("condition", [{}, CONDITION])
def test_outliers_count_like_pandas(engine, method, condition):
    rule = expectation(
        "expect_column_values_to_not_be_outliers", column="a", method=method, multiplier=1.5, **condition
    )
    columns = {"a": [1.0, 2.0, 2.5, 3.0, 4.0, 90.0, 95.0, None], "b": [1, 1, 1, 1, 1, 1, 2, 1]}
    samples, violations = both(engine, columns, rule)
    assert (samples, violations) == ((6, 1) if condition else (7, 0 if method == "iqr" else 1))


def test_outliers_are_found_beside_values_that_are_not_a_number(engine):
    rule = expectation("expect_column_values_to_not_be_outliers", column="a", method="iqr", multiplier=1.5)
    assert on_duckdb(engine, {"a": [1.0, 2.0, 2.5, 3.0, 4.0, 90.0, float("nan")]}, rule)[1] >= 1
    assert on_duckdb(engine, {"a": [5.0]}, rule) == (1, 0)
