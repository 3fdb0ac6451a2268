"""The columns that rules ask of a list, counted by hand and against plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.metrics.shared import Shared
from monitor.rules.list_tables import LIST_COLUMNS, arrivals, with_list_columns

TS = ibis.literal("2026-01-01 10:00:00").cast("timestamp")


@pytest.fixture(scope="module")
def backend():
    return ibis.duckdb.connect()


TYPES = pa.schema(
    [
        ("request_id", pa.string()),
        ("user_id", pa.string()),
        ("item_id", pa.string()),
        ("position", pa.int64()),
        ("score", pa.float64()),
    ]
)


def lists(backend, rows, catalog=None, wanted=tuple(LIST_COLUMNS), leave_out=()):
    """The extended `requests` of (request, item, position, score) rows, by request."""
    table = pa.Table.from_pylist(
        [{"request_id": r, "user_id": "u", "item_id": i, "position": p, "score": s} for r, i, p, s in rows],
        TYPES,
    ).drop_columns(list(leave_out))
    exposures = backend.create_table("exposures", table, overwrite=True).mutate(ts=TS)
    known = backend.create_table("catalog", catalog, overwrite=True) if catalog is not None else None
    found = with_list_columns(Shared(exposures, catalog=known), wanted).to_pyarrow().to_pylist()
    return {row["request_id"]: row for row in found}


def column(backend, rows, name, **options):
    return {r: row.get(name) for r, row in lists(backend, rows, **options).items()}


def test_duplicates_count_the_repeated_items_of_a_list(backend):
    rows = [("none", None, None, None)]
    rows += [("a", item, n, 0.5) for n, item in enumerate("xyz")]
    rows += [("b", item, n, 0.5) for n, item in enumerate("xxyyy")]
    assert column(backend, rows, "duplicates") == {"none": None, "a": 0, "b": 3}


def test_position_gaps_are_positions_missing_or_taken_twice(backend):
    placed = {"good": [1, 2, 3], "from_zero": [0, 1], "hole": [1, 2, 6], "twice": [2, 2, 3], "one": [7]}
    rows = [(name, f"i{n}", p, 0.5) for name, taken in placed.items() for n, p in enumerate(taken)]
    rows.append(("unplaced", "i", None, 0.5))
    assert column(backend, rows, "position_gaps") == {
        "good": 0, "from_zero": 0, "hole": 3, "twice": 1, "one": 0, "unplaced": None
    }  # fmt: skip


def test_score_inversions_are_scores_that_rise_with_the_position(backend):
    scored = {
        "falling": [0.9, 0.5, 0.5, 0.1],
        "rising": [0.1, 0.5, 0.9],
        "one_up": [0.9, 0.1, 0.5],
        "nan": [0.9, math.nan, 0.5],
        "single": [0.5],
        "unscored": [None, None],
    }
    rows = [(name, f"i{n}", n, s) for name, given in scored.items() for n, s in enumerate(given)]
    assert column(backend, rows, "score_inversions") == {
        "falling": 0, "rising": 2, "one_up": 1, "nan": 0, "single": None, "unscored": None
    }  # fmt: skip


def test_items_at_the_same_position_are_no_inversion_in_any_reading_order(backend):
    for order in itertools.permutations([("i1", 1, 0.9), ("i2", 1, 0.5), ("i3", 2, 0.4)]):
        rows = [("r", item, position, score) for item, position, score in order]
        assert column(backend, rows, "score_inversions") == {"r": 0}


def test_lists_with_interleaved_rows_count_like_lists_in_order(backend):
    placed = {
        "a": [(1, 0.9), (2, 0.5), (3, 0.7)],
        "b": [(4, 0.9), (5, 0.8), (7, 0.8)],
        "c": [(1, 0.1), (2, 0.2)],
    }
    rows = [(name, f"i{n}", *one) for name, given in placed.items() for n, one in enumerate(given)]
    wanted = {"a": (0, 1), "b": (1, 0), "c": (0, 1)}
    for step in range(1, len(rows)):  # also each row after the same position of another list
        mixed = sorted(rows, key=lambda row: (rows.index(row) * step) % len(rows))
        found = lists(backend, mixed)
        assert {r: (row["position_gaps"], row["score_inversions"]) for r, row in found.items()} == wanted


def test_positions_far_apart_in_different_lists_are_no_error(backend):
    rows = [("a", "i", -(2**63), 0.5), ("b", "i", 2**63 - 1, 0.5)]
    assert column(backend, rows, "position_gaps") == {"a": 0, "b": 0}


def test_repeats_are_counted_in_long_lists_too(backend):
    rows = [("long", f"i{n % 40}", n, 0.5) for n in range(50)] + [
        ("short", f"i{n % 4}", n, 0.5) for n in range(9)
    ]
    assert column(backend, rows, "duplicates") == {"long": 10, "short": 5}


def test_scores_all_equal_needs_two_numbers(backend):
    scored = {"same": [0.5, 0.5], "different": [0.5, 0.4], "single": [0.5], "nan": [math.nan, math.nan]}
    rows = [(name, f"i{n}", n, s) for name, given in scored.items() for n, s in enumerate(given)]
    assert column(backend, rows, "scores_all_equal") == {
        "same": True, "different": False, "single": None, "nan": None
    }  # fmt: skip


def test_category_max_counts_the_most_frequent_category(backend):
    catalog = pa.table({"item_id": ["a", "b", "c", "d"], "category": ["x", "x", "y", None]})
    rows = [("r", item, n, 0.5) for n, item in enumerate("aabcd?")] + [("s", "d", 1, 0.5)]
    assert column(backend, rows, "category_max", catalog=catalog) == {"r": 3, "s": None}


def test_an_item_with_several_categories_counts_once_for_each(backend):
    catalog = pa.table({"item_id": ["a", "b", "c"], "category": [["x", "y", "x"], ["y"], []]})
    rows = [("r", item, n, 0.5) for n, item in enumerate("abc")]
    assert column(backend, rows, "category_max", catalog=catalog) == {"r": 2}


def test_only_wanted_columns_are_made_and_only_those_that_the_log_can_give(backend):
    rows = [("r", "i", 1, 0.5)]
    made = {name for name in lists(backend, rows, wanted=["duplicates"])["r"] if name in LIST_COLUMNS}
    assert made == {"duplicates"}
    assert not LIST_COLUMNS.keys() & lists(backend, rows, wanted=[])["r"].keys()
    left = lists(backend, rows, leave_out=["score"])["r"].keys() & LIST_COLUMNS.keys()
    assert left == {"duplicates", "position_gaps"}
    left = lists(backend, rows, leave_out=["score", "position"])["r"].keys() & LIST_COLUMNS.keys()
    assert left == {"duplicates"}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("rst"),
            st.sampled_from("abcde"),
            st.one_of(st.none(), st.integers(0, 6)),
            st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0, math.nan])),
        ),
        min_size=1,
        max_size=25,
    )
)
def test_random_lists_count_as_in_plain_python(rows):
    found = lists(ibis.duckdb.connect(), rows)
    for request, row in found.items():
        mine = [one for one in rows if one[0] == request]
        assert row["duplicates"] == len(mine) - len({item for _, item, _, _ in mine})
        positions = Counter(p for _, _, p, _ in mine if p is not None)
        if positions:
            missing = max(positions) - min(positions) + 1 - len(positions)
            assert row["position_gaps"] == missing + sum(n - 1 for n in positions.values())
        else:
            assert row["position_gaps"] is None
        numbers = [s for *_, s in mine if s is not None]
        placed = [
            (p, s if s is not None and not math.isnan(s) else None) for _, _, p, s in mine if p is not None
        ]
        placed.sort(key=lambda one: (one[0], math.inf if one[1] is None else -one[1]))
        rises = sum(
            a is not None and b is not None and b > a for (_, a), (_, b) in itertools.pairwise(placed)
        )
        assert row["score_inversions"] == (rises if len(numbers) > 1 else None)


def test_arrivals_are_the_exposures_and_the_rows_from_the_future(backend):
    shown = pa.table({"item_id": ["a"], "user_id": [1], "extra": ["e"]})
    exposures = backend.create_table("shown", shown, overwrite=True).mutate(ts=TS)
    late = pa.table({"item_id": ["b"], "user_id": [2]})
    future = backend.create_table("late", late, overwrite=True).mutate(
        ts=TS, written_at=ibis.literal("2026-01-01 09:59:00").cast("timestamp")
    )
    both = arrivals(exposures, future).order_by("item_id").to_pyarrow().to_pylist()
    assert [(row["item_id"], row["ahead_seconds"], row["extra"]) for row in both] == [
        ("a", 0.0, "e"), ("b", 60.0, None)
    ]  # fmt: skip
    assert arrivals(exposures, None).to_pyarrow().to_pylist()[0]["ahead_seconds"] == 0.0
