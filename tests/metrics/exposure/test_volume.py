"""The counts of a window and the length of its lists, worked by hand."""

from __future__ import annotations

import pytest

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import Objective
from monitor.statistics.intervals import normal_mean
from monitor.window.verdicts import apply_objectives
from tests.metrics.worlds import World, by_name, catalog, lists, results_of

ONLY = ("volume", "list_length", "catalog_items")

# u1 gets 3 items and then nothing, u2 the same item twice, somebody unknown 2.
SHOWN = lists(("u1", "abc"), ("u1", ""), ("u2", "aa"), (None, "ab"))


def found(world, dimensions=None):
    return by_name(results_of(world, dimensions=dimensions, only=ONLY))


def volume(results, *of):
    return {by: results["volume", by, *of].value for by in ("requests", "users", "exposures", "items")}


def test_requests_users_exposures_and_items_are_counted():
    results = found(World(SHOWN, columns=()))
    assert volume(results) == {"requests": 4.0, "users": 2.0, "exposures": 7.0, "items": 3.0}
    assert {one.status for one in results.values()} == {Status.OK}
    samples = {by: results["volume", by].samples for by in ("requests", "users", "exposures", "items")}
    assert samples == {"requests": 4, "users": 4, "exposures": 7, "items": 7}
    assert all(isinstance(one.value, float) for one in results.values())
    assert {one.lower for (metric, *_), one in results.items() if metric == "volume"} == {None}


def test_the_mean_length_counts_empty_lists_and_repeated_items():
    length = found(World(SHOWN, columns=()))["list_length", ""]
    assert (length.value, length.samples) == ((3 + 0 + 2 + 2) / 4, 4)
    assert (length.lower, length.upper) == pytest.approx(normal_mean(4, 7.0, 9.0 + 4.0 + 4.0))


def test_lists_of_one_length_have_an_interval_of_no_width_and_one_list_has_none():
    same = found(World(lists(("u1", "ab"), ("u2", "bc"), ("u1", "cd")), columns=()))["list_length", ""]
    assert (same.value, same.lower, same.upper) == (2.0, 2.0, 2.0)
    one = found(World(lists(("u1", "abc")), columns=()))["list_length", ""]
    assert (one.value, one.samples, one.lower, one.upper) == (3.0, 1, None, None)


def test_a_window_without_rows_has_a_volume_of_0_and_is_not_ok():
    results = found(World([], columns=()))
    assert volume(results) == {"requests": 0.0, "users": 0.0, "exposures": 0.0, "items": 0.0}
    assert {one.status for one in results.values()} == {Status.NO_DATA}
    assert {one.samples for one in results.values()} == {0}
    assert results["volume", "users"].detail == "the window holds no exposures"
    assert results["list_length", ""].value is None


def test_an_objective_on_the_volume_of_an_empty_window_is_not_met_either():
    objective = Objective(metric="volume", labels={"by": "requests"}, min=10)
    settings = MetricSettings()
    empty = apply_objectives(results_of(World([], columns=()), only=ONLY), [objective], settings)
    few = apply_objectives(results_of(World(SHOWN, columns=()), only=ONLY), [objective], settings)
    judged = [by_name(results)["volume", "requests"] for results in (empty, few)]
    assert [(one.status, one.value) for one in judged] == [(Status.NO_DATA, 0.0), (Status.VIOLATED, 4.0)]


def test_requests_with_empty_lists_only_are_a_measured_volume():
    results = found(World(lists(("u1", ""), ("u2", ""), ("u2", "")), columns=()))
    assert volume(results) == {"requests": 3.0, "users": 2.0, "exposures": 0.0, "items": 0.0}
    assert {one.status for one in results.values()} == {Status.OK}
    assert results["list_length", ""].value == 0.0


def test_a_log_that_lost_its_user_ids_has_no_users_and_all_of_its_requests():
    results = found(World(lists((None, "ab"), (None, "c")), columns=()))
    assert volume(results) == {"requests": 2.0, "users": 0.0, "exposures": 3.0, "items": 3.0}
    assert results["volume", "users"].status is Status.OK


def test_rows_without_a_request_are_exposures_of_no_list():
    stray = [{**row, "request_id": None} for row in lists(("u3", "xy"))]
    results = found(World(SHOWN + stray, columns=()))
    assert volume(results) == {"requests": 4.0, "users": 2.0, "exposures": 9.0, "items": 5.0}
    assert results["list_length", ""].value == 7 / 4


def test_rows_without_a_request_alone_are_not_an_empty_window():
    results = found(World([{**row, "request_id": None} for row in lists(("u3", "xy"))], columns=()))
    assert volume(results) == {"requests": 0.0, "users": 0.0, "exposures": 2.0, "items": 2.0}
    assert {results["volume", by].status for by in ("requests", "exposures")} == {Status.OK}
    assert results["list_length", ""].status is Status.NO_DATA


def test_a_slice_has_the_volume_of_its_rows_and_one_without_rows_has_no_result():
    rows = lists(("u1", "abc"), ("u2", ""), scene="home") + [
        {**row, "request_id": f"feed {row['request_id']}"} for row in lists(("u1", "ad"), scene="feed")
    ]
    results = found(World(rows, catalog(a="x"), columns=("scene",)), {"scene": "scene"})
    own = {"requests": 2.0, "users": 2.0, "exposures": 3.0, "items": 3.0}
    assert volume(results, "scene", "home") == own
    assert results["list_length", "", "scene", "home"].value == 1.5
    assert volume(results, "scene", "feed") == {"requests": 1.0, "users": 1.0, "exposures": 2.0, "items": 2.0}
    assert {key[3] for key in results if len(key) == 4} == {"home", "feed"}
    assert ("catalog_items", "", "scene", "home") not in results


def test_the_catalog_is_counted_by_distinct_items_whether_they_are_shown_or_not():
    items = [*catalog(a="x", z="y"), *catalog(a="y"), {"item_id": None, "category": "x"}]
    size = found(World(SHOWN, items))["catalog_items", ""]
    assert (size.value, size.samples, size.status) == (2.0, 2, Status.OK)
    of_empty_window = found(World([], items, columns=()))["catalog_items", ""]
    assert (of_empty_window.value, of_empty_window.status) == (2.0, Status.OK)


def test_an_empty_catalog_has_0_items_and_a_missing_one_has_no_result():
    empty = found(World(SHOWN, []))["catalog_items", ""]
    assert (empty.value, empty.status, empty.detail) == (0.0, Status.NO_DATA, "the catalog holds no items")
    assert ("catalog_items", "") not in found(World(SHOWN))
