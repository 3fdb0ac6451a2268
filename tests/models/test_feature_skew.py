"""Features online against offline: by hand, every edge, hostile names, and pairs compared one by one."""

from __future__ import annotations

import math
from datetime import datetime

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.models.feature_skew import FeatureSkew, Pairing, Skew, measure_skew
from tests.metrics.worlds import embedded

NAN, INF = math.nan, math.inf
KEYS = ("request_id", "item_id")


def skew_of(online: dict, offline: dict, features, keys=("request_id",), backend=None, **options) -> Skew:
    backend = backend or embedded()
    tables = [
        backend.create_table(name, pa.table(columns))
        for name, columns in (("online_rows", online), ("offline_rows", offline))
    ]
    return measure_skew(*tables, features, keys, **options)


def one(online_values, offline_values, type_=None, other_type=None, **options) -> FeatureSkew:
    """The skew of a feature `f` whose values are paired in the order given."""
    ids = [f"r{number}" for number in range(len(online_values))]
    sides = [
        {"request_id": ids, "f": pa.array(values, kind)}
        for values, kind in ((online_values, type_), (offline_values, other_type or type_))
    ]
    (found,) = skew_of(*sides, ["f"], **options).features
    return found


def counts(found: FeatureSkew) -> tuple[int, int, int]:
    return found.missing, found.extra, found.different


def test_eight_pairs_by_hand():
    found = one([1.0, None, NAN, 3.0, 0.0, 0.0, 7.0, None], [1.0, 5.0, 5.0, None, 2.0, 4.0, 8.0, NAN])
    assert counts(found) == (2, 1, 3)
    assert (found.pairs, found.wrong) == (8, 6)
    assert (found.commonest, found.commonest_count) == ("0", 2)


@pytest.mark.parametrize(
    ("a", "b", "wrong"),
    [
        (1.0, 1.0 + 1e-7, 0),
        (1.0, 1.0 + 1e-5, 1),
        (-1e300, 1e300, 1),
        (1.7e308, -1.7e308, 1),  # their difference is beyond float64
        (0.0, 1e-300, 1),  # no share of anything
        (0.0, -0.0, 0),
        (INF, INF, 0),
        (INF, -INF, 1),
        (INF, 1e308, 1),
        (1e308, -INF, 1),
    ],
)
def test_numbers_are_equal_within_the_tolerance_and_infinities_only_to_themselves(a, b, wrong):
    assert counts(one([a], [b])) == (0, 0, wrong)
    assert counts(one([b], [a])) == (0, 0, wrong)


def test_the_tolerance_is_a_share_of_the_larger_number_and_inclusive():
    assert one([2.0], [4.0], tolerance=0.5).wrong == 0
    assert one([2.0], [4.1], tolerance=0.5).wrong == 1
    assert one([1.0], [math.nextafter(1.0, 2)], tolerance=0).wrong == 1


@pytest.mark.parametrize(
    ("a", "b", "types", "wrong"),
    [
        ("x", "x", (pa.string(), pa.string()), 0),
        ("x", "X", (pa.string(), pa.string()), 1),
        ("", None, (pa.string(), pa.string()), 1),  # empty text is a value
        (2**60, 2**60 + 1, (pa.int64(), pa.int64()), 1),  # alike as float64
        (5, 5.0, (pa.int64(), pa.float64()), 0),
        (True, False, (pa.bool_(), pa.bool_()), 1),
        (True, 1, (pa.bool_(), pa.int64()), 0),
        ("5.0", 5.0, (pa.string(), pa.float64()), 0),
        ("five", 5.0, (pa.string(), pa.float64()), 1),
        ([1, 2], [1, 2], (pa.list_(pa.int64()), pa.list_(pa.int64())), 0),
        ([1, 2], [2, 1], (pa.list_(pa.int64()), pa.list_(pa.int64())), 1),
        (datetime(2026, 1, 1), datetime(2026, 1, 2), (pa.timestamp("us"), pa.timestamp("us")), 1),
        (datetime(2026, 1, 1), "x", (pa.timestamp("us"), pa.string()), 1),
    ],
)
def test_values_of_any_type_are_compared(a, b, types, wrong):
    assert one([a], [b], *types).wrong == wrong
    assert one([b], [a], *types[::-1]).wrong == wrong


