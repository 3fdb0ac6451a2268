"""Who is in which arm, and what the arms did: worked by hand, and against a plain loop over users."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from monitor.core.results import Window
from monitor.experiments import specs
from monitor.experiments.queries import (
    arm_sums,
    assigned,
    by_user,
    changes,
    in_arms,
    in_both,
    mixed,
    once_each,
    per_bucket,
    totals,
    unknown_arms,
)
from monitor.metrics.shared import Shared
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.metrics import MetricSettings
from monitor.statistics.intervals import Interval
from tests.metrics.worlds import START, embedded, table, timed

ARMS = ("a", "b")
HOURS = 6


def rows_of(expression) -> list[dict]:
    return expression.to_pyarrow().to_pylist()


def pairs_of(seen: list[tuple[str, str, int]]):
    """(user, arm, window) as `once_each` gives them."""
    rows = [{"user_id": user, "arm": arm, "first": first} for user, arm, first in seen]
    types = {"user_id": pa.string(), "arm": pa.string(), "first": pa.int64()}
    return once_each(table(embedded(), "kept", rows, ["user_id", "arm", "first"], types))


def steps_of(seen: list[tuple[str, str, int]]) -> list[dict]:
    pairs = pairs_of(seen)
    return rows_of(changes(pairs, by_user(pairs, ARMS), ARMS))


def counts_at(seen: list[tuple[str, str, int]], window: int) -> dict[str | None, int]:
    """The users of each arm by the end of a window, by a plain loop."""
    arms = defaultdict(set)
    for user, arm, first in seen:
        if first <= window:
            arms[user].add(arm)
    counts: dict[str | None, int] = defaultdict(int)
    for found in arms.values():
        if len(found) == 1:
            (arm,) = found
            counts[arm if arm in ARMS else None] += 1
    return {arm: n for arm, n in counts.items() if n}


def test_a_user_joins_an_arm_and_leaves_it_when_seen_in_another():
    seen = [("u", "a", 3), ("u", "a", 5), ("v", "a", 3), ("v", "b", 4), ("w", "a", 2), ("w", "b", 2)]
    found = {(r["arm"], r["at"]): r["change"] for r in steps_of(seen)}
    assert found == {("a", 3): 2, ("a", 4): -1}  # w was in both from the first on
    (row,) = rows_of(totals(by_user(pairs_of(seen), ARMS)))
    assert row == {"users": 3, "mixed": 2, "unknown": 0}
    assert sorted(r["user_id"] for r in rows_of(mixed(by_user(pairs_of(seen), ARMS)))) == ["v", "w"]


@pytest.mark.parametrize("seed", range(12))
def test_the_users_of_every_window_match_a_plain_loop(seed):
    random = np.random.default_rng(seed)
    names = ["a", "b", "c", "it's <b>"]
    seen = [
        (
            f"u{random.integers(30)}",
            str(random.choice(names, p=[0.5, 0.4, 0.05, 0.05])),
            int(random.integers(HOURS)),
        )
        for _ in range(int(random.integers(0, 90)))
    ]
    steps = steps_of(seen)
    for window in range(HOURS):
        counted: dict[str | None, int] = defaultdict(int)
        for one in steps:
            if one["at"] <= window:
                counted[one["arm"]] += one["change"]
        assert {arm: n for arm, n in counted.items() if n} == counts_at(seen, window)
    # The windows so far say the same, whatever came after.
    cut = [one for one in seen if one[2] <= 2]
    early = {(r["arm"], r["at"]): r["change"] for r in steps_of(cut)}
    whole = {(r["arm"], r["at"]): r["change"] for r in steps if r["at"] <= 2}
    assert {k: n for k, n in early.items() if n} == {k: n for k, n in whole.items() if n}


def test_unnamed_arms_are_counted_and_the_largest_are_listed():
    seen = [("u", "c", 0), ("v", "c", 0), ("w", "d", 0), ("x", "a", 0), ("x", "d", 1), ("y", "", 0)]
    (row,) = rows_of(totals(by_user(pairs_of(seen), ARMS)))
    assert row == {"users": 5, "mixed": 1, "unknown": 5}
    assert rows_of(unknown_arms(pairs_of(seen), ARMS, 2)) == [
        {"arm": "c", "users": 2},
        {"arm": "d", "users": 2},
    ]


def exposures(*rows: tuple[str | None, str | None, str | None], request: str = "r", **more) -> list[dict]:
    """(user, arm, item), each a list of its own."""
    return [
        {"request_id": f"{request}{n}", "user_id": user, "ts": START, "arm": arm, "item_id": item, **more}
        for n, (user, arm, item) in enumerate(rows)
    ]


def logs(
    rows: list[dict], feedback: list[dict] = (), columns: tuple[str, ...] = ("arm",), backend=None
) -> Shared:
    backend = backend or embedded()
    types = dict.fromkeys(columns, pa.string())
    shown = ["request_id", "user_id", "ts", "item_id", *columns]
    done = ["user_id", "item_id", "ts", "event", "request_id", "value"]
    return Shared(
        table(backend, "exposures", rows, shown, types),
        feedback=table(backend, "feedback", timed(list(feedback)), done),
        materialise=lambda name, expression: backend.create_table(f"made {name}", expression),
    )


def test_rows_without_a_user_or_an_arm_are_not_in_the_experiment():
    rows = exposures(("u", "a", "x"), ("u", "a", None), (None, "b", "x"), ("v", None, "x"), ("w", "b", None))
    users = assigned(logs(rows).exposures, ["arm"])
    found = rows_of(in_arms(users, 0, first=7))
    assert sorted(found, key=lambda r: r["user_id"]) == [
        {"user_id": "u", "arm": "a", "first": 7},
        {"user_id": "w", "arm": "b", "first": 7},
    ]


NAN = float("nan")


@pytest.mark.parametrize("numbers", [pa.int64(), pa.float64(), pa.float32()])
def test_a_number_becomes_the_same_text_as_an_integer_or_a_float(numbers):
    rows = pa.table({"user_id": pa.array([1, None], numbers), "arm": pa.array([0, 1], numbers)})
    users = assigned(embedded().create_table("exposures", rows), ["arm"])
    assert rows_of(in_arms(users, 0, first=0)) == [{"user_id": "1", "arm": "0", "first": 0}]


def test_a_nan_is_no_user_and_no_arm():
    rows = pa.table({"user_id": [1.0, NAN, 2.0, 3.0], "arm": [1.0, 1.0, NAN, 1.5]})
    users = assigned(embedded().create_table("exposures", rows), ["arm"])
    found = {(row["user_id"], row["arm"]) for row in rows_of(in_arms(users, 0, first=0))}
    assert found == {("1", "1"), ("3", "1.5")}


@pytest.mark.parametrize("hours", [1, 5, 24])
@pytest.mark.parametrize(
    "ts", [START + timedelta(hours=10, minutes=59, microseconds=1), datetime(1969, 12, 31, 23)]
)
def test_first_is_the_start_of_the_window_that_holds_the_row(hours, ts):
    rows = [row | {"ts": ts} for row in exposures(("u", "a", "x"))]
    length = timedelta(hours=hours)
    (row,) = rows_of(in_arms(assigned(logs(rows).exposures, ["arm"], length), 0))
    start = Window.of(ts.replace(tzinfo=UTC), length).start
    assert row["first"] == start.timestamp()


def test_buckets_and_layers_count_users_with_one_value_each():
    rows = exposures(("u", "a", "x"), ("v", "a", "x"), ("w", "b", "x"), ("m", "a", "x"), ("m", "b", "x"))
    for row, (bucket, layer) in zip(
        rows, [("1", "x"), ("2", "x"), ("1", "y"), ("7", "x"), ("7", "y")], strict=True
    ):
        row |= {"bucket": bucket, "layer": layer}
    users = assigned(logs(rows, columns=("arm", "bucket", "layer")).exposures, ["arm", "bucket", "layer"])
    assert rows_of(per_bucket(users, 1, 10)) == [
        {"of_1": "1", "users": 2}, {"of_1": "2", "users": 1}, {"of_1": "7", "users": 1},
    ]  # fmt: skip
    assert len(rows_of(per_bucket(users, 1, 2))) == 2
    found = {(r["of_0"], r["of_2"]): r["users"] for r in rows_of(in_both(users, 0, 2, ARMS, ("x", "y")))}
    assert found == {("a", "x"): 2, ("b", "y"): 1}
    assert rows_of(in_both(users, 0, 2, ARMS, ("x",))) == [{"of_0": "a", "of_2": "x", "users": 2}]


SETTINGS = MetricSettings(events={"click": {}, "buy": {"grade": 2}})
EXPERIMENT = ExperimentSettings(name="e", split={"a": 1, "b": 1})


def sums_of(shared: Shared, left_out: tuple[str, ...] = ()) -> dict[str, dict]:
    out = shared.exposures.filter(shared.exposures.user_id.isin(list(left_out))).select("user_id")
    found = arm_sums(shared, shared.exposures, SETTINGS, EXPERIMENT, ["arm"], out)
    return {row["arm"]: row for row in rows_of(found)}


def test_the_sums_of_an_arm_worked_by_hand():
    rows = exposures(
        ("u", "a", "x"), ("u", "a", "y"), ("v", "a", "x"), ("w", "b", "x"), ("m", "b", "x"), ("n", "c", "x"),
        ("z", "a", None), ("u", None, "k"),
    )  # fmt: skip
    done = [
        {"user_id": "u", "item_id": "x", "event": "click", "request_id": "r0"},
        {"user_id": "u", "item_id": "y", "event": "click", "request_id": "r1"},
        {"user_id": "u", "item_id": "y", "event": "buy", "request_id": "r1", "value": 3.0},
        {"user_id": "u", "item_id": "k", "event": "click", "request_id": "r7"},  # of a list without an arm
        {"user_id": "v", "item_id": "never", "event": "click", "request_id": "r2"},  # not shown
        {"user_id": "w", "item_id": "x", "event": "buy", "request_id": "r3", "value": float("inf")},
        {"user_id": "m", "item_id": "x", "event": "click", "request_id": "r4"},
    ]
    found = sums_of(logs(rows, done), ("m",))
    assert found.keys() == {"a", "b"}
    a, b = found["a"], found["b"]
    assert (a["users"], a["shown"], a["shown_shown"]) == (3, 3.0, 5.0)
    assert (a["n_0"], a["nn_0"], a["ny_0"], a["who_0"]) == (2.0, 4.0, 4.0, 1)
    assert (a["n_1"], a["value_1"], a["vv_1"], a["values_1"], a["who_1"]) == (1.0, 3.0, 9.0, 1.0, 1)
    assert (b["users"], b["n_0"], b["n_1"], b["value_1"], b["values_1"]) == (1, 0.0, 1.0, 0.0, 0.0)


def test_the_sums_of_arms_are_the_same_if_a_missing_arm_makes_them_floats():
    def found(arms: list, kind: pa.DataType) -> dict[str, dict]:
        names = ["u", "v", "w"]
        backend = embedded()
        rows = exposures(*((user, arm, "x") for user, arm in zip(names, arms, strict=True)))
        done = [{"user_id": "v", "item_id": "x", "event": "click", "request_id": "r1"}]
        shown = ["request_id", "user_id", "ts", "item_id", "arm"]
        shared = Shared(
            table(backend, "exposures", rows, shown, {"arm": kind}),
            feedback=table(backend, "feedback", timed(done), [*done[0], "ts", "value"]),
            materialise=lambda name, expression: backend.create_table(f"made {name}", expression),
        )
        nobody = shared.exposures.select("user_id").limit(0)
        settings = ExperimentSettings(name="e", split={"0": 1, "1": 1})
        sums = arm_sums(shared, shared.exposures, SETTINGS, settings, ["arm"], nobody)
        return {row["arm"]: row for row in rows_of(sums)}

    whole = found([0, 1, None], pa.int64())
    assert (whole["0"]["n_0"], whole["1"]["n_0"], whole["1"]["users"]) == (0.0, 1.0, 1)
    assert found([0.0, 1.0, NAN], pa.float64()) == found([0.0, 1.0, None], pa.float64()) == whole


@pytest.mark.parametrize("seed", range(8))
def test_the_sums_of_random_worlds_match_a_plain_loop(seed):
    random = np.random.default_rng(100 + seed)
    arms = [None, "a", "b", "c"]
    rows, done = [], []
    for number in range(int(random.integers(0, 40))):
        user = None if random.random() < 0.1 else f"u{random.integers(12)}"
        arm = arms[random.integers(4)]
        for item in random.choice(9, int(random.integers(0, 5)), replace=False).tolist() or [None]:
            shown = None if item is None else f"i{item}"
            rows.append(
                {"request_id": f"r{number}", "user_id": user, "ts": START, "arm": arm, "item_id": shown}
            )
            for event in ("click", "buy"):
                if shown is not None and random.random() < 0.3:
                    value = None if random.random() < 0.5 else float(random.integers(9))
                    action = {"user_id": user, "item_id": shown, "event": event, "value": value}
                    done.append(action | {"request_id": f"r{number}"})
    out = ("u0", "u1")
    found = sums_of(logs(rows, done), out)
    per: dict[tuple[str, str], dict[str, float]] = {}
    arm_of = {row["request_id"]: row["arm"] for row in rows}
    for row in rows:
        if row["user_id"] and row["user_id"] not in out and row["arm"] in ARMS:
            mine = per.setdefault((row["user_id"], row["arm"]), defaultdict(float))
            mine["shown"] += row["item_id"] is not None
    for action in done:
        key = (action["user_id"], arm_of[action["request_id"]])
        if key in per:
            i = ("click", "buy").index(action["event"])
            per[key][f"n_{i}"] += 1
            per[key][f"value_{i}"] += action["value"] or 0.0
            per[key][f"values_{i}"] += action["value"] is not None
    assert found.keys() == {arm for _, arm in per}
    for arm, row in found.items():
        users = [mine for (_, other), mine in per.items() if other == arm]
        assert row["users"] == len(users)
        assert row["shown_shown"] == sum(one["shown"] ** 2 for one in users)
        for i in (0, 1):
            assert row[f"n_{i}"] == sum(one[f"n_{i}"] for one in users)
            assert row[f"nn_{i}"] == sum(one[f"n_{i}"] ** 2 for one in users)
            assert row[f"ny_{i}"] == sum(one[f"n_{i}"] * one["shown"] for one in users)
            assert row[f"who_{i}"] == sum(one[f"n_{i}"] > 0 for one in users)
            assert row[f"vv_{i}"] == sum(one[f"value_{i}"] ** 2 for one in users)
            assert row[f"values_{i}"] == sum(one[f"values_{i}"] for one in users)


def test_only_a_difference_of_shares_is_limited_to_minus_1_and_1():
    experiment = ExperimentSettings.model_validate({"name": "x", "column": "arm", "split": {"a": 1, "b": 1}})
    wide = Interval(0.4, 1.4)
    for by, upper in (("conversion", 1.0), ("actions_per_user", 1.4)):
        builder = specs.builder(specs.DIFFERENCE, experiment, MetricSettings(), by=by, arm="b", event="click")
        assert (builder.value(0.9, 10, wide).lower, builder.value(0.9, 10, wide).upper) == (0.4, upper)
