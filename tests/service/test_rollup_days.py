"""The daemon adds up each day that is over: with late rows, rotated logs, and windows never judged."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from monitor.core.results import Result, Status, Window
from monitor.history.read_snapshot import read_snapshot
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.report.page import recommender_page
from monitor.rollups.check import TOO_SHORT
from monitor.service.prometheus.chosen import chosen_families
from monitor.service.prometheus.values import snapshot_values
from monitor.service.watch import News, Watch
from monitor.settings.recommender import RecommenderSettings
from tests.processes import exposures, land
from tests.service.test_watch import FIRST

LENGTH = timedelta(hours=6)
DAY = timedelta(days=1)
START = FIRST.replace(hour=0, minute=0)
SHOP = "shop"


def lists(window: int) -> int:
    return 4 + window


class Days:
    """A recommender with a window every six hours, one file each, and its roll-ups."""

    def __init__(self, folder: Path, store: Store, runtime: Runtime) -> None:
        self.folder, self.store, self.runtime = folder, store, runtime
        self.settings: dict[str, Any] = {
            "name": SHOP,
            "window": "6h",
            "catch_up": 2,
            "rollups": ["1d", "2d"],
            "logs": {"exposures": {"path": str(folder / "logs/*.parquet")}},
        }
        self._watch: Watch | None = None

    def file(self, window: int) -> Path:
        return self.folder / f"logs/{window:02}.parquet"

    def shown(self, window: int, count: int) -> pd.DataFrame:
        rows = exposures(START + window * LENGTH, 21600, lists=count)
        return rows.assign(request_id=[f"{window}-{one}" for one in rows["request_id"]])

    def land(self, windows: range) -> None:
        for window in windows:
            land(self.file(window), self.shown(window, lists(window)))

    def begin(self, window: int) -> None:
        """One list of a window, so that the one before is complete."""
        begins = START + window * LENGTH + timedelta(minutes=20)
        land(self.folder / f"logs/{window:02}-begun.parquet", exposures(begins, 60, lists=1))

    @property
    def watch(self) -> Watch:
        if self._watch is None:
            settings = RecommenderSettings.model_validate(self.settings)
            self._watch = Watch(settings, (), self.store, self.folder / "state", "salt")
        return self._watch

    def restart(self) -> None:
        self._watch = None

    def turns(self, now: datetime) -> int:
        """Turns until nothing is left to do; how many."""
        count = 1
        while self.watch.turn(self.runtime, now):
            count += 1
        return count

    def found(self, metric: str, span: str, **labels: str) -> dict[int, Result]:
        """The day's number -> the result of a roll-up."""
        wanted = {**labels, "dimension": "rollup", "value": span}
        return {
            (one.window.start - START) // DAY: one.result
            for one in self.store.results(recommenders=[SHOP])
            if one.check == "rollups" and one.result.metric == metric and one.result.labels == wanted
        }

    def requests(self, span: str) -> dict[int, float | None]:
        return {day: one.value for day, one in self.found("volume", span, by="requests").items()}


@pytest.fixture
def days(tmp_path: Path, store: Store, runtime: Runtime) -> Days:
    return Days(tmp_path, store, runtime)


def of_day(day: int) -> int:
    return sum(map(lists, range(4 * day, 4 * day + 4)))


def test_each_day_is_added_up_also_from_windows_that_were_never_judged(days: Days) -> None:
    days.land(range(12))
    days.begin(12)
    days.turns(START + 3 * DAY + timedelta(hours=1))
    assert len(days.store.evaluated(SHOP, "logs")) < 12  # catch_up is 2 windows
    assert days.requests("1d") == {0: of_day(0), 1: of_day(1), 2: of_day(2)}
    assert days.requests("2d") == {1: of_day(0) + of_day(1), 2: of_day(1) + of_day(2)}
    assert {one.status for one in days.found("coverage", "2d", by="uv").values()} == {Status.OK}


def test_a_day_is_added_up_once_and_again_when_a_window_is_corrected(days: Days) -> None:
    days.settings["catch_up"] = 20
    days.land(range(8))
    days.begin(8)
    now = START + 2 * DAY + timedelta(hours=1)
    days.turns(now)
    before = days.store.evaluated(SHOP, "rollups")
    days.restart()
    days.turns(now + timedelta(minutes=1))
    assert days.store.evaluated(SHOP, "rollups") == before
    land(
        days.folder / "logs/more.parquet",
        days.shown(1, 50).assign(request_id=lambda rows: rows["request_id"] + "x"),
    )
    days.turns(now + timedelta(minutes=20))
    assert days.requests("1d") == {0: of_day(0) + 50, 1: of_day(1)}
    assert days.requests("2d") == {1: of_day(0) + of_day(1) + 50}


