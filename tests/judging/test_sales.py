"""What a shop earns, on windows of logs: sales that stop are seen, not passed over."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd

from monitor.core.results import Status
from tests.shop import Shop, hour, one, rows


def prepared(shop: Shop) -> None:
    """Lists in the hours 0 to 5, orders in the first and the last."""
    shop.config["logs"]["feedback"] = {"path": str(shop.folder / "feedback" / "*")}
    shop.config["metrics"] = {"events": {"buy": {}}, "attribution": "10m"}
    for number in range(6):
        shop.write(f"logs/{number}.parquet", rows(number))
    for number in (0, 5):
        orders = rows(number, 4).assign(event="buy", value=10.0)
        orders["ts"] = orders["ts"] + timedelta(seconds=30)
        shop.write(f"feedback/{number}.parquet", pd.DataFrame(orders))


def test_an_hour_without_feedback_has_zero_sales_and_violates_the_objective(shop: Shop) -> None:
    prepared(shop)
    shop.config["objectives"] = [
        {"metric": "action_value", "labels": {"by": "sum", "event": "buy"}, "min": 1},
        {"metric": "action_rate", "labels": {"by": "exposure", "event": "buy"}, "min": 0.9},
    ]
    sold = one(shop.judge(hour(0), part="feedback"), "action_value", by="sum", event="buy")
    assert (sold.status, sold.value, sold.samples) == (Status.OK, 40.0, 4)
    nothing = shop.judge(hour(3), part="feedback")  # nor in the hours beside it
    sold = one(nothing, "action_value", by="sum", event="buy")
    assert (sold.status, sold.value, sold.threshold) == (Status.VIOLATED, 0.0, 1)
    rate = one(nothing, "action_rate", by="exposure", event="buy")
    assert (rate.status, rate.value, rate.lower) == (Status.VIOLATED, 0.0, 0.0)
