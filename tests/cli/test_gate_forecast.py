"""Conditions of a gate on a forecast: what past days predict for a candidate."""

from __future__ import annotations

import json

import pytest

from monitor.history.store import Store
from tests.cli.conftest import run_monitor
from tests.forecast.past_days import put_days, related

LOGS = "logs: {exposures: {path: x.parquet}, feedback: {path: y.parquet}}"
CONFIG = f"""\
state: ./state
recommenders:
  - name: shop
    {LOGS}
    window: 12h
    forecast:
      days: 60
      targets:
        - name: ctr
          metric: action_rate
          labels: {{by: exposure, event: click}}
          used: [{{metric: ndcg, labels: {{k: "10"}}}}]
    gate:
      against: shop
      conditions: [{{name: low, owner: ranking, reason: Clicks pay., forecast: ctr, min: 0.01}}]
  - name: candidate
    {LOGS}
    window: 12h
    gate: &gate
      against: shop
      conditions:
        - {{name: low, owner: ranking, reason: Clicks pay., forecast: ctr, min: 0.01}}
        - {{name: middle, owner: ranking, reason: Clicks pay., forecast: ctr, min: 0.06}}
        - {{name: high, owner: ranking, reason: Clicks pay., forecast: ctr, min: 0.2}}
  - name: unknown
    {LOGS}
    window: 12h
    gate: *gate
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Sixty days of shop, and seven days of a candidate whose ndcg is that of a good day of shop."""
    folder = tmp_path_factory.mktemp("gate_forecast")
    (folder / "shop.yaml").write_text(CONFIG)
    (folder / "state").mkdir()
    ndcg, ctr = related()
    with Store.open(f"sqlite:///{folder}/state/history.sqlite") as store:
        put_days(store, 60, ndcg, ctr)
        put_days(store, 7, lambda at: 0.31 + 0.05 * (at % 7 >= 5), ctr, name="candidate", first=53)
    return folder


def judged(shop, *arguments):
    ran = run_monitor("gate", *arguments, "-c", "shop.yaml", "--format", "json", cwd=shop)
    content = json.loads(ran.out)
    return ran.code, {one["name"]: one for one in content["conditions"]}


def test_a_forecast_passes_fails_or_is_not_known_by_its_whole_interval(shop):
    code, found = judged(shop, "candidate")
    assert {name: one["outcome"] for name, one in found.items()} == {
        "low": "passed", "middle": "not_known", "high": "failed",
    }  # fmt: skip
    assert code == 1
    middle = found["middle"]
    assert middle["asks"] == "the forecast of ctr is at least 0.06"
    assert middle["lower"] < 0.06 < middle["upper"]
    assert middle["candidate"]["samples"] == 60


def test_a_candidate_of_whom_nothing_is_known_never_passes(shop):
    code, found = judged(shop, "unknown")
    assert code == 3
    assert {one["outcome"] for one in found.values()} == {"not_known"}
    assert {one["candidate"]["status"] for one in found.values()} == {"no_data"}
    code, found = judged(shop, "shop:model=m9")
    assert (code, found["low"]["outcome"]) == (3, "not_known")
    assert "m9" in found["low"]["detail"]


def test_the_other_side_must_have_the_forecast(shop):
    code, found = judged(shop, "candidate", "--against", "unknown")
    assert code == 3
    assert {one["detail"] for one in found.values()} == {"unknown has no forecast of 'ctr'"}


def test_a_part_of_another_recommender_has_no_forecast(shop):
    code, found = judged(shop, "candidate:model=m7")
    assert (code, found["low"]["outcome"]) == (3, "not_known")
    assert "'candidate:model=m7': a forecast by the past of shop is of one of its" in found["low"]["detail"]


def test_the_recommender_of_the_past_is_no_candidate(shop):
    code, found = judged(shop, "shop")
    assert (code, found["low"]["outcome"]) == (3, "not_known")
    assert "a forecast is of another recommender, or of a model, as shop:model=m7" in found["low"]["detail"]
