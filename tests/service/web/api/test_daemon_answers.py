"""The running daemon answers the API from its own history."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from tests.processes import exposures, get, land, monitor, wait_for

RECOMMENDER = {
    "name": "shop",
    "logs": {"exposures": {"path": "logs/*.parquet"}},
    "window": "1m",
    "every": "1s",
    "lateness": "10s",
}


def test_the_daemon_answers_with_the_windows_that_it_has_judged(tmp_path: Path) -> None:
    land(tmp_path / "logs/0.parquet", exposures(datetime(2026, 3, 1, tzinfo=UTC), 60))
    with monitor(tmp_path, {"recommenders": [RECOMMENDER]}) as running:

        def windows() -> list[dict]:
            return json.loads(get(f"{running.url}/api/v1/recommenders/shop/windows")[1])["data"]

        wait_for("the first window", windows)
        assert [one["window_start"] for one in windows()] == ["2026-03-01T00:00:00Z"]
        monitored = json.loads(get(f"{running.url}/api/v1/monitor")[1])
        assert (monitored["recommenders"], monitored["history_error"]) == (["shop"], "")
