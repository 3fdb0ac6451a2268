"""Many windows judged by several processes: the results of one process, in order, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from monitor.cli.one_off import OneOff, one_off
from monitor.cli.span import FEWEST, WorkerDied, judge_span
from monitor.config.checks.check import Checked
from monitor.config.load import load_checked
from monitor.judging.evaluate import Evaluation
from monitor.settings.config import Config

START = datetime(2026, 3, 1, tzinfo=UTC)
NOW = START + timedelta(days=40)
WINDOWS = 2 * FEWEST
JUDGED = 12  # of them, by two processes in four tasks
CONFIG = """\
state: state
engine: {{threads: {threads}, workers: 2}}
recommenders:
  - name: shop
    logs:
      exposures: {{path: "exposures/*.parquet"}}
      feedback: {{path: feedback.csv}}
      catalog: {{path: catalog.csv}}
    window: 30m
    slices: {{by: [scene]}}
    rules: [{{pack: blacklist, parameters: {{blacklist: blacklist.csv}}}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows of half an hour in files of a day, one without a row, some with a forbidden item."""
    folder = tmp_path_factory.mktemp("span")
    (folder / "exposures").mkdir()
    rows = f"""
        SELECT 'r' || i // 4 AS request_id, 'u' || (i // 4) % 7 AS user_id,
               'i' || (hash(i) % 40) AS item_id, 1 + i % 4 AS position,
               (hash(i, 1) % 1000) / 1000 AS score, ['home', 'search'][1 + (i // 4) % 2] AS scene,
               TIMESTAMP '{START:%Y-%m-%d}' + to_seconds(i // 4 * 150) AS ts
        FROM range({WINDOWS} * 48) AS numbers(i) WHERE i // 48 <> 7"""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE shown AS {rows}")
    for day in range(-(-WINDOWS // 48)):
        edges = [f"TIMESTAMP '{START + timedelta(days=day + more):%Y-%m-%d}'" for more in (0, 1)]
        place = folder / f"exposures/{day}.parquet"
        query = f"SELECT * FROM shown WHERE ts >= {edges[0]} AND ts < {edges[1]}"
        connection.execute(f"COPY ({query}) TO '{place}' (FORMAT parquet)")
    actions = "SELECT request_id, user_id, item_id, ts + INTERVAL 5 SECOND AS ts, 'click' AS event FROM shown"
    connection.execute(f"COPY ({actions} WHERE hash(request_id, item_id) % 5 = 0) TO '{folder}/feedback.csv'")
    items = "SELECT 'i' || i AS item_id, 'c' || i % 5 AS category FROM range(39) AS numbers(i)"
    connection.execute(f"COPY ({items}) TO '{folder}/catalog.csv'")
    (folder / "blacklist.csv").write_text("item_id\ni3\n")
    return folder


@contextmanager
def judging(folder: Path, threads: int) -> Iterator[tuple[Config, Checked, OneOff]]:
    path = folder / f"{threads}.yaml"
    path.write_text(CONFIG.format(threads=threads))
    config, (checked,) = load_checked(path)
    with one_off(config, checked, "salt") as once:
        once.look(NOW)
        yield config, checked, once


def span(config: Config, checked: Checked, once: OneOff, count: int) -> Iterator[Evaluation]:
    windows, _ = once.windows(None, None, NOW)
    assert len(windows) == WINDOWS
    return judge_span(config, checked, once, windows[:count], NOW, salt="salt")


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.cli.span.FEWEST", JUDGED // 3)
    monkeypatch.setattr("monitor.cli.span._TASK", JUDGED // 4)


@pytest.mark.usefixtures("small_tasks")
def test_two_processes_give_the_results_of_one(folder: Path) -> None:
    found: dict[int, list[object]] = {}
    processes: dict[int, int] = {}
    for threads in (1, 2):
        with judging(folder, threads) as made:
            found[threads], processes[threads] = [], 0
            for evaluation in span(*made, JUDGED):
                processes[threads] = max(processes[threads], len(multiprocessing.active_children()))
                found[threads].append(
                    (
                        evaluation.due,
                        [(run.check, run.status, run.outcome, run.results) for run in evaluation.runs],
                    )
                )
    assert processes == {1: 0, 2: 2}
    assert len(found[1]) == 2 * JUDGED
    assert found[2] == found[1]
    assert len({one.status for _, runs in found[1] for _, _, _, results in runs for one in results}) > 2


@pytest.mark.usefixtures("small_tasks")
def test_one_worker_is_this_process_alone(folder: Path) -> None:
    with judging(folder, 2) as (config, checked, once):
        alone = config.engine.model_copy(update={"workers": 1})
        evaluations = span(config.model_copy(update={"engine": alone}), checked, once, JUDGED)
        next(evaluations)
        assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("small_tasks")
def test_a_worker_that_is_killed_ends_the_command_with_advice(folder: Path) -> None:
    with judging(folder, 2) as made:
        evaluations = span(*made, JUDGED)
        next(evaluations)
        child = multiprocessing.active_children()[0]
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match="ended before it was done") as died:
            list(evaluations)
    assert "engine.threads: 1" in died.value.advice
    assert multiprocessing.active_children() == []


def test_a_command_that_is_killed_leaves_no_process_behind(folder: Path) -> None:
    (folder / "2.yaml").write_text(CONFIG.format(threads=2))
    command = subprocess.Popen(
        [sys.executable, "-m", "monitor", "check", "--config", "2.yaml"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        assert _wait(lambda: len(_of_session(command.pid)) >= 3)
        command.kill()
        command.wait()
        assert _wait(lambda: not _of_session(command.pid))
    finally:
        for pid in _of_session(command.pid):
            os.kill(pid, signal.SIGKILL)


def _wait(holds: object, seconds: float = 120) -> bool:
    assert callable(holds)
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)
    return True


def _of_session(session: int) -> list[int]:
    """The processes of a session that still run, without those that nobody has waited for."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, own = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has just ended
        if int(own) == session and state != "Z":
            found.append(int(folder.name))
    return found
