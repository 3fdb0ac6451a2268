"""Latency, failures and items ever shown, on windows worked by hand."""

from __future__ import annotations

import math

import pytest

from monitor.core.results import Status
from monitor.metrics.measure import not_measured
from monitor.settings.metrics import MetricSettings
from tests.metrics.worlds import World, by_name, lists, results_of, shared_of

ONLY = (
    "latency",
    "answer_errors",
    "answer_timeouts",
    "ever_shown",
    "failure",
    "coverage",
    "volume",
    "list_length",
)
COLUMNS = ("position", "status", "latency", "ever_shown")


def found(rows, columns=COLUMNS, dimensions=None, **world):
    return by_name(results_of(World(rows, columns=columns, **world), only=ONLY, dimensions=dimensions))


def answers(*given):
    """A request for each (status, latency): of two items if it is ok, else without an item."""
    rows = []
    for number, (status, latency) in enumerate(given):
        own = lists((f"u{number}", "ab" if status in ("ok", None) else ""), status=status, latency=latency)
        rows += [row | {"request_id": f"r{number}"} for row in own]
    return rows


def test_the_latency_of_a_request_counts_once_however_long_its_list():
    results = found(answers(*(("ok", n / 10) for n in range(1, 41))))
    assert results["latency", "p50"].value == 2.0
    assert results["latency", "p90"].value == 3.6
    assert results["latency", "p50"].samples == 40
    # Of forty values, the 14th and the 27th bound the median.
    assert (results["latency", "p50"].lower, results["latency", "p50"].upper) == (1.4, 2.7)


def test_a_quantile_of_too_few_requests_is_undefined_and_not_the_largest_value():
    results = found(answers(*(("ok", n / 10) for n in range(1, 11))))
    assert results["latency", "p50"].value == 0.5
    for by, least in (("p90", "36"), ("p99", "368")):
        assert results["latency", by].status is Status.UNDEFINED
        assert results["latency", by].detail == f"{by} takes {least} requests, there are 10"


def test_a_timeout_counts_with_the_time_that_was_waited_and_other_failures_do_not_count():
    failures = [("timeout", 5.0)] * 4 + [("error", 0.001)] * 9 + [("refused", 0.0)]
    results = found(answers(("ok", 0.1), ("ok", 0.2), ("ok", 0.3), *failures))
    assert results["latency", "p50"].value == 5.0
    assert results["latency", "p50"].samples == 7


def test_odd_latencies_are_left_out_and_counted():
    odd = (math.nan, math.inf, -1.0, None)
    results = found(answers(*(("ok", n) for n in (0.5, 0.4, 0.3, 0.2, 0.1, 0.0, *odd))))
    assert results["latency", "p50"].value == 0.2
    assert results["latency", "p50"].samples == 6
    assert results["latency", "p50"].detail == "3 of 9 latencies are negative or not finite"


def test_shares_of_failures_are_of_requests_with_a_known_status():
    results = found(
        answers(
            ("ok", 1.0), ("ok", 1.0), ("error", 1.0), ("timeout", 1.0), ("interrupted", None), (None, 1.0)
        )
    )
    assert results["answer_errors", ""].value == 0.5
    assert results["answer_errors", ""].samples == 4
    assert results["answer_timeouts", ""].value == 0.25
    assert results["answer_errors", ""].detail == (
        "1 error, 1 timeout; left out: 1 interrupted; 1 of 6 requests have no status or another one"
    )


def test_a_failed_request_is_no_empty_list():
    rows = answers(("ok", 1.0), ("error", 1.0))
    rows += [row | {"request_id": "empty"} for row in lists(("u9", ""), status="ok", latency=1.0)]
    results = found(rows)
    assert results["failure", "pv"].value == 0.5  # of the empty list and the full one
    assert results["coverage", "pv"].samples == 2
    assert results["volume", "requests"].value == 2
    assert results["list_length", ""].value == 1.0
    assert results["answer_errors", ""].value == pytest.approx(1 / 3)


def test_a_failed_request_is_one_in_any_log_without_the_column_an_empty_list_stays_one():
    rows = answers(("error", 1.0))
    assert found(rows, columns=("position",))["failure", "pv"].value == 1.0
    assert found(rows)["failure", "pv"].status is Status.NO_DATA


