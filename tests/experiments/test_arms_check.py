"""What the arms of an experiment did: on windows of logs, and simulated with known truth."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Result, Status
from monitor.experiments import arms_check as experiment_arms
from monitor.experiments.arms_check import arm_results
from monitor.settings.experiments import ARM_METRICS, ExperimentSettings
from monitor.settings.metrics import MetricSettings
from tests.experiments.test_split_check import people, prepared
from tests.shop import DAY, Shop, hour, one

EVENTS = {"click": {}, "buy": {"grade": 2}}
LABELS = {"experiment": "rank", "event": "click"}


def done(number: int, users: list[int], event: str = "click", value: float | None = None) -> pd.DataFrame:
    """An action of each of these users on what the list of this hour showed them."""
    ts = hour(number).start.replace(tzinfo=None) + timedelta(minutes=5)
    rows = [{"user_id": f"u{i}", "item_id": "x", "ts": ts, "event": event, "value": value} for i in users]
    return pd.DataFrame(rows)


def with_feedback(shop: Shop, *actions: pd.DataFrame) -> Shop:
    shop.config["logs"]["feedback"] = {"path": str(shop.folder / "feedback" / "*")}
    shop.config["metrics"] |= {"events": EVENTS}
    shop.write("feedback/all.parquet", pd.concat(actions))
    return shop


def judged(shop: Shop, number: int = 0) -> list[Result]:
    (run,) = [r for r in shop.judge(hour(number), part="feedback").runs if r.check == experiment_arms.NAME]
    return list(run.results)


def test_each_metric_of_an_arm_and_its_difference_to_the_control(shop: Shop) -> None:
    # Ten users an arm; of the old (even) two click, of the new (odd) five, one of them twice.
    clicks = [0, 2, 1, 3, 5, 7, 9]
    again = done(0, [1]).assign(ts=(hour(0).start + timedelta(minutes=9)).replace(tzinfo=None))
    with_feedback(prepared(shop, people(20)), done(0, clicks), again, done(0, [1, 2], "buy", 30.0))
    found = judged(shop)
    assert [run.check for run in shop.judge(hour(0), part="feedback").runs] == ["feedback", "experiment_arms"]

    def of(metric: str, **labels: str) -> Result:
        return one(found, f"experiment_{metric}", **{**LABELS, **labels})

    assert (of("action_rate", arm="old").value, of("action_rate", arm="new").value) == (0.2, 0.6)
    assert (of("conversion", arm="old").value, of("conversion", arm="new").value) == (0.2, 0.5)
    assert (of("actions_per_user", arm="old").value, of("actions_per_user", arm="new").value) == (0.2, 0.6)
    assert of("value_per_user", arm="new", event="buy").value == 3.0
    no_value = of("value_per_user", arm="new")
    assert (no_value.status, no_value.detail) == (
        Status.NO_DATA, "no action 'click' of the window has a value",
    )  # fmt: skip
    assert of("difference", arm="new", by="conversion").value == pytest.approx(0.3)
    assert of("difference", arm="new", by="action_rate").samples == 20
    p = of("difference_p_value", arm="new", by="conversion").value
    assert of("difference", arm="new", by="conversion").detail == f"p = {p:.4g}"
    assert {r.status for r in found} == {Status.OK, Status.NO_DATA}
    assert len(found) == 2 * (len(ARM_METRICS) * 2 + len(ARM_METRICS) * 2)


def test_the_control_and_the_metrics_come_from_the_config(shop: Shop) -> None:
    with_feedback(prepared(shop, people(20), control="new", metrics=["conversion"]), done(0, [0, 2, 1]))
    found = judged(shop)
    assert one(found, "experiment_difference", **LABELS, arm="old", by="conversion").value == 0.1
    assert {r.labels.get("by", "conversion") for r in found} == {"conversion"}


def test_without_feedback_the_arms_are_not_judged(shop: Shop) -> None:
    assert prepared(shop, people(20)).evaluator.parts.names == ("exposures",)


def test_a_broken_split_leaves_all_metrics_of_arms_undefined(shop: Shop) -> None:
    with_feedback(prepared(shop, people(300, ["old"] * 290 + ["new"] * 10)), done(0, [1, 295]))
    found = judged(shop)
    assert {(r.status, r.value, r.lower, r.upper) for r in found} == {(Status.UNDEFINED, None, None, None)}
    (why,) = {r.detail for r in found}
    assert why.startswith("the split is broken: 'old' has 290 users, 96.6667% instead of 50.0000%")
    assert why.endswith("below 0.001; the arms' metrics cannot be used")


def test_an_unnamed_arm_also_leaves_metrics_undefined(shop: Shop) -> None:
    with_feedback(prepared(shop, people(20), people(1, ["<third>"], prefix="s"), people(20)), done(0, [1]))
    assert Status.OK in {r.status for r in judged(shop, 0)}
    assert {r.status for r in judged(shop, 1)} == {r.status for r in judged(shop, 2)} == {Status.UNDEFINED}
    assert "('<third>' 1)" in judged(shop, 2)[0].detail


def test_users_in_two_arms_are_left_out_from_then_on_and_not_before(shop: Shop) -> None:
    moved = people(4, ["new", "old", "new", "old"])
    with_feedback(prepared(shop, people(20), moved), done(0, [0, 1, 8]), done(1, [0, 1, 2]))
    before = one(judged(shop, 0), "experiment_conversion", **LABELS, arm="old")
    assert (before.value, before.samples) == (0.2, 10)
    after = one(judged(shop, 1), "experiment_conversion", **LABELS, arm="old")
    assert (after.status, after.samples) == (Status.NO_DATA, 0)
    assert one(judged(shop, 0), "experiment_conversion", **LABELS, arm="old") == before


def test_the_arms_can_be_judged_before_the_split(another_shop: Any) -> None:
    found = []
    for name, first in (("one", True), ("other", False)):
        shop = with_feedback(prepared(another_shop(name), people(20), people(30)), done(1, [0, 1, 5]))
        if first:
            shop.judge(hour(0))
            shop.judge(hour(1))
        found.append(judged(shop, 1))
    assert found[0] == found[1]


def test_an_empty_arm_is_no_data_and_so_is_its_difference(shop: Shop) -> None:
    with_feedback(prepared(shop, people(6, ["old"] * 6)), done(0, [1]))
    found = judged(shop)
    assert one(found, "experiment_conversion", **LABELS, arm="old").samples == 6
    for metric, labels in (("conversion", {}), ("difference", {"by": "conversion"})):
        empty = one(found, f"experiment_{metric}", **LABELS, **labels, arm="new")
        assert (empty.status, empty.detail) == (Status.NO_DATA, "no user of the arm was seen in the window")


@pytest.mark.parametrize(
    ("number", "users", "why"),
    [
        (0, people(4, [None] * 4), "no user of the experiment was seen"),
        (0, people(4).drop(columns="arm"), "the exposures have no column 'arm'"),
        (1, people(4), "the window holds no exposures"),
    ],
    ids=["nobody", "no column", "no rows"],
)
def test_missing_users_columns_or_rows_are_no_data(
    shop: Shop, number: int, users: pd.DataFrame, why: str
) -> None:
    found = judged(with_feedback(prepared(shop, users), done(0, [1])), number)
    assert {(r.status, r.detail) for r in found} == {(Status.NO_DATA, why)}


def test_empty_lists_have_users_but_no_rate(shop: Shop) -> None:
    shop = with_feedback(prepared(shop), done(0, []).reindex(columns=["user_id", "item_id", "ts", "event"]))
    lists = people(8).assign(
        request_id=[f"r{i}" for i in range(8)], item_id=None, ts=DAY.replace(tzinfo=None)
    )
    shop.write("logs/0.parquet", lists)
    found = judged(shop)
    rate = one(found, "experiment_action_rate", **LABELS, arm="old")
    assert (rate.status, rate.detail) == (Status.UNDEFINED, "no item was shown to the users of the arm")
    less = one(found, "experiment_difference", **LABELS, arm="new", by="action_rate")
    assert less.status is Status.UNDEFINED
    assert less.detail.startswith("no item was shown to the users of the arm")
    assert one(found, "experiment_conversion", **LABELS, arm="old").value == 0.0
    flat = one(found, "experiment_difference", **LABELS, arm="new", by="conversion")
    assert (flat.status, flat.samples) == (Status.UNDEFINED, 8)
    assert "no variance" in flat.detail


CLICKS = MetricSettings()
EXPERIMENT = ExperimentSettings(name="rank", split={"old": 1, "new": 1})


def sums(shown: np.ndarray, n: np.ndarray, value: np.ndarray) -> dict[str, float]:
    return {
        "users": len(n), "shown": shown.sum(), "shown_shown": (shown**2).sum(), "n_0": n.sum(),
        "nn_0": (n**2).sum(), "ny_0": (n * shown).sum(), "who_0": (n > 0).sum(), "value_0": value.sum(),
        "vv_0": (value**2).sum(), "values_0": (n > 0).sum(),
    }  # fmt: skip


def drawn(random: np.random.Generator, users: int, lift: float) -> dict[str, float]:
    """Users who differ in how often they come and how gladly they click."""
    shown = random.poisson(8, users) + 1.0
    taste = random.beta(2, 18 / lift - 2, users)  # on average lift / 9
    n = random.binomial(shown.astype(int), taste).astype(float)
    return sums(shown, n, n * random.gamma(2, 5, users))


def test_the_intervals_contain_the_true_value_as_often_as_stated() -> None:
    """Truth by a very large draw; 95 % intervals that hold it in 93 to 97 of 100 simulated experiments."""
    random = np.random.default_rng(21)
    truth = {
        (r.metric, *sorted(r.labels.items())): r.value
        for r in arm_results(
            EXPERIMENT, {"old": drawn(random, 4_000_000, 1.0), "new": drawn(random, 4_000_000, 1.1)}, CLICKS
        )
    }
    held: dict[tuple[Any, ...], list[bool]] = {}
    for _ in range(1500):
        both = {"old": drawn(random, 600, 1.0), "new": drawn(random, 900, 1.1)}
        for r in arm_results(EXPERIMENT, both, CLICKS):
            if r.lower is not None and r.upper is not None:
                key = (r.metric, *sorted(r.labels.items()))
                held.setdefault(key, []).append(r.lower <= (truth[key] or 0.0) <= r.upper)
    assert len(held) == 12  # four metrics of two arms, and their differences
    covered = {key: np.mean(found) for key, found in held.items()}
    assert all(0.93 <= share <= 0.97 for share in covered.values()), covered


def test_two_equal_arms_differ_at_five_percent_in_five_of_a_hundred_experiments() -> None:
    random = np.random.default_rng(22)
    below: dict[str, list[bool]] = {}
    for _ in range(1500):
        both = {"old": drawn(random, 500, 1.0), "new": drawn(random, 500, 1.0)}
        for r in arm_results(EXPERIMENT, both, CLICKS):
            if r.metric == "experiment_difference_p_value" and r.value is not None:
                below.setdefault(r.labels["by"], []).append(r.value < 0.05)
    assert below.keys() == set(ARM_METRICS)
    assert all(0.03 <= np.mean(found) <= 0.07 for found in below.values()), below
