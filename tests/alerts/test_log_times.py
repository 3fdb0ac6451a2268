"""When a log that stops, is slow or is late once is told of, and that it is one message; by the rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from benchmarks.scoreboard.alerts import seconds
from tests.alerts.posted import SEVERITIES
from tests.alerts.test_alert_rules import RULES, promtool

LOGS = next(path for path in RULES if path.name == "logs.yaml")
BEGINS = 14 * 60  # minutes; hours before it, so that the age of the newest row is known
UNTIL = 7 * 60  # minutes after the beginning
WINDOW, LATENESS = 60, 5
WAITS = {"page": 1, "ticket": 5}  # minutes before Alertmanager sends, the page's half rounded up

ALERTS = ("RecsysLogStalled", "RecsysFeedbackStalled", "RecsysWindowLate")

Held = Callable[[int], int]  # minute at which a file would come -> minute at which it comes


def watermarks(every: int, held: Held, length: int) -> list[int]:
    """The newest row of a log by the minute, in minutes; a file holds the rows up to when it would come."""
    files = [(held(due), due) for due in range(0, length, every)]
    return [max((due for comes, due in files if comes <= minute), default=0) for minute in range(length)]


def late(reached: list[int], max_wait: int) -> list[int]:
    """Whether the newest window that was judged is late, by the minute."""
    found = []
    for minute, newest in enumerate(reached):
        ends = range(WINDOW, minute + 1, WINDOW)
        done = [end for end in ends if newest >= end + LATENESS or minute > end + max_wait]
        found.append(int(bool(done) and newest < done[-1] + LATENESS))
    return found


def stops(hours: int) -> Held:
    """Nothing comes after the file of the beginning, which is the worst time; then all of it."""
    return lambda due: max(due, BEGINS + 60 * hours) if due > BEGINS else due


def slows(by: int) -> Held:
    """Every file comes so much later."""
    return lambda due: due + by if due > BEGINS else due


def is_late_once(due: int) -> int:
    """The files of one hour come 40 minutes later, and those after them not before."""
    return due + 40 if BEGINS < due <= BEGINS + 60 else max(due, BEGINS + 100) if due > BEGINS else due


@dataclass(frozen=True)
class Log:
    every: int
    held: Held
    max_wait: int = 40

    def inputs(self, name: str) -> list[dict[str, str]]:
        """The log, and its windows, as Prometheus knows them of a recommender of this name."""
        reached = watermarks(self.every, self.held, BEGINS + UNTIL)
        family = "recsys_log_watermark_timestamp_seconds"
        rows = " ".join(str(60 * newest) for newest in reached)
        windows = " ".join(map(str, late(reached, self.max_wait)))
        status = 'metric="coverage",by="pv",status="late"'
        return [
            {"series": f'{family}{{recommender="{name}",log="exposures"}}', "values": rows},
            {"series": f'{family}{{recommender="{name}",log="feedback"}}', "values": rows},
            {"series": f'recsys_metric_status{{recommender="{name}",{status}}}', "values": windows},
        ]


RHYTHMS = {1: 77, 15: 82, 30: 94, 60: 118}  # minutes between files -> from the last of them to the page
ONCE = {f"late once, by {every}": Log(every, is_late_once, 40 if every < 60 else 70) for every in RHYTHMS}
STOPS = {f"stops, by {every}": Log(every, stops(4), 40 if every < 60 else 70) for every in RHYTHMS}
STOPS_OTHERWISE = {f"stops, waits {wait}": Log(30, stops(3), wait) for wait in (30, 60)}
SLOW = {f"slow, waits {wait}": Log(30, slows(60), wait) for wait in (40, 60)}
VERY_SLOW = {"very slow": Log(30, slows(240))}
Fired = dict[str, dict[str, list[int]]]


@pytest.fixture(scope="module")
def fired(tmp_path_factory: pytest.TempPathFactory) -> Fired:
    """Log -> alert -> the minutes after the beginning in which it fires, as promtool finds them."""
    logs = ONCE | STOPS | STOPS_OTHERWISE | SLOW | VERY_SLOW
    silent = [
        {"eval_time": f"{minute}m", "alertname": name}
        for minute in range(BEGINS - 60, BEGINS + UNTIL)
        for name in ALERTS
    ]
    inputs = [series for name, log in logs.items() for series in log.inputs(name)]
    test: dict[str, Any] = {"interval": "1m", "input_series": inputs, "alert_rule_test": silent}
    content = {"rule_files": [str(LOGS)], "evaluation_interval": "1m", "tests": [test]}
    path = tmp_path_factory.mktemp("logs") / "test.yaml"
    path.write_text(yaml.safe_dump(content), "utf-8")
    answer = promtool("test", "rules", path)
    found: Fired = {name: {alert: [] for alert in ALERTS} for name in logs}
    for told in (answer.stdout + answer.stderr).split("alertname: ")[1:]:
        alert, time = re.findall(r"(\w+), time: (\w+)", told)[0]
        for name in re.findall(r'Labels:{.*recommender="([^"]+)"', told):
            found[name][alert].append(int(seconds(time)) // 60 - BEGINS)
    return found


def is_one_message(found: dict[str, list[int]]) -> bool:
    """Whether a page comes before any ticket is sent, and holds them back for as long as they fire."""
    pages = [minute for name, fires in found.items() if SEVERITIES[name] == "page" for minute in fires]
    tickets = [minute for name, fires in found.items() if SEVERITIES[name] == "ticket" for minute in fires]
    return min(pages) + WAITS["page"] < min(tickets) + WAITS["ticket"] and max(pages) >= max(tickets)


@pytest.mark.parametrize("name", ONCE)
def test_an_hour_whose_files_come_forty_minutes_late_gives_no_message(fired: Fired, name: str) -> None:
    assert not any(fired[name].values())


@pytest.mark.parametrize(("every", "told"), RHYTHMS.items())
def test_a_log_that_stops_is_told_of_within_two_hours_in_one_message(
    fired: Fired, every: int, told: int
) -> None:
    found = fired[f"stops, by {every}"]
    assert told - 15 <= found["RecsysLogStalled"][0] <= told + 2, "a median of few looks is not sharp"
    assert found["RecsysLogStalled"][0] + WAITS["page"] <= 120
    assert found["RecsysLogStalled"][-1] < 240 + 35, "it resolves"
    assert found["RecsysFeedbackStalled"]
    assert found["RecsysWindowLate"]
    assert is_one_message(found)


@pytest.mark.parametrize("name", STOPS_OTHERWISE)
def test_the_tickets_of_a_log_that_stops_wait_for_its_page_whatever_a_window_waits(
    fired: Fired, name: str
) -> None:
    assert fired[name]["RecsysWindowLate"]
    assert is_one_message(fired[name])


@pytest.mark.parametrize("name", SLOW)
def test_a_log_that_is_an_hour_slow_is_one_ticket_that_stands(fired: Fired, name: str) -> None:
    found = fired[name]
    assert found["RecsysLogStalled"] == []
    first = found["RecsysWindowLate"][0]
    assert first + WAITS["ticket"] <= 120 + SLOW[name].max_wait - 40
    assert found["RecsysWindowLate"] == list(range(first, UNTIL))


def test_a_log_that_is_four_hours_slow_is_one_page_until_its_files_come(fired: Fired) -> None:
    found = {
        alert: [minute for minute in fires if minute < 240] for alert, fires in fired["very slow"].items()
    }
    assert found["RecsysLogStalled"][0] + WAITS["page"] <= 120
    assert is_one_message(found)
