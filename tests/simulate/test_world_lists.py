from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from monitor.simulate.lists import Lists, join, micros, to_exposures
from monitor.simulate.world import Scene, World

WORLD = World(scenes=(Scene("home", 1.0), Scene("search", 1.0)), length=3)
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000


def three(start: datetime = NOON) -> Lists:
    """A full list, an empty one, one of a single item."""
    return Lists(
        start=start,
        end=start + timedelta(hours=1),
        times=np.array([MICROS, MICROS + 1, MICROS + 2]),
        users=np.array([5, 4, 5]),
        scenes=np.array([1, 0, 0]),
        models=np.array([0, 1, 1]),
        buckets=np.array([700, 12, 700]),
        arms=np.array([1, 0, 1]),
        items=np.array([[9, 8, 7], [-1, -1, -1], [9, -1, -1]]),
        scores=np.array([[0.9, 0.8, 0.7], [0, 0, 0], [0.5, 0, 0]]),
        lengths=np.array([3, 0, 1]),
        request_ids=np.array(["a", "b", "c"]),
        extra={"impressions": np.array([[1.0, 2, 3], [0, 0, 0], [4, 0, 0]])},
    )


def test_every_place_is_a_row_and_an_empty_list_is_one_without_an_item():
    rows = to_exposures(three(), WORLD).to_pydict()
    assert rows["request_id"] == ["a", "a", "a", "b", "c"]
    assert rows["user_id"] == ["u0000005"] * 3 + ["u0000004", "u0000005"]
    assert rows["item_id"] == ["i000009", "i000008", "i000007", None, "i000009"]
    assert rows["position"] == [1, 2, 3, None, 1]
    assert rows["score"] == [0.9, 0.8, 0.7, None, 0.5]
    assert rows["scene"] == ["search"] * 3 + ["home"] * 2
    assert rows["model"] == ["m1"] * 3 + ["m2"] * 2
    assert rows["arm"] == ["treatment"] * 3 + ["control", "treatment"]
    assert rows["bucket"] == [700] * 3 + [12, 700]
    assert rows["impressions"] == [1, 2, 3, None, 4]
    assert rows["ts"][-1] == datetime(2026, 1, 5, 12, 0, 0, 2)


def test_nan_and_infinity_stay_and_a_hole_has_no_item():
    lists = three()
    scores, items = lists.scores.copy(), lists.items.copy()
    scores[0, :2], items[0, 2] = (np.nan, np.inf), -1
    rows = to_exposures(replace(lists, scores=scores, items=items), WORLD)
    assert rows["score"].null_count == 1
    assert np.isnan(rows["score"][0].as_py())
    assert rows["score"][1].as_py() == np.inf
    assert rows["item_id"].to_pylist()[2] is None
    assert rows["position"].to_pylist()[2] == 3


def test_no_requests_are_a_table_of_the_same_columns_and_types():
    lists = three()
    arrays = {one.name for one in fields(Lists)} - {"start", "end", "extra"}
    empty = {name: getattr(lists, name)[:0] for name in arrays}
    none = replace(lists, **empty, extra={"impressions": lists.extra["impressions"][:0]})
    assert len(none) == 0
    assert to_exposures(none, WORLD).num_rows == 0
    assert to_exposures(none, WORLD).schema == to_exposures(lists, WORLD).schema
    assert to_exposures(lists, WORLD).schema.field("ts").type == pa.timestamp("us")


def test_the_shown_places_are_those_within_the_length():
    assert three().shown.tolist() == [[True] * 3, [False] * 3, [True, False, False]]


def test_spans_that_follow_each_other_join_and_others_do_not():
    one, other = three(), three(NOON + timedelta(hours=1))
    both = join([one, other])
    assert (both.start, both.end) == (NOON, NOON + timedelta(hours=2))
    assert len(both) == 6
    assert both.extra["impressions"].shape == (6, 3)
    assert both.request_ids.tolist() == ["a", "b", "c"] * 2
    with pytest.raises(ValueError, match="not followed"):
        join([one, one])
    with pytest.raises(ValueError, match="no lists"):
        join([])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"start": datetime(2026, 1, 5, 1, tzinfo=UTC)}, "midnight"),
        ({"start": datetime(2026, 1, 5)}, "midnight"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"scenes": ()}, "scenes"),
        ({"scenes": (Scene("a", 1.0), Scene("a", 2.0))}, "scenes"),
        ({"arms": ()}, "arms"),
        ({"arms": ("a", "a")}, "arms"),
        ({"categories": ()}, "categories"),
        ({"users": 0}, "users"),
        ({"length": 11, "items": 10}, "fill a list"),
        ({"length": 0}, "fill a list"),
        ({"new_items_per_hour": 0.0}, "new_items_per_hour"),
        ({"new_items_per_hour": 200.0}, "new_items_per_hour"),
        ({"new_items_per_hour": float("nan")}, "new_items_per_hour"),
        ({"blacklisted": -1}, "blacklisted"),
        ({"empty_share": 0.7, "short_share": 0.7}, "shares"),
        ({"new_user_share": float("nan")}, "shares"),
        ({"click_rate": 0.0}, "click_rate"),
        ({"item_skew": float("inf")}, "skews"),
        ({"growth": -1.0}, "growth"),
        ({"retrain_days": 0}, "retrained"),
        ({"file_minutes": 7}, "file_minutes"),
    ],
)
def test_an_invalid_world_says_why(wrong: dict, message: str):
    with pytest.raises(ValueError, match=message):
        World(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"requests_per_hour": -1.0}, "requests_per_hour"),
        ({"requests_per_hour": float("nan")}, "requests_per_hour"),
        ({"requests_per_hour": 1.0, "night": 0.0}, "night"),
        ({"requests_per_hour": 1.0, "weekend": 0.0}, "weekend"),
    ],
)
def test_an_invalid_scene_says_why(wrong: dict, message: str):
    with pytest.raises(ValueError, match=message):
        Scene("home", **wrong)


def test_hours_are_numbered_from_the_start_of_the_world():
    world = World(holidays=(date(2026, 1, 6),))
    assert world.hour_of(world.moment(721)) == 721
    with pytest.raises(ValueError, match="no full hour"):
        world.hour_of(world.start + timedelta(minutes=30))
    with pytest.raises(ValueError, match="no full hour"):
        world.hour_of(world.start - timedelta(hours=1))


def test_a_world_counts_hours_of_utc_whatever_the_zone_of_its_start():
    london = World(
        start=datetime(2026, 3, 28, tzinfo=ZoneInfo("Europe/London"))
    )  # summer time begins in a day
    assert london.start.tzinfo is UTC
    hours = [micros(london.moment(hour)) for hour in range(48)]
    assert np.unique(np.diff(hours)).tolist() == [3_600_000_000]
