"""The real daemon with files that would stop it: one recommender's bad files do not hold up the others."""

from __future__ import annotations

import json
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path

import yaml

from monitor.service.daemon import Daemon
from tests.processes import exposures, land, monitor, wait_for
from tests.service.test_daemon import MINUTE, recommender, this_minute


def bomb(path: Path) -> None:
    """A header and 4 GiB of empty lines, in 18 MB; without the header its first line would be refused."""
    packer, lines = zlib.compressobj(1, wbits=31), b"\n" * (1 << 20)
    with path.open("wb") as file:
        file.write(packer.compress(b"ts,request_id,user_id,item_id,position\n"))
        for _ in range(4096):
            file.write(packer.compress(lines))
        file.write(packer.flush())


def test_bad_files_of_one_recommender_do_not_hold_up_the_others(tmp_path: Path) -> None:
    logs = {"exposures": {"path": "logs/bombed/*", "file_deadline": "3s"}}
    config = {"recommenders": [recommender("bombed", logs=logs), recommender("healthy")]}
    (tmp_path / "blacklist.csv").write_text("item_id\nforbidden\n")
    first = this_minute() - 10 * MINUTE
    for name in ("bombed", "healthy"):
        land(tmp_path / f"logs/{name}/a.parquet", exposures(first, 60, items=["forbidden"]))
        land(tmp_path / f"logs/{name}/b.parquet", exposures(first + MINUTE, 60))
    bomb(tmp_path / "logs/bombed/0.csv.gz")
    wide = {f"key_{number}": number for number in range(20_000)}
    (tmp_path / "logs/bombed/1.jsonl").write_text(json.dumps(wide) + "\n")
    with monitor(tmp_path, config) as house:
        for name in ("healthy", "bombed"):
            blacklist = {"recommender": name, "rule": "blacklist", "status": "violated"}
            wait_for(
                f"the first window of {name}",
                lambda name=name: (
                    house.value("recsys_windows_total", recommender=name, status="violated") == 1
                ),
                60,
            )
            assert house.value("recsys_rule_status", **blacklist) is not None
        wait_for("both bad files", house.has("recsys_log_skipped_files", 2, recommender="bombed"))
        page = house.page("/recommenders/bombed")
        assert "raise file_deadline of this log" in page
        assert "raise max_columns of this log" in page
        # From now on the bad files wait: a window of the healthy one is judged soon after its rows are there.
        land(tmp_path / "logs/healthy/c.parquet", exposures(first + 2 * MINUTE, 60))
        land(tmp_path / "logs/healthy/d.parquet", exposures(first + 3 * MINUTE, 60))
        began = time.monotonic()
        end = (first + 3 * MINUTE).timestamp()
        wait_for(
            "the next window of the healthy one",
            house.has("recsys_last_window_end_timestamp_seconds", end, recommender="healthy"),
            40,
        )
        assert time.monotonic() - began < 40
        assert house.running is not None
        assert house.running.output.count("0.csv.gz") <= 3  # not at every look, which is every second


def test_a_reload_tries_bad_files_at_once_and_a_start_does_not(tmp_path: Path) -> None:
    (tmp_path / "blacklist.csv").write_text("item_id\nforbidden\n")
    (tmp_path / "logs/shop").mkdir(parents=True)
    bad = tmp_path / "logs/shop/bad.parquet"
    bad.write_bytes(b"garbage")
    config = {"state": str(tmp_path / "state"), "recommenders": [recommender("shop")]}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))

    def tries(daemon: Daemon) -> int:
        daemon.turn("shop")
        (kept,) = daemon.store.files("shop", "exposures").values()
        return int(kept.buckets["tries"]) if kept.path == str(bad) else 0

    now = datetime(2026, 3, 1, tzinfo=UTC)
    daemon = Daemon(tmp_path / "config.yaml", clock=lambda: now)
    try:
        assert tries(daemon) == 1
        assert tries(daemon) == 1
        now += 2 * MINUTE
        assert tries(daemon) == 2
    finally:
        daemon.close()
    daemon = Daemon(tmp_path / "config.yaml", clock=lambda: now)
    try:
        assert tries(daemon) == 2  # as before the restart
        assert daemon.reload().ok
        assert tries(daemon) == 1  # tried at once, and the waits begin anew
    finally:
        daemon.close()
