"""After maintenance nothing is told of what happened in it: the gauge outlasts what alerts look back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.settings.maintenance import Maintenance, now_quiet
from tests.alerts.test_alert_rules import ALERTS, RULES, promtool

MIDNIGHT = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BEGINS, UNTIL, END = 27 * 60, 28 * 60 + 10, 40 * 60  # in minutes; a day before it, so that counters are known
LATENESS = 5
EVERY = 5  # minutes between two scrapes
OF_RULE = {"recommender": "shop", "rule": "blacklist", "kind": "hard"}


def gauge(window: int) -> list[int]:
    """recsys_maintenance by the minute, as the monitor says it."""
    spans = [
        Maintenance.model_validate({"from": MIDNIGHT + BEGINS * MINUTE, "until": MIDNIGHT + UNTIL * MINUTE})
    ]
    times = {"window": window * MINUTE, "lateness": LATENESS * MINUTE}
    return [int(now_quiet(spans, MIDNIGHT + minute * MINUTE, **times) is not None) for minute in range(END)]


def told(window: int) -> list[int]:
    """The minutes in which the windows of the maintenance are judged, a minute after they are due."""
    first, last = BEGINS // window, (UNTIL - 1) // window
    return [(number + 1) * window + LATENESS + 1 for number in range(first, last + 1)]


def series(name: str, labels: dict[str, str], by_minute: list[float | None]) -> dict[str, str]:
    text = ",".join(f'{label}="{value}"' for label, value in labels.items())
    shown = ["_" if value is None else f"{value:g}" for value in by_minute[::EVERY]]
    return {"series": f"{name}{{{text}}}", "values": " ".join(shown)}


def counter(at: list[int], *, known_from: int = 0) -> list[float | None]:
    """A counter that rises by one at each of these minutes, and is not scraped before."""
    risen = {minute: sum(one <= minute for one in at) for minute in range(END)}
    return [None if minute < known_from else float(risen[minute]) for minute in range(END)]


def answer(tmp_path: Path, inputs: list[dict[str, str]], cases: list[dict[str, Any]]) -> str:
    """What promtool says of the cases, empty where all hold."""
    content = {
        "rule_files": [str(path) for path in RULES],
        "evaluation_interval": f"{EVERY}m",
        "tests": [{"interval": f"{EVERY}m", "input_series": inputs, "alert_rule_test": cases}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content), "utf-8")
    found = promtool("test", "rules", tmp_path / "test.yaml")
    return "" if found.returncode == 0 else found.stdout + found.stderr


def happened(window: int, *, known_from: int = 0) -> list[dict[str, str]]:
    """Every window of the maintenance breaks a hard rule and fails a check, and every run fails."""
    at = told(window)
    failed = {"recommender": "shop", "check": "rules", "status": "error"}
    runs = {"recommender": "shop", "outcome": "failed"}
    since: list[float | None] = [None if minute < known_from else BEGINS * 60.0 for minute in range(END)]
    return [
        series("recsys_maintenance", {"recommender": "shop"}, [float(one) for one in gauge(window)]),
        series("recsys_rule_violations_total", OF_RULE, counter(at, known_from=known_from)),
        series("recsys_rule_since_timestamp_seconds", OF_RULE, since),
        series("recsys_check_runs_total", failed, counter(at, known_from=known_from)),
        series("recsys_scheduler_runs_total", runs, counter(at, known_from=known_from)),
        series("up", {"job": "recsys-monitor"}, [1.0] * END),
    ]


def silent(minute: int) -> list[dict[str, Any]]:
    """At this minute no alert fires but the watchdog."""
    names = sorted(set(ALERTS) - {"RecsysWatchdog"})
    return [{"eval_time": f"{minute}m", "alertname": name} for name in names]


@pytest.mark.parametrize(("window", "known_from"), [(1, 0), (10, BEGINS + 30), (60, 0), (240, 0)])
def test_nothing_fires_after_the_gauge_for_what_happened_in_maintenance(
    tmp_path: Path, window: int, known_from: int
) -> None:
    inputs = happened(window, known_from=known_from)
    over = next(minute for minute in range(UNTIL, END) if gauge(window)[minute] == 0)
    # RecsysMaintenance itself bridges a restart of five minutes.
    checked = [over + 2 * EVERY + after - over % EVERY for after in (0, 15, 60, 240)]
    assert answer(tmp_path, inputs, [case for minute in checked for case in silent(minute)]) == ""


def test_in_maintenance_the_alerts_fire_and_the_one_that_holds_them_back_does_too(tmp_path: Path) -> None:
    minutes = (told(60)[0] + EVERY, told(60)[0] + 3 * EVERY)  # failed runs are told of after ten minutes
    found = answer(tmp_path, happened(60), [case for minute in minutes for case in silent(minute)])
    for name in ("RecsysHardRuleViolated", "RecsysCheckError", "RecsysRunsFail", "RecsysMaintenance"):
        assert f"alertname: {name}" in found


def test_a_violation_after_maintenance_pages_once_nothing_is_held_back(tmp_path: Path) -> None:
    after = told(60)[-1] + 60  # the first window that lies wholly after it
    inputs = happened(60)
    inputs[1] = series("recsys_rule_violations_total", OF_RULE, counter([*told(60), after]))
    assert gauge(60)[after] == 0
    found = answer(tmp_path, inputs, silent(after + EVERY))
    assert "alertname: RecsysHardRuleViolated" in found
    assert "alertname: RecsysMaintenance" not in found
