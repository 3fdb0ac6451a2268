"""`init` proposes the time zone of the users for the bands, and says where it comes from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
import yaml

from monitor.config.init import calendar
from monitor.config.init.calendar import guess_zone, machine_zone
from monitor.config.init.wizard import write_config
from monitor.config.pace import Pace

WINTER = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)


def a_pace(
    night: int, days: float = 14, start: datetime = WINTER, deep: int = 1, requests: float = 9000
) -> Pace:
    """A log whose quietest hours begin at `night` UTC."""
    span = days * DAY
    rows = np.full(24, 0)
    for number in range(int(span / timedelta(hours=1)) + 1):
        hour = (start.hour + number) % 24
        rows[hour] += deep if (hour - night) % 24 < 4 else 10
    return Pace(requests, span, "", True, start, start + span, tuple(int(one) for one in rows))


@pytest.mark.parametrize(
    ("users", "named"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("Europe/London", "Europe/London"),
        ("America/Chicago", "America/Chicago"),
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("Asia/Kolkata", "Asia/Kolkata"),  # half an hour
        ("Asia/Kathmandu", "Asia/Kolkata"),  # 45 minutes
        ("Pacific/Auckland", "Pacific/Auckland"),  # in summer
    ],
)
def test_the_night_of_the_log_leads_to_a_zone(users, named):
    offset = WINTER.astimezone(ZoneInfo(users)).utcoffset()
    assert offset is not None
    night = int((2 - offset / timedelta(hours=1)) % 24)
    found = guess_zone(a_pace(night), None, None)
    assert found.zone == named
    assert found.why.startswith(
        f"a guess: the fewest requests are from {night:02}:00 to {(night + 4) % 24:02}:00 UTC"
    )


@pytest.mark.parametrize("start_hour", [0, 7, 21])
@pytest.mark.parametrize("days", [2.0, 2.4, 3.9])
def test_a_log_that_begins_and_ends_at_another_time_of_day_shows_the_same_night(start_hour, days):
    pace = a_pace(1, days, WINTER + timedelta(hours=start_hour))
    assert guess_zone(pace, None, None).zone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("machine", "zone"),
    [("Europe/Madrid", "Europe/Madrid"), ("America/New_York", "Europe/Berlin"), (None, "Europe/Berlin")],
)
def test_the_zone_of_this_machine_is_proposed_if_it_fits_the_night(machine, zone):
    found = guess_zone(a_pace(1), None, machine)
    assert found.zone == zone
    assert ("this machine" in found.why) is (zone == machine)


@pytest.mark.parametrize(
    "pace",
    [
        None,
        a_pace(1, days=1.9),
        a_pace(1, requests=499),
        a_pace(1, deep=9),  # the nights are as busy as the days
        a_pace(1, deep=10),
        Pace(9000, 14 * DAY, "", False, WINTER, WINTER + 14 * DAY, ()),  # only a few files were read
        Pace(0, timedelta(0), "", True, None, None, 24 * (0,)),
    ],
)
def test_without_a_night_the_zone_is_that_of_this_machine_or_utc(pace):
    found = guess_zone(pace, None, "Asia/Kathmandu")
    assert (found.zone, found.why) == (
        "Asia/Kathmandu",
        "a guess: the zone of this machine; write the zone of your users",
    )
    assert guess_zone(pace, None, None).zone == "UTC"
    assert guess_zone(pace, "UTC", None).why == "the default; write the zone of your users, as Europe/Berlin"


def test_times_without_an_offset_may_be_local_so_utc_stays():
    local = guess_zone(a_pace(2), "UTC", "Europe/London")
    assert local.zone == "UTC"
    assert "if they are local, keep UTC" in local.why
    assert guess_zone(a_pace(20), "UTC", None).zone == "Asia/Kolkata"  # nobody sleeps from 20 o'clock


def test_the_zone_of_the_times_is_that_of_the_bands():
    found = guess_zone(a_pace(2), "Etc/GMT-5", "Europe/London")
    assert (found.zone, found.why.startswith("a guess: the zone of the log's times")) == ("Etc/GMT-5", True)


@pytest.mark.parametrize("night", range(24))
@pytest.mark.parametrize("start", [WINTER, datetime(2026, 7, 6, tzinfo=UTC)])
def test_every_night_has_a_zone_in_which_it_is_night(night, start):
    zone = guess_zone(a_pace(night, start=start), None, None).zone
    local = (start + timedelta(hours=night)).astimezone(ZoneInfo(zone))
    assert local.hour + local.minute / 60 in (0.5, 1, 1.5, 2, 2.5, 3, 3.5)


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Europe/Paris", "Europe/Paris"),
        ("Etc/UTC", None),
        ("Etc/GMT-3", None),
        ("UTC", None),
        ("local", None),
        ("Mars/Base", None),
        (LookupError(), None),
        (ValueError(), None),
    ],
)
def test_a_server_in_utc_or_of_an_unknown_zone_says_nothing_of_the_users(monkeypatch, name, zone):
    def given() -> str:
        if isinstance(name, Exception):
            raise name
        return name

    monkeypatch.setattr(calendar, "get_localzone_name", given)
    assert machine_zone() == zone


def test_the_written_config_has_the_zone_and_an_example_of_a_country(init, tmp_path):
    rng = np.random.default_rng(2)
    hours = np.arange(24)
    share = np.where((hours - 17) % 24 < 4, 0.1, 1.0)  # from 2 o'clock in Tokyo
    hour = rng.choice(24, 6000, p=share / share.sum()) + 24 * rng.integers(0, 7, 6000)
    rows = pd.DataFrame(
        {
            "request_id": [f"r{number}" for number in range(6000)],
            "user_id": [f"u{number % 90}" for number in range(6000)],
            "ts": pd.Timestamp(WINTER) + pd.to_timedelta(hour * 3600 + rng.integers(0, 3600, 6000), unit="s"),
            "item_id": rng.integers(0, 50, 6000).astype(str),
        }
    )
    rows.to_parquet(tmp_path / "log.parquet")
    settings, _, written = init(tmp_path / "log.parquet")
    assert settings.bands.timezone == "Asia/Tokyo"
    assert "the fewest requests are from 17:00 to 21:00 UTC" in written.text
    assert "      # country: JP # its public holidays count as a Sunday" in written.text


def test_the_country_can_be_uncommented(tmp_path):
    rows = pd.DataFrame({"request_id": ["a"], "user_id": ["u"], "ts": [WINTER], "item_id": ["i"]})
    rows.to_parquet(tmp_path / "log.parquet")
    text = write_config([str(tmp_path / "log.parquet")], tmp_path).text
    bands = yaml.safe_load(text.replace("# country:", "country:"))["recommenders"][0]["bands"]
    assert bands == {"timezone": bands["timezone"], "country": "DE"}
