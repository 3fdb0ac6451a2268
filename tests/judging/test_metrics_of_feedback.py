"""The check of feedback on windows of logs: whose actions they are, and that no window counts them twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas as pd

from monitor.core.results import Status
from tests.shop import Shop, hour, one

MINUTE = timedelta(minutes=1)


def shown(number: int, minute: int, user: str, *items: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "request_id": f"r{number}-{minute}-{user}",
                "user_id": user,
                "ts": (hour(number).start + minute * MINUTE).replace(tzinfo=None),
                "item_id": item,
            }
            for item in items
        ]
    )


def done(number: int, minute: int, user: str, item: str, event: str = "click") -> dict[str, Any]:
    ts = (hour(number).start + minute * MINUTE).replace(tzinfo=None)
    return {"user_id": user, "item_id": item, "ts": ts, "event": event}


def prepared(shop: Shop) -> None:
    shop.config["logs"]["feedback"] = {"path": str(shop.folder / "feedback" / "*")}
    shop.config["logs"]["catalog"] = {"path": str(shop.folder / "catalog.csv")}
    shop.write("catalog.csv", "item_id,category\na,x\nb,y\n")
    shop.write("logs/0.parquet", shown(0, 50, "u", "a", "b"))
    shop.write("logs/1.parquet", shown(1, 50, "u", "a", "b"))
    actions = [done(0, 10, "u", "b"), done(1, 5, "u", "a"), done(1, 55, "u", "a"), done(1, 56, "u", "b")]
    shop.write("feedback/all.parquet", pd.DataFrame(actions))


def test_the_two_parts_have_checks_of_their_own(shop: Shop) -> None:
    prepared(shop)
    shown = {run.check for run in shop.judge(hour(0)).runs}
    acted = {run.check for run in shop.judge(hour(0), part="feedback").runs}
    assert shown >= {"logs", "rules", "exposure"}
    assert "feedback" in acted
    assert not shown & acted


def test_an_action_in_the_next_hour_counts_for_the_list_of_this_one(shop: Shop) -> None:
    prepared(shop)
    shop.config["metrics"] = {"attribution": "30m"}
    first = one(shop.judge(hour(0), part="feedback"), "serendipity")
    assert (first.status, first.samples) == (Status.NO_DATA, 0)  # no action is earlier than the first hour
    second = one(shop.judge(hour(1), part="feedback"), "serendipity")
    # Clicked on b an hour ago: now on a, of another category, and on b again.
    assert (second.value, second.samples) == (0.5, 2)


def test_a_late_window_keeps_its_measured_values(shop: Shop) -> None:
    prepared(shop)
    late = one(shop.judge(hour(1), "the feedback has stopped", part="feedback"), "serendipity")
    assert (late.status, late.value, late.detail) == (Status.LATE, 0.5, "the feedback has stopped")


def test_an_hour_without_exposures_is_no_data(shop: Shop) -> None:
    prepared(shop)
    empty = one(shop.judge(hour(3), part="feedback"), "serendipity")
    assert empty.status is Status.NO_DATA


def test_an_objective_on_feedback_is_judged_with_it_alone(shop: Shop) -> None:
    prepared(shop)
    shop.config["objectives"] = [
        {"metric": "serendipity", "min": 0.9},
        {"metric": "failure", "labels": {"by": "pv"}, "max": 0.5},
    ]
    exposures, actions = shop.judge(hour(1)), shop.judge(hour(1), part="feedback")
    assert [r.metric for r in exposures.results if r.threshold is not None] == ["failure"]
    judged = {r.metric for r in actions.results if r.threshold is not None}
    assert judged == {"serendipity", "unattributed"}  # the second has a bound without being asked
