"""The daemon judges the forecast of a recommender once for each day that is over."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from tests.forecast.past_days import CLICKS, DAY, NDCG, SHOP, START, put_days, related
from tests.processes import exposures, land


def test_a_turn_judges_the_last_day_once(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    put_days(store, 60, *related())
    end = START + 60 * DAY
    rows = exposures(end - timedelta(hours=1), 600, lists=4)
    land(tmp_path / "logs/1.parquet", rows)
    land(tmp_path / "clicks/1.parquet", rows.assign(event="click"))
    given = {
        "name": SHOP,
        "window": "12h",
        "logs": {name: {"path": str(tmp_path / folder / "*.parquet")}
                 for name, folder in (("exposures", "logs"), ("feedback", "clicks"))},
        "forecast": {"targets": [{"name": "ctr", "metric": "action_rate", "labels": CLICKS,
                                  "used": [{"metric": "ndcg", "labels": NDCG}]}]},
    }  # fmt: skip
    watch = Watch(RecommenderSettings.model_validate(given), (), store, tmp_path / "state", "salt")
    for _ in range(2):
        while watch.turn(runtime, end + timedelta(minutes=15)):
            pass
    (judged,) = store.evaluated(SHOP, "forecast")
    assert judged.window.end == end
    found = [one.result for one in store.results(recommenders=[SHOP]) if one.check == "forecast"]
    (pair,) = [one for one in found if one.metric == "forecast_correlation"]
    assert pair.value is not None
    assert pair.value > 0.8