def test_all_days_of_a_turn_are_added_up_and_shown(days: Days, caplog: pytest.LogCaptureFixture) -> None:
    days.settings["catch_up"] = 20
    days.land(range(12))
    days.begin(12)
    now = START + 3 * DAY + timedelta(hours=1)
    shown: list[News] = []
    while days.watch.turn(days.runtime, now, news=shown.append):
        shown.clear()
    assert [sorted(news) for news in shown[2:]] == [["rollups"]] * 3  # days
    assert len(shown) == 5
    assert all("exposure" in news for news in shown[:2])  # windows
    assert days.requests("1d").keys() == {0, 1, 2}
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_a_rotated_log_leaves_the_days_as_they_are(days: Days) -> None:
    days.settings["catch_up"] = 20
    days.land(range(8))
    days.begin(8)
    days.turns(START + 2 * DAY + timedelta(hours=1))
    days.land(range(8, 12))
    days.begin(12)
    for window in range(7):
        days.file(window).unlink()
    days.restart()
    days.turns(START + 3 * DAY + timedelta(hours=1))
    assert days.requests("1d") == {0: of_day(0), 1: of_day(1), 2: of_day(2) + 1}
    assert days.requests("2d") == {1: of_day(0) + of_day(1), 2: of_day(1) + of_day(2) + 1}


def test_a_day_without_what_a_window_kept_is_late(days: Days) -> None:
    days.settings["catch_up"] = 20
    days.land(range(3))
    days.begin(3)
    days.turns(START + DAY - timedelta(hours=5))
    kept = days.watch.evaluator.rollups
    assert kept is not None
    kept.forget("exposures", Window(START, START + LENGTH))
    days.file(0).unlink()
    days.land(range(3, 4))
    days.begin(4)
    days.turns(START + DAY + timedelta(hours=1))
    found = days.found("volume", "1d", by="requests")[0]
    assert (found.status, found.value) == (Status.LATE, of_day(0) - lists(0) + 1)
    assert "1 of 4 windows lack it" in found.detail


def test_many_windows_whose_rows_are_lost_hold_up_no_other_day(days: Days) -> None:
    days.settings["catch_up"] = 30
    del days.settings["rollups"]
    days.land(range(16))
    days.begin(16)
    now = START + 4 * DAY + timedelta(hours=1)
    days.turns(now)
    for window in range(1, 12):  # that of window 0 is still there, so these were not rotated
        days.file(window).unlink()
    days.settings["rollups"] = ["1d"]
    days.restart()
    turns = iter(range(10))
    while days.watch.turn(days.runtime, now + timedelta(minutes=1)):
        assert next(turns, None) is not None, "the roll-ups ask for one more turn again and again"
    assert days.requests("1d")[3] == of_day(3)
    found = days.found("volume", "1d", by="requests")[0]
    assert (found.status, found.value) == (Status.LATE, lists(0))
    assert "3 of 4 windows lack it" in found.detail


def test_a_day_that_the_log_begins_in_is_not_added_up(days: Days) -> None:
    days.land(range(1, 8))
    days.begin(8)
    days.turns(START + 2 * DAY + timedelta(hours=1))
    assert days.requests("1d") == {1: of_day(1)}
    assert days.requests("2d") == {}


@pytest.mark.parametrize("lengths", [["1d", "2d"], ["2d"]])
def test_an_objective_on_more_days_than_the_log_has_says_so(days: Days, lengths: list[str]) -> None:
    days.settings["rollups"] = lengths
    wanted = {"dimension": "rollup", "value": "2d"}
    days.settings["objectives"] = [
        {"metric": "volume", "labels": {"by": "requests", **wanted}, "min": 1},
        {"metric": "gini", "labels": wanted, "max": 1},  # needs a catalog, which this log does not have
    ]
    days.land(range(8))
    days.begin(8)
    days.turns(START + 2 * DAY + timedelta(hours=1))
    of_volume, of_gini = days.found("volume", "2d", by="requests"), days.found("gini", "2d")
    assert {day: one.status for day, one in of_volume.items()} == {0: Status.NO_DATA, 1: Status.OK}
    assert {of_volume[0].detail, of_gini[0].detail} == {TOO_SHORT}
    assert of_gini[1].status is Status.NO_DATA
    assert of_gini[1].detail != TOO_SHORT


def test_a_roll_up_is_exported_shown_and_judged_like_a_slice(days: Days) -> None:
    labels = {"by": "requests", "dimension": "rollup", "value": "1d"}
    days.settings["objectives"] = [{"metric": "volume", "labels": labels, "min": 1000}]
    days.land(range(8))
    days.begin(8)
    now = START + 2 * DAY + timedelta(hours=1)
    days.turns(now)
    snapshot = read_snapshot(days.store, [SHOP], now)
    values = snapshot_values(snapshot, now, chosen_families())
    assert values["recsys_slice_volume"][SHOP, "requests", "rollup", "1d"] == of_day(1)
    assert values["recsys_slice_list_length"][SHOP, "rollup", "2d"] == 2
    status = values["recsys_slice_objective_status"]
    assert {labels: value for labels, value in status.items() if value} == {
        (SHOP, "volume", "requests", "rollup", "1d", "violated"): 1.0
    }
    page = recommender_page(snapshot, SHOP, now)
    assert page is not None
    assert "Days and weeks" in {one.title for one in page.recommender.sections}


