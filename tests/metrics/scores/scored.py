"""Windows of scored exposures and what was acted on, and the rows that they come to."""

from __future__ import annotations

import math
import random
from datetime import timedelta

from tests.metrics.worlds import START, World

ODD_SCORES = (None, math.nan, math.inf, -math.inf)


def scored(rows, **columns) -> World:
    """A window of exposures given as (user, score, label), each a list of its own."""
    shown, done = [], []
    for number, (user, score, label) in enumerate(rows):
        one = {"request_id": f"r{number}", "user_id": user, "item_id": "i", "ts": START}
        shown.append(one | {"score": score} | columns)
        if label:
            done.append(
                {"request_id": f"r{number}", "user_id": user, "item_id": "i", "event": "click", "ts": START}
            )
    return World(shown, feedback=done, columns=("score", "scene"))


def random_world(seed: int) -> World:
    """Lists with repeats and ties, users and requests without an id, odd scores, actions of three grades."""
    dice = random.Random(seed)
    scores = dice.choice(
        [
            [0.0, 1.0],
            [-0.0, 0.0, 0.25, 0.5],
            [dice.random() for _ in range(9)],
            [dice.uniform(-2, 2) for _ in range(60)],
            [0.1, 0.2, 0.9, *ODD_SCORES],
            [*ODD_SCORES],
        ]
    )
    users = dice.choice([["u"], ["u", "v", "w", None], [f"u{n}" for n in range(12)]])
    shown, done = [], []
    for number in range(dice.choice([0, 1, 5, 25])):
        request = {
            "request_id": None if dice.random() < 0.1 else f"r{number}",
            "user_id": dice.choice(users),
            "ts": START + timedelta(seconds=number),
            "scene": dice.choice(["home", "feed", None]),
        }
        items = [dice.choice("abcdef") for _ in range(dice.randrange(6))]
        shown += [request | {"item_id": item, "score": dice.choice(scores)} for item in items]
        if not items:
            shown.append(request | {"item_id": None, "score": None})
        for item in items if request["request_id"] else ():
            if dice.random() < dice.choice([0.0, 0.4, 1.0]):
                event = dice.choice(["click", "click", "buy", "hide"])
                done.append(request | {"item_id": item, "event": event, "value": dice.randrange(1, 6)})
    return World(shown, feedback=done, columns=("score", "scene"), feedback_columns=("request_id", "value"))


EVENTS = {"click": {}, "buy": {"grade": 2}, "hide": {"grade": 0}}


def rows_of(world: World) -> list[tuple]:
    """(user, score, label) of every exposure with a finite score, looked for one by one."""
    liked = {(a["request_id"], a["item_id"]) for a in world.feedback if a["event"] != "hide"}
    return [
        (row["user_id"], row["score"], int((row["request_id"], row["item_id"]) in liked))
        for row in world.exposures
        if row["item_id"] is not None and row["score"] is not None and math.isfinite(row["score"])
    ]
