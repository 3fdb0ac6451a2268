"""How features are spread: bins by hand, every edge, hostile values, and against numpy on random columns."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.models.feature_profile import Bins, FeatureProfile, bins_of, compare, profiles
from monitor.statistics.distances import bin_counts, jensen_shannon, ks_of_counts, psi
from tests.metrics.worlds import embedded

NAN, INF = math.nan, math.inf
TINY = math.ulp(0.0)


def table(backend=None, name="rows", **columns):
    return (backend or embedded()).create_table(name, pa.table(columns))


def bins(column, type_=None, **options) -> Bins:
    (found,) = bins_of(table(f=pa.array(column, type_)), ["f"], **options)
    return found


def profile(values, of: Bins, type_=None) -> FeatureProfile:
    (found,) = profiles(table(f=pa.array(values, type_)), [of])
    return found


def test_numbers_are_binned_at_quantiles_and_missing_ones_counted():
    found = bins(range(9), bins=4)
    assert found == Bins("f", "number", edges=(2.0, 4.0, 6.0))
    current = profile([-INF, 2.0, 2.5, 6.0, 6.5, INF, None, NAN, 2.0], found)
    assert current.counts == (3, 1, 1, 2, 2)  # a value on an edge lies below it
    assert (current.rows, current.missing, current.null_share) == (9, 2, 2 / 9)
    assert (current.distinct, current.top, current.top_count, current.top_share) == (6, "2", 2, 2 / 9)


def test_a_value_that_fills_whole_bins_has_its_own_bin():
    nearly_always = bins([0.0] * 95 + [1.0, 2.0, 3.0, -4.0, -5.0])
    assert nearly_always.edges == (-TINY, 0.0)
    assert profile([0.0, -0.0, 0.5, -0.5], nearly_always).counts == (1, 2, 1, 0)
    flags = bins([False, True, False, True], pa.bool_(), bins=10)
    shares = [profile([flag] * 10, flags, pa.bool_()) for flag in (False, True)]
    assert jensen_shannon(shares[0].counts, shares[1].counts) == 1
    constant = bins([7] * 5)
    assert profile([6, 7, 8], constant).counts == (1, 1, 1, 0)


def test_edges_are_exact():
    of = Bins("f", "number", edges=(0.1 + 0.2, 1e300))
    assert profile([0.3, 0.1 + 0.2, math.nextafter(0.1 + 0.2, 1), 1e300, 1.1e300], of).counts == (2, 2, 1, 0)


@pytest.mark.parametrize("values", [[], [None, None], [NAN], [INF, -INF, None]])
def test_without_a_finite_number_there_is_one_bin_and_one_for_missing_values(values):
    found = bins(values, pa.float64())
    assert found == Bins("f", "number")
    assert profile([1.0, INF, None], found).counts == (2, 1)
    assert bins(range(5), bins=1).edges == ()


def test_text_has_a_bin_for_each_common_value_and_one_for_the_rest():
    found = bins(["b", "a", "c", "c", "", None], values=3)
    assert found == Bins("f", "text", values=("c", "", "a"))  # of those as common the smaller first
    current = profile(["a", "z", "z", "", None, "c"], found)
    assert current.counts == (1, 1, 1, 2, 1)
    assert (current.distinct, current.top, current.top_count) == (4, "z", 2)


def test_lists_are_read_as_text():
    found = bins([[1, 2], [1, 2], None], pa.list_(pa.int64()))
    assert (found.kind, found.values) == ("text", ("[1, 2]",))
    assert profile([[1, 2], [3]], found, pa.list_(pa.int64())).counts == (1, 1, 0)


def test_a_column_of_another_type_is_read_as_the_type_of_the_reference():
    numbers = Bins("f", "number", edges=(1.0,))
    assert profile(["1.0", "2", "x", "NaN", None], numbers, pa.string()).counts == (1, 1, 3)
    assert profile(["x"], numbers, pa.string()).missing == 1
    assert profile([1, 2, None], Bins("f", "text", values=("1",)), pa.int64()).counts == (1, 1, 1)


@pytest.mark.parametrize(
    ("values", "distinct", "top"),
    [
        ([], 0, None),
        ([None, NAN], 0, None),
        ([5.0, 5.0], 1, "5"),
        ([5.0, None], 1, "5"),
        ([5.0, 4.0], 2, "4"),
        ([0.0, -0.0], 1, "0"),
        ([INF, INF], 1, "inf"),
    ],
)
def test_profiles_of_few_values(values, distinct, top):
    found = profile(values, Bins("f", "number"), pa.float64())
    assert (found.distinct, found.top) == (distinct, top)
    if not values:
        assert (found.rows, found.null_share, found.top_share) == (0, None, None)


def test_whole_numbers_keep_all_digits():
    assert profile([2**60 + 1] * 2, Bins("f", "number")).top == str(2**60 + 1)


def test_distances_use_the_counts_and_text_has_no_ks():
    of = Bins("f", "number", edges=(1.0, 2.0))
    reference, current = FeatureProfile(of, (10, 20, 30, 0), 3), FeatureProfile(of, (5, 5, 5, 45), 3)
    found = compare(reference, current)
    assert found.psi == psi(reference.counts, current.counts)
    assert found.jensen_shannon == jensen_shannon(reference.counts, current.counts)
    assert found.ks == pytest.approx(0.75)  # what is missing lies beyond all bins
    text = Bins("f", "text", values=("a",))
    assert compare(FeatureProfile(text, (1, 0, 0), 1), FeatureProfile(text, (0, 1, 0), 1)).ks is None


def test_an_empty_side_has_no_distance_and_other_bins_are_an_error():
    of = Bins("f", "number")
    found = compare(FeatureProfile(of, (4, 0), 1), FeatureProfile(of, (0, 0), 0))
    assert (found.psi, found.jensen_shannon, found.ks) == (None, None, None)
    with pytest.raises(ValueError, match="other bins"):
        compare(
            FeatureProfile(of, (4, 0), 1), FeatureProfile(Bins("f", "number", edges=(0.0,)), (0, 4, 0), 1)
        )


def test_a_feature_that_the_rows_lack_is_an_error():
    with pytest.raises(ValueError, match="no column 'g'"):
        profiles(table(f=[1]), [Bins("g", "number")])


HOSTILE = ['a"b', "x;drop table rows", "it's", "a.b", "`", "\\", "żółć 🎯", "c_0", "rows", "n_0", " "]


def test_hostile_names_and_values_are_only_text():
    odd = [*HOSTILE, "line\nbreak", "nul\0byte", "x" * 5000]
    columns = {name: [number] * len(odd) for number, name in enumerate(HOSTILE)}
    rows = table(**columns, text=odd)
    found = bins_of(rows, [*HOSTILE, "text"])
    assert [one.feature for one in found] == [*HOSTILE, "text"]
    assert sorted(found[-1].values) == sorted([*HOSTILE, "line\nbreak"])
    seen = profiles(rows, found)
    assert seen[-1].counts == (1,) * len(found[-1].values) + (2, 0)
    assert [one.top for one in seen[:-1]] == [str(number) for number in range(len(HOSTILE))]


def test_more_features_than_one_query_takes_keep_their_order():
    columns = {f"f{i}": [f"v{i}"] * 3 if i % 7 == 0 else [i, i, i + 1] for i in range(60)}
    rows = table(**columns)
    found = profiles(rows, bins_of(rows, list(columns)))
    assert [one.feature for one in found] == list(columns)
    assert [one.top for one in found] == [f"v{i}" if i % 7 == 0 else str(i) for i in range(60)]
    assert all(compare(one, one).psi == 0 for one in found)


VALUES = st.one_of(
    st.none(),
    st.sampled_from([NAN, INF, -INF, 0.0, -0.0, 1.0]),
    st.floats(-100, 100),
    st.integers(-3, 3).map(float),
)
BACKEND = embedded()


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=40), st.lists(VALUES, max_size=40), st.integers(1, 12))
def test_random_columns_match_numpy(reference, current, parts):
    sides = [
        BACKEND.create_table(f"side_{n}", pa.table({"f": pa.array(values, pa.float64())}), overwrite=True)
        for n, values in enumerate((reference, current))
    ]
    (of,) = bins_of(sides[0], ["f"], bins=parts)
    finite = [value for value in reference if value is not None and math.isfinite(value)]
    if finite:
        quantiles = np.quantile(finite, np.arange(1, parts) / parts)
        assert np.allclose(np.unique(np.array(of.edges).round(9)), np.unique(quantiles.round(9)), atol=2e-9)
    (before,), (after,) = (profiles(side, [of]) for side in sides)
    for values, found in ((reference, before), (current, after)):
        there = [value for value in values if value is not None and not math.isnan(value)]
        assert found.counts == (*bin_counts(there, of.edges).tolist(), len(values) - len(there))
        assert found.distinct == len(set(there))
        assert found.top_count == max((there.count(value) for value in there), default=0)
    assert compare(before, after).ks == ks_of_counts(before.counts, after.counts)


def test_a_profile_without_description_has_the_same_counts_and_runs_no_query_for_values():
    rows = table(age=pa.array([10.0, 20.0, 20.0, None]))
    of = [Bins("age", "number", edges=(15.0,))]
    (whole,), (plain,) = profiles(rows, of), profiles(rows, of, described=False)
    assert plain.counts == whole.counts == (1, 2, 1)
    assert (whole.distinct, whole.top) == (2, "20")
    assert (plain.distinct, plain.top, plain.top_count) == (0, None, 0)
