"""Every query about forecasts, platforms and roll-ups, asked of a Prometheus that scraped the real exporter.

They are judged once a day, some over weeks. Here the daemon's own parts judge days of the past in a moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from monitor.forecast.candidate import forecast_of
from monitor.forecast.check import ForecastCheck
from monitor.forecast.schedule import ForecastScheduler
from monitor.history.forecasts import Outcome
from monitor.history.read_snapshot import read_snapshot
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from tests.end_to_end.panel_queries import queries
from tests.end_to_end.servers import Prometheus, exported
from tests.forecast import past_days
from tests.platform import shop
from tests.processes import exposures, land, wait_for

DAYS = 37
SHIFTED = DAYS - 7
WINDOW = timedelta(hours=6)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("days")
    pictures = of_forecasts(folder), of_platforms(folder), of_rollups(folder)
    picture = Snapshot(
        pictures[0].taken_at, tuple(one for picture in pictures for one in picture.recommenders)
    )
    with exported(folder, picture) as server:
        wait_for("the days to be scraped", lambda: server.ask("recsys_platform_amount"))
        yield server


def of_forecasts(folder: Path) -> Snapshot:
    """A shop whose click rate is predicted from ndcg, with a forecast that came true."""
    given = past_days.settings(name="predicted")
    now = past_days.START + 70 * past_days.DAY
    with Store.open(folder / "forecasts.sqlite") as store:
        past_days.put_days(store, 60, *past_days.related(), name="predicted")
        stored = forecast_of(store, given, "m9", "ctr", given=[("ndcg", {}, 0.33)]).stored(now)
        store.put_forecast(stored)
        store.decide_forecasts([replace(stored, outcome=Outcome.CAME_TRUE)])
        ForecastScheduler(given, store, [ForecastCheck(given)]).turn(now)
        return read_snapshot(store, ["predicted"], now)


def of_platforms(folder: Path) -> Snapshot:
    """A shop whose recommender takes its orders from search."""
    shop.world_of_arms(folder, DAYS, SHIFTED)
    given = shop.settings(folder, window="1d", experiments=[shop.RANKER])
    return judged(folder, given, shop.FIRST + DAYS * shop.DAY + timedelta(hours=7))


def of_rollups(folder: Path) -> Snapshot:
    """A shop whose windows are added up to days."""
    logs = folder / "rollups"
    for window in range(5):  # the first day, and a window after it
        shown = exposures(shop.FIRST + window * WINDOW, WINDOW.total_seconds())
        land(logs / f"exposures/{window}.parquet", shown)
        done = shown.iloc[::3].drop(columns=["position", "score"])
        events = [("click", "order")[row % 2] for row in range(len(done))]
        land(logs / f"feedback/{window}.parquet", done.assign(event=events))
    items = [f"i{number}" for number in range(7)]
    land(logs / "catalog.parquet", pd.DataFrame({"item_id": items, "category": [*"aabbcca"]}))
    given = {
        "name": "rolled",
        "window": "6h",
        "rollups": ["1d"],
        "logs": {
            "exposures": {"path": str(logs / "exposures/*.parquet")},
            "feedback": {"path": str(logs / "feedback/*.parquet")},
            "catalog": {"path": str(logs / "catalog.parquet")},
        },
        "metrics": {"attribution": "1h"},
    }
    settings = RecommenderSettings.model_validate(given)
    return judged(folder, settings, shop.FIRST + shop.DAY + timedelta(hours=8))


def judged(folder: Path, given: RecommenderSettings, now: datetime) -> Snapshot:
    """What the daemon's own parts find when they look for the first time at this time."""
    runtime = Runtime(folder / "spill", threads=1)
    try:
        with Store.open(folder / f"{given.name}.sqlite") as store:
            watch = Watch(given, (), store, folder / f"state-{given.name}", "salt")
            for _ in range(40):
                now += timedelta(minutes=1)
                if not watch.turn(runtime, now):
                    return read_snapshot(store, [given.name], now)
    finally:
        runtime.close()
    raise AssertionError("the turns never end")


@pytest.mark.parametrize("expression", list(queries("days")))
def test_a_panel_of_days_has_data(expression: str, prometheus: Prometheus) -> None:
    prometheus.data(expression)


def test_the_timelines_show_a_shift_and_a_metric_that_predicts(prometheus: Prometheus) -> None:
    timelines = [str(one.values[0]) for one in queries("days") if "6 *" in str(one.values[0])]
    told = [sorted(int(one["value"][1]) for one in prometheus.data(each)) for each in timelines]
    assert sorted(told) == [[1], [6, 6]]