def test_an_unknown_status_changes_nothing():
    rows = lists(("u1", ""), ("u2", "a"), status="delivered", latency=1.0)
    results = found(rows)
    assert results["failure", "pv"].value == 0.5
    assert results["answer_errors", ""].status is Status.NO_DATA
    assert results["answer_errors", ""].detail == "2 of 2 requests have no status or another one"
    assert results["latency", "p50"].samples == 2


def test_a_window_with_failures_alone_has_no_data_but_its_errors():
    results = found(answers(("error", 0.1), ("error", 0.1)))
    assert results["answer_errors", ""].value == 1.0
    assert results["failure", "pv"].status is Status.NO_DATA
    assert results["latency", "p50"].status is Status.NO_DATA
    assert results["volume", "requests"].status is Status.NO_DATA


def test_a_slice_with_failures_alone_is_not_lost():
    rows = answers(("ok", 0.1), ("error", 0.1))
    rows = [row | {"scene": "home" if row["status"] == "ok" else "feed"} for row in rows]
    results = found(rows, columns=(*COLUMNS, "scene"), dimensions={"scene": "scene"})
    assert results["answer_errors", "", "scene", "feed"].value == 1.0
    assert results["answer_errors", "", "scene", "home"].value == 0.0
    assert results["failure", "pv", "scene", "feed"].status is Status.NO_DATA


def test_an_action_on_a_failed_request_belongs_to_no_other_list():
    rows = lists(("u1", "ab"), status="ok", latency=1.0)
    failed = lists(("u1", ""), status="error", latency=1.0)
    rows += [row | {"request_id": "failed"} for row in failed]
    action = {"user_id": "u1", "item_id": "a", "event": "click", "request_id": "failed"}
    world = World(rows, columns=COLUMNS, feedback=[action])
    results = by_name(results_of(world, only=("recall", "action_rate", "attribution")))
    recall = [one for key, one in results.items() if key[0] == "recall"]
    assert recall
    assert {one.status for one in recall} == {Status.NO_DATA}


def test_items_ever_shown_are_a_share_of_those_for_which_it_is_known():
    rows = lists(("u1", "abcd"), status="ok", latency=1.0)
    for row, ever in zip(rows, (True, False, False, None), strict=True):
        row["ever_shown"] = ever
    result = found(rows)["ever_shown", ""]
    assert (result.value, result.samples) == (pytest.approx(1 / 3), 3)
    assert result.detail == "it is unknown for 1 of 4 exposures"


def test_nothing_known_is_no_data():
    results = found(lists(("u1", "a"), status=None, latency=None, ever_shown=None))
    for key in (("latency", "p50"), ("answer_errors", ""), ("answer_timeouts", ""), ("ever_shown", "")):
        assert results[key].status is Status.NO_DATA
        assert results[key].detail


def test_a_log_without_the_columns_does_not_have_the_metrics():
    world = World(lists(("u1", "a")), columns=("position",))
    assert not {"latency", "answer_errors", "ever_shown"} & {key[0] for key in by_name(results_of(world))}
    reasons = not_measured(shared_of(world), MetricSettings())
    assert reasons["latency"] == "needs the column latency of the log exposures"


def test_columns_of_another_type_are_not_measured(monkeypatch):
    import pyarrow as pa

    from tests.metrics import worlds

    monkeypatch.setitem(worlds.TYPES, "latency", pa.string())
    monkeypatch.setitem(worlds.TYPES, "ever_shown", pa.string())
    world = World(lists(("u1", "a"), status="ok", latency="12 ms", ever_shown="yes"), columns=COLUMNS)
    reasons = not_measured(shared_of(world), MetricSettings())
    assert reasons["latency"] == "needs numbers in the column latency of the log exposures"
    assert reasons["ever_shown"] == "needs true and false in the column ever_shown of the log exposures"


def test_huge_and_tiny_latencies_are_kept():
    results = found(answers(("ok", 5e-324), *[("ok", 1e300)] * 6))
    assert results["latency", "p50"].value == 1e300
    assert results["latency", "p50"].lower == 5e-324
