"""The health score of windows: when it is there, what it rests on, and when it goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.cli.one_off import one_off
from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.core.results import Status, Window
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.service.publisher import Running, SnapshotPublisher
from monitor.service.tally import Tally
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from tests.processes import exposures, land

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SOON = FIRST + 3 * HOUR  # before any window could be called late
COVERAGE = {"metric": "coverage", "labels": {"by": "pv"}, "zero": 0, "one": 1}
CLICKS = {
    "metric": "action_rate",
    "labels": {"by": "pv", "event": "click"},
    "zero": 0,
    "one": 0.5,
    "weight": 3,
}


def config(folder: Path, *parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "shop",
        "logs": {
            "exposures": {"path": str(folder / "logs/*.parquet")},
            "feedback": {"path": str(folder / "feedback/*.parquet")},
        },
        "max_wait": "30d",
        "metrics": {"attribution": "10m"},
        "health": {"parts": parts},
    }


def watch(folder: Path, store: Store, *parts: dict[str, Any], window: str = "1h") -> Watch:
    given = {**config(folder, *parts), "window": window}
    if not parts:
        del given["health"]
    return Watch(RecommenderSettings.model_validate(given), (), store, folder / "state", "salt")


def write(folder: Path, hours: int, clicked: int = 10) -> None:
    """Hours of ten lists, of which so many are clicked, a log each."""
    for number in range(hours):
        shown = exposures(FIRST + number * HOUR, 3600)
        land(folder / f"logs/{number}.parquet", shown)
        clicks = shown.groupby("request_id", sort=False).head(1).head(clicked)
        clicks = clicks[["request_id", "user_id", "item_id", "ts"]].assign(event="click")
        land(folder / f"feedback/{number}.parquet", clicks)


def scores(store: Store) -> dict[int, tuple[Status, float | None]]:
    return {
        int((one.window.start - FIRST) / HOUR): (one.result.status, one.result.value)
        for one in store.results()
        if one.result.metric == "health_score"
    }


def test_the_score_waits_until_the_actions_are_judged(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    write(tmp_path, 2, clicked=2)
    shop = watch(tmp_path, store, COVERAGE, CLICKS)
    shop.turn(runtime, SOON)
    judged = {one.check for one in store.evaluated("shop", start=FIRST, end=FIRST + HOUR)}
    assert "exposure" in judged
    assert scores(store) == {}  # the hour's clicks may still come
    write(tmp_path, 4, clicked=2)
    shop.turn(runtime, SOON + 2 * HOUR)
    # every list holds something, and 0.2 of the 0.5 clicks a list that are all one can ask for
    assert scores(store)[0] == (Status.OK, pytest.approx((1 + 3 * 0.4) / 4))
    corrections = store.counters()["recsys_corrections_total", (("recommender", "shop"),)]
    shop.turn(runtime, SOON + 2 * HOUR)
    assert store.counters()["recsys_corrections_total", (("recommender", "shop"),)] == corrections


def test_a_score_of_exposures_alone_does_not_wait(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    write(tmp_path, 2)
    watch(tmp_path, store, COVERAGE).turn(runtime, SOON)
    assert scores(store)[0] == (Status.OK, 1.0)


def test_late_clicks_correct_the_score(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    write(tmp_path, 4, clicked=2)
    watch(tmp_path, store, CLICKS).turn(runtime, SOON + 2 * HOUR)
    before = scores(store)[0]
    write(tmp_path, 4, clicked=5)
    watch(tmp_path, store, CLICKS).turn(runtime, SOON + 2 * HOUR)
    assert (before[1], scores(store)[0][1]) == (pytest.approx(0.4), 1.0)


def test_after_a_change_of_the_window_the_score_is_of_the_new_window_alone(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    write(tmp_path, 6)
    requests = {"metric": "volume", "labels": {"by": "requests"}, "zero": 0, "one": 40}
    watch(tmp_path, store, requests, CLICKS).turn(runtime, SOON + 3 * HOUR)
    watch(tmp_path, store, requests, CLICKS, window="2h").turn(runtime, SOON + 4 * HOUR)
    parts = [
        one.result
        for one in store.results()
        if one.window == Window(FIRST, FIRST + 2 * HOUR) and one.result.metric == "health_part"
    ]
    assert [one.value for one in parts if one.labels["part"] == "volume by=requests"] == [0.5]  # 20 of 40


def test_a_score_that_left_the_config_is_not_shown(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    write(tmp_path, 2)
    with_score, without = watch(tmp_path, store, COVERAGE), watch(tmp_path, store)
    with_score.turn(runtime, SOON)

    def shown(shop: Watch) -> set[str]:
        running = Running(("shop",), {"shop": shop}, {}, SOON)
        (state,) = SnapshotPublisher(store, Tally(store), running, lambda: SOON).current().recommenders
        return {one.result.metric for one in state.series if one.check == "health"}

    assert shown(with_score) == {"health_score", "health_part"}
    assert shown(without) == set()


def test_without_a_daemon_a_window_has_its_score_after_its_last_part(tmp_path: Path) -> None:
    import yaml

    write(tmp_path, 4, clicked=2)
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"recommenders": [config(tmp_path, COVERAGE, CLICKS)]}))
    loaded = load_config(path)
    (checked,) = check_config(loaded, tmp_path)
    assert checked.problems == ()
    first = Window.of(FIRST, HOUR)
    with one_off(loaded, checked, "salt") as once:
        once.look(SOON + 2 * HOUR)
        found = list(once.judge([first], SOON + 2 * HOUR))
    assert [[run.check for run in one.runs][-1] for one in found] == ["exposure", "health"]
    score = found[-1].runs[-1].results[0]
    assert (score.metric, score.value) == ("health_score", pytest.approx((1 + 3 * 0.4) / 4))
