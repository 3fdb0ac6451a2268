"""The daemon when its history cannot be written: it lives, says so, counts it, and catches up."""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from monitor.service.tally import WAITING_FILE
from tests.forked import run_forked
from tests.postgres import PASSWORD, postgres
from tests.processes import ROOT, Monitor, exposures, free_port, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
RECOMMENDER = {
    "name": "shop",
    "logs": {"exposures": {"path": "logs/*.parquet"}},
    "window": "1m",
    "every": "1s",
    "lateness": "10s",
}
UNLIMITED = resource.RLIM_INFINITY


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Monitor]:
    """A daemon that has judged one window; `next_window` gives it another."""
    next_window(tmp_path)
    with monitor(tmp_path, {"recommenders": [RECOMMENDER]}) as running:
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
        wait_for("an error", lambda: store_errors(shop, "locked") >= 1)
        failed = shop.value("recsys_scheduler_runs_total", recommender="shop", outcome="failed")
        assert (failed or 0) >= 1
        for path in ("/", "/metrics", "/-/healthy"):
            assert get(shop.url + path)[0] == 200
        code, reason = get(f"{shop.url}/-/ready")
        assert (code, "locked" in reason) == (503, True)
        assert judged(shop) == before
        other.execute("ROLLBACK")
    wait_for("the window", lambda: judged(shop) == before + 1)
    wait_for("a good run", lambda: stored(shop, "recsys_store_errors_total") >= 1)
    wait_for("it to be ready again", lambda: get(f"{shop.url}/-/ready")[0] == 200)
    assert shop.value("recsys_log_files", recommender="shop") == 2


def test_a_moved_history_is_waited_for_and_nothing_is_lost(shop: Monitor) -> None:
    before, state = judged(shop), shop.folder / "state"
    names = [path.name for path in state.glob("history.sqlite*")]
    (state / "away").mkdir()
    for name in names:
        (state / name).rename(state / "away" / name)
    next_window(shop.folder)
    wait_for("several errors", lambda: store_errors(shop, "unreachable") >= 4, 60)
    code, reason = get(f"{shop.url}/-/ready")
    assert (code, "was moved or deleted" in reason) == (503, True)
    down = scrapes(shop, 4)
    assert down[-1]["recsys_windows_total"] == before
    assert not (state / "history.sqlite").exists()
    for name in names:
        (state / "away" / name).rename(state / name)
    wait_for("the window", lambda: judged(shop) == before + 1, 60)
    wait_for("it to be ready again", lambda: get(f"{shop.url}/-/ready")[0] == 200, 60)
    assert never_falls(down + scrapes(shop, 3))


def stored(shop: Monitor, name: str) -> float:
    with closing(sqlite3.connect(shop.folder / "state/history.sqlite")) as history:
        return float(
            history.execute("SELECT sum(value) FROM counters WHERE name = ?", [name]).fetchone()[0] or 0
        )


def test_a_full_disk_is_counted_and_the_daemon_continues_when_there_is_room(shop: Monitor) -> None:
    assert shop.running is not None
    pid, before = shop.running.process.pid, judged(shop)
    # No file of this process may grow beyond 4 KiB: its writes then fail as on a full disk.
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, UNLIMITED))
    next_window(shop.folder)
    wait_for("an error", lambda: store_errors(shop, "full", "unreachable") >= 1)
    assert get(f"{shop.url}/-/healthy")[0] == 200
    assert judged(shop) == before
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
    wait_for("the window", lambda: judged(shop) == before + 1)
    assert shop.running.process.poll() is None


def test_a_folder_of_pairs_that_cannot_be_written_leaves_the_windows_due(shop: Monitor) -> None:
    before = judged(shop)
    folder = shop.folder / "state/kept/shop"
    folder.rename(folder.with_name("away"))
    folder.write_text("a file in the place of the folder")
    next_window(shop.folder)
    wait_for("an error", lambda: store_errors(shop, "unreachable") >= 1)
    assert judged(shop) == before
    folder.unlink()
    wait_for("the window", lambda: judged(shop) == before + 1)