def test_text_that_is_not_a_number_is_different_and_not_missing():
    assert counts(one(["five", "NaN", None], [5.0, 5.0, 5.0], pa.string(), pa.float64())) == (1, 0, 2)


def test_of_equally_common_wrong_values_the_smallest_is_given():
    assert one(["b", "a", "c"], ["x", "x", "c"]).commonest == "a"
    missing = one([None, None], [1.0, 2.0], pa.float64())
    assert (missing.wrong, missing.commonest, missing.commonest_count) == (2, None, 0)


def test_the_commonest_value_is_queried_for_the_worst_features_only():
    ids = ["a", "b", "c"]
    online = {"request_id": ids, "f": [1, 2, 0], "g": [0, 0, 0], "h": [1, 2, 3]}
    offline = {"request_id": ids, "f": [1, 2, 3], "g": [1, 2, 3], "h": [1, 2, 3]}
    found = skew_of(online, offline, ["f", "g", "h"], looked_up=1).features
    assert [each.wrong for each in found] == [1, 3, 0]
    assert [each.commonest for each in found] == [None, "0", None]


def test_ambiguous_and_missing_keys_are_left_out_and_counted():
    online = {"request_id": ["a", "b", "b", "c", "d", None, "e", "e"], "f": [1, 2, 2, 3, 4, 9, 5, 5]}
    offline = {"request_id": ["a", "b", "c", "c", None, None, "x", "d"], "f": [1, 7, 7, 7, 9, 9, 9, 0]}
    found = skew_of(online, offline, ["f"])
    # b is twice online, c twice offline, e twice online but not offline at all
    assert found.pairing == Pairing(("request_id",), 8, 8, pairs=2, unknown=3, ambiguous=2)
    assert counts(found.features[0]) == (0, 0, 1)


def test_a_nan_in_a_key_pairs_with_nothing():
    online = {"request_id": [1.0, NAN], "f": [1, 2]}
    found = skew_of(online, {"request_id": [1.0, NAN], "f": [1, 3]}, ["f"])
    assert (found.pairing.pairs, found.pairing.unknown, found.features[0].wrong) == (1, 2, 0)


def test_keys_of_two_types_pair_as_text_and_a_key_that_one_side_lacks_is_not_used():
    online = {"request_id": [1, 2], "item_id": ["x", "y"], "f": [1, 2]}
    found = skew_of(online, {"request_id": ["1", "2"], "f": [1, 3]}, ["f"], KEYS)
    assert found.pairing.keys == ("request_id",)
    assert (found.pairing.pairs, found.features[0].different) == (2, 1)


@pytest.mark.parametrize(
    ("online", "offline", "keys"),
    [
        ({"request_id": pa.array([], "string"), "f": pa.array([], "int64")}, None, ("request_id",)),
        ({"request_id": ["z"], "f": [1]}, None, ("request_id",)),
        ({"request_id": ["a"], "f": [1]}, None, ("user_id",)),
    ],
)
def test_without_pairs_nothing_is_wrong(online, offline, keys):
    found = skew_of(online, {"request_id": ["a"], "f": [1]}, ["f"], keys)
    assert found.pairing.pairs == 0
    assert (found.features[0].wrong, found.features[0].pairs) == (0, 0)
    assert bool(found.pairing.keys) == (keys == ("request_id",))


def test_a_wrong_value_of_an_older_time_is_stale():
    times = [[datetime(2026, 1, day) for day in days] for days in ((1, 1, 3, 1), (2, 2, 2, 2))]
    times[0][3] = None
    online = {"request_id": ["a", "b", "c", "d"], "f": [1, 2, 3, 4], "at": times[0]}
    offline = {"request_id": ["a", "b", "c", "d"], "f": [1, 7, 7, 7], "at": times[1]}
    (found,) = skew_of(online, offline, ["f"], times={"f": "at", "of_another": "nowhere"}).features
    assert (found.wrong, found.stale) == (3, 1)  # a is older and right, c newer, d of an unknown time
    (without,) = skew_of(online, offline, ["f"]).features
    assert without.stale is None


