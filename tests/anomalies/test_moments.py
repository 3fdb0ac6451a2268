"""Where a window lies in the day and in the week of its users: zones, clock changes, holidays, lengths."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from monitor.anomalies.band_check import MEASURED, NAME, BandCheck
from monitor.anomalies.moments import moment_of, slots, weekday_of
from monitor.core.results import Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import SHOP, causes, measured, result_of, run_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BERLIN = ZoneInfo("Europe/Berlin")  # 2026-03-29: 2 is 3 o'clock; 2026-10-25: 3 is 2 o'clock
SYDNEY = ZoneInfo("Australia/Sydney")  # 2026-04-05: 3 is 2 o'clock; 2026-10-04: 2 is 3 o'clock
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")  # 2026-04-05: half an hour back
KATHMANDU, KOLKATA = ZoneInfo("Asia/Kathmandu"), ZoneInfo("Asia/Kolkata")  # 5:45 and 5:30 before UTC
LOS_ANGELES = ZoneInfo("America/Los_Angeles")


def at(local: datetime, length: timedelta = HOUR) -> Window:
    return Window.of(local.astimezone(UTC), length)


def utc_windows(first: datetime, count: int, length: timedelta = HOUR) -> list[Window]:
    return [Window(first + number * length, first + (number + 1) * length) for number in range(count)]


@pytest.mark.parametrize(
    ("length", "count"),
    [(5, 96), (15, 96), (30, 48), (60, 24), (120, 12), (300, 5), (1440, 1), (2880, 1), (10_080, 1)],
)
def test_slots_of_a_day(length, count):
    assert slots(timedelta(minutes=length)) == count


@pytest.mark.parametrize("zone", [BERLIN, SYDNEY, LOS_ANGELES, UTC])
@pytest.mark.parametrize("month", [3, 9])
def test_the_slot_of_an_hour_is_its_local_time_before_and_after_a_clock_change(zone, month):
    first = datetime(2026, month, 15, tzinfo=UTC)
    for window in utc_windows(first, 24 * 50):
        local = window.start.astimezone(zone)
        found = moment_of(window, zone)
        assert (found.slot, found.weekday) == (local.hour, local.weekday()), local


def test_a_repeated_hour_has_the_same_slot_twice_and_a_missing_one_leaves_none():
    autumn = [moment_of(one, BERLIN).slot for one in utc_windows(datetime(2026, 10, 24, 22, tzinfo=UTC), 25)]
    assert autumn == [0, 1, 2, 2, *range(3, 24)]
    spring = [moment_of(one, BERLIN).slot for one in utc_windows(datetime(2026, 3, 28, 23, tzinfo=UTC), 23)]
    assert spring == [0, 1, *range(3, 24)]


@pytest.mark.parametrize("hours", [4, 6, 8, 12, 24])
@pytest.mark.parametrize("zone", [BERLIN, SYDNEY, LOS_ANGELES])
def test_long_windows_do_not_move_with_the_clock(hours, zone):
    length = timedelta(hours=hours)
    windows = utc_windows(datetime(2026, 1, 1, tzinfo=UTC), 365 * 24 // hours, length)
    by_time = Counter((one.start.hour, moment_of(one, zone).slot) for one in windows)
    assert len(by_time) == 24 // hours
    assert len({slot for _, slot in by_time}) == 24 // hours


@pytest.mark.parametrize("zone", [BERLIN, SYDNEY, LOS_ANGELES])
def test_windows_of_two_hours_do_not_move_with_the_clock_either(zone):
    """An hour is half of them: moved or not, they lie an hour beside their usual time."""
    windows = utc_windows(datetime(2026, 1, 1, tzinfo=UTC), 365 * 12, timedelta(hours=2))
    assert len({(one.start.hour, moment_of(one, zone).slot) for one in windows}) == 12


@pytest.mark.parametrize("minutes", [5, 15, 30])
@pytest.mark.parametrize("zone", [BERLIN, SYDNEY, KATHMANDU, KOLKATA, LORD_HOWE])
def test_short_windows_stay_at_their_local_time(minutes, zone):
    length = timedelta(minutes=minutes)
    for first in (datetime(2026, 4, 4, tzinfo=UTC), datetime(2026, 10, 3, tzinfo=UTC)):
        slot_of: dict[str, set[int]] = {}
        for window in utc_windows(first, 3 * 1440 // minutes, length):
            local = f"{window.start.astimezone(zone):%H:%M}"
            slot_of.setdefault(local, set()).add(moment_of(window, zone).slot)
        assert len(slot_of) == 1440 // minutes
        assert all(len(found) == 1 for found in slot_of.values()), slot_of


def test_a_clock_change_of_half_an_hour_moves_windows_of_half_an_hour():
    half = timedelta(minutes=30)
    before, after = (at(datetime(2026, 4, day, 8, 30, tzinfo=LORD_HOWE), half) for day in (3, 7))
    assert moment_of(before, LORD_HOWE).slot == moment_of(after, LORD_HOWE).slot
    assert (after.start - before.start) % DAY == half


def test_hours_do_not_move_with_a_clock_change_of_half_an_hour():
    found = {
        (window.start.hour, moment_of(window, LORD_HOWE).slot)
        for window in utc_windows(datetime(2026, 3, 30, tzinfo=UTC), 24 * 14)
    }
    assert len(found) == 24


@pytest.mark.parametrize("zone", [KATHMANDU, KOLKATA])
@pytest.mark.parametrize("hours", [1, 2, 4])
def test_a_zone_beside_the_full_hour_has_each_slot_once_a_day(zone, hours):
    windows = utc_windows(datetime(2026, 5, 3, tzinfo=UTC), 7 * 24 // hours, timedelta(hours=hours))
    found = Counter(moment_of(one, zone).slot for one in windows)
    assert found == dict.fromkeys(range(24 // hours), 7)


def test_windows_of_five_hours_have_the_slot_of_their_local_middle():
    length = timedelta(hours=5)
    for window in utc_windows(datetime(2026, 3, 25, tzinfo=UTC), 60, length):
        middle = (window.start + length / 2).astimezone(BERLIN)
        found = moment_of(window, BERLIN)
        assert (found.slot, found.weekday) == ((middle.hour * 60 + middle.minute) // 300, middle.weekday())


@pytest.mark.parametrize("days", [1, 7])
def test_a_window_of_days_has_one_slot_and_the_weekday_of_its_middle(days):
    windows = utc_windows(datetime(2026, 6, 1, tzinfo=UTC), 10, timedelta(days=days))  # a Monday
    for number, window in enumerate(windows):
        assert moment_of(window, LOS_ANGELES)[:2] == (0, (number * days + days // 2) % 7)


def test_a_holiday_follows_a_sunday_from_six_o_clock_of_the_zone_on():
    tokyo = ZoneInfo("Asia/Tokyo")
    midnight = datetime(2026, 1, 1, tzinfo=tokyo)  # a Thursday
    for hour in range(-3, 27):
        found = moment_of(at(midnight + hour * HOUR), tokyo, {"2026-01-01"})
        is_holiday = 0 <= hour < 24
        usual = (3 + hour // 24) % 7
        assert found[:3] == (hour % 24, 6 if 6 <= hour < 24 else usual, is_holiday), hour
        assert found.or_weekday == (6 if 0 <= hour < 6 else None), hour


@pytest.mark.parametrize(("days_off", "weekday"), [({"2026-12-25"}, 6), ({"2026-12-24", "2026-12-26"}, 4)])
def test_a_utc_day_is_a_holiday_by_its_local_middle(days_off, weekday):
    christmas = Window(datetime(2026, 12, 25, tzinfo=UTC), datetime(2026, 12, 26, tzinfo=UTC))
    assert moment_of(christmas, LOS_ANGELES, days_off) == (0, weekday, weekday == 6, None)


def test_the_weekday_of_a_moment():
    friday = datetime(2026, 12, 25, 3, tzinfo=UTC)
    assert weekday_of(friday, ()) == 4
    assert weekday_of(friday, {"2026-12-25"}) == 6


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


def test_short_windows_share_96_times_of_day() -> None:
    minute = timedelta(minutes=1)
    start = datetime(2026, 3, 2, tzinfo=UTC)
    found = [moment_of(Window(start + n * minute, start + (n + 1) * minute)).slot for n in range(1440)]
    assert found == [number // 15 for number in range(1440)]
    assert slots(minute) == 96
