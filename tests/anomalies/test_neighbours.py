"""Which past windows are similar to a window, by local time and across clock changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from monitor.anomalies.band_check import MEASURED, NAME, BandCheck
from monitor.anomalies.neighbours import neighbours
from monitor.core.results import Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import HOUR, SHOP, causes, measured, result_of, run_of

MONTH = timedelta(days=28)
BERLIN = ZoneInfo("Europe/Berlin")  # 2026-03-29: 2 is 3 o'clock; 2026-10-25: 3 is 2 o'clock


def at(local: datetime, length: timedelta = HOUR) -> Window:
    return Window.of(local.astimezone(UTC), length)


def partners(window: Window, zone, length=HOUR) -> dict[date, datetime]:
    """The local start of the window at the same time of day, by local day."""
    found = neighbours(window, MONTH, 48, zone=zone)
    same_time = np.flatnonzero(found.near == 0)
    starts = [(found.ends[place] - length).astimezone(zone) for place in same_time]
    by_day = {start.date(): start for start in starts}
    assert len(by_day) == len(starts)
    return by_day


@pytest.mark.parametrize("month", [3, 10])
def test_around_a_clock_change_each_day_has_a_neighbour_at_the_same_local_time(month):
    first = datetime(2026, month, 24, tzinfo=BERLIN)
    for number in range(24 * 35):
        window = at(first + number * timedelta(hours=1))
        local = window.start.astimezone(BERLIN)
        found = partners(window, BERLIN)
        odd = {day: one.hour for day, one in found.items() if one.hour != local.hour}
        is_missing = month == 3 and local.hour == 2 and date(2026, 3, 29) in found
        assert odd == ({date(2026, 3, 29): 3} if is_missing else {}), window
        assert set(found) >= {local.date() - timedelta(days=back) for back in range(1, 29)}, window


def test_a_repeated_hour_has_the_same_neighbours_twice_and_counts_once_for_other_days():
    first, second = (datetime(2026, 10, 25, 2, tzinfo=BERLIN, fold=fold) for fold in (0, 1))
    monday = partners(at(datetime(2026, 10, 26, 2, tzinfo=BERLIN)), BERLIN)
    assert monday[date(2026, 10, 25)].astimezone(UTC) == first.astimezone(UTC)
    assert partners(at(second), BERLIN).keys() == partners(at(first), BERLIN).keys()
    before = neighbours(at(second), MONTH, 48, zone=BERLIN)
    assert (before.ends[0], int(before.near[0])) == (at(first).end, -1)
    assert (before.age > 0).all()


def test_age_is_in_days_of_local_time():
    window = at(datetime(2026, 3, 30, 9, tzinfo=BERLIN))
    found = neighbours(window, MONTH, 48, zone=BERLIN)
    assert found.age[found.near == 0].tolist() == list(range(1, 29))
    assert found.ends[int(np.flatnonzero(found.near == 0)[0])] == window.end - timedelta(hours=24)
    assert found.ends[int(np.flatnonzero(found.near == 0)[1])] == window.end - timedelta(hours=47)


@pytest.mark.parametrize("hours", [2, 4, 6, 24])
def test_long_windows_do_not_move_with_the_clock(hours):
    length = timedelta(hours=hours)
    window = at(datetime(2026, 4, 2, 9, tzinfo=BERLIN), length)
    found = neighbours(window, MONTH, 1, zone=BERLIN)
    assert [window.end - found.ends[place] for place in np.flatnonzero(found.near == 0)] == [
        timedelta(days=back) for back in range(1, 29)
    ]


def test_a_clock_change_of_half_an_hour_moves_windows_of_half_an_hour():
    lord_howe = ZoneInfo("Australia/Lord_Howe")
    half = timedelta(minutes=30)
    window = at(datetime(2026, 4, 7, 8, 30, tzinfo=lord_howe), half)
    found = partners(window, lord_howe, half)
    assert {one.strftime("%H:%M") for one in found.values()} == {"08:30"}
    assert len(found) == 28


def test_a_holiday_runs_from_midnight_to_midnight_of_the_zone():
    tokyo = ZoneInfo("Asia/Tokyo")
    sunday = at(datetime(2026, 1, 11, 12, tzinfo=tokyo))
    found = neighbours(sunday, MONTH, 28 * 24, ["2026-01-01"], tokyo)
    alike = {
        (end - HOUR).astimezone(tokyo)
        for end, is_alike in zip(found.ends, found.same_weekday, strict=True)
        if is_alike and (end - HOUR).astimezone(tokyo).weekday() != 6
    }
    new_year = datetime(2026, 1, 1, tzinfo=tokyo)
    assert alike == {new_year + number * HOUR for number in range(24)}


def test_a_utc_day_has_the_local_weekday_of_its_middle():
    west = ZoneInfo("America/Los_Angeles")
    day = timedelta(days=1)
    christmas = Window(datetime(2026, 12, 25, tzinfo=UTC), datetime(2026, 12, 26, tzinfo=UTC))
    found = neighbours(christmas, MONTH, 1, ["2026-12-25"], west)
    alike = [end - day for end, is_alike in zip(found.ends, found.same_weekday, strict=True) if is_alike]
    assert {one.weekday() for one in alike} == {6}
    assert found.same_day_type.sum() == 8


def test_windows_of_a_quarter_hour_need_a_past_of_a_day(tmp_path):
    quarter, noon = timedelta(minutes=15), datetime(2026, 3, 2, 12, tzinfo=UTC)
    check = BandCheck(SHOP, NAME, BandSettings())
    with Store.open(tmp_path / "history.db") as store:
        for number in range(120):
            window = Window(noon + number * quarter, noon + (number + 1) * quarter)
            day = np.cos(2 * np.pi * (number / 96))
            shown = measured("volume", float(round(1000 * 10**day)), 1000, by="requests")
            run = CheckRun(check=MEASURED[NAME], results=[shown], outcome="ok")
            store.record_window(SHOP, window, [run], fingerprint="a", rows=1, evaluated_at=window.end)
            judged = run_of(check, store, window)
            assert causes(judged) == [], window
            status = result_of(judged, "expected", metric="volume").status
            assert status is (Status.OK if number >= 96 else Status.NO_DATA), window


def test_the_morning_after_a_clock_change_is_normal_in_the_local_zone(tmp_path):
    start, change = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC)
    after = range((change - start) // HOUR + 24, (change - start) // HOUR + 48)
    with Store.open(tmp_path / "history.db") as store:
        for number in range(after.stop):
            window = Window(start + number * HOUR, start + (number + 1) * HOUR)
            time = window.start.astimezone(BERLIN).hour
            requests = round(3000 * np.exp(np.cos(2 * np.pi * (time - 18) / 24))) + number * 7 % 31
            shown = measured("volume", float(requests), requests, by="requests")
            run = CheckRun(check=MEASURED[NAME], results=[shown], outcome="ok")
            store.record_window(SHOP, window, [run], fingerprint="a", rows=1, evaluated_at=window.end)
        anomalies = {}
        for zone in ("UTC", "Europe/Berlin"):
            check = BandCheck(SHOP, NAME, BandSettings(timezone=zone))
            anomalies[zone] = sum(
                abs(result_of(run, "deviation", metric="volume").value or 0) > 4
                for run in (
                    run_of(check, store, Window(start + number * HOUR, start + (number + 1) * HOUR))
                    for number in after
                )
            )
    assert anomalies["UTC"] > 10
    assert anomalies["Europe/Berlin"] == 0
