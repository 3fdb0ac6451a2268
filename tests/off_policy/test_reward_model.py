"""The model of the reward: against scikit-learn row by row, in simulated worlds, and where none is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from monitor.core.results import Status
from monitor.off_policy import estimate as module
from monitor.off_policy import queries, reward_model
from monitor.off_policy.reward_model import predictions
from monitor.statistics.off_policy import Rows, doubly_robust, importance_weights
from tests.off_policy.conftest import write
from tests.off_policy.test_estimate import asked, by_name, estimated


def cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of group, place, item and reward, counted."""
    by = [name for name in rows if name != "reward"]
    counted = rows.groupby(by)["reward"].agg(["size", "sum"]).reset_index()
    return counted.rename(columns={"size": "rows", "sum": "hits"})


def world(rng, users=300, rate=0.1, items=6):
    """A log of random lists of two, its target, and what the target earns; users differ in their taste."""
    appeal, place = rng.normal(0, 0.7, items), np.array([0.4, -0.4])
    base = math.log(rate / (1 - rate))
    target = rng.dirichlet(np.full(items, 0.7), 2)
    user = np.repeat(np.arange(users), rng.integers(1, 8, users))
    taste = rng.normal(0, 0.5, users)
    parts, truth = [], 0.0
    for k in (0, 1):
        item = rng.integers(0, items, len(user))
        reward = rng.random(len(user)) < expit(base + appeal[item] + place[k] + taste[user])
        part = {"group": user % 10, "place": str(k), "item": item.astype(str), "reward": reward.astype(float)}
        parts.append(pd.DataFrame(part).assign(user=user, q=target[k][item], p=1 / items))
        of_items = expit(base + appeal + place[k] + rng.normal(0, 0.5, (4000, 1))).mean(axis=0)
        truth += float(target[k] @ of_items) / 2
    wanted = [(str(k), str(item), target[k][item]) for k in (0, 1) for item in range(items)]
    return pd.concat(parts, ignore_index=True), pd.DataFrame(wanted, columns=["place", "item", "q"]), truth


def rate_of(train: pd.DataFrame, columns: list[str]):
    """The rates that scikit-learn predicts if it is fitted row by row."""
    encoder = OneHotEncoder(handle_unknown="ignore").fit(train[columns])
    model = LogisticRegression(max_iter=500).fit(encoder.transform(train[columns]), train["reward"])
    return lambda rows: model.predict_proba(encoder.transform(rows[columns]))[:, 1]


