"""The warning that the traffic follows a clock which is put back and forth, while the bands count in UTC."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from monitor.anomalies.clock_change import ZONES, ClockChangeCheck, clock_changes
from monitor.core.results import Result, Status, Window
from monitor.history.record import CheckRun, record
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK
from monitor.settings.recommender import RecommenderSettings
from tests.anomalies.banded import SHOP, measured

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NIGHT = 4


def requests_at(moment: datetime, zone: str, mean: float = 2000) -> float:
    """Chance requests of an hour, the fewest from 2 to 6 o'clock of the zone. Seeded by the hour."""
    local = moment.astimezone(ZoneInfo(zone))
    hour = local.hour + local.minute / 60 + 0.5
    expected = mean * (1.05 - np.cos(2 * np.pi * (hour - NIGHT) / 24)) * (1.2 if local.weekday() > 4 else 1)
    return float(np.random.default_rng(int(moment.timestamp())).poisson(expected))


def store_traffic(
    store: Store,
    zone: str,
    first: datetime,
    last: datetime,
    length: timedelta = HOUR,
    status: Status = Status.OK,
    mean: float = 2000,
) -> None:
    with store._database.writing() as connection:  # one transaction for thousands of windows
        for number in range((last - first) // length):
            window = Window(first + number * length, first + (number + 1) * length)
            value = requests_at(window.start, zone, mean)
            results = [
                Result(
                    metric="volume", labels={"by": "requests"}, status=status, definition="1", value=value
                ),
                measured("volume", 7.0, 7, by="requests", dimension="scene", value="home"),
            ]
            run = CheckRun(check=EXPOSURE_CHECK, results=results, outcome="ok")
            record(connection, SHOP, window, [run], fingerprint="a", rows=1, evaluated_at=window.end)


def a_check(store: Store, window: str = "1h", bands: dict[str, object] | None = None) -> ClockChangeCheck:
    given = {
        "name": SHOP,
        "logs": {"exposures": {"path": "log/*.csv"}},
        "window": window,
        "bands": {} if bands is None else bands,
    }
    return ClockChangeCheck(RecommenderSettings.model_validate(given), store)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("users", "first", "last", "change", "named"),
    [
        ("Europe/Berlin", "2026-10-11", "2026-10-29", "2026-10-25", "Europe/Berlin"),
        ("Europe/Berlin", "2026-10-11", "2026-11-06", "2026-10-25", "Europe/Berlin"),  # the US changed since
        ("America/New_York", "2026-10-14", "2026-11-05", "2026-11-01", "America/New_York"),
        ("America/Los_Angeles", "2026-10-17", "2026-11-05", "2026-11-01", "America/Los_Angeles"),
        ("Europe/Berlin", "2026-03-15", "2026-04-02", "2026-03-29", "Europe/Berlin"),
        ("America/New_York", "2026-02-20", "2026-04-02", "2026-03-08", "America/New_York"),
        ("Australia/Sydney", "2026-03-20", "2026-04-09", "2026-04-05", "Australia/Sydney"),
    ],
)
def test_a_change_of_the_users_clocks_is_noticed(store, users, first, last, change, named):
    store_traffic(store, users, day(first), day(last))
    note = a_check(store).look(day(last))
    assert (
        f"moved by an hour on {change}, at the clock change of {named}, but `bands.timezone` is UTC" in note
    )


@pytest.mark.parametrize("users", ["UTC", "Asia/Kathmandu"])
@pytest.mark.parametrize("season", [("2026-10-11", "2026-11-05"), ("2026-03-16", "2026-04-02")])
def test_there_is_no_warning_if_the_users_have_no_clock_change(store, users, season):
    store_traffic(store, users, day(season[0]), day(season[1]))
    assert a_check(store).look(day(season[1])) == ""


