"""When a missing scene counts as 0, now and in the past."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from monitor.anomalies.band_check import NAME, BandCheck
from monitor.anomalies.neighbours import neighbours
from monitor.anomalies.past import PastWindow, SeriesName
from monitor.anomalies.table import left_out, tabled
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import SHOP, causes, changed, hour, judge, result_of, store_hour, usual_hour

WHOLE, SEARCH, REST, DEVIATION = 1, 2, 3, 4
SCENE = {"by": "requests", "dimension": "scene"}
NAMES = {
    WHOLE: SeriesName("volume", {"by": "requests"}),
    SEARCH: SeriesName("volume", SCENE | {"value": "search"}),
    REST: SeriesName("volume", SCENE | {"value": "other"}),
}
TOLD = {DEVIATION: SeriesName("deviation", {"metric": "volume", "of": ""} | SCENE | {"value": "search"})}
NOW = 6 * 7 * 24 - 12  # noon of a Sunday, after almost six weeks
DAYS = range(1, 36)


def a_window(number: int, values: dict[int, float], violated: bool = False) -> PastWindow:
    size = len(values)
    return PastWindow(
        end=hour(number).end,
        series=np.array(sorted(values), np.int64),
        value=np.array([values[one] for one in sorted(values)], np.float64),
        samples=np.full(size, np.nan),
        error=np.full(size, np.nan),
        violated=np.full(size, violated),
        definition=np.full(size, "1", dtype=object),
    )


def tabled_with(values_of, calm=lambda _: True):
    """The scene `search` at noon of 35 days, newest first: past values, and which departed."""
    around = neighbours(hour(NOW), timedelta(days=35), latest=1)
    around = around.only({end for end, near in zip(around.ends, around.near, strict=True) if near == 0})
    past = [a_window(NOW - 24 * day, {WHOLE: 900.0} | values_of(day)) for day in DAYS]
    calm_days = np.array([calm(day) for day in DAYS])
    table = tabled(a_window(NOW, {WHOLE: 900.0}), past, NAMES, BandSettings(), around, calm_days)
    (place,) = [at for at, one in enumerate(table.series) if one.value == "search"]
    judged = [a_window(NOW - 24 * day, {DEVIATION: -50.0}, violated=True) for day in DAYS]
    _, departed = left_out(table, judged, TOLD)
    assert table.value[place] == 0
    return table.past.value[:, place].tolist(), departed[:, place].tolist()


def on_working_days(day: int) -> dict[int, float]:
    return {} if day % 7 in (0, 1) else {SEARCH: 100.0}


def test_an_absence_is_0_in_the_past_and_usual_if_every_such_weekday_has_it():
    values, departed = tabled_with(on_working_days)
    # The oldest day is a Sunday: the scene was not seen before, so it cannot be missing.
    assert values[:-1] == [0.0 if day % 7 in (0, 1) else 100.0 for day in DAYS[:-1]]
    assert np.isnan(values[-1])
    assert departed[:-1] == [
        day % 7 != 0 for day in DAYS[:-1]
    ]  # the window is on a Sunday, so only Sundays are usual


@pytest.mark.parametrize("day", [7, 28])
def test_an_absence_is_not_usual_if_the_series_was_there_once_on_that_weekday(day):
    _, departed = tabled_with(lambda one: {SEARCH: 100.0} if one == day else on_working_days(one))
    assert all(departed)


def test_two_absences_are_not_usual_and_days_in_maintenance_do_not_count():
    _, departed = tabled_with(on_working_days, calm=lambda day: day not in (7, 28))
    assert all(departed)
    _, departed = tabled_with(on_working_days, calm=lambda day: day != 7)
    assert not departed[13]


@pytest.mark.parametrize(
    "unknown",
    [{WHOLE: np.nan}, {REST: 40.0}, {SEARCH: np.nan}],
    ids=["the window could not be judged", "it may be among the others", "it was late"],
)
def test_an_absence_is_not_0_in_an_incomplete_window(unknown):
    values, _ = tabled_with(lambda day: unknown if day == 8 else on_working_days(day))
    assert np.isnan(values[7])
    assert values[6] == 0


def test_before_its_first_row_a_scene_is_unknown_and_not_0():
    values, _ = tabled_with(lambda day: on_working_days(day) if day < 28 else {})
    assert np.isnan(values[27:]).all()
    assert values[20:22] == [0.0, 0.0]


def test_a_scene_without_fridays_is_missing_on_three_fridays_and_then_usual(tmp_path):
    check = BandCheck(SHOP, NAME, BandSettings(sliced=("volume",)))
    missed = []
    with Store.open(tmp_path / "history.db") as store:
        for number in [24 * day + one for day in range(5 * 7) for one in range(8, 13)]:
            is_friday = hour(number).start.weekday() == 4
            gone = {("volume", "search"): None} if is_friday else {}
            store_hour(store, number, changed(usual_hour(number), gone))
            if causes(run := judge(store, check, number)):
                missed.append(number // 24)
            if is_friday and number > 4 * 7 * 24:
                scene = {"metric": "volume", "value": "search"}
                assert result_of(run, "expected", **scene).value == pytest.approx(0, abs=1e-9)
                assert result_of(run, "deviation", **scene).value == pytest.approx(0, abs=1e-9)
        for number in range(35 * 24 + 8, 35 * 24 + 10):  # on a Monday it is reported as missing
            store_hour(store, number, changed(usual_hour(number), {("volume", "search"): None}))
            run = judge(store, check, number)
        assert causes(run) == ["scene_lost"]
    assert set(missed) <= {4, 11, 18}
    assert 18 in missed
