"""Each own expectation and each fast metric: hand-counted, hostile values, the same counts on pandas."""

from __future__ import annotations

import math
import warnings

import great_expectations as gx
import pandas as pd
import pyarrow as pa
import pytest

from monitor.expectations.custom import EXPECTATIONS
from monitor.expectations.engine import RuleEngine, build

HOSTILE = [
    "'; DROP TABLE exposures; --",
    'a"b',
    "line\nbreak",
    "<script>alert(1)</script>",
    "comma, and 'quote'",
    "{batch} %s :name $1",
    " padded ",
    "naïve ☃",
]


@pytest.fixture(scope="module")
def engine():
    engine = RuleEngine("expectations")
    yield engine
    engine.close()


def expectation(kind, **kwargs):
    return build({"type": kind, "kwargs": kwargs})


def on_duckdb(engine, columns, rule):
    engine.connection.register("given", pa.table(columns))
    engine.connection.execute("CREATE OR REPLACE TABLE exposures AS SELECT * FROM given")
    engine.connection.unregister("given")
    (outcome,) = engine.judge("exposures", [rule])
    assert outcome.error is None, outcome.error
    return outcome.samples, outcome.violations


def on_pandas(columns, rule):
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("p").add_dataframe_asset("a")
    frame = pa.table(columns).to_pandas()
    batch = asset.add_batch_definition_whole_dataframe("b").get_batch({"dataframe": frame})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = batch.validate(rule, result_format="BASIC")
    found = result.result
    assert "element_count" in found, result.exception_info
    return found["element_count"] - (found.get("missing_count") or 0), found["unexpected_count"]


def both(engine, columns, rule):
    counts = on_duckdb(engine, columns, rule)
    assert on_pandas(columns, rule) == counts
    return counts


def test_hostile_ids_are_found_in_a_list_and_nowhere_else(engine, tmp_path):
    listed = tmp_path / "bad.csv"
    listed.write_text(pd.DataFrame({"item_id": HOSTILE}).to_csv(index=False), encoding="utf-8")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="item_id", list_path=str(listed))
    columns = {"item_id": [*HOSTILE, "fine", None, "padded", 'A"B']}
    assert both(engine, columns, rule) == (11, len(HOSTILE))
    rows = engine.evidence("exposures", rule, ["item_id"], ["item_id"], 100)
    assert {row["item_id"] for row in rows} == set(HOSTILE)


def test_a_list_file_with_a_hostile_name_is_a_file_like_any_other(engine, tmp_path):
    listed = tmp_path / 'it\'s a "list"; DROP TABLE exposures; --.txt'
    listed.write_text("x\n")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="item_id", list_path=str(listed))
    assert both(engine, {"item_id": ["x", "y"]}, rule) == (2, 1)


@pytest.mark.parametrize("dtype", [pa.int64(), pa.int32(), pa.string()])
def test_ids_are_compared_in_the_columns_own_type(engine, tmp_path, dtype):
    listed = tmp_path / "list.txt"
    listed.write_text("1\n2\nnot-a-number\n99999999999999999999999\n")
    ids = pa.array([1, 2, 3, 11]).cast(dtype)
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="item_id", list_path=str(listed))
    assert both(engine, {"item_id": ids}, rule) == (4, 2)


def test_an_empty_list_bans_nothing(engine, tmp_path):
    listed = tmp_path / "list.csv"
    listed.write_text("item_id\n")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="item_id", list_path=str(listed))
    assert both(engine, {"item_id": ["a", "b"]}, rule) == (2, 0)


def test_items_that_the_catalog_lacks_are_counted_even_where_it_holds_a_null(engine):
    engine.connection.execute(
        "CREATE OR REPLACE TABLE catalog AS SELECT unnest(['a', 'b', NULL, ?]) AS item_id", [HOSTILE[0]]
    )
    rule = expectation("expect_column_values_to_be_in_catalog", column="item_id")
    columns = {"item_id": ["a", "b", "c", None, HOSTILE[0], HOSTILE[1]]}
    assert on_duckdb(engine, columns, rule) == (5, 2)


SHELF = """CREATE OR REPLACE TABLE catalog AS SELECT * FROM (VALUES
    ('always', NULL::TIMESTAMP, NULL::TIMESTAMP, 'live'),
    ('starts', '2026-01-01 10:30'::TIMESTAMP, NULL, 'LIVE'),
    ('ends', NULL, '2026-01-01 10:30'::TIMESTAMP, 'live'),
    ('over', NULL, '2025-01-01'::TIMESTAMP, 'withdrawn'),
    ('future', '2027-01-01'::TIMESTAMP, NULL, NULL),
    ('later', '2026-01-01 09:00'::TIMESTAMP, '2027-01-01'::TIMESTAMP, 'live')
) AS c(item_id, available_from, available_until, status)"""
SHOWN = {
    "item_id": ["always", "starts", "ends", "over", "future", "later", "unknown", None] * 3,
    "ts": [
        pd.Timestamp(moment)
        for moment in ("2026-01-01 10:00", "2026-01-01 10:30", "2026-01-01 10:59")
        for _ in range(8)
    ],
}


