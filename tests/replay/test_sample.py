"""A sample has whole users, keeps the proportions of scenes and times, and is the same at each run."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import duckdb
import ibis
import numpy as np
import pytest

from monitor.engines.duckdb import Engine
from monitor.replay.sample import requests_of, sampled

START = datetime(2026, 1, 1)


def log(users=400, per_user=6, seed=3):
    """Exposures of requests: half of the users ask at home in the morning, a tenth in the cart at night."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        scene, hour = [("home", 7), ("feed", 14), ("cart", 22)][
            0 if user % 10 < 5 else 1 if user % 10 < 9 else 2
        ]
        for number in range(int(rng.integers(1, per_user))):
            at = START + timedelta(
                days=int(rng.integers(0, 5)), hours=hour, seconds=int(rng.integers(0, 3000))
            )
            for item in range(int(rng.integers(1, 4))):
                rows.append(
                    {"request_id": f"r{user}-{number}", "user_id": f"u{user}", "ts": at, "scene": scene,
                     "item_id": f"i{item}", "device": "app"}
                )  # fmt: skip
    return rows


@pytest.fixture
def engine():
    return Engine(duckdb.connect())


def drawn(engine, rows, users=None, seed=0, first=None, last=None):
    table = engine.create("log", ibis.memtable(rows))
    return sampled(engine, requests_of(table, first, last), users, seed)


def rows_of(sample):
    return sample.table.to_pyarrow().to_pylist()


def test_all_users_are_all_requests_in_the_order_of_time(engine):
    rows = log()
    found = rows_of(drawn(engine, rows))
    assert {one["request_id"] for one in found} == {one["request_id"] for one in rows}
    assert len(found) == len({one["request_id"] for one in rows})
    assert [one["ts"] for one in found] == sorted(one["ts"] for one in found)
    lengths = Counter(one["request_id"] for one in rows)
    assert all(one["list_length"] == lengths[one["request_id"]] and one["device"] == "app" for one in found)


@pytest.mark.parametrize("wanted", [1, 7, 40, 399, 400])
def test_a_sample_has_so_many_users_with_all_of_their_requests(engine, wanted):
    rows = log()
    sample = drawn(engine, rows, wanted)
    found = rows_of(sample)
    users = {one["user_id"] for one in found}
    assert len(users) == wanted == sample.sampled_users
    assert sample.users == 400
    assert {one["request_id"] for one in found} == {
        one["request_id"] for one in rows if one["user_id"] in users
    }
    assert sample.sampled_requests == len(found)


def test_a_share_of_the_users_may_be_asked_for(engine):
    assert drawn(engine, log(), Fraction(10, 100)).sampled_users == 40
    assert drawn(engine, log(), Fraction(1, 10_000)).sampled_users == 1
    assert drawn(engine, log(), 10_000).sampled_users == 400


def test_the_strata_keep_their_proportions_to_one_user(engine):
    for seed in range(5):
        found = rows_of(drawn(engine, log(), 40, seed))
        scenes = Counter(scene for _, scene in {(one["user_id"], one["scene"]) for one in found})
        for scene, wanted in (("home", 20), ("feed", 16), ("cart", 4)):
            assert abs(scenes[scene] - wanted) <= 1


def test_the_strata_are_reported(engine):
    sample = drawn(engine, log(), 40)
    assert [(one.scene, one.hours) for one in sample.strata] == [
        ("cart", "18-24"), ("feed", "12-18"), ("home", "06-12"),
    ]  # fmt: skip
    assert sum(one.requests for one in sample.strata) == sample.requests
    assert sum(one.sampled for one in sample.strata) == sample.sampled_requests


def test_a_seed_gives_the_same_users_each_time_and_another_seed_others(engine):
    rows = log()

    def users(seed):
        return {one["user_id"] for one in rows_of(drawn(Engine(duckdb.connect()), rows, 40, seed))}

    assert users(1) == users(1)
    assert len(users(1) & users(2)) < 20
    # Every user can be drawn.
    assert len(set().union(*(users(seed) for seed in range(60)))) > 380


def test_the_order_of_the_log_does_not_matter(engine):
    rows = log()
    assert rows_of(drawn(engine, rows, 40)) == rows_of(drawn(engine, rows[::-1], 40))


def test_requests_without_a_user_are_units_of_their_own(engine):
    rows = [row | {"user_id": None} for row in log(20)] + log(20)
    for row in rows[: len(rows) // 2]:
        row["request_id"] += "-nobody"
    sample = drawn(engine, rows)
    nobody = {one["request_id"] for one in rows if one["user_id"] is None}
    assert sample.users == 20 + len(nobody)
    assert sample.without_user == sample.sampled_without_user == len(nobody)
    assert sum(one["user_id"] is None for one in rows_of(sample)) == len(nobody)


def test_a_span_is_half_open(engine):
    rows = [
        {"request_id": f"r{n}", "user_id": "u", "ts": START + timedelta(hours=n), "item_id": "a"}
        for n in range(5)
    ]
    begin = START.replace(tzinfo=UTC)
    sample = drawn(engine, rows, first=begin + timedelta(hours=1), last=begin + timedelta(hours=3))
    assert [one["request_id"] for one in rows_of(sample)] == ["r1", "r2"]
    assert drawn(engine, rows, first=begin + timedelta(days=9)) is None


def test_empty_lists_and_null_requests(engine):
    rows = [
        {"request_id": "r1", "user_id": "u", "ts": START, "item_id": None},
        {"request_id": None, "user_id": "u", "ts": START, "item_id": "a"},
    ]
    (one,) = rows_of(drawn(engine, rows))
    assert (one["request_id"], one["list_length"]) == ("r1", 0)


@pytest.mark.parametrize("name", ["list_length", "List_Length", "by", "having", "self", "metrics"])
def test_a_column_of_any_name_is_kept_and_its_value_counts(engine, name):
    rows = [{"request_id": "r1", "user_id": "u", "ts": START, "item_id": item, name: 7} for item in "ab"]
    (one,) = rows_of(drawn(engine, rows))
    assert one[name] == 7
    assert one.get("list_length", 7) == (2 if name not in ("list_length", "List_Length") else 7)


def test_a_request_with_two_users_gives_the_same_one_each_time(engine):
    rows = [{"request_id": "r1", "user_id": user, "ts": START, "item_id": "a"} for user in ("b", "a", "c")]
    assert [one["user_id"] for one in rows_of(drawn(engine, rows))] == ["a"]
