"""The examples on real logs: their page says what comes out, and what comes out is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from examples import describe

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shop(shared):
    return {found.name: found.results for found in describe.judge(ROOT / "examples" / "obd.yaml")}


@pytest.fixture(scope="module")
def logged(shared):
    return pd.read_csv(shared / "data" / "obd" / "exposures.csv.gz")


def value(results, metric, **labels):
    (found,) = [one for one in results if one.metric == metric and dict(one.labels) == labels]
    return found.value


def test_the_page_is_up_to_date_with_the_examples(shared):
    assert (ROOT / "docs" / "examples.md").read_text("utf-8") == describe.page()


@pytest.mark.parametrize("scene", ["men", "women"])
@pytest.mark.parametrize("policy", ["random", "bts"])
def test_gini_and_effective_sample_size_are_those_of_the_log(scene, policy, shop, logged):
    mine = logged[(logged["scene"] == scene) & (logged["policy"] == policy)]
    n = {"men": 34, "women": 46}[scene]
    counts = np.sort(np.bincount(mine["item_id"].str.split("-").str[1].astype(int), minlength=n))
    ranks = np.arange(1, n + 1)
    gini = ((2 * ranks - n - 1) * counts).sum() / ((n - 1) * counts.sum())
    weights = 1 / mine["score"].to_numpy()
    results = shop[f"{scene}-{policy}"]
    assert value(results, "gini") == pytest.approx(gini, abs=1e-12)
    assert value(results, "effective_sample_size") == pytest.approx(
        weights.sum() ** 2 / (weights**2).sum(), rel=1e-9
    )


def test_bts_shows_few_items_and_has_a_small_effective_sample(shop):
    for scene in ("men", "women"):
        assert value(shop[f"{scene}-random"], "gini") < 0.05
        assert value(shop[f"{scene}-bts"], "gini") > 0.6
    assert value(shop["women-bts"], "effective_sample_size") < 3
    rules = {one.labels["rule"]: one for one in shop["women-bts"] if one.metric == "rule"}
    broken = rules["propensity_out_of_range"]
    assert broken.status == "violated"
    assert broken.evidence[0]["propensity"] < 0.001
    assert len(broken.evidence) == 20


def test_the_news_log_is_measured_without_a_catalog(shared):
    days = list(describe.judge(ROOT / "examples" / "ebnerd.yaml"))
    log = pd.read_csv(shared / "data" / "ebnerd" / "exposures.csv.gz", parse_dates=["ts"])
    assert [day.due.rows for day in days] == log.groupby(log["ts"].dt.date).size().tolist()
    second = days[1].results
    seen = log[log["ts"].dt.date == pd.Timestamp("2023-02-23").date()][["user_id", "item_id"]]
    shown = log[log["ts"].dt.date == pd.Timestamp("2023-02-24").date()][
        ["user_id", "item_id"]
    ].drop_duplicates()
    known = shown.merge(seen.drop_duplicates(), how="left", indicator=True)["_merge"].eq("both")
    assert value(second, "novelty", by="item") == pytest.approx(1 - known.mean(), abs=1e-12)
    assert not any(one.metric == "gini" for one in second)


@pytest.mark.parametrize("scene", ["men", "women"])
@pytest.mark.parametrize("policy", ["random", "bts"])
def test_the_click_rate_is_that_of_the_log(scene, policy, shop, logged, shared):
    clicks = pd.read_csv(shared / "data" / "obd" / "feedback.csv.gz")
    mine = logged[(logged["scene"] == scene) & (logged["policy"] == policy)]
    clicked = clicks["request_id"].isin(mine["request_id"]).sum()
    found = value(shop[f"{scene}-{policy}"], "action_rate", by="exposure", event="click")
    assert found == pytest.approx(clicked / len(mine), abs=1e-12)
