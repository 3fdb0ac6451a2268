"""Which reports the daemon writes, and when: at each hour of several days, on a real history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.history.store import Store
from monitor.service.reports import settle, write_due
from monitor.settings.recommender import RecommenderSettings
from monitor.settings.reports import ReportSettings

FIRST = datetime(2026, 3, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DAYS = 4


def shop(attribution: str) -> RecommenderSettings:
    return RecommenderSettings.model_validate(
        {
            "name": "shop",
            "logs": {"exposures": {"path": "nothing/*.parquet"}},
            "metrics": {"attribution": attribution},
        }
    )


@pytest.mark.parametrize("attribution", ["30m", "1d", "2d"])
def test_each_day_gets_its_report_once_all_its_windows_had_time(tmp_path: Path, store: Store, attribution):
    settings, reports = shop(attribution), ReportSettings(folder=tmp_path / "reports", every="1d")
    written = {
        path.name: FIRST + hour * HOUR
        for hour in range(24 * DAYS)
        for path in write_due(reports, [settings], store, FIRST + hour * HOUR)
    }
    midnights = [FIRST + day * DAY for day in range(-DAYS, DAYS)]
    ends = [end for end in midnights if FIRST < end + settle(settings) < FIRST + DAYS * DAY]
    waits = -(-settle(settings) // HOUR) * HOUR
    assert len(written) == len(ends) + 1  # at the first look, the newest that was due already
    assert list(written.values())[1:] == [end + waits for end in ends]
    assert {path.name for path in (tmp_path / "reports").iterdir()} == set(written)


def test_a_report_is_not_written_after_the_daemon_was_asked_to_stop(tmp_path: Path, store: Store) -> None:
    reports = ReportSettings(folder=tmp_path / "reports", every="1d")
    assert write_due(reports, [shop("30m")], store, FIRST + HOUR * 12, stop=lambda: True) == []
    assert not reports.folder.exists()