@pytest.mark.parametrize(
    ("named", "broken"),
    [
        ({"from_column": "available_from"}, ["starts", "future", "future", "future"]),
        ({"until_column": "available_until"}, ["ends", "ends", "over", "over", "over"]),
        ({"status_column": "status", "on_shelf_values": ["Live"]}, ["over", "over", "over"]),
        (
            {"from_column": "available_from", "until_column": "available_until"},
            ["starts", "ends", "ends", "over", "over", "over", "future", "future", "future"],
        ),
    ],
)
def test_items_off_the_shelf_when_shown_are_counted_and_given_as_evidence(engine, named, broken):
    engine.connection.execute(SHELF)
    rule = expectation("expect_column_values_to_be_on_shelf", column="item_id", **named)
    assert on_duckdb(engine, SHOWN, rule) == (21, len(broken))
    rows = engine.evidence("exposures", rule, ["item_id"], ["item_id", "ts"], 100)
    assert sorted(row["item_id"] for row in rows) == sorted(broken)


def test_a_boolean_status_says_whether_an_item_is_on_the_shelf(engine):
    engine.connection.execute(
        "CREATE OR REPLACE TABLE catalog AS SELECT * FROM "
        "(VALUES ('on', true), ('off', false), ('unknown', NULL)) AS c(item_id, active)"
    )
    rule = expectation("expect_column_values_to_be_on_shelf", column="item_id", status_column="active")
    columns = {"item_id": ["on", "off", "unknown"], "ts": [pd.Timestamp("2026-01-01")] * 3}
    assert on_duckdb(engine, columns, rule) == (3, 1)


def test_on_shelf_needs_to_be_told_what_shelf_means():
    with pytest.raises(ValueError, match="at least one of from_column"):
        expectation("expect_column_values_to_be_on_shelf", column="item_id")


def test_nan_and_infinity_are_not_finite_and_null_is_not_judged(engine):
    rule = expectation("expect_column_values_to_be_finite", column="score")
    values = pa.array([1.0, math.nan, math.inf, -math.inf, None, 0.0, 1e308], from_pandas=False)
    assert on_duckdb(engine, {"score": values}, rule) == (6, 3)
    assert both(engine, {"score": [1.0, math.inf, -math.inf, 0.0]}, rule) == (4, 2)


def test_whole_numbers_are_always_finite(engine):
    rule = expectation("expect_column_values_to_be_finite", column="score")
    assert both(engine, {"score": [1, 2, 3]}, rule) == (3, 0)


@pytest.mark.parametrize(
    ("bounds", "violations"),
    [({"min_value": 0}, 2), ({"max_value": 1}, 2), ({"min_value": 0, "max_value": 1}, 3)],
)
def test_nan_is_never_in_range(engine, bounds, violations):
    values = pa.array([0.5, math.nan, 2.0, -1.0, None], from_pandas=False)
    rule = expectation("expect_column_values_to_be_between", column="score", **bounds)
    assert on_duckdb(engine, {"score": values}, rule) == (4, violations)


def test_strict_bounds_are_out_of_range_themselves(engine):
    rule = expectation(
        "expect_column_values_to_be_between",
        column="score",
        min_value=0,
        max_value=1,
        strict_min=True,
        strict_max=True,
    )
    assert both(engine, {"score": [0.0, 0.5, 1.0]}, rule) == (3, 2)


def test_a_row_with_any_zero_in_the_columns_is_counted_once(engine):
    rule = expectation("expect_columns_to_not_be_zero", column_list=["a", "b"])
    columns = {"a": [1.0, 0.0, -0.0, 2.0, 0.0], "b": [1.0, 1.0, 3.0, 5e-324, 0.0]}
    assert both(engine, columns, rule) == (5, 3)


def test_one_column_will_do_where_gx_wants_two(engine):
    rule = expectation("expect_columns_to_not_be_zero", column_list=["a"])
    assert both(engine, {"a": [1.0, 0.0, 2.0]}, rule) == (3, 1)


def test_missing_values_and_nan_are_no_zeros(engine):
    rule = expectation("expect_columns_to_not_be_zero", column_list=["a", "b"])
    columns = {"a": pa.array([None, math.nan, 0.0], from_pandas=False), "b": pa.array([1.0, 1.0, None])}
    assert on_duckdb(engine, columns, rule) == (3, 1)


@pytest.mark.parametrize(("zero_counts", "violations"), [(False, 3), (True, 4)])
def test_denormal_numbers_are_counted_and_an_exact_zero_only_where_asked(engine, zero_counts, violations):
    rule = expectation("expect_columns_to_not_underflow", column_list=["a"], zero_is_underflow=zero_counts)
    columns = {"a": [1.0, 5e-324, -1e-310, 2.225073858507201e-308, 2.2250738585072014e-308, 0.0]}
    assert both(engine, columns, rule) == (6, violations)


def test_the_smallest_number_can_be_that_of_a_32_bit_float(engine):
    rule = expectation("expect_columns_to_not_underflow", column_list=["a"], smallest=1.17549435e-38)
    assert both(engine, {"a": [1e-39, 1e-37]}, rule) == (2, 1)


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


def test_compound_uniqueness_can_ignore_rows_with_missing_values(engine):
    rule = expectation(
        "expect_compound_columns_to_be_unique",
        column_list=["a", "b"],
        ignore_row_if="any_value_is_missing",
    )
    assert both(engine, {"a": [1, 1, 1, 1], "b": ["x", None, None, "x"]}, rule) == (2, 2)


def test_every_own_expectation_says_what_it_is_and_what_it_takes():
    for one in EXPECTATIONS:
        text = one.__doc__ or ""
        taken = set(one.__fields__) - set(one.__mro__[1].__fields__) - {"list_version"}
        assert "Arguments:" in text, one.__name__
        assert all(name in text for name in taken), one.__name__
