"""When a log that stops, is slow or is late once is reported, and that it is one message; by the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from monitor.logs.pace import allowed_silence
from tests.alerts.timed import Fired, fired, is_one_message

BEGINS = 14 * 60  # minutes; hours before it, so that the age of the newest row is known
UNTIL = 7 * 60  # minutes after the beginning
WINDOW, LATENESS = 60, 5
PAGE, TICKETS = "RecsysLogStalled", ("RecsysFeedbackStalled", "RecsysWindowLate")

Held = Callable[[int], int]  # minute at which a file would come -> minute at which it comes


def watermarks(every: int, held: Held, length: int) -> list[int]:
    """The newest row of a log by the minute, in minutes; a file holds the rows up to when it would come."""
    files = [(held(due), due) for due in range(0, length, every)]
    return [max((due for comes, due in files if comes <= minute), default=0) for minute in range(length)]


def learned(every: int, held: Held, length: int) -> list[int | None]:
    """The silence that the monitor allows, by the minute, in seconds."""
    start, minute_long = datetime(2026, 3, 1, tzinfo=UTC), timedelta(minutes=1)
    files = [(held(due), due) for due in range(0, length, every)]
    found: list[int | None] = []
    known = 0
    for minute in range(length):
        there = [
            (start + comes * minute_long, start + due * minute_long)
            for comes, due in files
            if comes <= minute
        ]
        if len(there) != known or minute % 10 == 0:
            allowed = allowed_silence(there, start + minute * minute_long, minute_long)
        known = len(there)
        found.append(None if allowed is None else int(allowed.total_seconds()))
    return found


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
    is_learned: bool = False  # else the pace is unknown, as of a log in one file that grows

    def inputs(self, name: str) -> dict[str, Sequence[int | str]]:
        """The log, and its windows, as Prometheus knows them of a recommender of this name."""
        reached = watermarks(self.every, self.held, BEGINS + UNTIL)
        rows, of = [60 * newest for newest in reached], f'recommender="{name}"'
        status = f'recsys_metric_status{{{of},metric="coverage",by="pv",status="late"}}'
        logs = (f'recsys_log_watermark_timestamp_seconds{{{of},log="{log}"}}' for log in LOGS)
        inputs = dict.fromkeys(logs, rows) | {status: late(reached, self.max_wait)}
        inputs[f"recsys_last_run_timestamp_seconds{{{of}}}"] = [60 * minute for minute in range(len(rows))]
        if self.is_learned:
            allowed = learned(self.every, self.held, len(rows))
            shown = ["_" if seconds is None else seconds for seconds in allowed]
            for log in LOGS:
                inputs[f'recsys_log_stalled_after_seconds{{{of},log="{log}"}}'] = shown
        return inputs


LOGS = ("exposures", "feedback")
RHYTHMS = {1: 77, 15: 82, 30: 94, 60: 118}  # minutes between files -> from the last of them to the page
ONCE = {f"late once, by {every}": Log(every, is_late_once, 40 if every < 60 else 70) for every in RHYTHMS}
STOPS = {f"stops, by {every}": Log(every, stops(4), 40 if every < 60 else 70) for every in RHYTHMS}
PACES = {1: 5, 15: 62, 30: 77, 60: 107}  # the same where the monitor has learned the pace
LEARNED = {f"stops, learned, by {n}": Log(n, stops(4), 40 if n < 60 else 70, True) for n in PACES}
ONCE |= {
    f"late once, learned, by {n}": Log(n, is_late_once, 40 if n < 60 else 70, True) for n in (15, 30, 60)
}
ONCE_QUICK = {f"late once, learned, by {n}": Log(n, is_late_once, 40, True) for n in (1,)}
STOPS_OTHERWISE = {f"stops, waits {wait}": Log(30, stops(3), wait) for wait in (30, 60)}
SLOW = {f"slow, waits {wait}": Log(30, slows(60), wait) for wait in (40, 60)}
VERY_SLOW = {"very slow": Log(30, slows(240))}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Fired:
    """Log -> alert -> the minutes after the beginning in which it fires."""
    logs = ONCE | ONCE_QUICK | STOPS | LEARNED | STOPS_OTHERWISE | SLOW | VERY_SLOW
    inputs = {series: values for name, log in logs.items() for series, values in log.inputs(name).items()}
    minutes = range(BEGINS - 60, BEGINS + UNTIL)
    found = fired(tmp_path_factory.mktemp("logs"), "logs.yaml", inputs, [PAGE, *TICKETS], minutes)
    return {
        name: {alert: [minute - BEGINS for minute in fires] for alert, fires in found.get(name, {}).items()}
        for name in logs
    }


@pytest.mark.parametrize("name", ONCE)
def test_an_hour_whose_files_come_forty_minutes_late_gives_no_message(told: Fired, name: str) -> None:
    assert not told[name]


@pytest.mark.parametrize("name", ONCE_QUICK)
def test_files_of_a_quick_log_that_come_forty_minutes_late_page_once_and_resolve(
    told: Fired, name: str
) -> None:
    found = told[name]
    assert found[PAGE] == list(range(found[PAGE][0], found[PAGE][-1] + 1))
    assert found[PAGE][-1] <= 100 + 30, "files are late for 100 minutes, and the page is kept for 30"
    assert is_one_message(found, [one for one in TICKETS if one in found], by=PAGE)


@pytest.mark.parametrize(("every", "after"), PACES.items())
def test_a_log_with_a_learned_pace_pages_after_a_few_missed_files_in_one_message(
    told: Fired, every: int, after: int
) -> None:
    found = told[f"stops, learned, by {every}"]
    assert after - 1 <= found[PAGE][0] <= after + 1
    assert found[PAGE][-1] < 240 + 35, "it resolves"
    assert is_one_message(found, TICKETS, by=PAGE)


@pytest.mark.parametrize(("every", "after"), RHYTHMS.items())
def test_a_log_with_an_unknown_pace_that_stops_pages_within_two_hours_in_one_message(
    told: Fired, every: int, after: int
) -> None:
    found = told[f"stops, by {every}"]
    assert after - 15 <= found[PAGE][0] <= after + 2, "a median of few looks is not sharp"
    assert found[PAGE][0] < 120
    assert found[PAGE][-1] < 240 + 35, "it resolves"
    assert is_one_message(found, TICKETS, by=PAGE)


@pytest.mark.parametrize("name", STOPS_OTHERWISE)
def test_the_tickets_of_a_stopped_log_wait_for_its_page_for_any_window(told: Fired, name: str) -> None:
    assert is_one_message(told[name], TICKETS, by=PAGE)


@pytest.mark.parametrize("name", SLOW)
def test_a_log_that_is_an_hour_slow_is_one_ticket_that_stands(told: Fired, name: str) -> None:
    assert list(told[name]) == ["RecsysWindowLate"]
    (fires,) = told[name].values()
    assert fires[0] <= 115 + SLOW[name].max_wait - 40
    assert fires == list(range(fires[0], UNTIL))


def test_a_log_that_is_four_hours_slow_is_one_page_until_its_files_come(told: Fired) -> None:
    found = {
        alert: [minute for minute in fires if minute < 240] for alert, fires in told["very slow"].items()
    }
    assert found[PAGE][0] < 120
    assert is_one_message(found, TICKETS, by=PAGE)
