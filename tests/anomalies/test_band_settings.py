"""Which holidays a config may name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from monitor.anomalies.moments import weekday_of
from monitor.settings.bands import BandSettings


def test_a_holiday_is_like_a_sunday():
    friday = datetime(2026, 12, 25, 12, tzinfo=UTC)
    assert weekday_of(friday, BandSettings(holidays=("2026-12-25",)).holidays) == 6
    assert weekday_of(friday, BandSettings().holidays) == 4


@pytest.mark.parametrize(
    "day",
    [
        "2026-1-1",
        "2026-01-1",
        " 2026-01-01",
        "20260101",
        "2026-W01-1",
        "26-01-01",
        "2026-02-30",
        "01.01.2026",
        "",
    ],
)
def test_a_holiday_in_another_format_or_a_day_that_does_not_exist_is_refused(day):
    with pytest.raises(ValidationError, match="is not a day; write it as 2026-12-25"):
        BandSettings(holidays=("2026-12-24", day))
