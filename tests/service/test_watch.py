"""One recommender under watch, without a daemon around it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from monitor.core.results import Status
from monitor.history import reads
from monitor.history.errors import StoreError
from monitor.history.reads import Evaluated
from monitor.history.store import Store
from monitor.judging.evaluate import Evaluator
from monitor.judging.runtime import Runtime
from monitor.metrics.catalogue import SPECS
from monitor.metrics.history import WINDOW
from monitor.metrics.shared import Shared
from monitor.service.watch import WINDOWS_A_TURN, Watch
from monitor.service.worker import Worker
from monitor.settings.recommender import RecommenderSettings
from tests.processes import exposures, land

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOW = datetime.now(UTC)
LOGS = {"exposures": "logs", "feedback": "feedback"}


def watch(folder: Path, store: Store, **settings: object) -> Watch:
    given = {
        "name": "shop",
        "logs": {"exposures": {"path": str(folder / "logs/*.parquet")}},
        "metrics": {"disable": [name for name in SPECS if name != "coverage"]},
        **settings,
    }
    return Watch(RecommenderSettings.model_validate(given), (), store, folder / "state", "salt")


def write_hours(folder: Path, count: int) -> None:
    for number in range(count):
        land(folder / f"logs/{number}.parquet", exposures(FIRST + number * HOUR, 3600, lists=4))


def test_housekeeping_before_the_first_window_ends_does_not_stop_the_turns(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shop = watch(tmp_path, store, window="7d")
    land(tmp_path / "logs/a.parquet", exposures(FIRST, 3600))
    now = FIRST + timedelta(days=1)
    shop.turn(runtime, now)
    needed_from = shop.state.needed_from
    assert needed_from is not None
    store.drop_before(now + HOUR, {"shop": needed_from})
    shop.turn(runtime, now + 2 * HOUR)
    assert shop.last_run == now + 2 * HOUR
    assert store.watermarks("shop")["watching_since"] == now


def judged(store: Store) -> list[int]:
    return [int((one.window.start - FIRST) / HOUR) for one in store.evaluated("shop", "exposure")]


def test_a_turn_with_nothing_to_do_asks_the_history_for_its_windows_twice(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hours(tmp_path, 3)
    for number in range(3):
        done = exposures(FIRST + number * HOUR, 3600, lists=4).iloc[::3].drop(columns=["position", "score"])
        land(tmp_path / f"feedback/{number}.parquet", done.assign(event="click"))
    logs = {name: {"path": str(tmp_path / folder / "*.parquet")} for name, folder in LOGS.items()}
    shop = watch(tmp_path, store, logs=logs, bands={})
    assert shop.turn(runtime, NOW) is False
    assert store.evaluated("shop", "bands_feedback")
    asked: list[object] = []
    evaluated = reads.evaluated

    def counted(connection: Connection, name: str, check: object = None, *more: Any) -> list[Evaluated]:
        asked.append(check)
        return evaluated(connection, name, check, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(reads, "evaluated", counted)
    assert shop.turn(runtime, NOW) is False
    assert len(asked) == 2, asked


def test_windows_are_caught_up_newest_first_a_few_per_turn_up_to_catch_up(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    write_hours(tmp_path, WINDOWS_A_TURN + 6)
    shop = watch(tmp_path, store, catch_up=WINDOWS_A_TURN + 2)
    assert shop.turn(runtime, NOW) is True
    assert judged(store) == list(range(6, WINDOWS_A_TURN + 6))
    assert shop.pending == 2
    assert shop.turn(runtime, NOW) is False
    assert judged(store) == list(range(4, WINDOWS_A_TURN + 6))
    assert (shop.pending, shop.last_run, shop.error) == (0, NOW, None)


def test_the_log_line_of_a_window_has_its_verdict_and_the_rows_of_its_part(
    tmp_path: Path, store: Store, runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    write_hours(tmp_path, 1)
    actions = "user_id,item_id,ts,event\n" + "u1,i1,2026-03-01T00:30:00Z,click\n"
    (tmp_path / "feedback.csv").write_text(actions)
    logs = {"exposures": {"path": str(tmp_path / "logs/*.parquet")}}
    with caplog.at_level("INFO", "monitor.service.watch"):
        watch(tmp_path, store, logs=logs).turn(runtime, NOW)
        objectives = [{"metric": "coverage", "labels": {"by": "pv"}, "max": 0.1}]
        logs["feedback"] = {"path": str(tmp_path / "feedback.csv")}
        other = watch(tmp_path, store, name="other", logs=logs, objectives=objectives)
        other.turn(runtime, NOW)
    lines = [one for one in caplog.messages if ": judged " in one]
    span = "2026-03-01 00:00:00+00:00 to 2026-03-01 01:00:00+00:00"
    assert lines[0] == f"shop: judged exposures of {span}: nothing to judge by, 8 rows"
    assert sorted(lines[1:]) == [
        f"other: judged exposures of {span}: violated (1 violated), 8 rows",
        f"other: judged feedback of {span}: nothing to judge by, 1 event",
    ]


def test_windows_that_are_caught_up_are_measured_together(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hours(tmp_path, 5)
    shop, together, alone = watch(tmp_path, store), [], []
    answer = Shared.answer

    def asked(self: Shared, name: str, key: str | None, build: Callable[[], Any]) -> Any:
        if name == "coverage":
            (alone if key is None and name not in self._measured else together).append(key)
        return answer(self, name, key, build)

    monkeypatch.setattr(Shared, "answer", asked)
    shop.turn(runtime, NOW)
    assert judged(store) == list(range(5))
    assert (together, alone) == ([WINDOW, *[None] * 5], [])
    land(tmp_path / "logs/5.parquet", exposures(FIRST + 5 * HOUR, 3600, lists=4))
    shop.turn(runtime, NOW)
    assert (len(together), alone) == (6, [None])  # one window costs no pass of its own


def test_each_pass_over_several_windows_is_preceded_by_a_sign_of_life(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hours(tmp_path, 5)
    shop = watch(tmp_path, store)
    shop.look(runtime, NOW)
    signs: list[str] = []
    original = Evaluator._measured_together

    def measured(self: Evaluator, *given: Any) -> Any:
        signs.append("pass")
        return original(self, *given)

    monkeypatch.setattr(Evaluator, "_measured_together", measured)
    monkeypatch.setattr(shop, "look", lambda *_: True)  # it gives signs of its own
    shop.turn(runtime, NOW, alive=lambda: signs.append("alive"))
    assert signs[:2] == ["alive", "pass"]
    assert signs.count("pass") == 1


def test_retention_does_not_make_a_window_due_again(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    write_hours(tmp_path, 5)  # of a log that is older than the retention
    shop = watch(tmp_path, store, catch_up=3)
    retention = NOW - timedelta(days=1)
    assert store.drop_before(retention, {"shop": shop.needed_from(NOW)}) == 0
    shop.turn(runtime, NOW)
    counters = store.counters()
    assert store.drop_before(retention, {"shop": shop.needed_from(NOW)}) == 0
    shop.turn(runtime, NOW)
    assert judged(store) == [2, 3, 4]
    assert store.counters() == counters
    land(tmp_path / "logs/5.parquet", exposures(FIRST + 5 * HOUR, 3600, lists=4))
    shop.turn(runtime, NOW)
    assert store.drop_before(retention, {"shop": shop.needed_from(NOW)}) > 0
    assert judged(store) == [3, 4, 5]


def test_a_stop_leaves_windows_due_and_a_restart_judges_them(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    write_hours(tmp_path, 5)
    shop = watch(tmp_path, store)
    assert shop.turn(runtime, NOW, stopping=lambda: len(judged(store)) == 2) is True
    assert judged(store) == [3, 4]
    assert watch(tmp_path, store).turn(runtime, NOW) is False
    assert judged(store) == [0, 1, 2, 3, 4]
    assert store.counters()["recsys_corrections_total", (("recommender", "shop"),)] == 0


def test_a_restart_reads_no_file_again(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    write_hours(tmp_path, 3)
    watch(tmp_path, store).turn(runtime, NOW)
    again = watch(tmp_path, store)
    again.turn(runtime, NOW)
    scan = again.evaluator.source.exposures.refresh(runtime.engine, NOW)
    assert (scan.changed, len(again.evaluator.source.exposures.entries)) == ((), 3)
    assert judged(store) == [0, 1, 2]


def test_an_index_that_could_not_be_kept_is_kept_at_the_next_turn(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    write_hours(tmp_path, 1)
    shop = watch(tmp_path, store)
    shop.turn(runtime, NOW)
    write_hours(tmp_path, 2)
    with closing(sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            shop.turn(runtime, NOW)
        other.execute("ROLLBACK")
    assert len(store.files("shop", "exposures")) == 1
    shop.turn(runtime, NOW)
    assert len(store.files("shop", "exposures")) == 2
    assert judged(store) == [0, 1]


def test_files_that_are_removed_for_their_age_change_no_verdict(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    for number in range(3):
        for half in (0, 1):
            start = FIRST + number * HOUR + half * HOUR / 2
            land(tmp_path / f"logs/{number}{half}.parquet", exposures(start, 1800, lists=4))
    shop = watch(tmp_path, store)
    shop.turn(runtime, NOW)
    before = list(store.results())
    for gone in ("00", "01", "10"):
        (tmp_path / f"logs/{gone}.parquet").unlink()
        shop.turn(runtime, NOW)
        assert (list(store.results()), shop.pending) == (before, 0), gone
    land(tmp_path / "logs/late.parquet", exposures(FIRST + 2 * HOUR, 900, lists=2))
    shop.turn(runtime, NOW)
    assert store.counters()["recsys_corrections_total", (("recommender", "shop"),)] == 1


def test_feedback_beside_a_window_that_has_lost_some_of_its_files_changes_no_verdict(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    for number in range(4):
        for half in (0, 1):
            start = FIRST + number * HOUR + half * HOUR / 2
            shown = exposures(start, 1800, lists=4)
            land(tmp_path / f"logs/{number}{half}.parquet", shown)
            clicks = shown[["user_id", "item_id", "ts"]].assign(event="click")
            land(tmp_path / f"feedback/{number}{half}.parquet", clicks)
    logs = {log: {"path": str(tmp_path / f"{name}/*.parquet")} for log, name in LOGS.items()}
    metrics = {"attribution": "30m", "disable": [name for name in SPECS if name != "action_rate"]}
    shop = watch(tmp_path, store, logs=logs, metrics=metrics)
    shop.turn(runtime, NOW)
    before = store.evaluated("shop", "feedback")
    assert len(before) == 4
    # With half of an hour gone, the lists of the next hour's actions may be gone too.
    for gone in ("00", "01", "10", "11"):
        (tmp_path / f"logs/{gone}.parquet").unlink()
        shop.turn(runtime, NOW)
        assert (store.evaluated("shop", "feedback"), shop.pending) == (before, 0), gone


def test_verdicts_stay_when_all_files_of_a_log_are_moved_away(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shop = watch(tmp_path, store)
    shop.turn(runtime, FIRST)  # from now on, windows are expected
    write_hours(tmp_path, 3)
    shop.turn(runtime, FIRST + 5 * HOUR)
    before = [(one.window, one.rows, one.status) for one in store.evaluated("shop", "exposure")]
    assert [rows for _, rows, _ in before] == [8, 8, 8, 0]
    for path in (tmp_path / "logs").iterdir():
        path.unlink()
    shop.turn(runtime, FIRST + 6 * HOUR)
    after = [(one.window, one.rows, one.status) for one in store.evaluated("shop", "exposure")]
    assert after[:4] == before
    assert [rows for _, rows, _ in after[4:]] == [0]  # and what should have come since is missed


def test_a_log_without_any_file_is_an_error_until_one_comes(
    tmp_path: Path, store: Store, runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    shop = watch(tmp_path, store)
    shop.turn(runtime, NOW)
    assert shop.error == f"no file matches {tmp_path / 'logs/*.parquet'}"
    write_hours(tmp_path, 1)
    shop.turn(runtime, NOW)
    assert shop.error is None
    unreachable = watch(tmp_path, store, logs={"exposures": {"path": "nosuchprotocol://x/*.parquet"}})
    for _ in range(2):
        unreachable.turn(runtime, NOW)
        assert "nosuchprotocol" in (unreachable.error or "")
    assert caplog.text.count("nosuchprotocol://x") <= 1, "the same words at every turn bury the rest"


def test_items_that_no_window_needs_are_forgotten(tmp_path: Path, store: Store, runtime: Runtime) -> None:
    write_hours(tmp_path, 2)
    shop = watch(tmp_path, store, catch_up=1, metrics={"history": "1h"})
    shop.turn(runtime, NOW)
    kept = tmp_path / "state/kept/shop"
    assert len(list(kept.glob("*.parquet"))) == 2
    shop.forget(NOW)
    assert len(list(kept.glob("*.parquet"))) == 2  # by the log's time they are new, whatever the clock says
    land(tmp_path / "logs/new.parquet", exposures(FIRST + 72 * HOUR, 3600, lists=4))
    shop.turn(runtime, NOW)
    shop.forget(NOW)
    assert [path.name[:11] for path in kept.glob("*.parquet")] == ["20260304T00"]


def test_counts_of_a_long_look_back_are_forgotten_once_no_window_follows_them(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.window.earlier.FEW", 0)  # a look back is long from the first pair on
    monkeypatch.setattr(Evaluator, "measure_together", lambda *_: {})  # as windows of millions are judged
    write_hours(tmp_path, 3)
    shop = watch(tmp_path, store)
    shop.turn(runtime, NOW)
    counts = tmp_path / "state/kept/shop/counts"
    written = datetime.now(UTC)  # the files' times are those of the machine
    before = len(list(counts.iterdir()))
    assert before >= 4
    shop.forget(written)
    assert len(list(counts.iterdir())) == before
    shop.forget(written + timedelta(days=4))
    assert list(counts.iterdir()) == []


def test_memory_is_given_back_after_the_windows_of_a_turn(
    tmp_path: Path, store: Store, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[int]] = []
    monkeypatch.setattr(runtime, "give_back", lambda: given.append(judged(store)))
    write_hours(tmp_path, 3)
    shop = watch(tmp_path, store)
    shop.turn(runtime, NOW)
    assert given == [[0, 1, 2]]
    shop.turn(runtime, NOW)  # nothing is due
    assert len(given) == 1


def test_engines_are_reopened_after_many_windows(tmp_path):
    made = []

    def make():
        made.append(Runtime(tmp_path / "spill"))
        return made[-1]

    worker = Worker(make)
    first = worker.runtime()
    first.judged = 29
    assert worker.runtime() is first
    first.judged = 30
    assert worker.runtime() is not first
    assert worker.runtime().judged == 0
    worker.drop_runtime()
    assert len(made) == 2


def test_a_late_window_counts_as_late_without_rules_and_objectives(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    shop = watch(tmp_path, store)
    shop.turn(runtime, FIRST)  # from here on it watches
    write_hours(tmp_path, 2)
    for number in range(2):
        written = (FIRST + (number + 1) * HOUR).timestamp()
        os.utime(tmp_path / f"logs/{number}.parquet", (written, written))
    assert shop.turn(runtime, FIRST + 4 * HOUR) is False
    found = {
        dict(labels)["status"]: count
        for (name, labels), count in store.counters().items()
        if name == "recsys_windows_total" and count
    }
    verdicts = [(one.window.start, one.status) for one in store.evaluated("shop", "exposure")]
    assert verdicts == [(FIRST, Status.OK), (FIRST + HOUR, Status.LATE), (FIRST + 2 * HOUR, Status.LATE)]
    assert found == {"ok": 1, "late": 2}
