"""Coverage and failure on windows worked by hand."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from monitor.statistics.intervals import wilson
from tests.metrics.worlds import World, by_name, catalog, lists, results_of

# u1 gets 3 items and then nothing, u2 gets 1, u3 gets nothing twice, somebody unknown gets 2.
SHOWN = lists(("u1", "abc"), ("u1", ""), ("u2", "a"), ("u3", ""), ("u3", ""), (None, "ab"))


def found(world, **settings):
    only = ("coverage", "coverage_unknown_items", "failure")
    return by_name(results_of(world, MetricSettings(**settings), only=only))


def test_half_of_six_requests_and_two_of_three_users_are_covered():
    results = found(World(SHOWN, columns=()))
    assert results["coverage", "pv"].value == 3 / 6
    assert results["coverage", "pv"].samples == 6
    assert (results["coverage", "pv"].lower, results["coverage", "pv"].upper) == pytest.approx(wilson(3, 6))
    assert results["coverage", "uv"].value == pytest.approx(2 / 3)
    assert results["coverage", "uv"].samples == 3


def test_a_request_fails_with_no_items_and_a_user_with_one_such_request():
    results = found(World(SHOWN, columns=()))
    assert results["failure", "pv"].value == 3 / 6
    assert results["failure", "uv"].value == pytest.approx(2 / 3)


def test_a_longer_valid_length_lowers_coverage_and_leaves_failure_alone():
    results = found(World(SHOWN, columns=()), valid_list_length=2)
    assert results["coverage", "pv"].value == pytest.approx(2 / 6)
    assert results["coverage", "uv"].value == pytest.approx(1 / 3)
    assert results["failure", "pv"].value == 3 / 6
    assert results["coverage", "pv"].definition == "1;valid_list_length=2"
    assert results["failure", "pv"].definition == "1"


def test_a_list_of_exactly_the_valid_length_is_covered_and_has_not_failed():
    results = found(World(lists(("u1", "ab")), columns=()), valid_list_length=2)
    assert results["coverage", "pv"].value == 1.0
    assert results["failure", "pv"].value == 0.0


def test_requests_without_a_user_count_by_request_only_and_are_named():
    results = found(World(SHOWN, columns=()))
    assert results["coverage", "uv"].detail == "1 of 6 requests carry no user id and are left out"
    assert results["coverage", "pv"].detail == ""


def test_users_without_any_id_give_no_data_by_user():
    results = found(World(lists((None, "ab"), (None, "")), columns=()))
    assert results["coverage", "pv"].value == 0.5
    assert results["coverage", "uv"].status is Status.NO_DATA
    assert results["coverage", "uv"].detail == "no request carries a user id"


def test_an_empty_window_is_no_data_and_never_0_or_1():
    results = found(World([], catalog(a="x"), columns=()))
    for key in [
        ("coverage", "pv"),
        ("coverage", "uv"),
        ("coverage", "item"),
        ("failure", "pv"),
        ("failure", "uv"),
    ]:
        assert results[key].status is Status.NO_DATA, key
        assert results[key].value is None


def test_items_shown_that_the_catalog_does_not_hold_are_counted_apart():
    results = found(World(lists(("u1", "abz")), catalog(a="x", b="x", c="y", d="y"), columns=()))
    assert results["coverage", "item"].value == 2 / 4
    assert results["coverage", "item"].lower is None
    assert results["coverage_unknown_items", ""].value == 1
    assert results["coverage_unknown_items", ""].samples == 3


def test_an_empty_catalog_leaves_coverage_by_item_undefined_and_every_item_unknown():
    results = found(World(lists(("u1", "ab")), [], columns=()))
    assert results["coverage", "item"].status is Status.UNDEFINED
    assert results["coverage_unknown_items", ""].value == 2


def test_without_a_catalog_coverage_by_item_is_not_measured():
    assert ("coverage", "item") not in found(World(lists(("u1", "ab")), columns=()))


def test_a_row_of_the_catalog_without_an_id_and_one_written_twice_count_once_at_most():
    rows = [*catalog(a="x", b="x"), {"item_id": None}, {"item_id": "a", "category": "y"}]
    assert found(World(lists(("u1", "a")), rows, columns=()))["coverage", "item"].value == 0.5


def test_a_row_without_a_request_id_belongs_to_no_list():
    rows = [*lists(("u1", "a"), ("u2", "")), {**lists(("u3", "a"))[0], "request_id": None}]
    results = found(World(rows, columns=()))
    assert results["coverage", "pv"].samples == 2
    assert results["coverage", "uv"].samples == 2


def test_user_ids_read_as_numbers_with_nan_belong_to_no_user():
    shown = lists(("", "a"), ("", "a"))
    rows = [{**row, "user_id": user} for row, user in zip(shown, (1.0, math.nan), strict=True)]
    results = found(World(rows, columns=(), user=pa.float64()))
    assert results["coverage", "pv"].samples == 2
    assert results["coverage", "uv"].samples == 1
