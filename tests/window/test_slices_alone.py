"""A metric by slice is the metric on the rows of that slice alone, whatever the slice is made from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import pyarrow as pa
import pytest

from monitor.core.columns import FEEDBACK
from monitor.core.results import Result, Status, Window
from monitor.metrics.catalogue import FAMILIES, FEEDBACK_FAMILIES
from monitor.metrics.family import Family
from monitor.metrics.measure import measure_all
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import DERIVED, SliceSettings, user_group_within
from monitor.window.slices import add_slices, divided_by
from tests.metrics.worlds import START, Windows, World, results_of, shared_of

BY = ("shelf", "catalog.category", "users.plan", *DERIVED)
OF_LISTS = ("scene", user_group_within("users.plan", "free"))
WINDOW = Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(days=2))
SETTINGS = MetricSettings(
    k=(1, 3), attribution="2d", events={"click": {}, "buy": {"grade": 3}}, score_range=(0.0, 1.0)
)
BY_LISTS = SliceSettings(by=OF_LISTS, budget=50, heavy=10)
DIVIDED_BY = divided_by(BY_LISTS)
SLICED = [family for family in FAMILIES if family.sliced]
ITEMS, USERS = "abcdefgh", ("u", "v", "w", "x", None)


def a_world(seed: int, requests: int, *, broken: bool = False) -> World:
    """A random window, with ties, repeats, empty lists, unknown users, and ids that no other log knows.

    In a broken one, some lists have rows of two users, of two scenes, or without a user or request.
    """
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
            if broken and rng.random() < 0.3:
                row |= {"user_id": rng.choice(USERS), "scene": rng.choice(["home", "feed", None])}
                row |= {"request_id": rng.choice([request["request_id"], None])}
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
        history_actions=[pair for pair in pairs if rng.random() < 0.5],
        columns=("position", "score", "propensity", "scene", "shelf"),
        category=pa.list_(pa.string()),
        catalog_columns=("category", "created_at"),
        feedback_columns=("request_id", "value"),
    )


def told(results: list[Result]) -> dict[tuple[object, ...], Result]:
    return {(r.metric, *sorted(r.labels.items())): r for r in results}


@pytest.mark.parametrize(("seed", "requests", "budget"), [(2, 25, 2), (5, 8, 50), (4, 0, 2)])
def test_a_slice_equals_the_metric_on_its_rows_alone(seed: int, requests: int, budget: int) -> None:
    assert_each_slice_is_its_rows(a_world(seed, requests), BY, budget, seed)


@pytest.mark.parametrize(("part", "broken"), [(None, False), (None, True), (FEEDBACK, False)])
def test_a_slice_of_whole_lists_equals_the_metric_on_its_rows_alone(part: str | None, broken: bool) -> None:
    families = FEEDBACK_FAMILIES if part == FEEDBACK else FAMILIES
    shared = assert_each_slice_is_its_rows(a_world(7, 15, broken=broken), OF_LISTS, 50, 7, families, part)
    assert [shared.of_lists(f"__monitor_slice_{number}") for number in range(len(OF_LISTS))] == [
        not broken
    ] * 2


def test_a_slice_may_have_the_name_of_a_column_of_lists() -> None:
    world = a_world(7, 6)
    for row in world.exposures:
        row |= {"length": int(row["request_id"][1:]) % 2, "items": row["scene"]}
    named = replace(world, columns=(*world.columns, "length", "items"))
    families = [family for family in SLICED if family.name in ("volume", "update_rate", "score_health")]
    assert_each_slice_is_its_rows(named, ("length", "items"), 50, 7, families)


def test_lists_show_the_same_columns_whatever_slices_there_are() -> None:
    world = a_world(7, 6)
    plain, divided = shared_of(world), shared_of(world, divided_by={"shelf", "user_id", "ts"})
    assert divided.requests().schema() == plain.requests().schema()


def test_kept_statements_hold_for_windows_whose_lists_are_whole_as_these_are() -> None:
    windows = Windows()
    lists = {"volume", "category_entropy", "update_rate", "ranking", "serendipity", "user_auc"}
    families = [family for family in SLICED if family.name in lists]
    for broken in (False, True, False):
        world = a_world(9, 8, broken=broken)
        fresh, fresh_dimensions = sliced(shared_of(world, divided_by=DIVIDED_BY))
        wanted = [
            one for part in measure_all(fresh, SETTINGS, fresh_dimensions, families) for one in part.results
        ]
        shared, dimensions = sliced(windows.next(world, divided_by=DIVIDED_BY))
        found = [one for part in measure_all(shared, SETTINGS, dimensions, families) for one in part.results]
        assert shared.of_lists("__monitor_slice_0") is not broken
        assert_same(told(found), told(wanted))
        windows.engine.drop("users")


def sliced(shared: Shared, by: SliceSettings = BY_LISTS) -> tuple[Shared, dict[str, str]]:
    """With the slices, and some users."""
    users = pa.table({"user_id": ["u", "v"], "plan": ["free", "other"]})
    table = shared.exposures.get_backend().create_table("users", users)
    return shared, add_slices(shared, by, WINDOW, frozenset(), lambda _: table)


def assert_each_slice_is_its_rows(
    world: World,
    names: Sequence[str],
    budget: int,
    seed: int,
    families: Sequence[Family] = FAMILIES,
    part: str | None = None,
) -> Shared:
    families = [family for family in families if family.sliced]
    by = SliceSettings(by=names, budget=budget, heavy=10)
    shared, dimensions = sliced(shared_of(world, divided_by=divided_by(by), part=part), by)
    assert list(dimensions) == list(names)
    found = [one for part in measure_all(shared, SETTINGS, dimensions, families) for one in part.results]
    assert not [one.detail for one in found if one.status is Status.ERROR]
    for name, key in dimensions.items():
        rows = shared.rows(key).to_pyarrow().to_pylist()
        assert len(rows) == len(world.exposures)
        values = {row[key] for row in rows}
        assert len(values) <= budget + 1
        # All of few, and of many as many as a minute can hold: each asks for every metric once more.
        for value in random.Random(seed).sample(sorted(values, key=repr), min(len(values), 3)):
            own = replace(world, exposures=[r for r in rows if r[key] == value], around=world.exposures)
            alone = results_of(own, SETTINGS, families=families)
            labels = {"dimension": name, "value": value}
            mine = [one for one in found if labels.items() <= one.labels.items()]
            assert_same(told(mine), told([replace(one, labels={**one.labels, **labels}) for one in alone]))
        assert {r.labels["value"] for r in found if r.labels.get("dimension") == name} == values
    return shared


def assert_same(found: dict[tuple[object, ...], Result], wanted: dict[tuple[object, ...], Result]) -> None:
    assert set(found) == set(wanted)
    for key, want in wanted.items():
        result = found[key]
        assert (key, result.status, result.samples) == (key, want.status, want.samples)
        for one, other in (
            (result.value, want.value), (result.lower, want.lower), (result.upper, want.upper)
        ):  # fmt: skip
            assert one == (None if other is None else pytest.approx(other, rel=1e-9, abs=1e-9)), key
