"""Expectations about texts: hand-counted, and the same as on pandas."""

from __future__ import annotations

import pytest

from tests.rules.expectations.counting import HOSTILE, both, expectation, on_duckdb

ITEMS = {"item_id": [*HOSTILE, "abc", "abd", None]}


@pytest.fixture
def engine(shared_engine):
    return shared_engine


def rule(kind, **kwargs):
    return expectation(f"expect_column_values_to_{kind}", column="item_id", **kwargs)


def test_lists_of_regular_expressions_count_like_pandas(engine):
    regex = ["^ab", "c$", "%s"]
    assert both(engine, ITEMS, rule("match_regex_list", regex_list=regex)) == (10, 7)
    assert both(engine, ITEMS, rule("match_regex_list", regex_list=regex[:2], match_on="all")) == (10, 9)
    assert both(engine, ITEMS, rule("not_match_regex_list", regex_list=regex)) == (10, 3)


def test_patterns_of_like(engine):
    assert on_duckdb(engine, ITEMS, rule("match_like_pattern", like_pattern="ab_")) == (10, 8)
    assert on_duckdb(engine, ITEMS, rule("not_match_like_pattern", like_pattern="ab_")) == (10, 2)
    assert on_duckdb(engine, ITEMS, rule("match_like_pattern", like_pattern="%'%")) == (10, 8)
    some = ["ab%", "%d"]
    assert on_duckdb(engine, ITEMS, rule("match_like_pattern_list", like_pattern_list=some)) == (10, 8)
    both_of_them = rule("match_like_pattern_list", like_pattern_list=some, match_on="all")
    assert on_duckdb(engine, ITEMS, both_of_them) == (10, 9)
    assert on_duckdb(engine, ITEMS, rule("not_match_like_pattern_list", like_pattern_list=some)) == (10, 2)


@pytest.mark.parametrize(
    ("form", "values", "wrong"),
    [
        ("%Y-%m-%d", ["2026-11-29", "2026-13-01", "2026-02-29", "29.11.2026", "", None], 4),
        ("%d/%m/%y %H:%M:%S", ["29/11/26 23:59:59", "29/11/26 24:00:00", "29/11/26"], 2),
        ("%Y-%m-%dT%H:%M:%S.%f", ["2026-11-29T01:02:03.456789", "2026-11-29T01:02:03"], 1),
    ],
)
def test_forms_of_dates_count_like_pandas(engine, form, values, wrong):
    given = {"item_id": values}
    assert both(engine, given, rule("match_strftime_format", strftime_format=form)) == (
        len([one for one in values if one is not None]),
        wrong,
    )


def test_json_counts_like_pandas(engine):
    given = {"item_id": ['{"a": [1, 2]}', "1", '"x"', "null", "{", "", "{'a': 1}", None]}
    assert both(engine, given, rule("be_json_parseable")) == (7, 3)


def test_numbers_are_compared_as_texts(engine):
    given = {"item_id": [101, 102, 201]}
    assert on_duckdb(engine, given, rule("match_like_pattern", like_pattern="1%")) == (3, 1)
    assert on_duckdb(engine, given, rule("match_regex_list", regex_list=["^1"])) == (3, 1)


@pytest.mark.parametrize(
    ("kind", "kwargs", "holds"),
    [
        ("column_distinct_values_to_be_in_set", {"value_set": ["b", "c"]}, True),
        ("column_distinct_values_to_be_in_set", {"value_set": ["b"]}, False),
        ("column_distinct_values_to_equal_set", {"value_set": ["b", "c"]}, True),
        ("column_distinct_values_to_contain_set", {"value_set": ["a"]}, False),
        ("column_most_common_value_to_be_in_set", {"value_set": ["c"]}, True),
        ("column_median_to_be_between", {"column": "n", "min_value": 3, "max_value": 3}, True),
        ("column_median_to_be_between", {"column": "n", "max_value": 2}, False),
        (
            "column_quantile_values_to_be_between",
            {"column": "n", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[3, 3]]}},
            True,
        ),
    ],
)
def test_a_whole_column_is_judged_on_the_rows_of_a_condition(engine, kind, kwargs, holds):
    columns = {"item_id": ["a", "a", "a", "b", "c", "c"], "n": [1, 1, 1, 2, 3, 4]}
    condition = {"row_condition": 'col("n") > 1', "condition_parser": "great_expectations"}
    made = expectation(f"expect_{kind}", **({"column": "item_id"} | kwargs | condition))
    _, violations = on_duckdb(engine, columns, made)
    assert (violations == 0) is holds
