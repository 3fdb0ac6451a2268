"""The part of the feedback is judged after the actions have had time to come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitor.core.results import Window
from monitor.logs.source import Source
from monitor.logs.windows import Parts, candidate_windows, due_windows
from monitor.settings.logs import LogsSettings, TimeSettings

DAY = datetime(2026, 3, 1, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)


def at(hour: float) -> datetime:
    return DAY + timedelta(hours=hour)


def window(hour: int) -> Window:
    return Window(at(hour), at(hour + 1))


@pytest.fixture
def logs_with(written, tmp_path, engine):
    """A source with a row of each log at each of the hours."""

    def make(exposures, feedback, now, **time):
        shown = "".join(f"r{i},u,{at(hour):%Y-%m-%d %H:%M:%S},a\n" for i, hour in enumerate(exposures))
        done = "".join(f"u,{at(hour):%Y-%m-%d %H:%M:%S},a,click\n" for hour in feedback)
        written("shown/a.csv", "request_id,user_id,ts,item_id\n" + shown, now)
        written("done/a.csv", "user_id,ts,item_id,event\n" + done, now)
        logs = LogsSettings(
            exposures={"path": str(tmp_path / "shown/*")}, feedback={"path": str(tmp_path / "done/*")}
        )
        settings = TimeSettings(**{"window": "1h", "lateness": "5m", "max_wait": "2h", **time})
        source = Source(logs, settings)
        for log in source.logs.values():
            log.refresh(engine, now)
        return source

    return make


def due(source, now, judged=None, attribution=HALF_AN_HOUR, part="feedback", since=DAY):
    parts = Parts.of(source, attribution)
    return due_windows(parts, part, now, candidate_windows(parts, part, now, since), judged or {})


def test_a_source_without_feedback_has_one_part(source_of):
    assert Parts.of(source_of(), HALF_AN_HOUR).names == ("exposures",)


@pytest.mark.parametrize(
    ("attribution", "reach"), [(HALF_AN_HOUR, 1), (timedelta(hours=1), 1), (timedelta(hours=25), 25)]
)
def test_the_reach_is_the_attribution_in_whole_windows(logs_with, attribution, reach):
    parts = Parts.of(logs_with([0.5], [0.5], at(1)), attribution)
    assert parts.span(window(0), "feedback") == Window(at(-reach), at(1 + reach))
    assert parts.span(window(0), "exposures") == window(0)


def test_feedback_waits_until_both_logs_have_passed_the_attribution(logs_with):
    complete, early = [0.5, 2 + 5 / 60], [0.5, 2]
    for shown, done, ready in (
        (complete, complete, True),
        (early, complete, False),
        (complete, early, False),
    ):
        source = logs_with(shown, done, at(2.2))
        assert [one.window for one in due(source, at(2.2))] == ([window(0)] if ready else [])
        assert [one.window for one in due(source, at(2.2), part="exposures")][-1] == window(0)


def test_a_stopped_feedback_log_makes_the_part_late_with_the_reason(logs_with):
    source = logs_with([0.5, 1.5, 2.5, 3.5, 4.5], [0.5], at(5))
    found = {one.window: one.late for one in due(source, at(5))}
    assert found.keys() == {window(0), window(1)}
    assert all("has reached 2026-03-01 00:30:00Z" in why for why in found.values())


def test_a_late_action_makes_all_windows_in_reach_due_again(logs_with):
    shown = [hour + 0.5 for hour in range(6)]
    done = [hour + 0.6 for hour in range(6)]
    judged = {one.window: one.fingerprint for one in due(logs_with(shown, done, at(6)), at(6))}
    assert judged.keys() == {window(hour) for hour in range(4)}
    again = due(logs_with(shown, [*done, 2.7], at(6)), at(6), judged)
    assert {one.window for one in again} == {window(1), window(2), window(3)}
    assert all(one.correction for one in again)


def test_windows_with_a_long_attribution_are_not_lost_to_catch_up(logs_with):
    shown = [hour + 0.5 for hour in range(40)]
    source = logs_with(shown, shown, at(40), catch_up=4)
    found = due(source, at(40), attribution=timedelta(hours=24))
    assert [one.window for one in found] == [window(hour) for hour in (14, 13, 12, 11)]
    assert all(len(one.fingerprint) <= 64 for one in found)


def test_the_last_window_of_a_stopped_log_is_judged_late(logs_with):
    shown = [0.5, 1.5, 2.5]
    source = logs_with(shown, shown, at(3))
    years_later = at(24 * 2000)
    found = {one.window: bool(one.late) for one in due(source, years_later, since=years_later)}
    assert found == {window(2): True, window(1): True, window(0): False}
    assert [one.window for one in due(source, at(4.9))] == [window(0)]
