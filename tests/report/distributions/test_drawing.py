"""Places in pixels, ticks, and names from a log."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from monitor.core.results import Window
from monitor.history.snapshot import RecommenderState, Series
from monitor.report.distributions.csv_file import as_csv
from monitor.report.distributions.drawing import HEIGHT, WIDTH, drawn
from monitor.report.distributions.figure import Axis, Bar, Line, Plot, Point, Table
from monitor.report.distributions.span import MOST_WINDOWS, SpanError, newest_window, whole_windows
from monitor.settings.recommender import RecommenderSettings
from tests.report.distributions.drawn_shop import HOSTILE, HOUR
from tests.service import pictures

UNIT = Axis("x", 0.0, 1.0)


def test_a_line_goes_from_the_lower_left_to_the_upper_right():
    line = Line(0, (Point(0.0, 0.0), Point(0.5, 0.5, "half"), Point(1.0, 1.0, "all")))
    found = drawn(Plot("", UNIT, UNIT, lines=(line,), reference=((0.0, 0.0), (1.0, 1.0))))
    assert found.lines == ((0, f"{found.left},{found.bottom} 187,112 {found.right},{found.top}"),)
    assert [mark.said for mark in found.marks] == ["half", "all"]
    assert all(mark.quiet for mark in found.marks)
    assert found.reference == f"{found.left},{found.bottom} {found.right},{found.top}"


def test_a_long_line_says_some_of_its_values_and_always_the_last():
    points = tuple(Point(at / 999, at / 999, str(at)) for at in range(1000))
    found = drawn(Plot("", UNIT, UNIT, lines=(Line(0, points),)))
    assert 30 <= len(found.marks) <= 41
    assert found.marks[-1].said == "999"
    assert len(found.lines[0][1].split()) == 1000


def test_an_interval_and_a_bar_of_few_rows_can_be_seen():
    line = Line(0, (Point(0.5, 0.5, "rate", 0.25, 0.75),), marked=True)
    found = drawn(Plot("", UNIT, UNIT, lines=(line,), bars=(Bar(1, 0.0, 0.5, 0.0, 1e-6, "one row"),)))
    (mark,), (rect,) = found.marks, found.rects
    assert mark.top < mark.y < mark.bottom
    assert not mark.quiet
    assert rect.height == 1.0
    assert rect.y + rect.height == found.bottom


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.0, 1.0),
        (-1.7e308, 1.7e308),
        (5.0, 5.0),
        (0.0, 5e-324),
        (0.0, 2e-323),
        (1e300, 1e300 * (1 + 1e-15)),
        (0.0, 3.0),
        (-0.2, 7e5),
    ],
)
def test_any_range_has_ticks_inside_the_picture(low, high):
    axis = Axis("", low, high)
    found = drawn(Plot("", axis, axis, lines=(Line(0, (Point(low, low, "a"), Point(high, high, "b"))),)))
    assert 1 <= len(found.up_ticks) <= 8
    assert all(0 <= tick.at <= HEIGHT for tick in found.up_ticks)
    assert all(0 <= tick.at <= WIDTH for tick in found.across_ticks)
    assert all(0 <= mark.x <= WIDTH and 0 <= mark.y <= HEIGHT for mark in found.marks)


def test_the_ticks_of_tiny_values_are_told_apart():
    found = drawn(Plot("", UNIT, Axis("score", 0.0, 3e-13)))
    assert [tick.text for tick in found.up_ticks] == ["0", "1e-13", "2e-13", "3e-13"]


def test_counts_have_whole_ticks():
    found = drawn(Plot("", UNIT, Axis("requests", 0.0, 3.0, whole=True)))
    assert [tick.text for tick in found.up_ticks] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("  =1", "'  =1"),
        ('=cmd|"/c calc"!A1', '\'=cmd|"/c calc"!A1'),
        (HOSTILE, f"'{HOSTILE}"),
        ("a,b\n=c", "a,b\n=c"),
        ("two\x00nul", "two␀nul"),
        ("\ud800 lone", "? lone"),
        ("plain = 1", "plain = 1"),
    ],
)
def test_a_text_is_never_a_formula_of_a_spreadsheet(text, written):
    content = as_csv(Table((text, "rows"), ((text, -1.5), (None, 2)))).encode()
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert rows == [[written, "rows"], [written, "-1.5"], ["", "2"]]


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 1, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        (at(10), at(11), (10, 11)),
        (at(10, 1), at(11, 1), (10, 12)),
        (at(10), at(10, 1), (10, 11)),
        (at(10, 30), None, (10, 11)),
        (None, at(11), (10, 11)),
        (None, at(11, 1), (11, 12)),
        (at(1), at(20), (1, 20)),
    ],
)
def test_a_span_is_extended_to_whole_windows(start, end, hours):
    assert whole_windows(start, end, HOUR) == Window(at(hours[0]), at(hours[1]))


def test_a_span_that_is_none_or_too_long_is_refused():
    with pytest.raises(SpanError, match="before its end"):
        whole_windows(at(11), at(10), HOUR)
    longest = whole_windows(at(0), at(0) + MOST_WINDOWS * HOUR, HOUR)
    assert longest.length == MOST_WINDOWS * HOUR
    with pytest.raises(SpanError, match="at most 1,000 windows"):
        whole_windows(at(0), at(0) + MOST_WINDOWS * HOUR + timedelta(seconds=1), HOUR)


def test_the_default_is_the_newest_window_that_was_judged_in_all_parts():
    result = pictures.metric("auc", value=0.7, samples=10)
    newest = pictures.series(result, check="exposure")
    older = Window(newest.window.start - HOUR, newest.window.end - HOUR)
    feedback = pictures.series(result, check="feedback")
    both = RecommenderState("shop", series=(newest, pictures_in(feedback, older)), last_window=newest.window)
    assert newest_window(both) == older
    assert (
        newest_window(RecommenderState("shop", series=(newest,), last_window=newest.window)) == newest.window
    )
    assert newest_window(RecommenderState("shop", last_window=older)) == older
    assert newest_window(RecommenderState("shop")) is None


def test_the_newest_window_of_an_earlier_config_is_extended_to_one_of_this():
    settings = RecommenderSettings.model_validate(
        {"name": "shop", "window": "1h", "logs": {"exposures": {"path": "x"}}}
    )
    half = Window(at(10), at(10) + HOUR / 2)
    assert newest_window(RecommenderState("shop", last_window=half, settings=settings)) == Window(
        at(10), at(11)
    )


def pictures_in(series: Series, window: Window) -> Series:
    return replace(series, window=window)
