"""A metric by slice is the metric on the rows of that slice alone, whatever the slice is made from."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import ibis
import pyarrow as pa
import pytest

from monitor.core.results import Result, Status, Window
from monitor.metrics.catalogue import FAMILIES
from monitor.metrics.measure import measure_all
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import DERIVED, SliceSettings
from monitor.window.slices import add_slices
from tests.metrics.worlds import START, World, results_of, shared_of

BY = ("shelf", "catalog.category", "users.plan", *DERIVED)
WINDOW = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(days=2))
SETTINGS = MetricSettings(
    k=(1, 3), attribution="2d", events={"click": {}, "buy": {"grade": 3}}, score_range=(0.0, 1.0)
)
SLICED = [family for family in FAMILIES if family.sliced]
ITEMS, USERS = "abcdefgh", ("u", "v", "w", "x", None)


def a_world(seed: int, requests: int) -> World:
    """A random window, with ties, repeats, empty lists, unknown users, and ids that no other log knows."""
    rng = random.Random(seed)
    shown, done = [], []
    for number in range(requests):
        request: dict[str, Any] = {
            "request_id": f"r{number}",
            "user_id": rng.choice(USERS),
            "ts": START + timedelta(hours=rng.choice([0, 1, 25])),
            "scene": rng.choice(["home", "feed"]),
        }
        items = rng.choices(ITEMS, k=rng.choice([0, 1, 4, 6]))
        for position, item in enumerate(items or [None], start=1):
            row: dict[str, Any] = {"item_id": item, "position": position, "shelf": rng.choice(["top", None])}
            if item is not None:
                row["score"] = rng.choice([0.1, 0.5, 0.5, 0.9, 2.0, float("nan"), None])
                row["propensity"] = rng.choice([0.1, 0.5, None])
            shown.append(request | row)
            if rng.random() < 0.3:
                done.append(
                    {
                        "user_id": request["user_id"],
                        "item_id": item if rng.random() < 0.8 else rng.choice(ITEMS),
                        "ts": request["ts"] + timedelta(minutes=rng.randrange(90)),
                        "event": rng.choice(["click", "click", "buy", "view"]),
                        "request_id": rng.choice([request["request_id"], None]),
                        "value": rng.choice([1.0, 3.5, None]),
                    }
                )
    catalog = [
        {
            "item_id": item,
            "category": rng.choice([None, [], ["y", "x"], ["z"], ["other"]]),
            "created_at": rng.choice([None, START, START - timedelta(days=30)]),
        }
        for item in ITEMS[:-1]
    ]
    pairs = [(user, item) for user in USERS[:-2] for item in ITEMS if rng.random() < 0.4]
    return World(
        shown,
        catalog=catalog,
        feedback=done,
        history=[(*pair, rng.randrange(1, 9)) for pair in pairs] or None,
        columns=("position", "score", "propensity", "scene", "shelf"),
        category=pa.list_(pa.string()),
        catalog_columns=("category", "created_at"),
        feedback_columns=("request_id", "value"),
    )


def told(results: list[Result]) -> dict[tuple[object, ...], Result]:
    return {(r.metric, *sorted(r.labels.items())): r for r in results}


@pytest.mark.parametrize(("seed", "requests", "budget"), [(2, 25, 2), (5, 8, 50), (4, 0, 2)])
def test_a_slice_equals_the_metric_on_its_rows_alone(seed: int, requests: int, budget: int) -> None:
    world = a_world(seed, requests)
    users = ibis.memtable({"user_id": ["u", "v"], "plan": ["free", "other"]})
    shared = shared_of(world)
    users = shared.exposures.get_backend().create_table("users", users.to_pyarrow())
    by = SliceSettings(by=BY, budget=budget, heavy=10)
    dimensions = add_slices(shared, by, WINDOW, frozenset(), lambda _: users)
    assert list(dimensions) == list(BY)
    found = [one for part in measure_all(shared, SETTINGS, dimensions, SLICED) for one in part.results]
    assert not [one.detail for one in found if one.status is Status.ERROR]
    for name, key in dimensions.items():
        rows = shared.rows(key).to_pyarrow().to_pylist()
        assert len(rows) == len(world.exposures)
        values = {row[key] for row in rows}
        assert len(values) <= budget + 1
        # All of few, and of many as many as a minute can hold: each asks for every metric once more.
        for value in random.Random(seed).sample(sorted(values, key=repr), min(len(values), 3)):
            own = replace(world, exposures=[r for r in rows if r[key] == value], around=world.exposures)
            alone = results_of(own, SETTINGS, families=SLICED)
            labels = {"dimension": name, "value": value}
            mine = [one for one in found if labels.items() <= one.labels.items()]
            assert_same(told(mine), told([replace(one, labels={**one.labels, **labels}) for one in alone]))
        assert {r.labels["value"] for r in found if r.labels.get("dimension") == name} == values


def assert_same(found: dict[tuple[object, ...], Result], wanted: dict[tuple[object, ...], Result]) -> None:
    assert set(found) == set(wanted)
    for key, want in wanted.items():
        result = found[key]
        assert (key, result.status, result.samples) == (key, want.status, want.samples)
        for one, other in (
            (result.value, want.value), (result.lower, want.lower), (result.upper, want.upper)
        ):  # fmt: skip
            assert one == (None if other is None else pytest.approx(other, rel=1e-9, abs=1e-9)), key