def test_the_command_gives_doubly_robust_and_the_direct_method_by_their_formulas(
    logs_of, tmp_path, monkeypatch
):
    logs = logs_of(3)
    random = np.random.default_rng(1)
    scene = np.repeat(random.choice(["home", "cart"], len(logs.logged) // 2), 2)
    write(tmp_path, "logged", logs.logged.assign(scene=scene))
    kept: dict = {}
    fit, corrected = module.predictions, queries.corrected

    def keep_target(counted, target, context):
        kept["target"] = target
        return fit(counted, target, context)

    def keep_rows(rows, *further):
        kept["rows"] = rows.to_pandas()
        return corrected(rows, *further)

    monkeypatch.setattr(module, "predictions", keep_target)
    monkeypatch.setattr(queries, "corrected", keep_rows)
    found = by_name(estimated(logs.config, asked(context=("scene",)))[0])
    rows, target = kept["rows"], kept["target"]
    rows = rows[rows["w"].notna()].reset_index(drop=True)
    assert set(rows["context_0"]) == {"home", "cart"}
    assert rows["group"].nunique() == 10
    columns = ["item", "place", "context_0"]

    def expected(rate, of):
        """Sum over the target's items of q times the predicted rate, for each row."""
        both = of[["place", "context_0"]].reset_index().merge(target, on="place")
        return (both["q"] * rate(both)).groupby(both["index"]).sum().reindex(of.index).to_numpy()

    total, left = 0.0, []
    for group, own in rows.groupby("group"):
        others = rows[rows["group"] != group]
        rate = rate_of(others, columns)
        total += (expected(rate, own) + own["w"] * (own["reward"] - rate(own))).sum()
        left.append(expected(rate, others).mean())
    assert found["doubly_robust"].value == pytest.approx(total / len(rows), rel=1e-3)
    direct = found["direct_method"]
    assert direct.value == pytest.approx(expected(rate_of(rows, columns), rows).mean(), rel=1e-3)
    error = math.sqrt(0.9 * ((np.array(left) - np.mean(left)) ** 2).sum())
    assert (direct.upper - direct.lower) / 2 == pytest.approx(2.262 * error, rel=0.1)


@pytest.mark.parametrize(
    ("length", "column", "reason"),
    [
        (2, "price", "the column 'price' differs within "),
        (2, "shelf", ""),
        (2, "scene", ""),
        (1, "price", "each item has one value of 'price'; if it belongs to the item, leave it out"),
        (1, "scene", ""),
    ],
)
def test_a_context_that_comes_with_the_item_is_said_to_be_none(logs_of, tmp_path, length, column, reason):
    """A shelf belongs to its place in the list, which is known before the draw."""
    logs = logs_of(3, length=length, broken=False)
    lists = len(logs.logged) // length
    scene = np.repeat(np.random.default_rng(1).choice(["home", "cart"], lists), length)
    prices = logs.logged["item_id"].str.removeprefix("i").astype(int) % 3
    shelf = logs.logged["position"].map("shelf {}".format)
    write(tmp_path, "logged", logs.logged.assign(scene=scene, price=prices, shelf=shelf))
    found = by_name(estimated(logs.config, asked(context=(column,)))[0])
    for name in ("direct_method", "doubly_robust"):
        assert reason in found[name].detail
        assert (found[name].value is None) == ("differs" in reason)
        assert reason or found[name].detail == ""
    assert found["ips"].value is not None


def test_a_target_in_a_column_has_no_direct_method(logs_of):
    found = by_name(estimated(logs_of(0).config, asked(column="own", target=None))[0])
    assert found["ips"].status is Status.OK
    for name in ("direct_method", "doubly_robust"):
        assert found[name].status is Status.NO_DATA
        assert found[name].detail == "the target's probabilities of the items that were not shown are unknown"


def test_the_intervals_hold_what_the_target_earns():
    """12 worlds; at 95 %, fewer than 9 have a chance of two in ten thousand."""
    rng = np.random.default_rng(5)
    direct = robust = 0
    for _ in range(12):
        rows, target, truth = world(rng)
        found = predictions(cells(rows[["group", "place", "item", "reward"]]), target, [])
        direct += found.direct.interval.lower <= truth <= found.direct.interval.upper
        both = rows.merge(found.shown, on=["group", "place", "item"])
        both = both.merge(found.expected, on=["group", "place"])
        weights = importance_weights(both["q"], both["p"]).values
        log = Rows.of(weights, both["reward"], both["user"].to_numpy())
        one = doubly_robust(log, both["predicted"], both["expected"])
        robust += one.interval.lower <= truth <= one.interval.upper
    assert direct >= 9
    assert robust >= 9


def test_a_model_that_is_clearly_wrong_is_said_to_be(logs_of, tmp_path):
    """One item earns at the first position alone, another at the second: no sum of effects says so."""
    logs = logs_of(2, lists=3000, broken=False)
    hit = {1: "i0", 2: "i1"}
    log = logs.logged
    good = log["item_id"] == log["position"].map(hit)
    feedback = log.loc[good, ["request_id", "user_id", "item_id", "ts"]].assign(event="click")
    write(tmp_path, "feedback", feedback)
    wanted = logs.wanted.assign(item_id=logs.wanted["position"].map(hit))
    write(tmp_path, "wanted", wanted)
    found = by_name(estimated(logs.config, asked(cap=100.0))[0])
    assert found["ips"].value == pytest.approx(1.0, rel=0.1)
    assert found["direct_method"].value < 0.95
    assert found["direct_method"].detail.startswith(
        "do not use it: by the weighted rows, the predictions are too low by 0."
    )
    assert found["doubly_robust"].value == pytest.approx(1.0, rel=0.1)


def some_cells(**columns) -> pd.DataFrame:
    given = {"group": range(10), "place": "1", "item": "a", "rows": 10, "hits": 1.0, **columns}
    return pd.DataFrame(given)


TARGET = pd.DataFrame({"place": ["1", "1"], "item": ["a", "b"], "q": [0.5, 0.5]})


@pytest.mark.parametrize(
    ("counted", "reason"),
    [
        (some_cells(hits=0.0), "no row has a reward"),
        (some_cells(group=[0] * 10), "one group of users is not enough"),
        (some_cells().iloc[:0], "no row has a reward"),
    ],
)
def test_nothing_to_learn_from_has_a_reason(counted, reason):
    found = predictions(counted, TARGET, [])
    assert isinstance(found, str)
    assert reason in found


def test_too_much_to_learn_has_a_reason(monkeypatch):
    monkeypatch.setattr(reward_model, "MOST_CELLS", 9)
    why = "there are more than 9 combinations of position, item and context"
    assert predictions(some_cells(), TARGET, []) == why
    monkeypatch.setattr(reward_model, "MOST_CELLS", 10)
    monkeypatch.setattr(reward_model, "_MOST_PREDICTIONS", 1)
    assert "the context has too many values" in predictions(some_cells(), TARGET, [])


def test_few_groups_have_no_direct_method_and_every_reward_is_a_rate_of_1():
    found = predictions(some_cells(group=[0, 1, 2, 3, 0, 1, 2, 3, 0, 1]), TARGET, [])
    assert found.direct is None
    # The item that no row shows has the mean.
    assert found.expected["expected"].tolist() == pytest.approx([0.1] * 4, rel=0.01)
    every = predictions(some_cells(hits=10.0), TARGET, [])
    assert every.direct.value == 1.0
    assert 0.9 < every.direct.interval.lower < 0.96  # 100 rows do not prove that each row has a reward
    assert every.direct.interval.upper == 1.0
    assert every.shown["predicted"].tolist() == [1.0] * 10
    last = predictions(some_cells(hits=[0.0] * 9 + [2.0]), TARGET, [])  # one group alone was rewarded
    assert last.shown["predicted"].iloc[-1] == 0.0
    assert 0 <= last.direct.interval.lower < last.direct.value < last.direct.interval.upper < 1


def test_a_position_that_the_target_lacks_earns_nothing():
    found = predictions(some_cells(place=["1"] * 5 + ["2"] * 5), TARGET, [])
    values = found.expected.set_index("place")["expected"]
    assert values["2"].tolist() == [0.0] * 5
    assert (values["1"] > 0).all()
