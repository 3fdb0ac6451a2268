"""Random small windows: every value and every interval lies within the range of its metric."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from monitor.catalogue import ALL_SPECS
from monitor.metrics.catalogue import SPECS
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.worlds import START, World, results_of

WINDOWS = 60
ITEMS = "abcdefgh"
SETTINGS = MetricSettings(
    score_range=(0, 1),
    novelty=("category",),
    seed_item="shelf",
    events={
        "click": EventSettings(grade=1, length="length"),
        "buy": EventSettings(grade=3),
        "rate": EventSettings(grade=0),
    },
    rating={"event": "rate", "distortion": {1: {1: 0.0, 2: 3.0}}},
)


def window(seed: int) -> tuple[list[dict], list[dict]]:
    """Exposures and actions: few lists of few users, many values at the ends of what they can be."""
    dice = random.Random(seed)
    scores = dice.choice([[0.5], [0.0, 1.0], [0.0, 1e-12, 0.5, 1.0], [dice.random() for _ in range(20)]])
    items = ITEMS[: dice.choice([1, 2, 8])]
    lengths = dice.choice([[0, 1], [1], [1, 3, 5]])
    users = dice.choice([1, 3, 30])
    acts = dice.choice([0.05, 0.5, 1.0])
    shown, done = [], []
    for number in range(dice.choice([1, 2, 5, 30])):
        request = {
            "request_id": f"{seed}-{number}",
            "user_id": f"{seed}-{dice.randrange(users)}",
            "ts": START + timedelta(minutes=dice.randrange(20)),
            "scene": str(seed),
            "latency": dice.choice([0.0, 0.1, dice.random()]),
            "status": dice.choice(["ok", "ok", "error", "timeout"]),
            "ever_shown": dice.random() < 0.5,
        }
        listed = [dice.choice(items) for _ in range(dice.choice(lengths))]
        for place, item in enumerate(listed or [None], 1):
            row = {"item_id": item, "position": place, "score": dice.choice(scores), "propensity": 0.5}
            shown.append(request | row | {"shelf": dice.choice(items)})
        for item in [*listed, dice.choice(ITEMS)]:
            for event in ("click", "buy", "rate"):
                if dice.random() < acts:
                    value = dice.choice([0.0, 1.0, 2.0, 5.0])
                    done.append(request | {"item_id": item, "event": event, "value": value})
    return shown, done


@pytest.fixture(scope="module")
def results() -> list:
    """Of every window: each is a slice of one world, so that every query is made once."""
    dice = random.Random(0)
    windows = [window(seed) for seed in range(WINDOWS)]
    users = [f"{seed}-{n}" for seed in range(WINDOWS) for n in range(3)]
    world = World(
        [row for shown, _ in windows for row in shown],
        catalog=[
            {"item_id": item, "category": dice.choice(["x", "y", None]), "length": dice.choice([1.0, 4.0])}
            for item in ITEMS
        ],
        feedback=[row for _, done in windows for row in done],
        history=[(user, dice.choice(ITEMS), dice.randrange(1, 9)) for user in users],
        history_actions=[(user, dice.choice(ITEMS)) for user in users],
        yesterday=[(user, dice.choice(ITEMS)) for user in users],
        today=[(user, dice.choice(ITEMS)) for user in users],
        columns=("position", "score", "propensity", "scene", "shelf", "status", "latency", "ever_shown"),
        catalog_columns=("category", "length"),
        feedback_columns=("request_id", "value"),
    )
    return results_of(world, SETTINGS, {"scene": "scene"})


def test_values_and_intervals_stay_in_the_range_of_their_metric(results):
    assert len({one.labels.get("value") for one in results}) == WINDOWS + 1
    for one in results:
        low, high = ALL_SPECS[one.metric].bounds
        ends = [end for end in (one.lower, one.value, one.upper) if end is not None]
        assert all(low <= end <= high for end in ends), one
        assert ends == sorted(ends), one


def test_every_series_that_declares_an_interval_shows_one_and_no_other(results):
    by_values = {(name, by) for name, spec in SPECS.items() for by in spec.by or (None,)}
    declared = {(name, by) for name, by in by_values if SPECS[name].has_interval({"by": by} if by else {})}
    declared -= {("novelty", "tag")}  # the catalog has no such column
    shown = {(one.metric, one.labels.get("by")) for one in results if one.lower is not None}
    assert shown == declared
