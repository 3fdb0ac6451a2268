"""A daemon with several recommenders: each has a process to judge it, and none waits for a hung one."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from benchmarks.processes import descendants
from tests.processes import Monitor, Running, exposures, get, land, monitor, wait_for
from tests.service.test_daemon_stop import SLOW_QUERY

MINUTE = timedelta(minutes=1)


def recommender(name: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": name,
        "logs": {"exposures": {"path": f"{name}/*.parquet"}},
        "window": "1m",
        "every": "1s",
        "lateness": "0s",
        "metrics": {"disable": ["novelty", "category_entropy", "update_rate"]},
        **settings,
    }


def judged(running: Monitor, name: str) -> float:
    return running.value("recsys_windows_total", recommender=name) or 0


def test_a_log_that_hangs_delays_no_other_recommender_and_the_daemon_stops_in_time(tmp_path: Path) -> None:
    expectation = {
        "type": "unexpected_rows_expectation",
        "kwargs": {"unexpected_rows_query": SLOW_QUERY},
        "meta": {"rule": "slow", "kind": "hard", "table": "exposures"},
    }
    (tmp_path / "slow.yaml").write_text(yaml.safe_dump({"name": "slow", "expectations": [expectation]}))
    names = ("one", "two", "three")
    first = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    land(tmp_path / "hung/a.parquet", exposures(first, 60, lists=150, items=["slow"] * 300))
    land(tmp_path / "hung/b.parquet", exposures(first + MINUTE, 30))
    for name in names:
        land(tmp_path / name / "a.parquet", exposures(first, 60))
    config = {
        "engine": {"threads": 1, "workers": 2},
        "recommenders": [
            recommender("hung", rules=[{"suite": "slow.yaml"}], deadline="1h"),
            *map(recommender, names),
        ],
    }
    with monitor(tmp_path, config) as running:
        wait_for("a look at the hung log", running.has("recsys_log_files", 2, recommender="hung"))
        for hour in (1, 2):  # twice: also those that began on the thread of the hung one
            for name in names:
                land(tmp_path / name / f"{hour}.parquet", exposures(first + 2 * hour * MINUTE, 60))
            for name in names:
                wait_for(f"{name} to be judged", lambda: judged(running, name) >= 2 * hour)  # noqa: B023
        assert judged(running, "hung") == 0
        assert running.value("recsys_recommender_error") == 0
        assert running.running is not None
        running.running.send(signal.SIGTERM)
        assert running.running.ended(15) == 0


def test_a_killed_daemon_leaves_no_process_behind(tmp_path: Path) -> None:
    first = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    for name in ("one", "two"):
        land(tmp_path / name / "a.parquet", exposures(first, 60))
        land(tmp_path / name / "b.parquet", exposures(first + MINUTE, 60))
    made = Monitor(tmp_path, {"recommenders": list(map(recommender, ("one", "two")))})
    made.write()
    # A whole start, as a user makes it: the daemons of other tests share the server that forks.
    running = Running([sys.executable, "-m", "monitor", "run", "--config", made.path], tmp_path, "whole")
    try:
        running.up(f"{made.url}/-/ready")
        for name in ("one", "two"):
            wait_for(f"{name} to be judged", lambda: judged(made, name) >= 1)  # noqa: B023
        family = descendants(running.process.pid)
        assert len(family) >= 3, "the server that forks, and two judges"
        os.kill(running.process.pid, signal.SIGKILL)
        running.ended(10)
        wait_for("the end of all its processes", lambda: not any(map(is_alive, family)))
        assert get_fails(made.url)
    finally:
        running.stop()


def get_fails(url: str) -> bool:
    try:
        get(url)
    except OSError:
        return True
    return False


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_stop_in_peace_prints_no_warning_of_python(tmp_path: Path) -> None:
    first = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    names = ("one", "two")
    for name in names:
        land(tmp_path / name / "a.parquet", exposures(first, 60))
        land(tmp_path / name / "b.parquet", exposures(first + MINUTE, 60))
    lists = [{"pack": "lists", "parameters": {"max_length": 20}}]
    config = {"engine": {"threads": 1, "workers": 2}}
    made = Monitor(tmp_path, {**config, "recommenders": [recommender(name, rules=lists) for name in names]})
    made.write()
    running = Running([sys.executable, "-m", "monitor", "run", "--config", made.path], tmp_path, "whole")
    try:
        wait_for("a window of each", lambda: all(judged(made, name) for name in names))
        running.send(signal.SIGTERM)
        assert running.ended(20) == 0
    finally:
        running.stop()
    assert "Warning" not in running.output
    assert "leaked" not in running.output
