"""A past that is judged again in a copy: as the daemon judged it, and nothing is written to the history."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from monitor.anomalies.look_back import look_back
from monitor.core.results import Result, Window
from monitor.history.reads import StoredResult
from monitor.history.store import Store
from monitor.report.past_alerts import past_alerts
from tests.anomalies.banded import START, hour, store_hour, usual_hour
from tests.anomalies.test_schedule import scheduler, settings

HOURS = 425  # the bands know the week from its second on
LOST = range(400, 412)  # hours without half of the requests


def measure(store: Store, hours: int = HOURS) -> None:
    for number in range(hours):
        store_hour(store, number, usual_hour(number, factor=0.4 if number in LOST else 1.0))


def verdicts(store: Store) -> dict[tuple[Window, str], list[Result]]:
    found: dict[tuple[Window, str], list[Result]] = {}
    for one in store.results():
        if one.check not in ("exposure", "feedback"):
            found.setdefault((one.window, one.check), []).append(one.result)
    return found


def everything(store: Store) -> list[StoredResult]:
    return list(store.results())


def test_the_verdicts_are_those_of_the_daemon_and_the_history_does_not_change(tmp_path: Path) -> None:
    with Store.open(tmp_path / "history.db") as history, Store.open(tmp_path / "scratch.db") as scratch:
        measure(history)
        before = everything(history)
        steps: list[str] = []
        look_back(history, scratch, settings(), step=steps.append)
        assert everything(history) == before
        assert len(steps) > 2 * HOURS  # copied and judged, and days
        scheduler(settings(), history).turn(datetime.now(UTC), START)
        assert verdicts(scratch) == verdicts(history)
        (page,) = [one for one in past_alerts(scratch.results()) if one.severity == "page"]
    assert page.what == "traffic_lost"
    assert hour(LOST[0]).end <= page.since <= hour(LOST[1]).end
    assert page.until is not None
    assert hour(LOST[-1]).end < page.until <= hour(LOST[-1] + 3).end


def test_windows_after_the_end_are_left_out(tmp_path: Path) -> None:
    with Store.open(tmp_path / "history.db") as history, Store.open(tmp_path / "scratch.db") as scratch:
        measure(history, hours=40)
        look_back(history, scratch, settings(), end=hour(30).end)
        windows = {one.window for one in scratch.results() if one.check == "exposure"}
    assert max(windows) == hour(30)
