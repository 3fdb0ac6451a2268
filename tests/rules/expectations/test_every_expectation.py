"""Every expectation of Great Expectations is judged on DuckDB, or `validate` refuses it with a reason."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from great_expectations.expectations.registry import list_registered_expectation_implementations

from monitor.rules.expectations.custom import EXPECTATIONS
from monitor.rules.queries import NO_CONDITION, REFUSED, REFUSED_ON
from tests.rules.expectations.counting import expectation

ROWS = pa.table(
    {
        "a": [1.0, 2.0, 3.0, 4.0, 5.0],
        "b": [2.0, 3.0, 4.0, 5.0, 6.0],
        "s": ["ab1", "cd2", "ef3", "gh4", None],
        "d": ["2026-01-01", "2026-01-02", "x", "2026-01-04", None],
        "ts": [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(5)],
    }
)
TEXTS, NUMBERS, PAIR = {"column": "s"}, {"column": "a"}, {"column_A": "b", "column_B": "a"}
SOME, BOTH, FEW = {"value_set": ["ab1", "cd2"]}, {"column_list": ["a", "b"]}, {"min_value": 1, "max_value": 9}
PARTITION = {"partition_object": {"values": ["ab1", "cd2"], "weights": [0.5, 0.5]}, "threshold": 9}
QUANTILES = {"quantile_ranges": {"quantiles": [0.5], "value_ranges": [[1, 5]]}}
ARGUMENTS = {
    "column_distinct_values_to_be_in_set": TEXTS | SOME,
    "column_distinct_values_to_contain_set": TEXTS | SOME,
    "column_distinct_values_to_equal_set": TEXTS | SOME,
    "column_kl_divergence_to_be_less_than": TEXTS | PARTITION,
    "column_max_to_be_between": NUMBERS | FEW,
    "column_mean_to_be_between": NUMBERS | FEW,
    "column_median_to_be_between": NUMBERS | FEW,
    "column_min_to_be_between": NUMBERS | FEW,
    "column_most_common_value_to_be_in_set": TEXTS | SOME,
    "column_pair_values_a_to_be_greater_than_b": PAIR,
    "column_pair_values_to_be_equal": PAIR,
    "column_pair_values_to_be_in_set": PAIR | {"value_pairs_set": [[2, 1]]},
    "column_proportion_of_non_null_values_to_be_between": TEXTS | {"min_value": 0.1},
    "column_proportion_of_unique_values_to_be_between": TEXTS | {"min_value": 0.1},
    "column_quantile_values_to_be_between": NUMBERS | QUANTILES,
    "column_stdev_to_be_between": NUMBERS | FEW,
    "column_sum_to_be_between": NUMBERS | FEW,
    "column_to_exist": TEXTS,
    "column_type_to_be": NUMBERS | {"type_": "DOUBLE"},
    "column_unique_value_count_to_be_between": TEXTS | FEW,
    "column_value_lengths_to_be_between": TEXTS | FEW,
    "column_value_lengths_to_equal": TEXTS | {"value": 3},
    "column_value_z_scores_to_be_less_than": NUMBERS | {"threshold": 3, "double_sided": True},
    "column_values_to_be_between": NUMBERS | FEW,
    "column_values_to_be_in_set": TEXTS | SOME,
    "column_values_to_be_in_type_list": NUMBERS | {"type_list": ["DOUBLE"]},
    "column_values_to_be_json_parseable": TEXTS,
    "column_values_to_be_null": TEXTS,
    "column_values_to_be_of_type": NUMBERS | {"type_": "DOUBLE"},
    "column_values_to_be_unique": TEXTS,
    "column_values_to_match_like_pattern": TEXTS | {"like_pattern": "a%"},
    "column_values_to_match_like_pattern_list": TEXTS | {"like_pattern_list": ["a%", "c%"]},
    "column_values_to_match_regex": TEXTS | {"regex": "^[a-z]+[0-9]$"},
    "column_values_to_match_regex_list": TEXTS | {"regex_list": ["^a", "^c"]},
    "column_values_to_match_strftime_format": {"column": "d", "strftime_format": "%Y-%m-%d"},
    "column_values_to_not_be_in_set": TEXTS | SOME,
    "column_values_to_not_be_null": TEXTS,
    "column_values_to_not_be_outliers": NUMBERS | {"method": "iqr", "multiplier": 1.5},
    "column_values_to_not_match_like_pattern": TEXTS | {"like_pattern": "a%"},
    "column_values_to_not_match_like_pattern_list": TEXTS | {"like_pattern_list": ["a%", "c%"]},
    "column_values_to_not_match_regex": TEXTS | {"regex": "^z"},
    "column_values_to_not_match_regex_list": TEXTS | {"regex_list": ["^z", "^y"]},
    "compound_columns_to_be_unique": BOTH,
    "multicolumn_sum_to_equal": BOTH | {"sum_total": 3},
    "multicolumn_values_to_be_equal": BOTH,
    "select_column_values_to_be_unique_within_record": BOTH,
    "table_column_count_to_be_between": FEW,
    "table_column_count_to_equal": {"value": 5},
    "table_columns_to_match_ordered_list": {"column_list": ["a"]},
    "table_columns_to_match_set": {"column_set": ["a"]},
    "table_row_count_to_be_between": FEW,
    "table_row_count_to_equal": {"value": 5},
}
OURS = {one.expectation_type for one in EXPECTATIONS}
CONDITION = {"row_condition": 'col("a") > 1', "condition_parser": "great_expectations"}


def kinds() -> list[str]:
    """Those of Great Expectations that are not refused; the monitor's own have tests of their own."""
    known = {one for one in list_registered_expectation_implementations() if one.startswith("expect_")}
    return sorted(known - OURS - REFUSED.keys() - REFUSED_ON["duckdb"].keys())


@pytest.fixture
def engine(shared_engine):
    shared_engine.connection.register("given", ROWS)
    shared_engine.connection.execute("CREATE OR REPLACE TABLE exposures AS SELECT * FROM given")
    shared_engine.connection.unregister("given")
    return shared_engine


@pytest.mark.parametrize("kind", kinds())
def test_great_expectations_own_expectation_is_judged(engine, kind):
    arguments = ARGUMENTS[kind.removeprefix("expect_")]
    rules = [expectation(kind, **arguments)]
    if "row_condition" in type(rules[0]).__fields__ and kind not in NO_CONDITION:
        rules.append(expectation(kind, **arguments, **CONDITION))
    for outcome in engine.judge("exposures", rules):
        assert outcome.error is None
