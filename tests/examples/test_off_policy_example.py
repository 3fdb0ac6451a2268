"""The estimates of the fashion shop's page: right by plain formulas, and what the page says of them holds."""

from __future__ import annotations

import numpy as np
import pytest

from examples import off_policy

PAIRS = [f"{scene}: {one}" for scene in ("men", "women") for one in ("random → bts", "bts → random")]


@pytest.fixture(scope="module")
def rows(shared):
    return off_policy.read(shared / "data" / "obd")


@pytest.fixture(scope="module")
def found(rows):
    return {one.title: one for one in off_policy.estimates(rows)}


def split(rows, title):
    scene, policies = title.split(": ")
    logging, target = policies.split(" → ")
    mine = rows[rows["scene"] == scene]
    return mine[mine["policy"] == logging], mine[mine["policy"] == target]


def weighted(rows, title):
    """Weights and clicks by a plain loop over the cells of the target's log."""
    log, other = split(rows, title)
    places = other["position"].value_counts()
    shown = other.groupby(["position", "item_id"]).size().to_dict()
    cells = zip(log["position"], log["item_id"], log["score"], strict=True)
    weights = [shown.get((place, item), 0) / places[place] / p for place, item, p in cells]
    return np.array(weights), log["clicked"].to_numpy()


@pytest.mark.parametrize("title", PAIRS)
def test_overlap_and_estimates_are_those_of_plain_formulas(title, rows, found):
    w, r = weighted(rows, title)
    mine = found[title]
    assert mine.overlap.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert mine.overlap.largest == pytest.approx(w.max())
    assert mine.overlap.mean.value == pytest.approx(w.mean())
    assert mine.own.value == pytest.approx(split(rows, title)[1]["clicked"].mean())
    if mine.estimates:
        assert mine.estimates["IPS"].value == pytest.approx((w * r).mean())
        assert mine.estimates["IPS, weights cut at 10"].value == pytest.approx((w.clip(max=10) * r).mean())
        assert mine.estimates["self-normalised IPS"].value == pytest.approx((w * r).sum() / w.sum())


def test_the_doubly_robust_value_is_the_model_plus_its_weighted_error(rows, found):
    title = "men: random → bts"
    log, other = split(rows, title)
    w, r = weighted(rows, title)
    total = 0.0
    shares = {place: own["item_id"].value_counts(normalize=True) for place, own in other.groupby("position")}
    for half in (0, 1):
        learnt = log[log["unit"] % 2 != half]
        rate = learnt["clicked"].mean()
        model = {
            item: (own["clicked"].sum() + 1) / (len(own) + 1 / rate)
            for item, own in learnt.groupby("item_id")
        }
        expected = {place: sum(q * model.get(i, rate) for i, q in s.items()) for place, s in shares.items()}
        mine = (log["unit"] % 2 == half).to_numpy()
        for weight, reward, place, item in zip(
            w[mine], r[mine], log.loc[mine, "position"], log.loc[mine, "item_id"], strict=True
        ):
            total += expected[place] + weight * (reward - model.get(item, rate))
    assert found[title].estimates["doubly robust"].value == pytest.approx(total / len(log))


def test_the_intervals_of_weighted_estimates_hold_the_targets_own_click_rate(found):
    for title in PAIRS[:3]:
        for name, estimate in found[title].estimates.items():
            held = estimate.interval.lower <= found[title].own.value <= estimate.interval.upper
            missed = name == "direct method" and title.startswith("men")
            assert held is not missed, (title, name)


def test_no_estimate_proves_that_one_policy_is_better(rows, found):
    for title in PAIRS[:3]:
        logged = split(rows, title)[0]["clicked"].mean()
        ips = found[title].estimates["IPS"].interval
        assert ips.lower < logged < ips.upper


def test_one_weight_outweighs_a_log_and_leaves_no_estimate(found):
    mine = found["women: bts → random"]
    assert mine.estimates == {}
    assert "10,000 rows are worth 2.03" in mine.overlap.reason


@pytest.mark.parametrize("scene", ["men", "women"])
def test_the_mean_logged_propensity_of_the_shown_rows_is_no_probability(scene, rows):
    bts = rows[(rows["scene"] == scene) & (rows["policy"] == "bts")]
    assert off_policy.shares(bts).groupby("position").sum().to_numpy() == pytest.approx([1, 1, 1])
    of_shown = bts.groupby(off_policy.CELL)["score"].mean().groupby("position").sum()
    assert of_shown.min() > 1.6
