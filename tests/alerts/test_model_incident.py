"""A model that is served wrong features: what the real daemon and Prometheus make of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.served import land_samples
from tests.end_to_end.servers import Prometheus
from tests.processes import get, monitor, wait_for

MINUTE = timedelta(minutes=1)
SHOP = {
    "name": "shop",
    "logs": {"samples": {"path": "samples/*.parquet"}},
    "window": "1m",
    "every": "5s",
    "lateness": "1s",
    "catch_up": 2,
}


def alerts(server: Prometheus) -> list[dict[str, Any]]:
    _, body = get(f"{server.url}/api/v1/alerts")
    found: list[dict[str, Any]] = json.loads(body)["data"]["alerts"]
    return [one for one in found if one["labels"]["alertname"] != "RecsysWatchdog"]


@pytest.mark.parametrize(("wrong", "expected"), [(0.6, ["RecsysServingSkew"]), (0.0, [])])
def test_one_incident_of_the_real_daemon_gives_one_alert_and_a_healthy_model_none(
    wrong: float, expected: list[str], tmp_path: Path
) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    land_samples(tmp_path, now - 3 * MINUTE, now + timedelta(seconds=10), wrong)
    with monitor(tmp_path, {"recommenders": [SHOP]}) as made:
        server = Prometheus(tmp_path, made.url.removeprefix("http://"))
        try:
            server.up()
            asked = 'sum by (pair) (recsys_auc_gap_status{status=~"ok|violated"}) == 1'
            wait_for("a verdict on both gaps", lambda: len(server.ask(asked)) == 2)
            if expected:
                wait_for("an alert", lambda: alerts(server))
            # Two more evaluations, so that what would fire beside it has fired.
            seen = "recsys_last_run_timestamp_seconds"
            first = float(wait_for("a run", lambda: server.ask(seen))[0]["value"][1])
            wait_for("later runs", lambda: float(server.ask(seen)[0]["value"][1]) > first + 2)
            # A busy machine misses runs, and the alert that says so is right.
            fired = [one for one in alerts(server) if one["labels"]["alertname"] != "RecsysRunsMissed"]
        finally:
            server.stop()
        assert [one["labels"]["alertname"] for one in fired] == expected
        for one in fired:
            assert one["labels"]["model"] == "ranker-v7"
            assert "Features that differ most: age (" in one["annotations"]["description"]
            assert one["annotations"]["runbook_url"] == f"{made.url}/runbooks/RecsysServingSkew"
            address, _, section = one["annotations"]["evidence"].partition("#")
            status, page = get(address)
            assert (status, f'id="{section}"' in page, "ranker-v7" in page) == (200, True, True)
