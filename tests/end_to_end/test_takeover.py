"""Two monitors on one PostgreSQL, Prometheus and Alertmanager, all real: who takes over, and who is paged."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.servers import Alertmanager, Prometheus
from tests.postgres import postgres
from tests.processes import Monitor, Webhook, exposures, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
NAMES = ("one", "two", "three", "four")
TAKEOVER = 120.0  # seconds that it may take at most
RULES = """
name: own
expectations:
  - type: expect_column_values_to_not_be_in_set
    kwargs: {column: item_id, value_set: [bad]}
    meta: {rule: blacklist, kind: hard, table: exposures}
"""


@dataclass
class Pair:
    """Both monitors, and everything between them and a telephone."""

    left: Monitor
    right: Monitor
    prometheus: Prometheus
    webhook: Webhook
    logs: Path
    first: datetime
    windows: int = 0
    bad: set[str] = field(default_factory=set)

    def traffic(self, bad: str = "") -> None:
        """One more window of every log, and the beginning of the next: then it is judged."""
        start = self.first + self.windows * MINUTE
        self.windows += 1
        for name in NAMES:
            items = ["a", "b", "c", *(["bad"] if name == bad else [])]
            land(self.logs / name / f"{self.windows}.parquet", exposures(start, 55, items=items))
            land(self.logs / name / f"{self.windows}b.parquet", exposures(start + MINUTE, 6, lists=2))

    def held(self, one: Monitor) -> set[str]:
        return {
            dict(labels)["recommender"]
            for (name, labels), value in one.series().items()
            if name == "recsys_lease" and value == 1
        }

    def is_fair(self) -> bool:
        left, right = self.held(self.left), self.held(self.right)
        return len(left) == len(right) == 2 and left | right == set(NAMES)

    def value(self, name: str, recommender: str) -> float:
        """The sum over both; each exports only what it judges."""
        both = (self.left, self.right)
        return sum(one.value(name, recommender=recommender) or 0 for one in both if one.running is not None)

    def all_judged(self) -> bool:
        return all(self.value("recsys_windows_total", name) == self.windows for name in NAMES)

    def pages(self) -> list[dict[str, Any]]:
        return [one for one in list(self.webhook.alerts) if one["path"] == "/page"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    (folder / "rules.yaml").write_text(RULES, "utf-8")
    with ExitStack() as stack:
        server = stack.enter_context(postgres())
        config = {
            "history": {"url": f"{server.url}/postgres", "salt": "a secret of both monitors"},
            "engine": {"threads": 1, "workers": 1},
            "recommenders": [
                {
                    "name": name,
                    "logs": {"exposures": {"path": str(folder / name / "*.parquet")}},
                    "rules": [{"suite": str(folder / "rules.yaml")}],
                    "window": "1m",
                    "every": "1s",
                    "lateness": "3s",
                }
                for name in NAMES
            ],
        }
        left = stack.enter_context(monitor(folder / "left", config))
        right = stack.enter_context(monitor(folder / "right", config))
        webhook = Webhook()
        stack.callback(webhook.close)
        alertmanager = Alertmanager(folder, webhook.url)
        stack.callback(alertmanager.stop)
        targets = [one.url.removeprefix("http://") for one in (left, right)]
        prometheus = Prometheus(folder, targets, alertmanager.target, {"RecsysMonitorDown": "12s"})
        stack.callback(prometheus.stop)
        alertmanager.up()
        prometheus.up()
        first = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
        yield Pair(left, right, prometheus, webhook, folder, first)


def test_they_share_the_recommenders_and_a_violation_pages_once(pair: Pair) -> None:
    wait_for("a fair share", pair.is_fair)
    pair.traffic()
    wait_for("a good window of each", pair.all_judged)
    wait_for("their scrape", lambda: len(pair.prometheus.ask("recsys_rule_samples")) == len(NAMES))
    (bad, *_) = sorted(pair.held(pair.left))
    pair.bad.add(bad)
    pair.traffic(bad)
    (page,) = wait_for("the page", pair.pages)
    assert page["labels"]["recommender"] == bad
    assert page["annotations"]["evidence"] == f"{pair.left.url}/recommenders/{bad}/rules/blacklist"
    elsewhere = get(f"{pair.right.url}/recommenders/{bad}")[1]
    assert f'Another monitor judges this recommender: <a href="{pair.left.url}"' in elsewhere
    for asked, judge in ((pair.right, pair.left.url), (pair.left, None)):
        answer = json.loads(get(f"{asked.url}/api/v1/recommenders/{bad}")[1])
        assert answer["judged_by"] == judge


def test_a_frozen_monitor_loses_its_recommenders_and_writes_nothing_when_it_goes_on(pair: Pair) -> None:
    wait_for("every window", pair.all_judged)
    assert pair.left.running is not None
    pair.left.running.send(signal.SIGSTOP)
    frozen, pair.left.running = pair.left.running, None  # so that nobody asks it
    pair.traffic(*pair.bad)
    wait_for("the takeover", lambda: pair.held(pair.right) == set(NAMES), TAKEOVER)
    wait_for("every window", pair.all_judged)
    violations = pair.value("recsys_rule_violations_total", *pair.bad)
    pair.left.running = frozen
    frozen.send(signal.SIGCONT)
    wait_for("a fair share again", pair.is_fair)
    wait_for("a look of each", lambda: all(pair.value("recsys_log_files", name) for name in NAMES))
    assert pair.all_judged()
    assert pair.value("recsys_rule_violations_total", *pair.bad) == violations
    assert sum(pair.value("recsys_corrections_total", name) for name in NAMES) == 0


def test_when_one_is_killed_the_other_takes_over_and_nobody_is_paged_again(pair: Pair) -> None:
    (bad,) = pair.bad
    killed = pair.left if bad in pair.held(pair.left) else pair.right
    other = pair.right if killed is pair.left else pair.left
    assert killed.running is not None
    killed.running.send(signal.SIGKILL)
    killed.running = None
    pair.traffic(bad)
    wait_for("the takeover", lambda: pair.held(other) == set(NAMES), TAKEOVER)
    wait_for("every window", pair.all_judged)
    assert sum(pair.value("recsys_corrections_total", name) for name in NAMES) == 0
    spare = "RecsysSpareMonitorDown"
    wait_for("the ticket to wait for its time", lambda: pair.prometheus.alerts().get(spare) == "pending")
    assert "RecsysMonitorDown" not in pair.prometheus.alerts()
    assert pair.prometheus.alerts()["RecsysWatchdog"] == "firing"
    assert [(one["labels"]["alertname"], one["status"]) for one in pair.pages()] == [
        ("RecsysHardRuleViolated", "firing")
    ]


def test_one_that_stops_hands_over_at_once_and_comes_back_to_its_share(pair: Pair) -> None:
    for one in (pair.left, pair.right):
        if one.running is None:
            one.start()
    wait_for("a fair share", pair.is_fair)
    pair.left.stop()
    pair.left.running = None
    wait_for("the takeover", lambda: pair.held(pair.right) == set(NAMES), 30)
    pair.traffic()
    wait_for("every window", pair.all_judged)
    assert sum(pair.value("recsys_corrections_total", name) for name in NAMES) == 0
