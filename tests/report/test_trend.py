"""The picture of a series, computed by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from monitor.anomalies.specs import DEVIATION, EXPECTED
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.snapshot import Point
from monitor.report.sparkline import small_line, sparkline
from monitor.report.trend import Height, TimeSeries, gather, trend

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPAN = Window(START, START + 4 * HOUR)


@dataclass(frozen=True)
class Stored:
    window: Window
    result: Result


def stored(
    number: int, value: float | None, status: Status = Status.OK, metric: str = "gini", **more: object
) -> Stored:
    result = Result(metric=metric, status=status, definition="1", value=value, **more)  # type: ignore[arg-type]
    return Stored(Window.of(START + number * HOUR, HOUR), result)


def banded(
    number: int, lower: float, upper: float, *, broken: bool = False, metric: str = "gini"
) -> list[Stored]:
    own = {"labels": {"metric": metric, "by": "", "of": "", "dimension": "", "value": ""}, "definition": "1"}
    window = Window.of(START + number * HOUR, HOUR)
    status = Status.VIOLATED if broken else Status.OK
    ends = {"value": (lower + upper) / 2, "lower": lower, "upper": upper}
    return [
        Stored(window, Result(metric=EXPECTED.name, kind=ResultKind.BAND, status=Status.OK, **own, **ends)),
        Stored(window, Result(metric=DEVIATION.name, kind=ResultKind.BAND, status=status, **own, value=9.0)),
    ]


def one(*found: Stored) -> TimeSeries:
    (series,) = gather(found).values()
    return series


def test_values_lie_in_the_middle_of_their_windows_and_the_axis_runs_from_the_lowest_to_the_highest() -> None:
    shown = trend(one(stored(0, 0.0), stored(1, 1.0), stored(3, 0.5)), SPAN, width=408, height=128)
    assert shown is not None
    # 400 pixels for 4 hours, 100 for the range of 1; the hour 2 is missing, so the line ends.
    assert shown.lines == ("54.0,114.0 154.0,14.0", "353.0,64.0 355.0,64.0")
    # The text of an end stands beside the line at its height, out of the way of the values.
    assert shown.heights == (Height(14.0, 11.0, "1"), Height(114.0, 125.0, "0"))
    assert shown.label == "3 windows: lowest 0, highest 1"


def test_values_further_apart_than_float64_reaches_have_places() -> None:
    found = [stored(0, -1.7e308), stored(1, 1.7e308)]
    shown = trend(one(*found), SPAN, width=408, height=128)
    assert shown is not None
    assert shown.lines == ("54.0,114.0 154.0,14.0",)
    points = [Point(each.window, each.result.value, Status.OK) for each in found]
    small, drawn = small_line(points, str, "health"), sparkline(points, str)
    assert small is not None
    assert drawn is not None
    assert (small.path, drawn.lines) == ("M4 24l112 -20", ("4,24 116,4",))


def test_what_is_no_number_ends_a_line_and_is_no_value() -> None:
    found = [stored(0, 1.0), stored(1, math.nan), stored(2, math.inf), stored(3, 2.0, Status.VIOLATED)]
    shown = trend(one(*found), SPAN, width=408, height=128)
    assert shown is not None
    assert shown.label == "2 windows: lowest 1, highest 2, 1 violated or out of the band"
    assert [(mark.x, mark.y) for mark in shown.violated] == [(354.0, 14.0)]
    assert trend(one(stored(0, math.nan), stored(1, None)), SPAN) is None


def test_a_value_out_of_its_band_is_marked_and_the_band_is_an_area() -> None:
    found = [stored(0, 1.0), stored(1, 2.0), *banded(0, 0.5, 1.5), *banded(1, 0.5, 1.5, broken=True)]
    shown = trend(one(*found), SPAN, width=408, height=128, is_large=True)
    assert shown is not None
    assert shown.bands == ("54.0,47.3 154.0,47.3 154.0,114.0 54.0,114.0",)
    assert [mark.said for mark in shown.violated] == ["2026-03-01 01:00 UTC: 2"]
    assert [column.said for column in shown.columns] == [
        "2026-03-01 00:00 UTC: 1, expected 0.5 to 1.5",
        "2026-03-01 01:00 UTC: 2, expected 0.5 to 1.5, violated",
    ]
    assert [(column.x, column.width) for column in shown.columns] == [(4.0, 100.0), (104.0, 100.0)]


def test_a_band_far_wider_than_the_values_is_cut_off_and_hides_no_value() -> None:
    shown = trend(one(stored(0, 1.0), stored(1, 2.0), *banded(0, -1000.0, 1000.0)), SPAN)
    assert shown is not None
    assert [end.text for end in shown.heights] == ["4", "-1"]


@pytest.mark.parametrize(
    ("metric", "value", "ends"),
    [
        ("coverage", 0.7, ["100\xa0%", "0\xa0%"]),
        ("volume", 3.0, ["9", "0"]),
        ("latency", 0.2, ["0.6 seconds", "0 seconds"]),
        ("platform_change", 0.7, ["210\xa0%", "-70\xa0%"]),
    ],
)
def test_the_axis_does_not_leave_what_the_metric_can_be(metric: str, value: float, ends: list[str]) -> None:
    wide = banded(0, -1000.0, 1000.0, metric=metric)
    shown = trend(one(stored(0, value, metric=metric), *wide), SPAN)
    assert shown is not None
    assert [end.text for end in shown.heights] == ends


def test_a_series_that_never_changes_has_one_height_that_of_its_line() -> None:
    shown = trend(one(stored(0, 1.0), stored(1, 1.0)), SPAN, width=408, height=128)
    assert shown is not None
    assert shown.lines == ("54.0,64.0 154.0,64.0",)
    assert shown.heights == (Height(64.0, 61.0, "1"),)


def test_the_bound_and_an_earlier_span_are_drawn_on_the_same_axis() -> None:
    before = {START + HOUR / 2: 0.0, START + 1.5 * HOUR: 3.0}
    series = one(stored(0, 1.0, threshold=4.0, bound="max"), stored(1, 2.0, threshold=4.0, bound="max"))
    shown = trend(series, SPAN, width=408, height=128, before=before)
    assert shown is not None
    assert shown.bound == 14.0
    assert shown.before == ("54.0,114.0 154.0,39.0",)
    assert shown.lines == ("54.0,89.0 154.0,64.0",)


def test_ticks_are_round_times() -> None:
    shown = trend(one(stored(0, 1.0)), SPAN, is_large=True)
    assert shown is not None
    halves = [f"{hour:02}:{minute}" for hour in range(4) for minute in ("00", "30")]
    assert [tick.text for tick in shown.ticks] == ["01 Mar", *halves[1:]]
    minutes = trend(one(stored(0, 1.0)), Window(START, START + HOUR), is_large=True)
    assert minutes is not None
    assert [tick.text for tick in minutes.ticks] == ["01 Mar", "00:10", "00:20", "00:30", "00:40", "00:50"]
    days = trend(one(stored(0, 1.0)), Window(START, START + timedelta(days=3)), is_large=True)
    assert days is not None
    assert [tick.text for tick in days.ticks] == ["01 Mar", "12:00", "02 Mar", "12:00", "03 Mar", "12:00"]
    month = trend(one(stored(0, 1.0)), Window(START - timedelta(days=28), START), is_large=True)
    assert month is not None
    assert [tick.text for tick in month.ticks] == [
        "01 Feb",
        "05 Feb",
        "09 Feb",
        "13 Feb",
        "17 Feb",
        "21 Feb",
        "25 Feb",
    ]
