"""The daemon when its history cannot be written: it lives, says so, counts it, and catches up."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.processes import ROOT, Monitor, exposures, free_port, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
UNLIMITED = resource.RLIM_INFINITY


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Monitor]:
    """A daemon that has judged one window; `next_window` gives it another."""
    recommender = {
        "name": "shop",
        "logs": {"exposures": {"path": "logs/*.parquet"}},
        "window": "1m",
        "every": "1s",
        "lateness": "10s",
    }
    next_window(tmp_path)
    with monitor(tmp_path, {"recommenders": [recommender]}) as running:
        wait_for("the first window", running.has("recsys_windows_total", recommender="shop", status="ok"))
        yield running


def next_window(folder: Path) -> None:
    """Rows of one more minute and of no other: long overdue, each file makes one window due."""
    number = len(list((folder / "logs").glob("*"))) if (folder / "logs").exists() else 0
    first = datetime(2026, 3, 1, tzinfo=UTC) + number * MINUTE
    land(folder / f"logs/{number}.parquet", exposures(first, 60))


def store_errors(shop: Monitor, *faults: str) -> float:
    return sum(shop.value("recsys_store_errors_total", fault=fault) or 0 for fault in faults)


def judged(shop: Monitor) -> float:
    return shop.value("recsys_windows_total", recommender="shop") or 0


def test_a_locked_history_is_waited_for_and_counted_and_nothing_is_lost(shop: Monitor) -> None:
    before = judged(shop)
    with closing(sqlite3.connect(shop.folder / "state/history.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        next_window(shop.folder)
        wait_for("an error", lambda: store_errors(shop, "locked") >= 1, 60)
        failed = shop.value("recsys_scheduler_runs_total", recommender="shop", outcome="failed")
        assert (failed or 0) >= 1
        for path in ("/", "/metrics", "/-/healthy", "/-/ready"):
            assert get(shop.url + path)[0] == 200
        assert judged(shop) == before
        other.execute("ROLLBACK")
    wait_for("the window", lambda: judged(shop) == before + 1, 60)
    wait_for("a good run", lambda: stored(shop, "recsys_store_errors_total") >= 1, 60)
    assert shop.value("recsys_log_files", recommender="shop") == 2


def stored(shop: Monitor, name: str) -> float:
    with closing(sqlite3.connect(shop.folder / "state/history.sqlite")) as history:
        return float(
            history.execute("SELECT sum(value) FROM counters WHERE name = ?", [name]).fetchone()[0] or 0
        )


def test_a_full_disk_is_counted_and_the_daemon_goes_on_when_there_is_room_again(shop: Monitor) -> None:
    assert shop.running is not None
    pid, before = shop.running.process.pid, judged(shop)
    # No file of this process may grow beyond 4 KiB: its writes then fail as on a full disk.
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, UNLIMITED))
    next_window(shop.folder)
    wait_for("an error", lambda: store_errors(shop, "full", "unreachable") >= 1, 60)
    assert get(f"{shop.url}/-/healthy")[0] == 200
    assert judged(shop) == before
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
    wait_for("the window", lambda: judged(shop) == before + 1, 60)
    assert shop.running.process.poll() is None


def test_a_folder_of_pairs_that_cannot_be_written_leaves_the_windows_due(shop: Monitor) -> None:
    before = judged(shop)
    folder = shop.folder / "state/kept/shop"
    folder.rename(folder.with_name("away"))
    folder.write_text("a file in the place of the folder")
    next_window(shop.folder)
    wait_for("an error", lambda: store_errors(shop, "unreachable") >= 1, 60)
    assert judged(shop) == before
    folder.unlink()
    wait_for("the window", lambda: judged(shop) == before + 1, 60)


def test_a_history_out_of_reach_ends_the_start_with_a_sentence_and_no_password(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    recommender = "recommenders: [{name: shop, logs: {exposures: {path: x}}}]\n"
    for url in (
        f"postgresql://monitor:kept-to-itself@127.0.0.1:{free_port()}/history",
        f"postgresql://monitor@127.0.0.1:{free_port()}/history?password=kept-to-itself",
    ):
        path.write_text(f"history: {{url: '{url}'}}\nlog: {{level: debug}}\n{recommender}")
        command = [sys.executable, "-m", "monitor", "run", "--config", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
        assert done.returncode == 2
        assert "kept-to-itself" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert "error" in done.stderr
