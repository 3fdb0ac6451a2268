"""What the pages say of a series beside the band of its own past."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.anomalies.results import Departure
from monitor.core.results import Status, Window
from monitor.history.snapshot import Series
from monitor.report.bands import bands_of, key_of, series_name, with_band
from monitor.report.rows import metric_row
from monitor.report.sparkline import Around, sparkline
from monitor.report.views import BandView
from tests.service import pictured_bands
from tests.service.made import HOUR, LAST, NOW, metric, past, series
from tests.service.pictured_bands import COVERAGE, FAILURE, IN_SCENE, banded


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def band(*made: Series) -> BandView:
    row = with_band(metric_row(made[0], NOW), made[0], bands_of(made))
    assert row.band is not None
    return row.band


def test_a_value_has_its_band_in_its_own_unit_and_says_how_far_it_is_off():
    found = band(*banded(FAILURE, 0.0102, 0.005, 55.1, violated=3))
    assert (plain(found.expected), plain(found.between)) == ("1.02 %", "0.52 % to 1.52 %")
    assert (found.deviation, found.verdict.key, found.lacking) == ("55.1 sd above", "violated", "")
    requests = metric("volume", "requests", value=11873.0)
    found = band(*banded(requests, 11500.0, 900.0, 0.02))
    assert (found.expected, found.between) == ("11,500", "10,600 to 12,400")
    assert (found.deviation, found.verdict.key) == ("as expected", "ok")


def test_a_series_too_young_for_a_band_shows_how_many_windows_it_has():
    found = band(*pictured_bands.learning(metric("gini", value=0.65)))
    assert (found.lacking, found.expected, found.between, found.deviation) == ("7 of 24 windows", "", "", "")


def test_a_value_is_never_compared_with_the_band_of_another_window():
    made, expected, far = banded(FAILURE, 0.0102, 0.005, 55.1, violated=3)
    older = Window(LAST.start - HOUR, LAST.end - HOUR)
    found = band(made, replace(expected, window=older), replace(far, window=older))
    assert (found.lacking, found.expected) == ("this window has not been compared yet", "")
    found = band(made, expected, replace(far, window=older))
    assert (plain(found.expected), found.deviation, found.verdict.key) == ("1.02 %", "", "no_data")


def test_a_band_is_shown_even_if_its_deviation_is_unknown():
    made, expected, far = banded(FAILURE, 0.0102, 0.005, 55.1)
    unknown = replace(far, result=replace(far.result, value=None, status=Status.NO_DATA))
    found = band(made, expected, replace(unknown, standing=Status.NO_DATA))
    assert (plain(found.expected), found.deviation, found.verdict.key) == ("1.02 %", "", "no_data")
    assert band(made, expected).verdict.key == "no_data"


def test_series_that_differ_in_a_label_or_a_slice_never_share_a_band():
    labels = (
        {"k": "5"},
        {"k": "10"},
        {"k": "5", "by": "macro"},
        {"k": "5", "dimension": "scene", "value": "a"},
    )
    measured = [metric("ndcg", value=0.5, labels=one) for one in labels]
    made = [series(one) for one in measured]
    told = [
        series(metric("expected", value=float(number), labels=pictured_bands.labels_of(one)))
        for number, one in enumerate(measured)
    ]
    known = bands_of(told)
    assert [known[key_of(one.result)].expected.result.value for one in made] == [0.0, 1.0, 2.0, 3.0]
    assert key_of(metric("ndcg", labels={"k": "1"})) not in known


def test_a_row_without_a_band_is_unchanged():
    row = metric_row(series(FAILURE), NOW)
    assert with_band(row, series(FAILURE), {}) is row
    assert row.band is None


def test_the_series_are_called_as_in_the_sentence_of_the_cause():
    row = {"metric": "ndcg", "by": "macro", "of": "event=click,k=5", "dimension": "scene", "value": "home"}
    departure = Departure(**row, measured=0.0, expected=0.0, lower=0.0, upper=0.0, deviation=0.0)
    name, of_slice = series_name(row)
    assert departure.title() == f"{name} where {of_slice.replace(' = ', ' is ')}"


def test_the_sparkline_has_the_expected_values_the_band_and_the_windows_out_of_it():
    points = past([0.2, 0.2, None, 0.2, 0.9])
    foreseen = {point.window: 0.2 for point in points[1:]}
    between = dict.fromkeys(foreseen, (0.1, 0.3))
    around = Around(foreseen, between, "expected 0.2", frozenset({points[4].window}))
    drawn = sparkline(points, str, None, around)
    assert drawn is not None
    assert drawn.label == (
        "last 5 windows: lowest 0.2, highest 0.9, 1 violated, 1 without a value; expected 0.2"
    )
    (line,) = drawn.expected
    assert len(line.split(" ")) == 4
    (area,) = drawn.bands
    corners = corners_of(area)
    assert (
        [x for x, _ in corners[:4]]
        == [x for x, _ in reversed(corners[4:])]
        == [x for x, _ in corners_of(line)]
    )
    top, bottom = {y for _, y in corners[:4]}, {y for _, y in corners[4:]}
    level = corners_of(line)[-1][1]
    assert max(top) < level < min(bottom)
    (out,) = [dot for dot in drawn.dots if dot.status == "violated"]
    assert out.y < min(top)


@pytest.mark.parametrize(("lower", "upper"), [(math.nan, 0.3), (0.1, math.inf), (-math.inf, math.nan)])
def test_a_band_that_is_not_finite_is_not_drawn(lower, upper):
    points = past([0.2, 0.4])
    drawn = sparkline(points, str, None, Around({}, {points[0].window: (lower, upper)}))
    assert drawn is not None
    assert (drawn.bands, drawn.expected) == ((), ())
    assert len(drawn.lines) == 1


def test_a_band_without_width_and_a_single_band_are_visible():
    points = past([0.5, 0.5, 0.5])
    drawn = sparkline(
        points, str, None, Around({}, {one.window: (0.5, 0.5) for one in (points[0], points[2])})
    )
    assert drawn is not None
    for area, dot in zip(drawn.bands, (4.0, 116.0), strict=True):
        across, down = zip(*corners_of(area), strict=True)
        assert (max(across) - min(across), max(down) - min(down)) == (7, 2)
        assert (max(across) + min(across)) / 2 == dot


def test_the_band_of_each_window_is_drawn_with_it_and_that_of_another_never():
    made, expected, far = banded(FAILURE, 0.0102, 0.005, 55.1, violated=3)
    older = tuple(
        replace(one, window=Window(one.window.start - HOUR, one.window.end - HOUR)) for one in expected.past
    )
    row = with_band(metric_row(made, NOW), made, bands_of((made, expected, far)))
    assert row.spark is not None
    assert len(corners_of(row.spark.bands[0])) == 2 * len(made.past)
    row = with_band(metric_row(made, NOW), made, bands_of((made, replace(expected, past=older), far)))
    assert row.spark is not None
    assert len(corners_of(row.spark.bands[0])) == 2 * (len(made.past) - 1)


def corners_of(points: str) -> list[tuple[float, float]]:
    """The corners of a line or an area as the drawing has them."""
    return [(float(x), float(y)) for x, y in (one.split(",") for one in points.split(" "))]


def test_a_level_series_and_one_in_a_slice_are_drawn_with_the_band_of_their_own():
    made = [
        *banded(COVERAGE, 0.99, 0.005, -55.1, violated=3),
        *banded(IN_SCENE, 0.011, 0.006, 61.3, violated=3),
    ]
    known = bands_of(made)
    drawn = [with_band(metric_row(one, NOW), one, known).spark for one in (made[0], made[3])]
    assert all(one is not None and one.label.count("3 violated") for one in drawn)
    tops = [corners_of(one.bands[0])[0][1] for one in drawn if one is not None]
    assert tops[0] < tops[1]  # near the top where 99 % is expected, at the bottom where 1 % is
    assert NOW - made[0].evaluated_at < timedelta(minutes=5)
