"""Where the past of a window begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from monitor.anomalies.band_past import BandPast
from monitor.core.results import Window
from monitor.settings.bands import BandSettings

WINDOW = Window.of(datetime(2026, 11, 29, 12, tzinfo=UTC), timedelta(hours=1))


def anchor(*seasons: tuple[str, str]) -> datetime:
    given = [{"from": first, "to": last, "what": "sale"} for first, last in seasons]
    settings = BandSettings.model_validate({"seasons": given})
    return BandPast("shop", "exposure", "bands", settings).anchor(WINDOW)


def test_the_past_begins_before_a_season_even_if_another_one_ends_there() -> None:
    usual = anchor()
    assert usual == datetime(2026, 9, 28, tzinfo=UTC)
    assert anchor(("2026-10-01", "2026-10-09")) == usual
    assert anchor(("2026-09-28", "2026-10-07")) == usual - timedelta(days=10)
    summer, autumn = ("2026-08-01", "2026-09-27"), ("2026-09-28", "2026-10-07")
    assert anchor(summer, autumn) < datetime(2026, 8, 1, tzinfo=UTC)
