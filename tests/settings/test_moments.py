"""The moments and days of a config: shown in UTC, and none so far away that reckoning with it fails."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from pydantic import ValidationError

from monitor.core.yaml_text import parse_yaml
from monitor.settings.bands import BandSettings, KnownChange
from monitor.settings.experiments import ExperimentSettings

FAR = ["0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z", "9999-12-31T23:30:00Z"]


def experiment(start: str) -> ExperimentSettings:
    return ExperimentSettings.model_validate(
        parse_yaml(f"{{name: a, split: {{a: 1, b: 1}}, start: {start}}}")
    )


def test_a_change_with_an_offset_is_kept_in_utc():
    """Messages write it as `10:00 UTC`, so it must not keep the hour of its own zone."""
    change = KnownChange.model_validate(parse_yaml("{at: 2026-11-01T10:00:00+02:00, what: m7}"))
    assert f"{change.at:%Y-%m-%d %H:%M}" == "2026-11-01 08:00"


@pytest.mark.parametrize("moment", FAR)
def test_a_change_or_a_start_at_the_end_of_the_calendar_is_refused(moment):
    with pytest.raises(ValidationError, match="must lie between 1970 and 9000"):
        KnownChange.model_validate(parse_yaml(f"{{at: {moment}, what: m7}}"))
    with pytest.raises(ValidationError, match="must lie between 1970 and 9000"):
        experiment(moment)


def test_a_start_without_a_zone_is_utc_and_the_last_one_can_be_reckoned_with():
    assert experiment("2026-11-01T10:30:00").begins(timedelta(hours=1)) == datetime(
        2026, 11, 1, 11, tzinfo=UTC
    )
    assert experiment("9000-01-01T00:00:00Z").begins(timedelta(days=7)) is not None


@pytest.mark.parametrize("span", [("0001-01-01", "2026-12-24"), (date(2026, 12, 24), date(9999, 12, 31))])
def test_a_season_to_the_end_of_the_calendar_is_refused(span):
    """Pages and reports reckon with the day after its last one, and with its first one in UTC."""
    season = {"from": span[0], "to": span[1], "what": "for ever"}
    with pytest.raises(ValidationError, match="must lie between 1970 and 9000"):
        BandSettings.model_validate({"seasons": [season]})
