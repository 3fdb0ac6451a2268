"""Which verdicts of the history are shown: those that somebody still asks for, and all of those."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.catalogue import ALL_SPECS
from monitor.core.results import Result, Status, Window
from monitor.history.counters import WINDOWS, key
from monitor.history.logstate import IndexedFile
from monitor.history.record import CheckRun
from monitor.history.snapshot import RecommenderState, Series
from monitor.history.store import Store
from monitor.service.judge import Watched
from monitor.service.publisher import Running, SnapshotPublisher
from monitor.service.tally import Tally
from monitor.service.watch import Watch, WatchState
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


def test_an_objective_that_leaves_the_config_is_forgotten_although_the_history_is_the_same(
    tmp_path: Path, store: Store
) -> None:
    beyond = violated("failure", 9.0, by="pv")
    run = CheckRun(check="exposure", results=[beyond])
    store.record_window("shop", HOUR, [run], fingerprint="1", rows=1, evaluated_at=HOUR.end)
    given = {"name": "shop", "logs": {"exposures": {"path": str(tmp_path / "logs/*.parquet")}}}
    objective = {"metric": "failure", "labels": {"by": "pv"}, "max": 6.0}
    plain = RecommenderSettings.model_validate(given)
    first = Watched(RecommenderSettings.model_validate({**given, "objectives": [objective]}), ())
    running = Running(("shop",), {"shop": first}, {}, HOUR.end)
    publisher = SnapshotPublisher(store, Tally(store), running, lambda: HOUR.end)

    def published(pending: int, watched: Watched) -> RecommenderState:
        watched.state = WatchState(pending=pending)
        publisher.running = replace(running, watches={"shop": watched})
        publisher.publish(of=())
        (state,) = publisher.current().recommenders
        return state

    before = published(1, first)
    again = published(2, first)
    assert (again.pending_windows, again.series) == (2, before.series)
    assert again.series is before.series  # a turn that judges nothing costs little, however many there are
    assert [one.standing for one in again.series] == [Status.VIOLATED]
    assert [one.standing for one in published(3, Watched(plain, ())).series] == [Status.OK]


FEEDBACK = {"feedback": {"path": "feedback/*.parquet"}}


def test_a_log_that_left_the_config_is_shown_no_more(tmp_path: Path, store: Store) -> None:
    broken = IndexedFile(path="f.parquet", size=1, modified="", status="skipped", reason="damaged")
    store.replace_files("shop", "feedback", [broken], watermark=HOUR.end)
    store.set_watermark("shop", "judged:feedback", HOUR.end)
    for check, result in {
        "feedback": Result(metric="conversion", status=Status.OK, definition="1", value=0.1),
        "bands_feedback": violated("anomaly", 3.0, cause="clicks_lost"),
        "drift_feedback": violated("drift", 9.0, **OF),
    }.items():
        store.record_window(
            "shop", HOUR, [CheckRun(check=check, results=[result])],
            fingerprint="1", rows=1, evaluated_at=HOUR.end,
        )  # fmt: skip

    def shown_with(**more: Any) -> RecommenderState:
        logs = {"exposures": {"path": "logs/*.parquet"}, **more}
        asked = {"name": "shop", "logs": logs, "bands": {}}
        watched = Watched(RecommenderSettings.model_validate(asked), ())
        running = Running(("shop",), {"shop": watched}, {}, HOUR.end)
        (state,) = SnapshotPublisher(store, Tally(store), running, lambda: HOUR.end).current().recommenders
        return state

    with_it, without = shown_with(**FEEDBACK), shown_with()
    assert [(one.log, len(one.skipped)) for one in with_it.logs] == [("feedback", 1)]
    assert [one.check for one in with_it.series] == ["bands_feedback", "drift_feedback", "feedback"]
    assert with_it.judged_at == {"feedback": HOUR.end}
    assert "feedback" in with_it.check_seconds
    assert (without.logs, without.series, without.judged_at, without.check_seconds) == ((), (), {}, {})


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


def test_only_the_recommenders_that_are_named_are_read_again(tmp_path: Path, store: Store) -> None:
    def record(name: str, value: float, hours: int) -> None:
        window = Window(HOUR.start + timedelta(hours=hours), HOUR.end + timedelta(hours=hours))
        result = Result(metric="coverage", status=Status.OK, definition="1", labels={"by": "pv"}, value=value)
        store.record_window(
            name, window, [CheckRun(check="exposure", results=[result])],
            fingerprint="1", rows=1, evaluated_at=window.end,
        )  # fmt: skip

    def watched(name: str) -> Watched:
        logs = {"exposures": {"path": str(tmp_path / "logs/*.parquet")}}
        return Watched(RecommenderSettings.model_validate({"name": name, "logs": logs}), ())

    def values() -> dict[str, list[float | None]]:
        states = publisher.current().recommenders
        return {state.name: [one.result.value for one in state.series] for state in states}

    def counted() -> list[float]:
        counters = publisher.current().counters
        return [counters[key(WINDOWS, {"recommender": name, "status": "ok"})] for name in ("a", "b")]

    for name in ("a", "b", "c"):
        record(name, 0.1, 0)
    running = Running(("a", "b"), {name: watched(name) for name in ("a", "b")}, {}, HOUR.end)
    publisher = SnapshotPublisher(store, Tally(store), running, lambda: HOUR.end)
    for name in ("a", "b", "c"):
        record(name, 0.2, 1)
    publisher.publish(of=["a"])
    assert values() == {"a": [0.2], "b": [0.1]}
    assert counted() == [2, 1], "the counters are those of the shown windows"
    publisher.publish(of=())
    assert values() == {"a": [0.2], "b": [0.1]}
    publisher.publish()
    assert values() == {"a": [0.2], "b": [0.2]}
    assert counted() == [2, 2]
    # A reload: one recommender is new, one has left.
    publisher.running = Running(("c", "a"), {name: watched(name) for name in ("a", "c")}, {}, HOUR.end)
    publisher.publish(of=["a"])
    assert values() == {"c": [0.2], "a": [0.2]}
    record("b", 0.3, 2)
    publisher.running = running
    publisher.publish(of=())
    assert values() == {"a": [0.2], "b": [0.3]}


def test_what_is_new_in_the_daemon_is_shown_without_a_new_reading_and_the_rest_is_not_made_again(
    tmp_path: Path, store: Store
) -> None:
    now = HOUR.end
    logs = {"exposures": {"path": str(tmp_path / "logs/*.parquet")}}
    later = now + timedelta(hours=1)
    span = {"from": later.isoformat(), "until": (later + timedelta(hours=1)).isoformat(), "reason": "move"}
    change = {"at": later.isoformat(), "what": "model m2"}

    def watched(name: str, **asked: Any) -> Watched:
        return Watched(RecommenderSettings.model_validate({"name": name, "logs": logs, **asked}), ())

    calm, planned = watched("calm"), watched("planned", maintenance=[span], bands={"changes": [change]})
    running = Running(("calm", "planned"), {"calm": calm, "planned": planned}, {}, now)
    publisher = SnapshotPublisher(store, Tally(store), running, lambda: now)

    def states() -> dict[str, RecommenderState]:
        publisher.publish(of=())
        return {one.name: one for one in publisher.current().recommenders}

    before = states()
    assert all(states()[name] is one for name, one in before.items())
    assert (before["planned"].maintenance, before["planned"].changed_at) == (None, {})
    calm.state = replace(calm.state, error="the log cannot be read", pending=3)
    after = states()
    assert (after["calm"].error, after["calm"].pending_windows) == ("the log cannot be read", 3)
    assert after["planned"] is before["planned"]
    now = later
    moved = states()
    assert moved["planned"].maintenance is not None
    assert set(moved["planned"].changed_at) == {"declared"}
    assert moved["calm"] is after["calm"]
    publisher.running = replace(running, elsewhere={"calm": "http://other:9108"})
    assert states()["calm"].judged_by == "http://other:9108"


def test_after_an_error_of_the_history_all_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with Store.open(path) as store:
        names = ("a", "b")
        publisher = SnapshotPublisher(store, Tally(store), Running(names, {}, {}, HOUR.end), lambda: HOUR.end)
        hidden = path.rename(tmp_path / "hidden")
        publisher.publish(of=["a"])
        assert "moved or deleted" in publisher.current().history_error
        hidden.rename(path)
        for name in names:
            run = CheckRun(check="exposure", results=[])
            store.record_window(name, HOUR, [run], fingerprint="1", rows=1, evaluated_at=HOUR.end)
        publisher.publish(of=["a"])
        assert publisher.current().history_error == ""
        assert [state.last_window for state in publisher.current().recommenders] == [HOUR, HOUR]
