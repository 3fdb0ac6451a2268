"""The schedule of bands and drift: after the windows, in order, and again after late data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from monitor.anomalies import band_check as bands
from monitor.anomalies import drift_check as drift
from monitor.anomalies.schedule import BandScheduler
from monitor.core.results import Status, Window
from monitor.history.store import Store
from monitor.settings.recommender import RecommenderSettings
from tests.anomalies.banded import HOUR, SHOP, START, hour, measured, store_hour

DAY = timedelta(days=1)
LONG_AGO = START - timedelta(days=400)


def settings(**more: object) -> RecommenderSettings:
    logs = {"exposures": {"path": "log/*.parquet"}}
    given = {"name": SHOP, "logs": logs, "window": "1h", "bands": {}} | more
    return RecommenderSettings.model_validate(given)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "history.db") as store:
        yield store


def gini(number: int) -> float:
    return 0.6 + 0.001 * (number * 7 % 5)


def put_hours(store, numbers, value_of=gini, version="a"):
    for number in numbers:
        store_hour(store, number, [measured("gini", value_of(number), 500)], version=version)


def turn(store, since=LONG_AGO, **more):
    return scheduler(settings(**more), store).turn(datetime.now(UTC), since)


def scheduler(asked, store):
    recommender = SimpleNamespace(settings=asked)  # the checks need only the settings
    return BandScheduler(asked, store, [*bands.BandCheck.of(recommender), *drift.DriftCheck.of(recommender)])


def kept(store, check=bands.NAME):
    """All results of the check in the history, by window."""
    found = {}
    for one in store.results():
        if one.check == check:
            found.setdefault(one.window, []).append(one.result)
    return found


def test_every_measured_window_gets_its_band_once(store):
    put_hours(store, range(30))
    assert turn(store) is False
    first = kept(store)
    assert set(first) == {hour(number) for number in range(30)}
    markers = store.evaluated(SHOP, bands.NAME)
    turn(store)
    assert store.evaluated(SHOP, bands.NAME) == markers  # nothing was written again
    assert store.counters().get(("recsys_corrections_total", (("recommender", SHOP),)), 0) == 0


def test_without_the_setting_there_are_no_bands(store):
    put_hours(store, range(3))
    assert turn(store, bands=None) is False
    assert kept(store) == {}


def test_the_order_and_number_of_turns_do_not_matter(tmp_path):
    found = []
    for name, order in (("forth", range(40)), ("back", reversed(range(40)))):
        with Store.open(tmp_path / f"{name}.db") as store:
            put_hours(store, order)
            turn(store)
            found.append(kept(store))
    with Store.open(tmp_path / "hourly.db") as store:
        for number in range(40):
            put_hours(store, [number])
            turn(store)  # a scheduler of its own each time, as after a restart
        found.append(kept(store))
    assert found[0] == found[1] == found[2]


def test_late_data_judges_its_window_again_and_no_other(store):
    put_hours(store, range(40), lambda number: 0.68 if number >= 38 else gini(number))
    turn(store)
    assert violated(store) == {39: ["few_items"]}
    before = kept(store)
    put_hours(store, [39], version="late data")
    turn(store)
    after = kept(store)
    assert 39 not in violated(store)
    assert {window for window in after if after[window] != before[window]} == {hour(39)}


def test_late_data_gives_the_same_results_as_data_in_time(tmp_path):
    """A far value alone is no anomaly, but is one right after another; that one was wrong, and is mended."""
    values = [{36: 0.68, 37: 0.68}.get(number, gini(number)) for number in range(40)]
    found = []
    for name, corrected in (("at once", False), ("later", True)):
        with Store.open(tmp_path / f"{name}.db") as store:
            first = values if corrected else [*values[:36], gini(36), *values[37:]]
            put_hours(store, range(40), lambda number, first=first: first[number])
            turn(store)
            if corrected:
                assert violated(store) == {37: ["few_items"]}
                put_hours(store, [36], version="late data")
                assert turns_of(store) == [36, 37, 38, 39]
            found.append(kept(store))
            assert violated(store) == {}
    assert found[0] == found[1]


def test_late_data_judges_its_window_and_those_of_the_longest_span_again(store):
    put_hours(store, range(45))
    turn(store)
    put_hours(store, [30], lambda _: 0.7, version="late data")
    assert turns_of(store) == list(range(30, 43))
    assert turns_of(store) == []


def test_a_window_measured_late_judges_the_next_windows_again(store):
    put_hours(store, [*range(30), *range(31, 40)])
    turn(store)
    put_hours(store, [30])
    assert turns_of(store) == list(range(30, 40))


def test_windows_at_the_start_of_the_catch_up_are_not_judged_again_when_it_moves(store):
    put_hours(store, range(40))
    turn(store, since=hour(20).start)
    before = store.evaluated(SHOP, bands.NAME)
    for number in range(21, 26):
        turn(store, since=hour(number).start)
    assert store.evaluated(SHOP, bands.NAME) == before


def turns_of(store):
    """The numbers of the hours whose bands another turn writes."""
    before = {one.window: one for one in store.evaluated(SHOP, bands.NAME)}
    turn(store)
    after = store.evaluated(SHOP, bands.NAME)
    return [(one.window.start - START) // HOUR for one in after if before.get(one.window) != one]


def violated(store):
    """Number of the hour -> causes that stand."""
    return {
        (window.start - START) // HOUR: causes
        for window, results in kept(store).items()
        if (
            causes := [
                one.labels["cause"]
                for one in results
                if one.metric == "anomaly" and one.status is Status.VIOLATED
            ]
        )
    }


def test_windows_before_the_catch_up_get_no_band(store):
    put_hours(store, range(40))
    turn(store, since=hour(30).start)
    assert set(kept(store)) == {hour(number) for number in range(30, 40)}


def test_a_stop_leaves_the_other_windows_for_the_next_turn(store):
    put_hours(store, range(5))
    asked = iter([False, False, True])
    banding = scheduler(settings(), store)
    assert banding.turn(datetime.now(UTC), LONG_AGO, stopping=lambda: next(asked)) is True
    assert len(kept(store)) == 2
    assert banding.turn(datetime.now(UTC), LONG_AGO) is False
    assert len(kept(store)) == 5


def test_the_callback_is_called_for_each_recorded_band(store):
    put_hours(store, range(3))
    said = []
    scheduler(settings(), store).turn(datetime.now(UTC), LONG_AGO, recorded=lambda: said.append(1))
    assert len(said) == 3


def test_a_day_is_judged_for_drift_every_six_hours_once(store):
    put_hours(store, range(50))
    turn(store)
    days = kept(store, drift.NAME)
    assert sorted(days) == [Window(hour(first).start, hour(first + 23).end) for first in (0, 6, 12, 18, 24)]
    markers = store.evaluated(SHOP, drift.NAME)
    turn(store)
    assert store.evaluated(SHOP, drift.NAME) == markers
    put_hours(store, range(50, 53))
    turn(store)
    assert store.evaluated(SHOP, drift.NAME) == markers
    put_hours(store, [53])
    turn(store)
    assert max(kept(store, drift.NAME)).end == hour(53).end


@pytest.mark.parametrize("window", ["2d", "7h"])
def test_windows_that_do_not_divide_a_day_have_no_drift(store, window):
    put_hours(store, range(26))
    assert turn(store, window=window) is False
    assert kept(store, drift.NAME) == {}


def daily(store, number):
    """The value of the day, and why it has none."""
    day = Window(START + number * DAY, START + (number + 1) * DAY)
    (found,) = [one for one in kept(store, drift.NAME)[day] if one.metric == "daily"]
    return found.value, found.detail


def test_a_day_judged_with_missing_files_is_judged_again(store):
    put_hours(store, range(48), lambda number: 0.9 if number in (40, 41) else gini(number))
    banding = scheduler(settings(), store)
    banding.turn(datetime.now(UTC), hour(26).start)
    assert daily(store, 1) == (None, "it left its band that day")
    before = kept(store, drift.NAME)
    put_hours(store, (40, 41), version="late data")
    banding.turn(datetime.now(UTC), hour(40).start)
    value, why = daily(store, 1)
    assert (value, why) == (pytest.approx(0.602, abs=0.001), "")
    after = kept(store, drift.NAME)
    assert [window.start for window in after if after[window] != before[window]] == [
        hour(18).start,
        START + DAY,
    ]


def test_late_data_judges_all_later_days_again(store):
    """A day is compared with those before it, so none of them may keep a verdict on other data."""
    put_hours(store, range(96))
    turn(store)
    before = {one.window: one.fingerprint for one in store.evaluated(SHOP, drift.NAME)}
    put_hours(store, [30], lambda _: 0.61, version="late data")
    turn(store)
    after = {one.window: one.fingerprint for one in store.evaluated(SHOP, drift.NAME)}
    again = {window.start for window in after if after[window] != before[window]}
    assert again == {hour(first).start for first in range(12, 73, 6)}
    turn(store)
    assert {one.window: one.fingerprint for one in store.evaluated(SHOP, drift.NAME)} == after


def test_days_keep_their_verdict_when_the_catch_up_moves(store):
    put_hours(store, range(96))
    banding = scheduler(settings(), store)
    banding.turn(datetime.now(UTC), LONG_AGO)
    before = {one.window: one.fingerprint for one in store.evaluated(SHOP, drift.NAME)}
    for since in (20, 50, 61):
        banding.turn(datetime.now(UTC), hour(since).start)
        assert {one.window: one.fingerprint for one in store.evaluated(SHOP, drift.NAME)} == before


def test_days_keep_their_value_after_the_history_dropped_their_windows(store):
    put_hours(store, range(72))
    turn(store)
    before = daily(store, 0)
    store.drop_before(hour(16).start)
    turn(store, since=hour(30).start)
    assert daily(store, 0) == before


def test_windows_in_maintenance_are_left_out_of_the_scheduled_day(store):
    put_hours(store, range(24), lambda number: 0.9 if number >= 20 else gini(number))
    quiet = {"from": hour(20).start.isoformat(), "until": hour(23).end.isoformat()}
    turn(store, maintenance=[quiet])
    assert daily(store, 0)[0] == pytest.approx(0.602, abs=0.001)


def test_windows_in_maintenance_are_left_out_of_the_bands_past(store):
    put_hours(store, range(40))
    quiet = {"from": hour(10).start.isoformat(), "until": hour(20).start.isoformat()}
    turn(store, maintenance=[quiet])
    used = [one.samples for one in kept(store)[hour(39)] if one.metric == "expected"]
    assert used == [29]
