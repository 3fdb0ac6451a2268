"""When a window is due: by the log's watermark, late by the clock, and again when its rows change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitor.core.results import Window
from monitor.logs.windows import (
    LONGEST_GAP,
    Parts,
    candidate_windows,
    completeness,
    due_windows,
    windows_between,
    windows_of_log,
)

DAY = datetime(2026, 3, 1, tzinfo=UTC)
HEADER = "request_id,user_id,ts,item_id\n"


def at(hour: float) -> datetime:
    return DAY + timedelta(hours=hour)


def window(hour: int) -> Window:
    return Window(at(hour), at(hour + 1))


@pytest.fixture
def log_with(written, source_of, engine):
    """A log with one row at each of these hours, and its settings."""

    def make(hours, now, **time):
        rows = "".join(f"r{i},u,{at(hour):%Y-%m-%d %H:%M:%S},a\n" for i, hour in enumerate(hours))
        written("a.csv", HEADER + rows, now)
        source = source_of(time={"window": "1h", "lateness": "5m", "max_wait": "2h", **time})
        source.exposures.refresh(engine, now)
        return source, source.time

    return make


def due(log, time, now, judged=None, since=DAY, part="exposures", attribution=timedelta(minutes=30)):
    parts = Parts.of(log, attribution)
    return due_windows(parts, part, now, candidate_windows(parts, part, now, since), judged or {})


def test_a_window_waits_for_the_watermark_to_pass_its_end_plus_the_lateness(log_with):
    log, time = log_with([0.5, 1.05], at(1.1))
    assert due(log, time, at(1.1)) == []
    log, time = log_with([0.5, 1 + 5 / 60], at(1.1))
    (one,) = due(log, time, at(1.1))
    assert (one.window, one.late, one.rows, one.correction) == (window(0), None, 1, False)


def test_a_stalled_log_is_judged_late_once_the_clock_has_waited_long_enough(log_with):
    log, time = log_with([0.5], at(0.6))
    assert due(log, time, at(2.9)) == []
    (one,) = due(log, time, at(3))
    assert one.window == window(0)
    assert "has reached 2026-03-01 00:30:00Z" in one.late


def test_a_late_part_says_which_log_it_needs_and_up_to_when(log_with):
    log, time = log_with([2.05], at(2.1))
    awaited = Window(at(0), at(2))  # of a window of an hour, whose part reads an hour more
    is_ready, why = completeness(log.exposures, awaited, at(9), time)
    assert is_ready
    assert why == (
        "the log has reached 2026-03-01 02:03:00Z; the window needs its exposures up to 2026-03-01 02:05:00Z"
    )


def test_windows_without_rows_are_late_only_since_the_daemon_watches(log_with):
    log, time = log_with([0.5], at(0.6))
    assert [one.window for one in due(log, time, at(6), since=at(2))] == [window(3), window(2), window(0)]
    assert all(one.late for one in due(log, time, at(6), since=at(2)))


def test_an_old_log_is_judged_at_the_first_start_and_is_not_late(log_with):
    log, time = log_with([0.5, 1.5, 2.5], at(3))
    years_later = DAY + timedelta(days=2000)
    judged = [(one.window, bool(one.late)) for one in due(log, time, years_later, since=years_later)]
    assert judged == [(window(2), True), (window(1), False), (window(0), False)]


def test_an_empty_window_between_rows_is_judged(log_with):
    log, time = log_with([0.5, 2.5, 3.5], at(4))
    empty = due(log, time, at(4))[1]
    assert (empty.window, empty.rows, empty.late) == (window(1), 0, None)


def test_missed_windows_are_judged_newest_first_up_to_catch_up(log_with):
    log, time = log_with([hour + 0.5 for hour in range(20)], at(20), catch_up=4)
    assert [one.window for one in due(log, time, at(20))] == [window(hour) for hour in (18, 17, 16, 15)]


def test_a_window_that_is_still_filling_does_not_count_for_catch_up(log_with):
    log, time = log_with([0.5, 1.5, 2.5], at(2.6), catch_up=1)
    assert [one.window for one in due(log, time, at(2.6))] == [window(1)]
    log, time = log_with([0.5, 1.5, 2.05], at(2.1), catch_up=1, lateness="30m")
    assert [one.window for one in due(log, time, at(2.1))] == [window(0)]  # that of 1 waits for its lateness


def test_a_judged_window_is_due_again_only_when_its_rows_change(log_with):
    log, time = log_with([0.5, 1.5], at(2))
    (one,) = due(log, time, at(2))
    judged = {one.window: one.fingerprint}
    assert due(log, time, at(2), judged) == []
    log, time = log_with([0.5, 0.6, 1.5], at(2.1))
    (again,) = due(log, time, at(2.1), judged)
    assert again.correction
    assert again.rows == 2


def test_a_late_window_is_judged_again_once_it_is_complete(log_with):
    log, time = log_with([0.5], at(0.6))
    (late,) = due(log, time, at(3))
    log, time = log_with([0.5, 1.5], at(3.1))
    (one,) = [d for d in due(log, time, at(3.1), {late.window: late.fingerprint}) if d.window == late.window]
    assert one.late is None
    assert one.correction


def test_a_clock_that_jumps_back_makes_nothing_due(log_with):
    log, time = log_with([0.5], at(0.6))
    assert due(log, time, DAY - timedelta(days=3)) == []


def test_the_windows_of_a_span_cover_it(log_with):
    log, _ = log_with([0.5, 2.5], at(3))
    assert windows_between(log.exposures, at(1.5), at(2.5)) == [window(1), window(2)]
    assert windows_between(log.exposures, at(1), None) == [window(1), window(2)]
    assert windows_between(log.exposures, at(5), None) == []


def test_the_windows_of_a_log_reach_from_its_first_row_to_its_last_or_to_the_given_end(log_with):
    log, _ = log_with([0.5, 2.5], at(3))
    hours = [window(0), window(1), window(2), window(3)]
    assert windows_of_log(log.exposures, None) == (hours[:3], [])
    assert windows_of_log(log.exposures, at(3.5)) == (hours, [])
    assert windows_of_log(log.exposures, at(2)) == (hours[:2], [])
    assert windows_of_log(log.exposures, DAY) == ([], [])
    empty, _ = log_with([], at(3))
    assert windows_of_log(empty.exposures, at(3)) == ([], [])


def test_a_very_old_row_is_judged_and_the_years_after_it_are_one_gap(log_with):
    long_ago = -24 * 365 * 50
    log, _ = log_with([long_ago, 0.5, 2.5], at(3))
    found, gaps = windows_of_log(log.exposures, None)
    assert found == [window(long_ago), window(0), window(1), window(2)]
    assert gaps == [Window(window(long_ago).end, DAY)]
    # Up to the bound the empty windows are judged one by one, as those of an outage.
    assert len(windows_of_log(log.exposures, at(3 + LONGEST_GAP))[0]) == 4 + LONGEST_GAP
    found, gaps = windows_of_log(log.exposures, at(4 + LONGEST_GAP))
    assert (len(found), gaps[1:]) == (4, [Window(at(3), at(4 + LONGEST_GAP))])


@pytest.mark.parametrize("removed", [False, True])
def test_a_clock_that_ran_ahead_leaves_no_watermark_or_loss_in_the_future(
    written, source_of, engine, removed
):
    ahead = at(12) + timedelta(days=1500)
    header, row = "request_id,user_id,ts,item_id\n", "r1,u1,{:%Y-%m-%d %H:%M:%S},a\n"
    written("good.csv", header + row.format(at(12) - timedelta(hours=1)))
    file = written("ahead.csv", header + row.format(ahead), ahead)
    source = source_of()
    log = source.exposures
    log.refresh(engine, ahead)
    assert log.watermark == ahead
    if removed:
        file.unlink()
    for minute in range(2):
        log.refresh(engine, at(12) + timedelta(minutes=minute))
        assert (log.watermark, log.losses) == (at(12) - timedelta(hours=1), {})
    parts = Parts.of(source, timedelta(0))
    assert max(one.start for one in candidate_windows(parts, "exposures", at(12), at(12))) < at(12)
