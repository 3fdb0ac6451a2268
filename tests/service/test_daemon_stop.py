"""The daemon under a window that takes for ever: it stops in time, and counts what it could not begin."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.processes import Monitor, exposures, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
SLOW_QUERY = "SELECT one.item_id FROM " + ", ".join(
    f"(SELECT item_id, ts FROM {{batch}} WHERE item_id = 'slow') {name}"
    for name in ("one", "two", "three", "four", "five", "six")
)
SLOW_QUERY += " WHERE hash(one.ts, two.ts, three.ts, four.ts, five.ts, six.ts) = 1"
# Runs that wait longer than a second for the worker are missed, and a turn is two windows: else the tests
# would take minutes.
IMPATIENT = (
    "import monitor.service.schedule as s; s.MISFIRE_GRACE_SECONDS = 1; "
    "import monitor.service.watch as w; w.WINDOWS_A_TURN = 2; from monitor.cli.app import main; main()"
)


@pytest.fixture
def busy(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Monitor]:
    """A daemon in the middle of a window that it will not finish."""
    expectation = {
        "type": "unexpected_rows_expectation",
        "kwargs": {"unexpected_rows_query": SLOW_QUERY},
        "meta": {"rule": "slow", "kind": "hard", "table": "exposures"},
    }
    (tmp_path / "slow.yaml").write_text(yaml.safe_dump({"name": "slow", "expectations": [expectation]}))
    recommenders = [
        {
            "name": name,
            "logs": {"exposures": {"path": f"{name}/*.parquet"}},
            "window": "1m",
            "every": "1s",
            "lateness": "10s",
            "deadline": request.param,
            "rules": [{"suite": "slow.yaml"}],
        }
        for name in ("slow", "quick")
    ]
    first = datetime.now(UTC).replace(second=0, microsecond=0)
    for name, items in (("slow", ["slow"] * 300), ("quick", [])):
        land(tmp_path / name / "a.parquet", exposures(first, 60, lists=150, items=items))
    one = {"threads": 1, "workers": 1}  # so that the quick one waits for the slow one
    with monitor(tmp_path, {"engine": one, "recommenders": recommenders}, start=False) as made:
        made.start(code=IMPATIENT)
        for name in ("slow", "quick"):
            wait_for(f"a look at {name}", made.has("recsys_log_files", recommender=name))
        land(tmp_path / "slow/b.parquet", exposures(first + MINUTE, 30))
        busy_for(made, 2.0)
        yield made


def busy_for(made: Monitor, seconds: float) -> None:
    """Wait until the process has worked this long: only the query does."""
    assert made.running is not None
    before = processor_seconds(made.running.process.pid)
    pid = made.running.process.pid
    wait_for("the slow query to run", lambda: processor_seconds(pid) > before + seconds)


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.parametrize("busy", ["1h"], indirect=True)
def test_it_stops_within_ten_seconds_in_the_middle_of_a_window_which_is_judged_later(busy: Monitor) -> None:
    assert busy.running is not None
    failed = busy.value("recsys_scheduler_runs_total", recommender="slow", outcome="failed")
    started = time.monotonic()
    busy.running.send(signal.SIGTERM)
    assert busy.running.ended(10) == 0
    assert time.monotonic() - started < 10
    assert "interrupting the current window" in busy.running.output
    assert "Traceback" not in busy.running.output
    assert busy.export() == []
    for one in busy.config["recommenders"]:
        one["deadline"] = "1s"
    busy.start()
    interrupted = {"recommender": "slow", "check": "rules", "status": "interrupted"}
    wait_for("the window after the restart", busy.has("recsys_check_runs_total", **interrupted))
    assert busy.value("recsys_scheduler_runs_total", recommender="slow", outcome="failed") == failed == 0


@pytest.mark.parametrize("busy", ["6s"], indirect=True)
def test_runs_that_could_not_start_are_counted_and_the_page_is_still_served(busy: Monitor) -> None:
    overrun = {"recommender": "slow", "outcome": "overrun"}
    wait_for("an overrun", lambda: (busy.value("recsys_scheduler_runs_total", **overrun) or 0) > 1)
    for path in ("/", "/recommenders/slow", "/metrics", "/-/healthy", "/-/ready"):
        assert get(busy.url + path)[0] == 200
    missed = {"recommender": "quick", "outcome": "missed"}
    wait_for("a missed run", lambda: (busy.value("recsys_scheduler_runs_total", **missed) or 0) >= 1)
    before = busy.value("recsys_scheduler_runs_total", recommender="quick", outcome="ok") or 0
    ran = {"recommender": "quick", "outcome": "ok"}
    wait_for("the next run", lambda: (busy.value("recsys_scheduler_runs_total", **ran) or 0) > before)


def test_repeated_stop_signals_before_the_first_window_stop_cleanly(tmp_path: Path) -> None:
    recommenders = [{"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}}]
    with monitor(tmp_path, {"recommenders": recommenders}) as made:
        assert made.running is not None
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            made.running.send(number)  # one may come while another is being handled
        assert made.running.ended(10) == 0
        assert "Traceback" not in made.running.output


@pytest.mark.parametrize("busy", ["2s"], indirect=True)
def test_a_long_catch_up_of_one_recommender_does_not_starve_another(busy: Monitor) -> None:
    first = datetime.now(UTC).replace(second=0, microsecond=0) - 20 * MINUTE
    for number in range(8):
        slow = exposures(first + number * MINUTE, 60, lists=150, items=["slow"] * 300)
        land(busy.folder / f"slow/old{number}.parquet", slow)
    wait_for("the backlog", lambda: (busy.value("recsys_pending_windows", recommender="slow") or 0) > 5)
    runs = {"recommender": "quick", "outcome": "ok"}
    before = busy.value("recsys_scheduler_runs_total", **runs) or 0
    wait_for("a run of the other", lambda: (busy.value("recsys_scheduler_runs_total", **runs) or 0) > before)
    assert (busy.value("recsys_pending_windows", recommender="slow") or 0) > 1


def test_it_stops_in_time_while_reloads_hang(tmp_path: Path) -> None:
    recommenders = [{"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}}]
    with monitor(tmp_path, {"recommenders": recommenders}) as made:
        assert made.running is not None
        made.path.unlink()
        os.mkfifo(made.path)  # whoever opens it waits for a writer, as on a dead network drive
        hanging = threading.Thread(
            target=lambda: get(f"{made.url}/-/reload", data=b"", timeout=30), daemon=True
        )
        threading.excepthook, hook = (lambda _: None), threading.excepthook  # it is cut off
        hanging.start()
        made.running.send(signal.SIGHUP)
        time.sleep(0.5)
        assert get(f"{made.url}/-/healthy")[0] == 200
        made.running.send(signal.SIGTERM)
        assert made.running.ended(10) == 0
        hanging.join(5)
        threading.excepthook = hook