@pytest.mark.parametrize("window", ["3h", "12h"])
def test_windows_of_a_former_length_are_not_missed_in_a_day(days: Days, window: str) -> None:
    days.settings["catch_up"] = 20
    days.land(range(12))
    days.begin(12)
    now = START + 3 * DAY + timedelta(hours=1)
    days.turns(now)
    before = days.found("volume", "1d", by="requests"), days.found("volume", "2d", by="requests")
    days.settings |= {"window": window, "catch_up": 2}
    days.restart()
    days.turns(now + timedelta(minutes=1))
    assert (days.found("volume", "1d", by="requests"), days.found("volume", "2d", by="requests")) == before
    days.land(range(12, 16))
    days.begin(16)
    days.turns(now + DAY)
    added, both = days.found("volume", "1d", by="requests"), days.found("volume", "2d", by="requests")
    assert {one.status for one in (*added.values(), *both.values())} == {Status.OK}
    assert (added[3].value, both[3].value) == (
        of_day(3) + 1,
        of_day(2) + of_day(3) + 1,
    )  # with the begun list


def test_a_rotated_log_leaves_the_days_of_windows_of_a_former_length_as_they_are(days: Days) -> None:
    days.settings["catch_up"] = 20
    days.land(range(12))
    days.begin(12)
    now = START + 3 * DAY + timedelta(hours=1)
    days.turns(now)
    before = days.found("volume", "1d", by="requests")
    for window in range(9):
        days.file(window).unlink()
    days.settings |= {"window": "12h", "catch_up": 2}
    days.restart()
    days.turns(now + timedelta(minutes=1))
    assert days.found("volume", "1d", by="requests") == before


def test_the_files_that_no_day_needs_are_deleted(days: Days) -> None:
    days.settings["catch_up"] = 20
    days.land(range(8))
    days.begin(8)
    days.turns(START + 2 * DAY + timedelta(hours=1))
    kept = days.watch.evaluator.rollups
    assert kept is not None
    whole = Window(START, START + 2 * DAY)
    assert len(kept.present("exposures", whole, LENGTH)) == 8
    of_other_settings = kept.every / "0123456789ab"
    of_other_settings.mkdir()
    days.watch.forget(START + 12 * DAY + timedelta(hours=1))
    assert not of_other_settings.exists()
    assert {one.start for one in kept.present("exposures", whole, LENGTH)} == {
        START + number * LENGTH for number in range(4, 8)
    }


def test_a_day_with_a_late_window_is_late_until_its_rows_come(days: Days) -> None:
    days.settings |= {"catch_up": 20, "max_wait": "10m", "rollups": ["1d"]}
    days.land(range(6))
    days.turns(START + 2 * DAY - timedelta(hours=9))  # from now on an hour without rows is missed
    days.land(range(6, 7))
    now = START + 2 * DAY + timedelta(hours=2)
    days.turns(now)
    found = days.found("volume", "1d", by="requests")[1]
    assert (found.status, found.value) == (Status.LATE, of_day(1) - lists(7))
    assert "of 4 windows are late" in found.detail
    days.land(range(7, 8))
    days.begin(8)
    days.turns(now + timedelta(minutes=20))
    found = days.found("volume", "1d", by="requests")[1]
    assert (found.status, found.value) == (Status.OK, of_day(1))


def test_a_file_that_a_crash_cut_short_is_made_again_or_its_metrics_are_late(days: Days) -> None:
    days.settings |= {"catch_up": 20, "rollups": ["1d"]}
    days.land(range(3))
    days.begin(3)
    days.turns(START + DAY - timedelta(hours=5))
    kept = days.watch.evaluator.rollups
    assert kept is not None
    window = Window(START, START + LENGTH)
    place = kept.addends["item_counts"].path(window)
    place.write_bytes(place.read_bytes()[:-9])
    days.land(range(3, 8))
    days.begin(4)
    days.turns(START + DAY + timedelta(hours=1))
    assert days.found("volume", "1d", by="exposures")[0].value == 2 * (of_day(0) + 1)  # with the begun list
    days.begin(8)
    days.turns(START + 2 * DAY - timedelta(hours=5))
    kept.addends["item_counts"].path(
        Window(START + DAY, START + DAY + LENGTH)
    ).unlink()  # without a trace, and its rows are rotated away
    days.file(4).unlink()
    (days.folder / "logs/04-begun.parquet").unlink()
    days.turns(START + 2 * DAY + timedelta(hours=1))
    gini = days.found("gini_exposed", "1d")[1]
    assert gini.status is Status.LATE
    assert "1 of 4 windows lack it" in gini.detail
    assert "lack it" not in days.found("coverage", "1d", by="uv")[1].detail
