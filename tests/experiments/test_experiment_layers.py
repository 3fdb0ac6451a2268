"""Buckets and layers of experiments: the users of a window, on windows of logs with known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Result, Status
from tests.experiments.test_split_check import prepared
from tests.shop import Shop, hour, one

USERS = 4000


def bucket_of(shop: Shop, buckets: list[Any], count: int = 8) -> Result:
    users = pd.DataFrame({"user_id": [f"u{i}" for i in range(len(buckets))], "arm": "old", "bucket": buckets})
    prepared(shop, users, buckets={"column": "bucket", "count": count})
    return one(shop.judge(hour(0)), "experiment_bucket_p_value", experiment="rank")


def test_a_sound_hash_fills_its_buckets_evenly(shop: Shop) -> None:
    found = bucket_of(shop, list(np.random.default_rng(1).integers(0, 8, USERS)))
    assert found.status is Status.OK
    assert found.value is not None
    assert found.value > 0.01
    assert found.samples == USERS
    assert "on 7 df, chi-square" in found.detail
    assert found.threshold is None


def test_a_broken_hash_has_a_tiny_p_value(shop: Shop) -> None:
    # An even hash of which the last bucket is never reached: 7 of 8.
    found = bucket_of(shop, list(np.random.default_rng(1).integers(0, 7, USERS)))
    assert found.value is not None
    assert found.value < 1e-50


def test_too_many_buckets_are_undefined(shop: Shop) -> None:
    found = bucket_of(shop, list(range(20)))
    assert (found.status, found.value) == (Status.UNDEFINED, None)
    assert found.detail == "more than 8 buckets are in the log"


@pytest.mark.parametrize("buckets", [[None] * 5, []], ids=["null", "no rows"])
def test_users_without_a_bucket_are_no_data(shop: Shop, buckets: list[Any]) -> None:
    found = bucket_of(shop, buckets)
    assert (found.status, found.samples) == (Status.NO_DATA, 0)


def layers(shop: Shop, second: list[Any]) -> Result:
    arms = list(np.random.default_rng(2).choice(["old", "new"], len(second)))
    users = pd.DataFrame({"user_id": [f"u{i}" for i in range(len(second))], "arm": arms, "page": second})
    prepared(shop, users)
    shop.config["experiments"].append({"name": "page", "column": "page", "split": {"x": 2, "y": 1}})
    return one(shop.judge(hour(0)), "experiment_layer_p_value", experiment="rank", against="page")


def test_independent_layers_are_orthogonal(shop: Shop) -> None:
    found = layers(shop, list(np.random.default_rng(3).choice(["x", "y"], USERS, p=[2 / 3, 1 / 3])))
    assert found.value is not None
    assert found.value > 0.01
    assert found.samples == USERS


def test_a_dependent_layer_is_found_with_its_strength(shop: Shop) -> None:
    random = np.random.default_rng(2)
    arms = random.choice(["old", "new"], USERS)  # the same draw as the first layer's
    follows = np.where(
        random.random(USERS) < 0.3, np.where(arms == "old", "x", "y"), random.choice(["x", "y"], USERS)
    )
    found = layers(shop, list(follows))
    assert found.value is not None
    assert found.value < 1e-20
    v = float(found.detail.split("V ")[1])
    assert v == pytest.approx(0.3, abs=0.04)


def test_a_layer_of_one_arm_is_undefined_and_a_layer_without_users_is_no_data(
    shop: Shop, another_shop: Any
) -> None:
    alone = layers(shop, ["x"] * 50)
    assert (alone.status, alone.samples) == (Status.UNDEFINED, 50)
    nobody = layers(another_shop("other"), ["z"] * 50)  # an arm that its split does not name
    assert (nobody.status, nobody.samples) == (Status.NO_DATA, 0)


def test_experiments_on_one_column_are_not_compared(shop: Shop) -> None:
    users = pd.DataFrame({"user_id": ["u", "v"], "arm": ["old", "new"]})
    prepared(shop, users)
    shop.config["experiments"].append({"name": "again", "split": {"old": 1, "new": 1}})
    found = shop.judge(hour(0)).results
    assert not [r for r in found if r.metric == "experiment_layer_p_value"]
    assert {r.labels["experiment"] for r in found if r.metric == "experiment_users"} == {"rank", "again"}
