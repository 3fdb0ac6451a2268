"""Each own expectation: hand-counted, hostile values, the same counts on pandas."""

from __future__ import annotations

import math

import pandas as pd
import pyarrow as pa
import pytest

from monitor.rules.expectations.custom import EXPECTATIONS
from tests.rules.expectations.counting import HOSTILE, both, expectation, on_duckdb


@pytest.fixture
def engine(shared_engine):
    return shared_engine


def test_hostile_ids_are_found_in_a_list_with_and_without_the_blanks_around_them(engine, tmp_path):
    listed = tmp_path / "bad.csv"
    listed.write_text(pd.DataFrame({"item_id": HOSTILE}).to_csv(index=False), encoding="utf-8")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="item_id", list_path=str(listed))
    columns = {"item_id": [*HOSTILE, "fine", None, "padded", 'A"B']}
    assert both(engine, columns, rule) == (11, len(HOSTILE) + 1)
    rows = engine.evidence("exposures", rule, ["item_id"], ["item_id"], 100)
    assert {row["item_id"] for row in rows} == {*HOSTILE, "padded"}


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


@pytest.mark.parametrize("listed", ["7\n", "7.0\n", " 7\t\r\n", "x\n007\n"])
@pytest.mark.parametrize("dtype", [pa.int64(), pa.float64(), pa.float32(), pa.decimal128(21, 2)])
def test_a_number_is_banned_however_the_log_and_the_list_write_it(engine, tmp_path, dtype, listed):
    (tmp_path / "list.txt").write_text(listed)
    path = str(tmp_path / "list.txt")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="seller", list_path=path)
    assert on_duckdb(engine, {"seller": pa.array([7, 8, None]).cast(dtype)}, rule) == (2, 1)


@pytest.mark.parametrize("big", [2**63, 2**63 + 5, 2**64 - 1])
def test_an_id_beyond_the_signed_numbers_is_banned_in_an_unsigned_column(engine, tmp_path, big):
    (tmp_path / "list.txt").write_text(f"{big}\n99\n{2**64}\n-{2**63}\n")
    path = str(tmp_path / "list.txt")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="seller", list_path=path)
    assert both(engine, {"seller": pa.array([big, big - 1, 99, 7], pa.uint64())}, rule) == (4, 2)
    for dtype in (pa.int64(), pa.float32(), pa.float64(), pa.decimal128(38, 0)):
        assert on_duckdb(engine, {"seller": pa.array([98, 99]).cast(dtype)}, rule) == (2, 1)
    (tmp_path / "list.txt").write_text(f"{big}\n")
    assert both(engine, {"seller": pa.array([big, 7], pa.uint64())}, rule) == (2, 1)


def test_a_list_of_numbers_that_the_column_cannot_hold_is_an_error(engine, tmp_path):
    (tmp_path / "list.txt").write_text(f"{2**63}\n")
    path = str(tmp_path / "list.txt")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="n", list_path=path)
    engine.connection.execute("CREATE OR REPLACE TABLE exposures AS SELECT 7::BIGINT AS n")
    (outcome,) = engine.judge("exposures", [rule])
    assert "is a whole number that column n (BIGINT) can hold" in outcome.error


def test_a_list_without_numbers_is_an_error_for_a_column_of_numbers(engine, tmp_path):
    (tmp_path / "list.txt").write_text("abc\nsku-7\n")
    path = str(tmp_path / "list.txt")
    rule = expectation("expect_column_values_to_not_be_in_list_file", column="n", list_path=path)
    engine.connection.execute("CREATE OR REPLACE TABLE exposures AS SELECT 7 AS n")
    (outcome,) = engine.judge("exposures", [rule])
    assert "no id of the list file" in outcome.error


def test_an_empty_list_bans_nothing_if_it_is_allowed(engine, tmp_path):
    listed = tmp_path / "list.csv"
    listed.write_text("item_id\n")
    kwargs = {"column": "item_id", "list_path": str(listed)}
    rule = expectation("expect_column_values_to_not_be_in_list_file", **kwargs, allow_empty=True)
    assert both(engine, {"item_id": ["a", "b"]}, rule) == (2, 0)
    engine.connection.execute("CREATE OR REPLACE TABLE exposures AS SELECT 'a' AS item_id")
    (outcome,) = engine.judge(
        "exposures", [expectation("expect_column_values_to_not_be_in_list_file", **kwargs)]
    )
    assert "is empty: it holds no id" in outcome.error


