"""Which verdicts of the history are shown: those that somebody still asks for, and all of those."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.catalogue import ALL_SPECS
from monitor.core.results import Result, Status, Window
from monitor.history.record import CheckRun
from monitor.history.snapshot import Series
from monitor.history.store import Store
from monitor.service.publisher import Running, SnapshotPublisher
from monitor.service.tally import Tally
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = Window(START, START + timedelta(hours=1))
RANK = {"name": "rank", "column": "arm", "split": {"control": 1, "new": 1}, "start": START.isoformat()}
OF = {"metric": "failure", "by": "pv", "of": ""}


def violated(name: str, value: float, /, **labels: str) -> Result:
    return Result(
        kind=ALL_SPECS[name].kind, metric=name, status=Status.VIOLATED, definition="1", labels=labels,
        value=value, threshold=6.0, bound="max",
    )  # fmt: skip


def shown(folder: Path, store: Store, check: str, result: Result, **asked: Any) -> tuple[Series, ...]:
    """What the picture of a recommender with this config shows of one result of the history."""
    store.record_window(
        "shop",
        HOUR,
        [CheckRun(check=check, results=[result])],
        fingerprint="1",
        rows=1,
        evaluated_at=HOUR.end,
    )
    logs = {"exposures": {"path": str(folder / "logs/*.parquet")}}
    settings = RecommenderSettings.model_validate({"name": "shop", "logs": logs, **asked})
    watch = Watch(settings, (), store, folder / "state", "salt")
    running = Running(("shop",), {"shop": watch}, {}, HOUR.end)
    (state,) = SnapshotPublisher(store, Tally(store), running, lambda: HOUR.end).current().recommenders
    return state.series


@pytest.mark.parametrize(
    ("check", "result"),
    [
        ("bands", violated("deviation", 9.0, **OF)),
        ("bands", violated("anomaly", 3.0, cause="lists_empty")),
        ("drift", violated("drift", 9.0, **OF)),
    ],
)
def test_verdicts_of_bands_are_shown_only_while_the_config_has_bands(
    check: str, result: Result, tmp_path: Path, store: Store
) -> None:
    (one,) = shown(tmp_path, store, check, result, bands={})
    assert (one.result, one.standing) == (result, Status.VIOLATED)
    assert shown(tmp_path, store, check, result, bands=None) == ()


def test_a_broken_split_is_shown_as_such_until_its_experiment_leaves_the_config(
    tmp_path: Path, store: Store
) -> None:
    split = violated("experiment_split_p_value", 0.0001, experiment="rank", by="anytime")
    (one,) = shown(tmp_path, store, "exposure", split, experiments=[RANK])
    assert (one.result, one.standing) == (split, Status.VIOLATED)
    (one,) = shown(tmp_path, store, "exposure", split)
    assert (one.result.status, one.result.threshold, one.standing) == (Status.OK, None, Status.OK)


def test_the_violation_of_an_objective_that_is_gone_is_not_shown(tmp_path: Path, store: Store) -> None:
    beyond = violated("failure", 9.0, by="pv")
    objective = {"metric": "failure", "labels": {"by": "pv"}, "max": 6.0}
    (one,) = shown(tmp_path, store, "exposure", beyond, objectives=[objective])
    assert one.standing is Status.VIOLATED
    (one,) = shown(tmp_path, store, "exposure", beyond)
    assert (one.standing, one.result.value) == (Status.OK, 9.0)


CTR = {"metric": "action_rate", "labels": {"by": "exposure", "event": "click"}}
OF_FORECAST = {"target": "ctr", "metric": "ndcg", "by": "", "of": "k=10", "role": "used"}


@pytest.mark.parametrize(
    ("used", "is_shown"), [([{"metric": "ndcg", "labels": {"k": "10"}}], True), ([{"metric": "mrr"}], False)]
)
def test_a_broken_forecast_is_shown_only_while_the_config_uses_its_metric(
    tmp_path: Path, used: list[dict[str, Any]], is_shown: bool
) -> None:
    result = violated("forecast_correlation", 0.1, **OF_FORECAST)
    asked = {"forecast": {"targets": [{"name": "ctr", **CTR, "used": used}]}}
    with Store.open(f"sqlite:///{tmp_path}/history.sqlite") as store:
        assert bool(shown(tmp_path, store, "forecast", result, **asked)) == is_shown
        assert shown(tmp_path, store, "forecast", result) == ()