def scrapes(shop: Monitor, times: int, every: float = 0.5) -> list[dict[str, float]]:
    """The sums of some counters in several scrapes, one after the other."""
    found = []
    for _ in range(times):
        names = ("recsys_store_errors_total", "recsys_scheduler_runs_total", "recsys_windows_total")
        series = shop.series()
        found.append({name: sum(v for (one, _), v in series.items() if one == name) for name in names})
        time.sleep(every)
    return found


def never_falls(seen: list[dict[str, float]]) -> bool:
    return all(before[name] <= after[name] for before, after in pairwise(seen) for name in before)


def failures_logged(shop: Monitor) -> int:
    """How often the daemon says that a read or a write of the history failed which it counts."""
    assert shop.running is not None
    lines = shop.running.output.splitlines()
    return sum("history cannot be read" in line or "the window stays due" in line for line in lines)


def test_counters_are_right_while_postgresql_is_stopped_and_after(tmp_path: Path) -> None:
    with postgres() as server:
        config = {"history": {"url": f"{server.url}/postgres"}, "recommenders": [RECOMMENDER]}
        next_window(tmp_path)
        with monitor(tmp_path, config) as shop:
            wait_for("the first window", shop.has("recsys_windows_total", recommender="shop", status="ok"))
            before = judged(shop)
            server.stop()
            next_window(tmp_path)
            wait_for("several errors", lambda: store_errors(shop, "unreachable") >= 6)
            code, reason = get(f"{shop.url}/-/ready")
            assert (code, "cannot be opened or reached" in reason) == (503, True)
            assert PASSWORD not in reason + shop.page()
            assert get(f"{shop.url}/-/healthy")[0] == 200
            assert "The history is down" in shop.page()
            down = scrapes(shop, 8)
            counted, said = store_errors(shop, "unreachable"), failures_logged(shop)
            assert said - 2 <= counted <= said + 2  # two more may happen between the two looks
            assert shop.running is not None
            shop.running.process.kill()  # what waits to be written outlives the process
            shop.running.ended(10)
            server.start()
            shop.start()
            wait_for("the window", lambda: judged(shop) == before + 1)
            after = scrapes(shop, 3)
            assert never_falls(down + after)
            last = after[-1]["recsys_store_errors_total"]
            assert counted <= last <= counted + 8 * 4
            assert store_errors(shop, "unreachable") == last
            wait_for("all of it to be written", lambda: not (tmp_path / f"state/{WAITING_FILE}").exists())
            assert get(f"{shop.url}/-/ready")[0] == 200
            assert "The history is down" not in shop.page()


def test_counters_do_not_count_twice_while_the_history_cannot_be_read(shop: Monitor) -> None:
    with closing(sqlite3.connect(shop.folder / "state/history.sqlite", isolation_level=None)) as other:
        other.execute("ALTER TABLE log_files RENAME TO away")  # every reading for the page now fails
        wait_for("several errors", lambda: store_errors(shop, "other") >= 10)
        down = scrapes(shop, 6)
        counted, said = store_errors(shop, "other"), failures_logged(shop)
        assert said - 2 <= counted <= said + 2
        assert get(f"{shop.url}/-/ready")[0] == 503
        other.execute("ALTER TABLE away RENAME TO log_files")
    wait_for("it to be ready again", lambda: get(f"{shop.url}/-/ready")[0] == 200)
    after = scrapes(shop, 3)
    assert never_falls(down + after)
    assert after[-1]["recsys_store_errors_total"] <= failures_logged(shop)


def test_a_history_out_of_reach_ends_the_start_with_a_sentence_and_no_password(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    recommender = "recommenders: [{name: shop, logs: {exposures: {path: x}}}]\n"
    for url in (
        f"postgresql://monitor:kept-to-itself@127.0.0.1:{free_port()}/history",
        f"postgresql://monitor@127.0.0.1:{free_port()}/history?password=kept-to-itself",
    ):
        path.write_text(f"history: {{url: '{url}'}}\nlog: {{level: debug}}\n{recommender}")
        done = run_forked("run", "--config", path, cwd=ROOT)
        assert done.returncode == 2
        assert "kept-to-itself" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert "error" in done.stderr