def test_items_missing_from_the_catalog_are_counted_even_if_it_holds_a_null(engine):
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


@pytest.mark.parametrize("kind", ["DOUBLE", "INTEGER", "BOOLEAN", "VARCHAR"])
@pytest.mark.parametrize("good", [[True], [1], [1.0], ["1"], ["TRUE"]])
def test_a_status_of_one_is_true_however_it_is_written(engine, kind, good):
    engine.connection.execute(
        f"CREATE OR REPLACE TABLE catalog AS SELECT item_id, status::{kind} AS status "
        "FROM (VALUES ('a', '1'), ('b', '0'), ('c', NULL)) AS c(item_id, status)"
    )
    rule = expectation(
        "expect_column_values_to_be_on_shelf", column="item_id", status_column="status", on_shelf_values=good
    )
    columns = {"item_id": ["a", "b", "c"], "ts": [pd.Timestamp("2026-01-01")] * 3}
    assert on_duckdb(engine, columns, rule) == (3, 1)


@pytest.mark.parametrize(
    ("good", "off"), [(True, ["c", "d"]), ("On", ["c", "d"]), (False, ["a", "b"]), ("no", ["a", "b"])]
)
def test_a_status_of_yes_or_on_is_what_yaml_makes_of_it(engine, good, off):
    engine.connection.execute(
        "CREATE OR REPLACE TABLE catalog AS SELECT * FROM (VALUES ('a', 'yes'), ('b', 'On'), ('c', 'no'), "
        "('d', 'off')) AS c(item_id, status)"
    )
    rule = expectation(
        "expect_column_values_to_be_on_shelf",
        column="item_id",
        status_column="status",
        on_shelf_values=[good],
    )
    columns = {"item_id": ["a", "b", "c", "d"], "ts": [pd.Timestamp("2026-01-01")] * 4}
    assert on_duckdb(engine, columns, rule) == (4, 2)
    rows = engine.evidence("exposures", rule, ["item_id"], ["item_id"], 5)
    assert [row["item_id"] for row in rows] == off


def test_on_shelf_needs_a_time_or_status_column():
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


def test_a_single_column_is_enough(engine):
    rule = expectation("expect_columns_to_not_be_zero", column_list=["a"])
    assert both(engine, {"a": [1.0, 0.0, 2.0]}, rule) == (3, 1)


def test_numbers_that_a_log_holds_as_text_are_zero_only_if_they_are(engine):
    rule = expectation("expect_columns_to_not_be_zero", column_list=["a"])
    assert on_duckdb(engine, {"a": ["0.4", "1", "-0.0", "0", None, "1e-9"]}, rule) == (5, 2)


def test_missing_values_and_nan_are_no_zeros(engine):
    rule = expectation("expect_columns_to_not_be_zero", column_list=["a", "b"])
    columns = {"a": pa.array([None, math.nan, 0.0], from_pandas=False), "b": pa.array([1.0, 1.0, None])}
    assert on_duckdb(engine, columns, rule) == (3, 1)


@pytest.mark.parametrize(("zero_counts", "violations"), [(False, 3), (True, 4)])
def test_denormal_numbers_are_counted_and_an_exact_zero_only_if_asked(engine, zero_counts, violations):
    rule = expectation("expect_columns_to_not_underflow", column_list=["a"], zero_is_underflow=zero_counts)
    columns = {"a": [1.0, 5e-324, -1e-310, 2.225073858507201e-308, 2.2250738585072014e-308, 0.0]}
    assert both(engine, columns, rule) == (6, violations)


def test_the_smallest_number_can_be_that_of_a_32_bit_float(engine):
    rule = expectation("expect_columns_to_not_underflow", column_list=["a"], smallest=1.17549435e-38)
    assert both(engine, {"a": [1e-39, 1e-37]}, rule) == (2, 1)


def test_every_own_expectation_documents_its_arguments():
    for one in EXPECTATIONS:
        text = one.__doc__ or ""
        taken = set(one.__fields__) - set(one.__mro__[1].__fields__) - {"list_version"}
        assert "Arguments:" in text, one.__name__
        assert all(name in text for name in taken), one.__name__
