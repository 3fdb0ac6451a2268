"""Features in one form: numbers, text, what is missing, what is infinite, and the bins of all that."""

from __future__ import annotations

import math

import numpy as np
import pytest

from monitor.models.diagnosis.columns import part, read_column


def texts(*values):
    return np.array(values, dtype=object)


def test_text_gets_the_same_number_on_all_sides():
    column = read_column("city", {"better": texts("b", "a", None), "worse": texts("a", "z", float("nan"))})
    assert column.levels == ("a", "b", "z")
    assert column.sides["better"][:2].tolist() == [1, 0]
    assert column.sides["worse"][:2].tolist() == [0, 2]
    assert all(math.isnan(column.sides[side][2]) for side in ("better", "worse"))


def test_numbers_on_one_side_and_text_on_the_other_compare_as_text():
    column = read_column("x", {"better": np.array([1.5, np.nan, 3.0]), "worse": texts("3", "high", "low")})
    assert column.levels == ("1.5", "3", "high", "low")
    assert column.sides["better"][[0, 2]].tolist() == [0, 1]
    assert math.isnan(column.sides["better"][1])
    assert column.sides["worse"].tolist() == [1, 2, 3]


def test_an_odd_text_does_not_make_numbers_text():
    column = read_column("x", {"better": np.array([31.0, 0.5]), "worse": texts("31", "5e-1", "n/a", None)})
    assert column.levels is None
    assert column.sides["worse"][:2].tolist() == [31.0, 0.5]
    assert np.isnan(column.sides["worse"][2:]).all()


def test_text_is_text_if_the_other_side_is_missing():
    column = read_column("x", {"better": texts(None, None), "worse": texts("31", "52")})
    assert column.levels == ("31", "52")


def test_a_side_that_is_all_missing_does_not_make_numbers_text():
    column = read_column("x", {"better": np.array([0.5, 1.5]), "worse": texts(None, None)})
    assert column.levels is None
    assert np.isnan(column.sides["worse"]).all()
    assert read_column("x", {"better": texts(1, None, 2.5)}).sides["better"][[0, 2]].tolist() == [1.0, 2.5]


def test_integers_and_booleans_are_numbers():
    assert read_column("x", {"better": np.array([True, False])}).sides["better"].tolist() == [1, 0]


def test_original_values_are_restored():
    column = read_column("city", {"better": texts("b", None, "a")})
    assert column.original(column.sides["better"]).tolist() == ["b", None, "a"]


def test_evidence_shortens_a_long_text():
    column = read_column("x", {"better": texts("y" * 500)})
    assert column.plain(0.0) == "y" * 60
    assert column.plain(math.nan) is None
    assert read_column("x", {"better": np.array([2.5])}).plain(2.5) == 2.5


@pytest.mark.parametrize(
    ("values", "varies"),
    [
        ([], False),
        ([1.0], False),
        ([1.0, 1.0], False),
        ([np.nan, np.nan], False),
        ([1.0, np.nan], True),
        ([1.0, 2.0], True),
        ([np.inf, np.inf], False),
    ],
)
def test_missing_counts_as_a_value(values, varies):
    assert read_column("x", {"better": np.array(values, float)}).varies("better") is varies


def test_a_side_without_the_feature_does_not_vary():
    assert not read_column("x", {"better": np.array([1.0, 2.0])}).varies("worse")


def test_bins_of_numbers_are_ordered_and_of_about_equal_size():
    values = np.random.default_rng(0).normal(size=5000)
    codes = part(read_column("x", {"better": values}), 10).codes(np.sort(values))
    assert (np.diff(codes.astype(int)) >= 0).all()
    counts = np.bincount(codes)[1:]
    assert len(counts) == 10
    assert counts.min() > 450


def test_a_frequent_value_has_its_own_bin():
    values = np.r_[np.full(300, -1.0), np.random.default_rng(0).normal(size=3000)]
    bins = part(read_column("x", {"better": values}), 10)
    below, at, above = bins.codes(np.array([-1.0001, -1.0, -0.9999])).tolist()
    assert below < at < above


def test_infinite_values_are_in_the_outer_bins_and_missing_ones_in_the_first():
    bins = part(read_column("x", {"better": np.arange(100.0)}), 4)
    assert bins.codes(np.array([np.nan, -np.inf, np.inf])).tolist() == [0, 1, bins.size - 1]


def test_bins_exist_for_only_missing_values_and_for_no_rows():
    for values in (np.full(5, np.nan), np.empty(0)):
        bins = part(read_column("x", {"better": values}), 4)
        assert bins.codes(np.array([np.nan, 3.0])).tolist() == [0, 1]


def test_rare_texts_share_the_last_bin():
    column = read_column("x", {"better": texts(*["a"] * 5, *["b"] * 4, "c", "d", None)})
    bins = part(column, 3)
    assert bins.codes(column.sides["better"]).tolist() == [1] * 5 + [2] * 4 + [3, 3, 0]


@pytest.mark.parametrize(
    ("online", "offline", "differs"),
    [
        (1.0, 1.0, False),
        (1.0, 1.0005, False),  # within a thousandth of the larger
        (1.0, 1.1, True),
        (np.nan, np.nan, False),
        (np.nan, 1.0, True),
        (np.inf, np.inf, False),
        (np.inf, 1e300, True),
        (np.inf, -np.inf, True),
        (0.0, 0.0, False),
    ],
)
def test_pairs_differ_beyond_the_tolerance_and_an_infinity_equals_only_itself(online, offline, differs):
    column = read_column("feature", {"online": np.array([online]), "offline": np.array([offline])})
    assert column.differs(0.001).tolist() == [differs]
