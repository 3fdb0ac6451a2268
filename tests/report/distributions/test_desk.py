"""Reading on demand is bounded: one request at a time, a deadline, an engine and a folder of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.core.results import Window
from monitor.judging.runtime import Runtime
from monitor.logs.log import Log
from monitor.report.distributions import desk as desks
from monitor.report.distributions import items
from monitor.report.distributions.desk import Busy, Desk, Drawn
from monitor.settings.config import Config
from tests.report.distributions import drawn_shop
from tests.report.distributions.drawn_shop import HOUR, LAST

PATIENCE = 60.0


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return drawn_shop.loaded(drawn_shop.write(tmp_path_factory.mktemp("desk")))


def figures(desk: Desk, config: Config, span: Window = LAST) -> Drawn:
    return desk.figures(config, config.recommenders[0], span)


class Held:
    """A first request that holds the turn until `go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrived, self.go = threading.Event(), threading.Event()
        real = desks.Memo

        def waits(rows: object) -> object:
            self.arrived.set()
            assert self.go.wait(PATIENCE)
            return real(rows)

        monkeypatch.setattr(desks, "Memo", waits)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except Busy as busy:
            results.append(busy)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_the_same_span_is_read_once(config: Config) -> None:
    desk = Desk()
    first = figures(desk, config)
    assert figures(desk, config) is first
    assert figures(desk, config, Window(LAST.start - HOUR, LAST.end - HOUR)) is not first
    reloaded = config.model_copy(update={"recommenders": (config.recommenders[0].model_copy(),)})
    assert figures(desk, reloaded) is not first


def test_only_the_last_spans_are_kept(config: Config) -> None:
    desk = Desk(deadline_seconds=0.0)
    spans = [Window(LAST.start - back * HOUR, LAST.end - back * HOUR) for back in range(10)]
    found = [figures(desk, config, span) for span in spans]
    assert figures(desk, config, spans[-1]) is found[-1]
    assert figures(desk, config, spans[0]) is not found[0]


def test_other_files_in_the_index_are_read_anew(config: Config) -> None:
    known: list[Log] = []

    def restore(_recommender: str, log: Log) -> None:
        if known:
            log.restore(known[0].entries.values() if log.name == "exposures" else ())

    desk = Desk(restore)
    first = figures(desk, config)
    settings = config.recommenders[0]
    log = Log("exposures", settings.logs.named()["exposures"], settings)
    runtime = Runtime(config.state / "other")
    log.refresh(runtime.index, drawn_shop.WRITTEN)
    runtime.close()
    known.append(log)
    second = figures(desk, config)
    assert second is not first
    far = next(iter(log.entries.values()))
    later = replace(far, file=replace(far.file, path="/later"), buckets={})
    log.entries["/later"] = later  # it holds no row of the span
    assert figures(desk, config) is second
    log.entries[far.file.path] = replace(far, digest="other")
    assert figures(desk, config) is not second


def test_a_deadline_interrupts_the_query_and_says_so(config: Config) -> None:
    drawn = figures(Desk(deadline_seconds=0.0), config)
    assert (drawn.finished, drawn.is_complete) == (0, False)
    assert {one.why for one in drawn.figures} == {"Reading was stopped after 0 s. Choose a shorter span."}


def test_what_was_ready_before_the_deadline_is_shown(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second figure runs a query that would take hours."""

    def endless(memo: desks.Memo) -> object:
        query = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"
        memo.rows.engine.cursor.execute(query)
        raise AssertionError("the query was not interrupted")

    slow = desks.Theme(desks.THEMES[1].empty, endless)
    monkeypatch.setattr(desks, "THEMES", (desks.THEMES[0], slow, *desks.THEMES[2:]))
    started = time.monotonic()
    drawn = figures(Desk(deadline_seconds=8.0), config)
    assert 8.0 <= time.monotonic() - started < 20.0
    assert drawn.finished == 1
    assert drawn.figures[0].plots
    assert len(drawn.figures) == 9
    assert {one.why for one in drawn.figures[1:]} == {"Reading was stopped after 8 s. Choose a shorter span."}


def test_another_request_waits_and_then_is_refused(config: Config, held: Held) -> None:
    desk = Desk(wait_seconds=0.3)
    thread, results = in_thread(lambda: figures(desk, config))
    assert held.arrived.wait(PATIENCE)
    started = time.monotonic()
    with pytest.raises(Busy, match="another span"):
        figures(desk, config, Window(LAST.start - HOUR, LAST.end - HOUR))
    assert 0.3 <= time.monotonic() - started < PATIENCE
    held.go.set()
    thread.join(PATIENCE)
    assert isinstance(results[0], Drawn)


def test_a_request_for_the_same_span_waits_and_gets_its_figures(config: Config, held: Held) -> None:
    desk = Desk(wait_seconds=PATIENCE)
    first, of_first = in_thread(lambda: figures(desk, config))
    assert held.arrived.wait(PATIENCE)
    second, of_second = in_thread(lambda: figures(desk, config))
    time.sleep(0.2)
    assert not of_second
    held.go.set()
    first.join(PATIENCE)
    second.join(PATIENCE)
    assert of_first[0] is of_second[0]


def test_few_requests_wait_since_each_holds_a_thread_of_the_server(config: Config, held: Held) -> None:
    desk = Desk(wait_seconds=PATIENCE)
    threads = [in_thread(lambda: figures(desk, config)) for _ in range(5)]
    assert held.arrived.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    refused = None
    while refused is None and time.monotonic() < end:
        thread, results = in_thread(lambda: figures(desk, config))
        threads.append((thread, results))
        thread.join(0.2)
        refused = next(iter(results), None)
    assert isinstance(refused, Busy)
    assert "Several people" in str(refused)
    held.go.set()
    for thread, _ in threads:
        thread.join(PATIENCE)


def test_a_stop_ends_what_is_computed_and_refuses_what_comes(config: Config, held: Held) -> None:
    desk = Desk()
    thread, results = in_thread(lambda: figures(desk, config))
    assert held.arrived.wait(PATIENCE)
    held.go.set()
    desk.stop()
    thread.join(PATIENCE)
    (drawn,) = results
    assert isinstance(drawn, Drawn)
    assert not drawn.is_complete
    assert {one.why for one in drawn.figures[drawn.finished :]} == {
        "Reading was stopped: the monitor is stopping."
    }
    with pytest.raises(Busy, match="stopping"):
        figures(desk, config, Window(LAST.start - HOUR, LAST.end - HOUR))


def test_a_stop_with_nothing_to_end_takes_no_time() -> None:
    started = time.monotonic()
    Desk().stop()
    assert time.monotonic() - started < 1.0


def test_an_error_of_one_figure_leaves_the_others(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(_rows: object) -> object:
        raise ValueError("no such column\x1b[31m <b>")

    monkeypatch.setattr(items, "items_figure", breaks)
    with caplog.at_level(logging.ERROR):
        drawn = figures(Desk(), config)
    assert drawn.figures[0].why.startswith(
        "It cannot be drawn because of an error: ValueError: no such column"
    )
    assert "\x1b" not in drawn.figures[0].why
    assert all(one.plots for one in drawn.figures[1:-1])
    assert drawn.is_complete
    assert "the figure items cannot be drawn" in caplog.text


def test_nothing_is_left_in_the_state_folder(tmp_path: Path) -> None:
    config = drawn_shop.loaded(drawn_shop.write(tmp_path))
    config.state.mkdir(parents=True)
    (config.state / "kept").mkdir()
    before = sorted(config.state.rglob("*"))
    figures(Desk(), config)
    assert sorted(config.state.rglob("*")) == before


def test_the_engine_has_the_memory_and_threads_of_the_config_and_is_closed(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Runtime] = []
    seen: dict[str, object] = {}
    real = desks.Memo

    def opened(folder: Path, **given: object) -> Runtime:
        made.append(Runtime(folder, **given))
        return made[-1]

    def looks(rows: object) -> object:
        names = "memory_limit", "threads", "temp_directory"
        for name in names:
            query = f"SELECT current_setting('{name}')"
            seen[name] = rows.engine.cursor.execute(query).fetchone()[0]
        return real(rows)

    monkeypatch.setattr(desks, "Runtime", opened)
    monkeypatch.setattr(desks, "Memo", looks)
    figures(Desk(), config)
    assert (seen["memory_limit"], seen["threads"]) == ("256.0 MiB", 1)
    assert seen["temp_directory"] == str(config.state / "spill-distributions")
    with pytest.raises(Exception, match="closed"):
        made[0].engine.cursor.execute("SELECT 1")
