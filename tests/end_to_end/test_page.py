"""From a row in a log to a message at a receiver: the daemon, Prometheus and Alertmanager, all real."""

from __future__ import annotations

import html
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.end_to_end.servers import Alertmanager, Prometheus
from tests.processes import Monitor, Webhook, exposures, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
FORBIDDEN = 'forbidden "item" <b>& more</b>'


@dataclass
class Chain:
    """Everything between a log and a telephone."""

    monitor: Monitor
    prometheus: Prometheus
    webhook: Webhook
    first: datetime  # the start of the first window
    windows: int = 0

    def traffic(self, *items: str) -> None:
        """One more window of the log, and the beginning of the next: then it is judged."""
        start = self.first + self.windows * MINUTE
        self.windows += 1
        land(self.monitor.folder / f"logs/{self.windows}.parquet", exposures(start, 55, items=items))
        land(self.monitor.folder / f"logs/{self.windows}b.parquet", exposures(start + MINUTE, 6, lists=2))

    def messages(self, receiver: str, alert: str) -> list[dict[str, Any]]:
        """What came to a receiver of this alert."""
        return [
            one
            for one in list(self.webhook.alerts)
            if one["path"] == f"/{receiver}" and one["labels"]["alertname"] == alert
        ]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain")
    pd.DataFrame({"item_id": [FORBIDDEN]}).to_csv(folder / "blacklist.csv", index=False)
    recommender = {
        "name": "shop",
        "owner": "search",
        "logs": {"exposures": {"path": "logs/*.parquet"}},
        "window": "1m",
        "every": "1s",
        "lateness": "3s",
        "rules": [{"pack": "blacklist", "parameters": {"blacklist": "blacklist.csv"}}],
    }
    now = datetime.now(UTC)
    webhook = Webhook()
    running: list[Any] = []
    try:
        alertmanager = Alertmanager(folder, webhook.url)
        running.append(alertmanager)
        with monitor(folder, {"recommenders": [recommender]}, start=False) as made:
            target = made.url.removeprefix("http://")
            made.start()  # first: until it answers it is down
            # Not a minute, but longer than Prometheus takes to look at its targets for the first time.
            prometheus = Prometheus(folder, target, alertmanager.target, {"RecsysMonitorDown": "12s"})
            running.append(prometheus)
            alertmanager.up()
            prometheus.up()
            first = now.replace(second=0, microsecond=0) - MINUTE
            yield Chain(made, prometheus, webhook, first)
    finally:
        for one in reversed(running):
            one.stop()
        webhook.close()


def test_a_blacklisted_item_in_the_log_pages_with_a_link_to_the_evidence(chain: Chain) -> None:
    chain.traffic()
    counted = 'recsys_rule_violations_total{recommender="shop", rule="blacklist"}'
    wait_for("a scrape after a good window", lambda: chain.prometheus.ask("recsys_rule_samples"))
    assert [one["value"][1] for one in chain.prometheus.data(counted)] == ["0"]
    wait_for("the watchdog", lambda: chain.messages("dead-man", "RecsysWatchdog"))
    assert chain.messages("page", "RecsysHardRuleViolated") == []

    chain.traffic("i1", FORBIDDEN)
    (page,) = wait_for("the page", lambda: chain.messages("page", "RecsysHardRuleViolated"))
    assert page["status"] == "firing"
    assert page["labels"] == {
        "alertname": "RecsysHardRuleViolated", "recommender": "shop", "rule": "blacklist", "severity": "page",
        "owner": "search",
    }  # fmt: skip
    assert page["annotations"]["offenders"] == f"item_id {FORBIDDEN} (1 row)"
    assert page["annotations"]["dashboard"] == f"{chain.monitor.url}/recommenders/shop"
    assert page["annotations"]["evidence"] == f"{chain.monitor.url}/recommenders/shop/rules/blacklist"
    assert page["annotations"]["runbook_url"] == f"{chain.monitor.url}/runbooks/RecsysHardRuleViolated"
    status, body = get(page["annotations"]["evidence"])
    assert status == 200
    assert FORBIDDEN not in body
    assert FORBIDDEN in html.unescape(body)


def test_the_evidence_is_still_one_click_away_when_the_next_window_is_good(chain: Chain) -> None:
    link = f"{chain.monitor.url}/recommenders/shop/rules/blacklist"
    ok = chain.monitor.has("recsys_rule_status", rule="blacklist", status="ok")
    chain.traffic()
    wait_for("a good window", ok)
    assert FORBIDDEN in html.unescape(get(link)[1])


def test_when_the_monitor_stops_somebody_is_paged_and_the_watchdog_falls_silent(chain: Chain) -> None:
    wait_for(
        "two messages of the watchdog", lambda: len(chain.messages("dead-man", "RecsysWatchdog")) > 2, 30
    )
    assert chain.messages("page", "RecsysMonitorDown") == []
    assert chain.monitor.running is not None
    chain.monitor.running.send(signal.SIGTERM)
    assert chain.monitor.running.ended(10) == 0
    down = wait_for("the page", lambda: chain.messages("page", "RecsysMonitorDown"))
    assert down[0]["status"] == "firing"
    assert down[0]["annotations"]["runbook_url"].endswith("/runbooks/RecsysMonitorDown")

    # The service outside, which raises the alarm after ten seconds without a message that came every two.
    def silence() -> bool:
        return time.monotonic() - chain.messages("dead-man", "RecsysWatchdog")[-1]["received"] > 10

    wait_for("the alarm of the service outside", silence)


def test_when_the_monitor_is_back_the_watchdog_speaks_again_and_the_page_ends(chain: Chain) -> None:
    assert Path(chain.monitor.folder / "state/history.sqlite").exists()
    before = len(chain.messages("dead-man", "RecsysWatchdog"))
    chain.monitor.start()
    wait_for("the watchdog", lambda: len(chain.messages("dead-man", "RecsysWatchdog")) > before)
    down = "RecsysMonitorDown"
    ended = wait_for(
        "the end", lambda: [m for m in chain.messages("page", down) if m["status"] == "resolved"], 60
    )
    assert ended