def test_a_feature_that_a_side_lacks_is_an_error():
    with pytest.raises(ValueError, match="the offline rows have no column 'f'"):
        skew_of({"request_id": ["a"], "f": [1]}, {"request_id": ["a"]}, ["f"])


HOSTILE = ['a"b', "x;drop table online_rows", "it's", "a.b", "`", "\\", "żółć 🎯", "k_0", "a_0", "left", " "]


def test_hostile_names_and_values_are_only_text():
    values = {name: [number, 0] for number, name in enumerate(HOSTILE, 1)}
    online = {'key"; --': ["'; drop", "🎯\\"], **values, "text": ["'\"; --", "\\"]}
    offline = {
        'key"; --': ["'; drop", "🎯\\"],
        **{n: [v[0], 5] for n, v in values.items()},
        "text": ["", "\\"],
    }
    found = skew_of(online, offline, [*HOSTILE, "text"], ['key"; --'])
    assert found.pairing.pairs == 2
    assert [each.feature for each in found.features] == [*HOSTILE, "text"]
    assert all(counts(each) == (0, 0, 1) for each in found.features)
    assert found.features[-1].commonest == "'\"; --"


def test_more_features_than_one_query_takes_keep_their_order():
    names = [f"f{number}" for number in range(60)]
    online = {"request_id": ["a", "b"], **{name: [0, i] for i, name in enumerate(names)}}
    offline = {"request_id": ["b", "a"], **{name: [i, i % 3] for i, name in enumerate(names)}}
    found = skew_of(online, offline, names)
    assert [each.feature for each in found.features] == names
    assert [each.wrong for each in found.features] == [int(i % 3 > 0) for i in range(60)]


NUMBERS = st.sampled_from([None, NAN, INF, -INF, 0.0, -0.0, 1.0, 1.0 + 1e-8, 1.1, -1.0, 1e308, -1e308])
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", None]), NUMBERS), max_size=8)


def brute(online: list, offline: list) -> tuple[int, tuple[int, int, int]]:
    """The pairs, and what is wrong with them, found one by one."""
    sides = [[key for key, _ in rows] for rows in (online, offline)]
    pairs = [
        (a, b)
        for key, a in online
        for other, b in offline
        if key is not None and key == other and sides[0].count(key) == sides[1].count(key) == 1
    ]
    there = [tuple(v is not None and not math.isnan(v) for v in pair) for pair in pairs]
    missing = sum(t == (False, True) for t in there)
    extra = sum(t == (True, False) for t in there)
    different = sum(
        t == (True, True) and not math.isclose(a, b, rel_tol=1e-6)
        for (a, b), t in zip(pairs, there, strict=True)
    )
    return len(pairs), (missing, extra, different)


BACKEND = embedded()


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_random_tables_match_a_comparison_of_every_pair(online, offline):
    tables = []
    for number, rows in enumerate((online, offline)):
        arrays = [pa.array([row[i] for row in rows], (pa.string(), pa.float64())[i]) for i in (0, 1)]
        data = pa.table(arrays, names=["request_id", "f"])
        tables.append(BACKEND.create_table(f"side_{number}", data, overwrite=True))
    found = measure_skew(*tables, ["f"], ["request_id"])
    pairs, wrong = brute(online, offline)
    assert (found.pairing.pairs, counts(found.features[0])) == (pairs, wrong)


def test_tables_without_a_name_can_be_compared():
    rows = ibis.memtable({"request_id": ["a", "b"], "f": [1.0, 2.0]})
    found = measure_skew(rows, rows.mutate(f=rows.f * 2), ["f"], ["request_id"])
    assert counts(found.features[0]) == (0, 0, 2)
