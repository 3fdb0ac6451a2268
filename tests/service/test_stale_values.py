"""A stopped log has no values in /metrics, its states are late, and the alert on the silence fires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from monitor.core.results import ResultKind, Status
from monitor.history.snapshot import LogState, RecommenderState
from monitor.service.daemon import Daemon
from monitor.service.prometheus.exporter import Exporter
from monitor.service.prometheus.families import MONITOR, RULES, STATUSES
from tests.alerts.timed import fired
from tests.service.made import LAST, metric, series
from tests.service.prometheus.scrapes import samples

HOUR = timedelta(hours=1)
STOPS, ENDS = 4, 12  # hours
RULE = {
    "type": "expect_column_values_to_not_be_in_set",
    "kwargs": {"column": "item_id", "value_set": ["3"]},
    "meta": {"rule": "banned", "kind": "hard", "table": "exposures"},
}
WELL = {"type": RULE["type"], "kwargs": {"column": "item_id", "value_set": ["x"]},
        "meta": {"rule": "well", "kind": "hard", "table": "exposures"}}  # fmt: skip
Scrape = dict[tuple[str, frozenset], float]


@dataclass
class Shop:
    """The real daemon on a clock of its own, with its config, its logs, and what each scrape said."""

    folder: Path
    start: datetime
    daemon: Daemon = field(init=False)
    now: datetime = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / "suite.yaml").write_text(yaml.safe_dump({"name": "s", "expectations": [RULE, WELL]}))
        self.configure()
        self.now = self.start
        self.daemon = Daemon(self.folder / "config.yaml", clock=lambda: self.now)
        self.exporter = Exporter(self.daemon.publisher.current, version="1", url="u", clock=lambda: self.now)

    def configure(self, **more: Any) -> None:
        shop = {
            "name": "shop",
            "logs": {
                "exposures": {"path": "exposures/*.parquet", "stalled_after": "90m"},
                "feedback": {"path": "feedback/*.parquet", "stalled_after": "90m"},
            },
            "window": "1h",
            "max_wait": "30m",
            "metrics": {"attribution": "15m"},
            "rules": [{"suite": "suite.yaml"}],
            "objectives": [
                {"metric": "coverage", "labels": {"by": "pv"}, "min": 0.5},
                {"metric": "list_length", "min": 100},
            ],
            **more,
        }
        config = {"state": str(self.folder / "state"), "recommenders": [shop]}
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")

    def land(self, hour: int, *logs: str) -> None:
        draw, n = np.random.default_rng(hour), 400
        frame = pd.DataFrame(
            {"ts": [self.start + hour * HOUR + timedelta(seconds=9 * at) for at in range(n)]}
        )
        frame["request_id"] = [f"{hour}-{at // 4}" for at in range(n)]
        frame["user_id"] = [str(at // 4 % 50) for at in range(n)]
        frame["item_id"] = draw.integers(0, 20, n).astype(str)
        acted = frame[draw.random(n) < 0.2].assign(event="click")
        for log, rows in (("exposures", frame), ("feedback", acted)):
            (self.folder / log).mkdir(exist_ok=True)
            if log in logs:
                rows.to_parquet(self.folder / log / f"{hour}.parquet")

    def scrape(self, minute: int, *, turn: bool = True) -> Scrape:
        self.now = self.start + timedelta(minutes=minute)
        if turn:
            self.daemon.turn("shop")
        return samples(self.exporter.scrape()[0].decode())


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - (ENDS + 1) * HOUR
    for log in ("exposures", "feedback"):
        (tmp_path / log).mkdir()
    made = Shop(tmp_path, start)
    yield made
    made.daemon.close()


STATES = {family.name for family in (*STATUSES, *MONITOR)}
STAND = (
    STATES
    | {one.name for one in RULES if one.kind in ("counter", "info") or "_threshold_" in one.name}
    # What a violation is about stands beside it: its alert still fires, and names it.
    | {"recsys_rule_since_timestamp_seconds", "recsys_rule_violated_timestamp_seconds"}
    | {"recsys_rule_offender_rows"}
)


def values(found: Scrape) -> set[str]:
    """The families with a value of a window; of no state, no counter and no bound."""
    return {name for name, _ in found if name.startswith("recsys_")} - STAND


def state(found: Scrape, family: str, **labels: str) -> str:
    (status,) = [
        dict(one)["status"]
        for (name, one), value in found.items()
        if name == family and value == 1 and labels.items() <= dict(one).items()
    ]
    return status


def test_a_log_that_stops_leaves_no_values_and_its_alert_fires(shop: Shop, tmp_path: Path) -> None:
    scrapes = []
    for minute in range(0, ENDS * 60, 10):
        hour, past = divmod(minute, 60)
        if past == 10 and 0 < hour <= STOPS:
            shop.land(hour - 1, "exposures", "feedback")
        scrapes.append(shop.scrape(minute))
    alive, silent = scrapes[STOPS * 6 + 2], scrapes[-1]
    assert {"recsys_coverage_ratio", "recsys_volume", "recsys_rule_violation_ratio"} <= values(alive)
    assert values(silent) == set(), "not even the zeros of windows without rows"
    assert state(alive, "recsys_rule_status", rule="well") == "ok"
    assert state(silent, "recsys_rule_status", rule="well") == "late"
    assert state(silent, "recsys_rule_status", rule="banned") == "violated"
    assert state(silent, "recsys_objective_status", metric="coverage", by="pv") == "late"
    assert state(silent, "recsys_objective_status", metric="list_length") == "violated"
    assert state(silent, "recsys_metric_status", metric="coverage", by="pv") == "late"
    assert _fires(tmp_path, scrapes, "logs.yaml", "RecsysLogStalled") == [False] * 2 + [True] * 2
    assert _fires(tmp_path, scrapes, "rules.yaml", "RecsysHardRuleViolated")[-1], "it is not resolved"


def _fires(folder: Path, scrapes: list[Scrape], rules: str, alert: str) -> list[bool]:
    """Whether the alert fires while the log is alive (twice) and while it is silent (twice), as scraped."""
    keys = {key for one in scrapes for key in one if key[0].startswith("recsys_") and key[0] in STAND}
    inputs = {
        name + "{" + ",".join(f'{label}="{value}"' for label, value in sorted(labels)) + "}": [
            scrapes[minute // 10].get((name, labels), "stale") for minute in range(len(scrapes) * 10)
        ]
        for name, labels in keys
    }
    minutes = fired(folder, rules, inputs, [alert], range(len(scrapes) * 10)).get("shop", {}).get(alert, [])
    return [minute in minutes for minute in (3 * 60, STOPS * 60 + 15, 8 * 60, ENDS * 60 - 11)]


def test_a_silent_feedback_log_leaves_no_values_of_actions_and_those_of_the_lists_stay(shop: Shop) -> None:
    for hour in range(ENDS):
        shop.land(hour, "exposures", *(("feedback",) if hour < STOPS else ()))
        found = shop.scrape((hour + 1) * 60 + 20)
        if hour == STOPS - 1:
            assert {"recsys_conversion_ratio", "recsys_action_volume"} <= values(found)
    assert not {"recsys_conversion_ratio", "recsys_action_volume"} & values(found)
    assert state(found, "recsys_metric_status", metric="action_volume") == "late"
    assert {"recsys_coverage_ratio", "recsys_volume"} <= values(found)
    late = {dict(labels)["metric"] for name, labels in found if name == "recsys_metric_status"}
    assert "coverage" not in late


def _break_config(shop: Shop) -> None:
    shop.configure(rules=[{"suite": "no such file.yaml"}])
    shop.daemon.close()
    shop.daemon = Daemon(shop.folder / "config.yaml", clock=lambda: shop.now)
    shop.exporter = Exporter(shop.daemon.publisher.current, version="1", url="u", clock=lambda: shop.now)


def _nothing(shop: Shop) -> None:
    """The worker hangs: nothing is judged, and nothing is published."""


@pytest.mark.parametrize("happens", [_break_config, _nothing])
def test_values_go_stale_after_three_windows_however_it_came_that_none_is_judged(
    shop: Shop, happens: Callable[[Shop], None]
) -> None:
    for hour in range(STOPS):
        shop.land(hour, "exposures", "feedback")
    judged = STOPS * 60 + 20
    assert "recsys_coverage_ratio" in values(shop.scrape(judged))
    happens(shop)
    limit = judged + 3 * 60 + 30 + 1  # three windows, `max_wait` and `every`
    last, gone = shop.scrape(limit, turn=False), shop.scrape(limit + 1, turn=False)
    assert "recsys_coverage_ratio" in values(last)
    assert state(last, "recsys_rule_status", rule="well") == "ok"
    assert values(gone) == set()
    assert state(gone, "recsys_rule_status", rule="well") == "late"
    assert state(gone, "recsys_rule_status", rule="banned") == "violated"
    states = {family.name for family in STATUSES}
    assert {key for key in last if key[0] in STAND - states} == {
        key for key in gone if key[0] in STAND - states
    }


@pytest.mark.parametrize(("kind", "is_stale"), [(ResultKind.METRIC, False), (ResultKind.GAP, True)])
def test_samples_that_come_once_a_day_make_only_what_is_measured_on_them_stale(kind, is_stale) -> None:
    now = LAST.end + timedelta(minutes=20)
    late = replace(metric("coverage", "pv"), status=Status.LATE, kind=kind)
    shown = replace(series(late), evaluated_at=now)
    logs = (LogState("exposures", watermark=now), LogState("samples", watermark=now - timedelta(hours=14)))
    state = RecommenderState("shop", series=(shown,), logs=logs, patience=timedelta(hours=1))
    assert state.is_stale(shown, now) is is_stale
