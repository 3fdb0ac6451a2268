"""A judge in a process of its own: the same verdicts, and what happens if the process hangs or ends."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.core.redaction import keep_secret
from monitor.core.results import Result, Window
from monitor.history.errors import Fault, StoreError
from monitor.history.store import Store
from monitor.judging.runtimes import open_runtime
from monitor.metrics.catalogue import SPECS
from monitor.service import judge_process
from monitor.service.judge import LocalJudge, TurnFailed, TurnInterrupted, Watched
from monitor.service.judge_process import ProcessJudge, Setting
from monitor.service.watch import WINDOWS_A_TURN, News
from monitor.service.worker import Worker
from monitor.settings.engine import EngineSettings
from monitor.settings.recommender import RecommenderSettings
from tests.processes import exposures, land, wait_for

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOW = FIRST + timedelta(days=2)
ENGINE = EngineSettings(threads=1)
HOURS = 5


def never() -> bool:
    return False


def watched(folder: Path, name: str = "shop", **settings: object) -> Watched:
    given = {
        "name": name,
        "logs": {"exposures": {"path": str(folder / f"{name}/*.parquet")}},
        "metrics": {"disable": [one for one in SPECS if one not in ("coverage", "novelty")]},
        **settings,
    }
    return Watched(RecommenderSettings.model_validate(given), ())


def write(folder: Path, name: str = "shop", hours: int = HOURS) -> None:
    for number in range(hours):
        land(folder / f"{name}/{number}.parquet", exposures(FIRST + number * HOUR, 3600, lists=4))


def setting(folder: Path) -> Setting:
    return Setting(ENGINE, folder / "history.sqlite", folder / "state", "salt")


@pytest.fixture
def judge(tmp_path: Path, store: Store) -> Iterator[ProcessJudge]:
    """A judge that writes into the history `store`, which is at its newest schema."""
    made = ProcessJudge(0, lambda: setting(tmp_path))
    yield made
    made.finish(0, 0)
    made.close()


def process_of(judge: ProcessJudge) -> int:
    process = judge._process
    assert process is not None
    assert process.pid is not None
    return process.pid


def stored(store: Store, name: str = "shop") -> list[tuple[Window, str, Result]]:
    return [
        (one.window, one.check, replace(one.result, labels=dict(sorted(one.result.labels.items()))))
        for one in store.results(recommenders=[name])
    ]


def test_it_gives_the_verdicts_and_the_state_of_a_judge_in_this_process(
    tmp_path: Path, store: Store, judge: ProcessJudge
) -> None:
    write(tmp_path)
    shop, other = watched(tmp_path), watched(tmp_path)
    seen: list[tuple[News, int]] = []
    assert judge.turn(shop, NOW, never, lambda news: seen.append((news, shop.state.pending))) is False
    with Store.open(tmp_path / "other.sqlite") as history:
        local = LocalJudge(
            Worker(lambda: open_runtime(ENGINE, tmp_path / "spill")), lambda: history, tmp_path / "b", "salt"
        )
        assert local.turn(other, NOW, never, lambda _: None) is False
        local.close()
        assert stored(store) == stored(history) != []
    assert shop.state == other.state
    assert shop.state.last_run == NOW
    assert shop.state.needed_from is not None
    assert [left for _, left in seen] == [0, 4, 3, 2, 1, 0], "after the look, and after each window"
    checks = {one.check for one in store.evaluated(shop.name)}
    assert [news for news, _ in seen] == [frozenset(), *[frozenset(checks)] * 5]


def test_the_process_stays_and_knows_its_recommenders(
    tmp_path: Path, store: Store, judge: ProcessJudge
) -> None:
    write(tmp_path, hours=1)
    shop = watched(tmp_path)
    judge.turn(shop, NOW, never, lambda _: None)
    first = process_of(judge)
    land(tmp_path / "shop/more.parquet", exposures(FIRST + HOUR, 3600))
    judge.turn(shop, NOW, never, lambda _: None)
    assert process_of(judge) == first
    assert len(store.evaluated("shop", "exposure")) == 2


def test_news_that_cannot_be_shown_are_not_taken_for_those_of_the_next_recommender(
    tmp_path: Path, store: Store, judge: ProcessJudge
) -> None:
    write(tmp_path, hours=3)
    write(tmp_path, "news", hours=1)
    shop, other = watched(tmp_path), watched(tmp_path, "news")

    def fails(_: News) -> None:
        raise ValueError("the page cannot be made")

    with pytest.raises(ValueError, match="the page"):
        judge.turn(shop, NOW, never, fails)
    judge.turn(other, NOW, never, lambda _: None)
    assert len(store.evaluated("news", "exposure")) == 1
    assert (other.state.last_run, other.state.pending) == (NOW, 0)
    judge.turn(shop, NOW, never, lambda _: None)
    assert len(store.evaluated("shop", "exposure")) == 3


def test_a_process_that_is_killed_loses_no_window_and_judges_none_twice(
    tmp_path: Path, store: Store, judge: ProcessJudge
) -> None:
    write(tmp_path)
    shop = watched(tmp_path)

    def kill(_: News) -> None:
        if shop.state.pending:
            os.kill(process_of(judge), signal.SIGKILL)

    with pytest.raises(TurnFailed, match="ended with SIGKILL, as the system does if memory runs out"):
        judge.turn(shop, NOW, never, kill)
    assert shop.state.error is not None
    assert "SIGKILL" in shop.state.error
    before = {one.window: one.evaluated_at for one in store.evaluated("shop", "exposure")}
    assert 1 <= len(before) < HOURS
    assert judge.turn(shop, NOW + HOUR, never, lambda _: None) is False
    after = {one.window: one.evaluated_at for one in store.evaluated("shop", "exposure")}
    assert len(after) == HOURS
    assert before.items() <= after.items()
    assert shop.state.error is None


def test_a_process_that_gives_no_sign_is_killed_and_replaced(
    tmp_path: Path, store: Store, judge: ProcessJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    shop = watched(tmp_path, deadline="1s")
    judge.turn(watched(tmp_path, "nothing"), NOW, never, lambda _: None)  # the process is up
    monkeypatch.setattr(judge_process, "SILENCE", 1.0)
    hung = process_of(judge)

    def stop(_: News) -> None:
        os.kill(hung, signal.SIGSTOP)  # as a file system that does not answer

    with pytest.raises(TurnFailed, match="gave no sign for 3 s and was killed"):
        judge.turn(shop, NOW, never, stop)
    wait_for("the end of the process", lambda: not Path(f"/proc/{hung}").exists())
    monkeypatch.undo()
    judge.turn(shop, NOW, never, lambda _: None)
    assert len(store.evaluated("shop", "exposure")) == HOURS


def test_an_error_of_the_history_comes_back_as_itself(tmp_path: Path) -> None:
    write(tmp_path, hours=1)
    (tmp_path / "history.sqlite").write_bytes(b"no database at all" * 1000)
    judge = ProcessJudge(0, lambda: setting(tmp_path))
    with pytest.raises(StoreError, match="damaged, or is not a database") as caught:
        judge.turn(watched(tmp_path), NOW, never, lambda _: None)
    assert caught.value.fault is Fault.CORRUPT
    judge.finish(0, 0)
    judge.close()


def test_any_other_error_is_logged_here_with_its_traceback_and_without_secrets(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    keep_secret("swordfish-and-more", "(hidden)")
    state = tmp_path / "swordfish-and-more"
    state.write_text("a file, where the monitor needs a folder")
    judge = ProcessJudge(0, lambda: replace(setting(tmp_path), state=state))
    write(tmp_path, hours=1)
    shop = watched(tmp_path)
    with caplog.at_level(logging.INFO), pytest.raises(TurnFailed, match=r"the last run failed: \w+Error"):
        judge.turn(shop, NOW, never, lambda _: None)
    judge.close()
    assert shop.state.error == "the last run failed: NotADirectoryError"
    (failed,) = (one for one in caplog.records if one.levelno == logging.ERROR)
    assert (failed.msg, failed.args) == ("%s: the run failed", ("shop",)), "equal errors count as equal"
    assert failed.exc_text is not None
    assert failed.exc_text.startswith("Traceback")
    assert "(hidden)" in failed.exc_text
    assert "swordfish" not in failed.exc_text


def test_a_stop_interrupts_the_turn_and_the_window_stays_due(
    tmp_path: Path, store: Store, judge: ProcessJudge
) -> None:
    write(tmp_path, hours=WINDOWS_A_TURN)
    shop = watched(tmp_path)

    def stop(_: News) -> None:
        if shop.state.pending:
            judge.stop()

    assert judge.turn(shop, NOW, never, stop) is True
    assert 1 <= len(store.evaluated("shop", "exposure")) < WINDOWS_A_TURN
    assert judge.finish(5, 1) is True


def test_a_process_that_does_not_stop_in_time_is_killed(
    tmp_path: Path, store: Store, judge: ProcessJudge
) -> None:
    write(tmp_path)
    shop = watched(tmp_path)
    is_stopping = threading.Event()
    ended: list[bool] = []
    thread = threading.Thread(target=lambda: ended.append(judge.finish(0.1, 0.1)))

    def hang(_: News) -> None:
        if not is_stopping.is_set():
            os.kill(process_of(judge), signal.SIGSTOP)
            is_stopping.set()
            thread.start()

    with pytest.raises(TurnInterrupted):
        judge.turn(shop, NOW, is_stopping.is_set, hang)
    thread.join()
    assert ended == [True]


def test_a_recommender_that_was_elsewhere_comes_back_with_what_was_judged_there(
    tmp_path: Path, store: Store, judge: ProcessJudge
) -> None:
    write(tmp_path, hours=1)
    shop = watched(tmp_path)
    judge.turn(shop, NOW, never, lambda _: None)
    land(tmp_path / "shop/more.parquet", exposures(FIRST + HOUR, 3600))
    local = LocalJudge(
        Worker(lambda: open_runtime(ENGINE, tmp_path / "spill")), lambda: store, tmp_path / "state", "salt"
    )
    local.turn(shop, NOW, never, lambda _: None)
    local.close()
    assert shop.judge is local
    land(tmp_path / "shop/last.parquet", exposures(FIRST + 2 * HOUR, 3600))
    judge.turn(shop, NOW, never, lambda _: None)
    evaluated = store.evaluated("shop", "exposure")
    assert [one.window.start for one in evaluated] == [FIRST, FIRST + HOUR, FIRST + 2 * HOUR]
    assert store.counters() == {
        key: value for key, value in store.counters().items() if "corrections" not in key[0] or value == 0
    }


def test_an_error_before_the_turn_leaves_the_process_alive_and_is_shown(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("a file, where the history needs a folder")
    history = tmp_path / "taken" / "history.sqlite"
    judge = ProcessJudge(0, lambda: replace(setting(tmp_path), history=f"nonsense://{history}"))
    shop = watched(tmp_path)
    with caplog.at_level(logging.INFO), pytest.raises(TurnFailed, match=r"the last run failed: \w+"):
        judge.turn(shop, NOW, never, lambda _: None)
    assert shop.state.error is not None
    assert shop.state.error.startswith("the last run failed: ")
    assert [one.msg for one in caplog.records if one.levelno == logging.ERROR] == ["%s: the run failed"]
    process = process_of(judge)
    with pytest.raises(TurnFailed):
        judge.turn(shop, NOW, never, lambda _: None)
    assert process_of(judge) == process
    judge.close()
