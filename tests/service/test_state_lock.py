"""Only one process writes a state folder; a crash gives it free."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.service.state_lock import LOCK_FILE, StateInUseError, StateLock
from tests.forked import run_forked
from tests.processes import Monitor, Running, exposures, land, monitor

LOG = {"recommenders": [{"name": "shop", "logs": {"exposures": {"path": "logs/*.parquet"}}, "window": "1m"}]}


def test_a_folder_is_locked_until_it_is_released(tmp_path: Path) -> None:
    state = tmp_path / "new" / "state"
    with StateLock(state):
        with pytest.raises(StateInUseError, match=rf"in use by another monitor \(process {os.getpid()} on "):
            StateLock(state)
        assert (state / LOCK_FILE).stat().st_mode & 0o777 == 0o600
    StateLock(state).release()


def test_the_lock_file_of_an_ended_process_locks_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text(
        "process 1 on elsewhere, and a longer text than the next holder's\n" * 9
    )
    with StateLock(tmp_path):
        assert (tmp_path / LOCK_FILE).read_text().startswith(f"process {os.getpid()} on ")
        assert (tmp_path / LOCK_FILE).read_text().count("\n") == 1


@pytest.mark.parametrize("config", ["config.yaml", "other.yaml"])
def test_a_second_daemon_and_a_backfill_are_refused_and_a_check_is_not(tmp_path: Path, config: str) -> None:
    at = datetime(2026, 1, 5, 10, tzinfo=UTC)  # the log ended long before anybody watched: it is whole
    (tmp_path / "logs").mkdir()
    land(tmp_path / "logs" / "1.parquet", exposures(at, 50))
    with monitor(tmp_path, LOG) as first:
        assert first.running is not None
        port = Monitor(tmp_path, LOG).port
        (tmp_path / "other.yaml").write_text(first.path.read_text().replace(str(first.port), str(port)))
        span = [
            "--from",
            f"{at:%Y-%m-%dT%H:%M:%SZ}",
            "--to",
            f"{at + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}",
        ]
        for arguments in (["run", "-c", config], ["backfill", "-c", config, *span]):
            refused = run_forked(*arguments, cwd=tmp_path)
            assert refused.returncode == 2, refused
            assert f"process {first.running.process.pid} on " in refused.stderr
            assert "Stop that one first, or give this one a folder of its own" in refused.stderr
            assert "Traceback" not in refused.stderr
        checked = run_forked("check", "-c", config, *span, "--format", "json", "--all", cwd=tmp_path)
        assert checked.returncode == 3, checked  # its config judges nothing
        window = f"{at:%Y-%m-%dT%H:%M:%SZ}"
        rows = [one for one in json.loads(checked.stdout) if one["metric"] == "log_rows"]
        assert [(one["window_start"], one["value"], one["status"]) for one in rows] == [(window, 20.0, "ok")]
        assert first.page("/-/healthy")


def test_a_daemon_that_was_killed_leaves_the_folder_free(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with monitor(tmp_path, LOG) as one:
        killed: Running | None = one.running
        assert killed is not None
        killed.process.send_signal(signal.SIGKILL)
        assert killed.process.wait(10) == -signal.SIGKILL
        one.start()
        assert one.running is not None
        assert f"process {one.running.process.pid} on " in (tmp_path / "state" / LOCK_FILE).read_text()