@pytest.mark.parametrize(
    ("window", "bands", "length", "expected"),
    [
        ("30m", {}, timedelta(minutes=30), True),
        ("1h", {"timezone": "UTC"}, HOUR, True),
        ("1h", {"timezone": "Europe/Berlin"}, HOUR, False),
        ("2h", {}, 2 * HOUR, False),
        ("15m", {}, HOUR, False),  # windows of another length, from before a change of the config
    ],
)
def test_only_windows_that_divide_an_hour_of_bands_in_utc_are_compared(
    store, window, bands, length, expected
):
    store_traffic(store, "Europe/Berlin", day("2026-10-11"), day("2026-10-30"), length)
    assert bool(a_check(store, window, bands).look(day("2026-10-30"))) is expected


def test_without_bands_or_a_history_there_is_no_warning(store):
    assert a_check(store).look(day("2026-10-30")) == ""
    settings = RecommenderSettings.model_validate(
        {"name": SHOP, "logs": {"exposures": {"path": "log/*.csv"}}}
    )
    store_traffic(store, "Europe/Berlin", day("2026-10-11"), day("2026-10-30"))
    assert ClockChangeCheck(settings, store).look(day("2026-10-30")) == ""


@pytest.mark.parametrize(
    ("first", "last", "mean", "status"),
    [
        ("2026-10-11", "2026-10-27", 2000, Status.OK),  # two days after are too few
        ("2026-10-20", "2026-10-30", 2000, Status.OK),  # five days before are too few
        ("2026-10-11", "2026-10-30", 5, Status.OK),  # five requests an hour are too few
        ("2026-10-11", "2026-10-30", 2000, Status.LATE),
    ],
)
def test_there_is_no_warning_on_too_little_data(store, first, last, mean, status):
    store_traffic(store, "Europe/Berlin", day(first), day(last), status=status, mean=mean)
    assert a_check(store).look(day(last)) == ""


def test_the_warning_is_logged_once_and_computed_once_a_day(store, caplog):
    first, middle, last = day("2026-10-11"), day("2026-10-27"), day("2026-10-30")
    store_traffic(store, "Europe/Berlin", first, middle)
    check = a_check(store)
    with caplog.at_level(logging.WARNING):
        assert check.look(middle) == ""
        store_traffic(store, "Europe/Berlin", middle, last)
        assert check.look(middle + 23 * HOUR) == ""
        note = check.look(middle + DAY)
        assert note
        assert check.look(middle + 3 * DAY) == note
    assert [record.getMessage() for record in caplog.records] == [f"shop: {note}"]


def test_the_warning_lasts_until_the_change_is_forgotten(store):
    store_traffic(store, "Europe/Berlin", day("2026-10-11"), day("2026-11-05"))
    check = a_check(store)
    assert check.look(day("2026-11-05"))
    store_traffic(store, "Europe/Berlin", day("2027-02-01"), day("2027-02-02"))
    assert check.look(day("2027-02-02"))
    store_traffic(store, "Europe/Berlin", day("2027-06-01"), day("2027-06-02"))
    assert check.look(day("2027-06-02")) == ""


def test_every_zone_has_its_changes_of_a_year():
    changes = clock_changes(day("2026-01-01"), day("2027-01-01"))
    for zone in ZONES:
        hours = sorted(one.hours for one in changes if zone in one.zones)
        assert hours == [-1, 1], zone
    assert [one.moment for one in changes] == sorted(one.moment for one in changes)
    berlin = [one.moment for one in changes if "Europe/Berlin" in one.zones]
    assert berlin == [day("2026-03-29") + HOUR, day("2026-10-25") + HOUR]
    israel = [one.zones["Asia/Jerusalem"] for one in changes if "Asia/Jerusalem" in one.zones]
    assert israel == [day("2026-03-27"), day("2026-10-24") + 23 * HOUR]  # in autumn two hours before Europe


def test_changes_by_half_an_hour_and_zones_without_changes_are_left_out():
    year = day("2026-01-01"), day("2027-01-01")
    assert clock_changes(*year, ("Australia/Lord_Howe", "Asia/Kathmandu", "UTC")) == []
    assert clock_changes(day("2100-10-01"), day("2100-12-01"), ("Europe/Berlin",))[0].moment == datetime(
        2100, 10, 31, 1, tzinfo=UTC
    )
