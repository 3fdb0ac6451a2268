"""The check of exposure health on logs as they are read, where that differs from a metric's own tables."""

from __future__ import annotations

import pandas as pd

from monitor.core.results import Status
from tests.shop import Shop, hour, one, rows


def feedback(number: int, *done: tuple[str, str, str]) -> pd.DataFrame:
    """One row an action: user, item, event."""
    users, items, events = zip(*done, strict=True)
    times = [hour(number).start.replace(tzinfo=None)] * len(done)
    return pd.DataFrame({"user_id": users, "item_id": items, "event": events, "ts": times})


def test_only_the_events_of_the_settings_count_as_earlier_actions(shop: Shop) -> None:
    logs = shop.config["logs"]
    logs["feedback"] = {"path": str(shop.folder / "feedback" / "*")}
    logs["catalog"] = {"path": str(shop.folder / "catalog.csv")}
    shop.config["metrics"] = {"action_events": ["click"], "popularity": "actions"}
    shop.write("catalog.csv", "item_id,category\na,x\nb,y\n")
    for number in (0, 1):
        shop.write(f"logs/{number}.parquet", rows(number, 2, item_id="a", user_id="u"))
    earlier = feedback(0, ("u", "a", "view"), ("u", "a", "view"), ("u", "b", "click"))
    shop.write("feedback/0.parquet", earlier)
    shop.write("feedback/1.parquet", feedback(1, ("u", "a", "click")))
    # The user has seen a, and clicked on b, of another category, alone.
    assert one(shop.judge(hour(1), part="feedback"), "serendipity").value == 1.0
    popularity = one(shop.judge(hour(1)), "average_popularity")
    assert (popularity.value, popularity.definition) == (0.0, "1;popularity=actions;action_events=click")


def test_the_first_day_of_a_log_is_no_data_for_what_needs_the_day_before(shop: Shop) -> None:
    shop.write("logs/0.parquet", rows(0))
    result = one(shop.judge(hour(0)), "update_rate", by="day")
    assert (result.status, result.value) == (Status.NO_DATA, None)
