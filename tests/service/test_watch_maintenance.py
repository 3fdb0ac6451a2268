"""A recommender whose logs are read through maintenance: what is judged, and what is counted of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from monitor.history.counters import key
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.metrics.catalogue import SPECS
from monitor.rules.suites import load_rules
from monitor.service.watch import Watch
from monitor.settings.recommender import RecommenderSettings
from monitor.settings.rules import RuleSettings
from tests.processes import exposures, land

FIRST = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_windows_in_maintenance_are_judged_and_only_hard_rules_count_them(
    tmp_path: Path, store: Store, runtime: Runtime
) -> None:
    """Every list of two items is too short by a soft rule, and i0 is on the blacklist of a hard one."""
    (tmp_path / "never.txt").write_text("i0\n", "utf-8")
    rules = load_rules(
        [
            RuleSettings(pack="blacklist", parameters={"blacklist": "never.txt"}),
            RuleSettings(pack="lists", parameters={"min_length": 3}),
        ],
        tmp_path,
    )
    settings = RecommenderSettings.model_validate(
        {
            "name": "shop",
            "logs": {"exposures": {"path": str(tmp_path / "logs/*.parquet")}},
            "metrics": {"disable": [name for name in SPECS if name != "coverage"]},
            "maintenance": [{"from": FIRST + HOUR, "until": FIRST + 2 * HOUR}],
        }
    )
    for number in range(3):
        land(tmp_path / f"logs/{number}.parquet", exposures(FIRST + number * HOUR, 3600, lists=20))
    land(tmp_path / "logs/now.parquet", exposures(FIRST + 3 * HOUR, 1200, lists=2))  # nothing is awaited
    Watch(settings, rules, store, tmp_path / "state", "salt").turn(runtime, FIRST + 3.5 * HOUR)
    assert [one.status.value for one in store.evaluated("shop", "rules")] == ["violated"] * 3

    def counted(rule: str, kind: str) -> list[float]:
        labels, counters = {"recommender": "shop", "rule": rule, "kind": kind}, store.counters()
        names = ("recsys_rule_violations_total", "recsys_rule_judged_total")
        return [counters[key(name, labels)] for name in names]

    assert counted("list_too_short", "soft") == [40, 40]
    assert counted("blacklist", "hard") == [18, 120]
