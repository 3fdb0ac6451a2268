"""What a run says about the age of its requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitor.replay.results import time_travel

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(seconds=70), "1 minute old"),
        (timedelta(minutes=119), "119 minutes old"),
        (timedelta(hours=2), "2 hours old"),
        (timedelta(hours=47), "47 hours old"),
        (timedelta(days=1_000), "1,000 days old"),
    ],
)
def test_the_age_of_the_requests_is_counted_properly(age, shown):
    assert f"up to {shown}" in time_travel(now_passed=False, first=NOW - age, last=NOW, at=NOW)


def test_requests_of_this_minute_have_no_future():
    assert time_travel(now_passed=False, first=NOW - timedelta(seconds=59), last=NOW, at=NOW) == ""
