"""Score health on windows worked by hand."""

from __future__ import annotations

import math

import pytest

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from monitor.statistics.intervals import wilson
from tests.metrics.worlds import World, by_name, lists, results_of


def found(*scores_of_lists, columns=("score",), **settings):
    rows = []
    for number, scores in enumerate(scores_of_lists):
        for row, score in zip(lists(("u1", "x" * len(scores))), scores or [None], strict=True):
            rows.append({**row, "request_id": f"r{number}", "score": score})
    world = World(rows, columns=columns)
    results = by_name(results_of(world, MetricSettings(**settings), only=("score_health",)))
    return {by: result for (_, by), result in results.items()}


def test_every_kind_of_score_is_counted_in_its_share():
    results = found(
        [None, math.nan, math.inf, -math.inf, 0.0, 1.0, 5e-324, 0.5, 0.5, 2.5], score_range=(0, 1)
    )
    assert results["null"].value == 1 / 10
    assert results["null"].samples == 10
    expected = {"nan": 1, "infinite": 2, "out_of_range": 3, "zero": 1, "one": 1, "denormal": 1}
    for by, hits in expected.items():
        assert results[by].value == pytest.approx(hits / 9), by
        assert results[by].samples == 9
        assert (results[by].lower, results[by].upper) == pytest.approx(wilson(hits, 9))
    assert results["distinct"].value == pytest.approx(5 / 6)  # 0, 1, 5e-324, 0.5, 2.5 of six finite ones
    assert results["distinct"].lower is None


def test_without_a_range_there_is_no_out_of_range():
    assert "out_of_range" not in found([7.0])


def test_the_ends_of_the_range_are_in_it():
    assert found([0.0, 1.0], score_range=(0, 1))["out_of_range"].value == 0.0


def test_nan_is_not_out_of_range():
    assert found([math.nan, 0.5], score_range=(0, 1))["out_of_range"].value == 0.0


def test_the_largest_denormal_counts_and_the_smallest_normal_does_not():
    smallest = 2.2250738585072014e-308
    results = found([smallest, math.nextafter(smallest, 0), -5e-324, 0.0])
    assert results["denormal"].value == 0.5


def test_minus_zero_is_zero():
    results = found([0.0, -0.0])
    assert results["zero"].value == 1.0
    assert results["distinct"].value == 0.5


def test_lists_of_two_scores_or_more_can_be_all_equal():
    results = found([0.5, 0.5], [0.5, 0.6], [0.5], [], [0.7, None], [0.1, 0.1, None], [math.nan, math.nan])
    assert results["all_equal_lists"].value == pytest.approx(3 / 4)
    assert results["all_equal_lists"].samples == 4


def test_a_column_of_nulls_has_a_share_of_nulls_and_no_data_for_the_rest():
    results = found([None, None])
    assert results["null"].value == 1.0
    for by in ("nan", "infinite", "zero", "one", "denormal", "all_equal_lists", "distinct"):
        assert results[by].status is Status.NO_DATA
    assert results["nan"].detail == "no exposure carries a score"


def test_scores_that_are_not_finite_do_not_count_as_distinct():
    assert found([math.nan, math.inf])["distinct"].status is Status.NO_DATA


@pytest.mark.parametrize("scores", [(), ([],)])
def test_nothing_shown_is_no_data(scores):
    assert {r.status for r in found(*scores).values()} == {Status.NO_DATA}


def test_a_log_without_scores_is_not_measured():
    assert found([0.5], columns=()) == {}
