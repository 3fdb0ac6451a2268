"""Which windows wait for files that cannot be read, and for how long."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta

import pytest

from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.results import Window
from monitor.logs.log import Log
from monitor.logs.windows import Parts, completeness, due_windows
from monitor.settings.logs import LogSettings

DAY = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
HEADER = "request_id,user_id,ts,item_id\n"
TEN = Window(DAY + 10 * HOUR, DAY + 11 * HOUR)
NOON = DAY + 12 * HOUR
LAST = TEN.end + 48 * HOUR  # 48 windows are caught up with


def rows(*moments):
    return HEADER + "".join(f"r{moment},u,{moment:%Y-%m-%d %H:%M:%S},a\n" for moment in moments)


@pytest.fixture
def seen(written, source_of, engine):
    """A log of files (name, content, time of change), and why its window at ten o'clock is late."""

    def look(*files, now=NOON, name=EXPOSURES, window=TEN):
        for file in files:
            written(*file)
        source = source_of()
        log = Log(name, LogSettings(path=source.exposures.settings.path), source.time)
        log.refresh(engine, now)
        return log, completeness(log, window, now, source.time)[1]

    return look


AROUND = ("around.csv", rows(TEN.start - HOUR, TEN.end + HOUR / 2), NOON)


def broken(modified, name="broken.csv"):
    return (name, "request_id\n", modified)


def test_an_empty_window_is_late_if_a_younger_file_is_unread(seen):
    log, why = seen(AROUND, broken(TEN.end + 20 * timedelta(minutes=1)))
    assert "1 file that may hold its rows could not be read" in why
    assert "broken.csv" in why
    assert log.rows(TEN) == 0


def test_a_window_with_rows_does_not_wait_for_younger_unread_files(seen):
    assert seen(AROUND, ("ten.csv", rows(TEN.start), TEN.end), broken(NOON))[1] is None


def test_a_quiet_hour_is_complete_if_all_files_are_readable(seen):
    assert seen(AROUND)[1] is None


@pytest.mark.parametrize(
    ("modified", "is_late"),
    [
        (TEN.start - timedelta(days=365), False),  # of last year, and there ever since
        (TEN.start - SECOND, False),
        (TEN.start, True),
        (LAST, True),
        (LAST + SECOND, False),  # no window is judged again by then
    ],
)
def test_an_unread_file_counts_for_empty_windows_within_catch_up(seen, modified, is_late):
    found = seen(AROUND, broken(modified), now=LAST + HOUR)[1]
    assert (found is not None) == is_late


def test_an_unreadable_archive_does_not_correct_a_window_to_zero(seen, written, source_of, engine, tmp_path):
    """At night the hour's file is compressed; the copy is cut short, and later it is made again."""
    content, night = rows(TEN.start, TEN.start + SECOND), DAY + 27 * HOUR
    recent = ("recent.csv", rows(night), night)
    written(*AROUND)
    written(*recent)
    ten = written("ten.csv", content, TEN.end)
    source = source_of()
    parts = Parts.of(source, timedelta(0))

    def look(judged=None):
        source.exposures.refresh(engine, night)
        return due_windows(parts, EXPOSURES, night, [TEN], judged or {})

    (before,) = look()
    assert (before.rows, before.late) == (2, None)
    ten.unlink()
    written("ten.csv.gz", gzip.compress(content.encode())[:-9], night)
    (cut,) = look({TEN: before.fingerprint})
    assert (cut.rows, cut.correction, cut.lost, cut.is_kept) == (0, False, True, True)
    assert "ten.csv.gz" in cut.late
    assert look({TEN: cut.fingerprint}) == []  # not at every look again
    written("ten.csv.gz", gzip.compress(content.encode()), night + SECOND)
    (after,) = look({TEN: cut.fingerprint})
    assert (after.rows, after.late, after.fingerprint) == (2, None, before.fingerprint)


def test_duplicates_and_growing_files_do_not_make_a_quiet_hour_late(seen):
    name, content, written_at = AROUND
    log, why = seen(AROUND, (f"copy_of_{name}", content, written_at), ("now.csv", HEADER + "r,u", NOON))
    assert [one.is_duplicate for one in log.skipped] == [True, False]
    assert "still being written" in log.skipped[1].reason
    assert why is None


def test_an_optional_log_waits_only_for_files_written_while_its_rows_were_due(seen):
    header = "request_id,user_id,ts,item_id,event\n"
    actions = ("actions.csv", header + f"r,u,{TEN.end + HOUR / 2:%Y-%m-%d %H:%M:%S},a,click\n", NOON)
    assert seen(actions, broken(TEN.end + HOUR / 4), name=FEEDBACK)[1] is None
    assert "could not be read" in seen(actions, broken(TEN.end), name=FEEDBACK)[1]
