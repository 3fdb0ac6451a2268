"""The check of the forecasts runs once for each day that is over, and its results say what was found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from monitor.core.results import Result, Status, Window
from monitor.forecast.candidate import forecast_of
from monitor.forecast.check import ForecastCheck
from monitor.forecast.schedule import ForecastScheduler
from monitor.forecast.specs import FORECAST_SPECS
from monitor.history.forecasts import Outcome
from monitor.history.store import Store
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import HistoryJob
from tests.forecast.past_days import DAY, SHOP, START, put_days, related, settings

NOW = START + timedelta(days=70)


def scheduler(store: Store, of: RecommenderSettings) -> ForecastScheduler:
    return ForecastScheduler(of, store, [ForecastCheck(of)])


def judged(store: Store) -> list[Any]:
    return [one for one in store.results(recommenders=[SHOP]) if one.check == "forecast"]


def by_metric(results: Iterable[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for one in results:
        found.setdefault(one.metric, []).append(one)
    return found


def run(store: Store, of: RecommenderSettings, end: datetime) -> tuple[list[Result], Status]:
    check = ForecastCheck(of)
    results = check.run(HistoryJob(Window(end - DAY, end), store))
    return results, check.status(results)


def test_a_day_is_judged_once_and_a_new_day_or_config_again(store: Store) -> None:
    put_days(store, 60, *related())
    recorded: list[int] = []
    for _ in range(3):
        scheduler(store, settings()).turn(NOW, lambda: recorded.append(1))
    assert len(recorded) == 1
    assert {one.window for one in judged(store)} == {Window(START + 59 * DAY, START + 60 * DAY)}
    put_days(store, 1, *related(), first=60)
    scheduler(store, settings()).turn(NOW, lambda: recorded.append(2))
    assert recorded == [1, 2]
    changed = settings(forecast={"days": 50})
    scheduler(store, changed).turn(NOW, lambda: recorded.append(3))
    assert recorded == [1, 2, 3]


def test_without_a_day_or_without_a_forecast_nothing_is_due(store: Store) -> None:
    scheduler(store, settings()).turn(NOW, lambda: pytest.fail("nothing is judged yet"))


def test_a_failure_is_recorded_as_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put_days(store, 30, *related())

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("monitor.forecast.check.study", broken)
    scheduler(store, settings()).turn(NOW)
    (known,) = store.evaluated(SHOP, "forecast")
    assert known.status is Status.ERROR


def test_the_results_say_what_was_found(store: Store) -> None:
    put_days(store, 60, *related())
    results, status = run(store, settings(), START + 60 * DAY)
    found = by_metric(results)
    assert status is Status.OK
    assert set(found) == set(FORECAST_SPECS)
    (pair,) = found["forecast_correlation"]
    assert dict(pair.labels) == {
        "target": "ctr", "metric": "ndcg", "by": "", "of": "k=10", "role": "used",
    }  # fmt: skip
    assert pair.value is not None
    assert pair.value > 0.8
    assert pair.lower is not None
    assert pair.lower > 0
    rows = list(pair.evidence)
    assert sum("day" in row for row in rows) == 60
    assert sum("lower" in row for row in rows) == 9
    assert json.dumps(rows, allow_nan=False)
    assert [(one.labels["reason"], one.value) for one in found["forecast_basis"]] == [("used", 60.0)]
    (record,) = found["forecast_came_true"]
    assert record.status is Status.NO_DATA


def test_the_record_counts_what_came_true(store: Store) -> None:
    put_days(store, 60, *related())
    made = forecast_of(store, settings(), "m9", "ctr", given=[("ndcg", {}, 0.33)]).stored(NOW)
    store.put_forecast(made)
    results, _ = run(store, settings(), START + 60 * DAY)
    (record,) = by_metric(results)["forecast_came_true"]
    assert record.detail.endswith("; 1 more not yet known")
    store.decide_forecasts([replace(made, outcome=Outcome.CAME_TRUE)])
    results, _ = run(store, settings(), START + 60 * DAY)
    (record,) = by_metric(results)["forecast_came_true"]
    assert (record.value, record.samples) == (1.0, 1)


def test_a_used_metric_that_no_longer_predicts_is_violated(store: Store) -> None:
    ndcg, ctr = related()
    _, other = related(5)
    put_days(store, 90, ndcg, lambda number: ctr(number) if number < 60 else other(number))
    results, status = run(store, settings(forecast={"days": 84, "recent": 28}), START + 90 * DAY)
    assert status is Status.VIOLATED
    (pair,) = by_metric(results)["forecast_correlation"]
    assert pair.status is Status.VIOLATED
    assert "no longer predicts" in pair.detail


def test_an_empty_history_is_no_data(store: Store) -> None:
    results, status = run(store, settings(), START)
    assert {one.status for one in results} == {Status.NO_DATA}
    assert status is Status.OK  # no used pair was judged
