"""One window through every check: what fails stops nothing else, and no order of windows matters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd
import pytest

from monitor.core.results import Result, Status, Window
from monitor.history.errors import StoreError
from monitor.judging import metrics_check as exposure
from monitor.judging.evaluate import Evaluation
from monitor.metrics.measure import Measured, measure_all
from tests.shop import DAY, HOUR, Shop, hour, one, rows, ruled

# Rows with the item "slow" make this query join them with themselves until long after any deadline.
SLOW_QUERY = (
    "SELECT one.item_id FROM "
    + ", ".join(
        f"(SELECT item_id, ts FROM {{batch}} WHERE item_id = 'slow') {name}"
        for name in ("one", "two", "three", "four", "five", "six")
    )
    + " WHERE hash(one.ts, two.ts, three.ts, four.ts, five.ts, six.ts) = 1"
)


def slow_rows(number: int) -> pd.DataFrame:
    return rows(number, 300, item_id="slow")


def with_slow_rule(shop: Shop, deadline: str) -> None:
    shop.config["deadline"] = deadline
    shop.rule("slow", "hard", "unexpected_rows_expectation", unexpected_rows_query=SLOW_QUERY)
    shop.rule("known", "hard", "expect_column_values_to_not_be_null", column="item_id")


def statuses(evaluation: Evaluation) -> dict[str, tuple[str, Status | None]]:
    return {run.check: (run.outcome or "", run.status) for run in evaluation.runs}


def test_a_rule_that_takes_too_long_is_interrupted_and_the_rest_is_judged(shop: Shop) -> None:
    with_slow_rule(shop, "8s")  # the other checks need less, even beside other work
    shop.write("logs/0.parquet", slow_rows(0))
    shop.write("logs/1.parquet", rows(1))
    started = time.monotonic()
    evaluation = shop.judge(hour(0))
    runs = {run.check: run for run in evaluation.runs}
    rules, exposure = runs["rules"], runs["exposure"]
    assert rules.seconds < 8 + 10
    assert time.monotonic() - started < 60
    others = statuses(evaluation)
    assert others.pop("rules") == ("interrupted", Status.ERROR)
    assert others.keys() >= {"logs", "exposure"}
    assert set(others.values()) == {("ok", Status.OK)}
    assert [r.status for r in rules.results] == [Status.ERROR, Status.ERROR]
    assert "deadline of 8 s" in ruled(evaluation, "slow").detail
    assert one(exposure.results, "coverage", by="pv").value == 1.0
    # The next window is judged as if nothing had happened, by the same runtime.
    after = shop.judge(hour(1))
    assert [ruled(after, name).status for name in ("slow", "known")] == [Status.OK, Status.OK]
    assert statuses(after)["rules"] == ("ok", Status.OK)


def test_an_interrupted_window_does_not_change_the_results_of_the_next(
    shop: Shop, another_shop: Callable[[str], Shop]
) -> None:
    with_slow_rule(shop, "1s")
    shop.write("logs/0.parquet", slow_rows(0))
    alone = another_shop("alone")
    with_slow_rule(alone, "1m")
    alone.write("logs/0.parquet", slow_rows(0))
    for each in (shop, alone):
        each.write("logs/1.parquet", rows(1))
    shop.judge(hour(0))
    shop.evaluator.settings = alone.evaluator.settings  # a second may be too short on a busy machine
    assert comparable(shop.judge(hour(1))) == comparable(alone.judge(hour(1)))


def test_a_deadline_that_passes_at_the_end_of_a_check_does_not_affect_later_windows(shop: Shop) -> None:
    shop.rule("known", "hard", "expect_column_values_to_not_be_null", column="item_id")
    shop.write("logs/0.parquet", rows(0))
    hasty = shop.evaluator.settings.model_copy(update={"deadline": hour(0).length * 0})
    patient, shop.evaluator.settings = shop.evaluator.settings, hasty
    for check, (outcome, status) in statuses(shop.judge(hour(0))).items():
        assert (outcome, status) == ("interrupted", Status.ERROR), check
    shop.evaluator.settings = patient
    evaluation = shop.judge(hour(0))
    assert {outcome for outcome, _ in statuses(evaluation).values()} == {"ok"}
    assert ruled(evaluation, "known").status is Status.OK


def test_a_rule_that_fails_stops_no_other_rule_and_no_other_check(shop: Shop) -> None:
    shop.rule("no_column", "hard", "expect_column_values_to_not_be_null", column="price")
    shop.rule(
        "no_sql", "hard", "unexpected_rows_expectation", unexpected_rows_query="SELECT nothing FROM {batch}"
    )
    shop.rule("text", "hard", "expect_column_mean_to_be_between", column="item_id", min_value=0)
    shop.rule("known", "hard", "expect_column_values_to_not_be_null", column="item_id")
    shop.rule("unknown", "hard", "expect_column_values_to_be_in_set", column="item_id", value_set=["i0"])
    shop.write("logs/0.parquet", rows(0))
    evaluation = shop.judge(hour(0))
    for name in ("no_column", "no_sql", "text"):
        assert ruled(evaluation, name).status is Status.ERROR
        assert ruled(evaluation, name).detail
    assert ruled(evaluation, "known").status is Status.OK
    assert ruled(evaluation, "unknown").status is Status.VIOLATED
    assert evaluation.runs[1].status is Status.VIOLATED
    assert one(evaluation, "coverage", by="pv").status is Status.OK


def test_a_file_that_disappears_before_it_is_read_is_an_error_of_its_window_only(
    shop: Shop,
) -> None:
    shop.rule("known", "hard", "expect_column_values_to_not_be_null", column="item_id")
    path = shop.write("logs/0.parquet", rows(0))
    shop.write("logs/1.parquet", rows(1))
    source, engine = shop.evaluator.source, shop.runtime.engine
    source.exposures.refresh(engine, DAY + 30 * HOUR)
    path.unlink()
    # `judge` looks again; so this asks the evaluator with what was seen before.
    source.exposures.refresh = lambda *_: None  # type: ignore[method-assign, assignment]
    evaluation = shop.judge(hour(0))
    assert ruled(evaluation, "known").status is Status.ERROR
    assert str(shop.folder / "state") not in ruled(evaluation, "known").detail
    del source.exposures.refresh
    assert ruled(shop.judge(hour(1)), "known").status is Status.OK


def test_a_window_is_not_judged_if_its_pairs_cannot_be_written(shop: Shop) -> None:
    shop.write("logs/0.parquet", rows(0))
    shop.write("logs/1.parquet", rows(1))
    (shop.folder / "state").write_text("a file where the folder should be")
    for number in (0, 1):
        with pytest.raises(StoreError, match="cannot be kept"):
            shop.judge(hour(number))
    (shop.folder / "state").unlink()
    assert one(shop.judge(hour(1)), "novelty", by="item").status is Status.OK


def test_results_measured_before_a_check_failed_are_still_judged(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.config["objectives"] = [
        {"metric": "coverage", "labels": {"by": "pv"}, "min": 0.5},
        {"metric": "personalization", "min": 0.5},
        {"metric": "novelty", "labels": {"by": "category"}, "min": 0.5},
    ]
    shop.config["logs"]["catalog"] = {"path": str(shop.folder / "catalog.csv")}
    shop.write("catalog.csv", "item_id,category\ni0,x\n")
    empty = rows(0).drop_duplicates("request_id").assign(item_id=None)
    shop.write("logs/0.parquet", empty.astype({"item_id": "string"}))

    def fails_after_coverage(*given: Any, **named: Any) -> Iterator[Measured]:
        for measured in measure_all(*given, **named):
            yield measured
            if measured.family == "coverage":
                raise MemoryError("no room left")

    monkeypatch.setattr(exposure, "measure_all", fails_after_coverage)
    evaluation = shop.judge(hour(0))
    assert statuses(evaluation)["exposure"] == ("error", Status.VIOLATED)
    # Unjudged, this result would be an ok that ends a standing violation.
    coverage = one(evaluation, "coverage", by="pv")
    assert (coverage.status, coverage.threshold, coverage.value) == (Status.VIOLATED, 0.5, 0.0)
    for metric, labels in (("personalization", {}), ("novelty", {"by": "category"})):
        failed = one(evaluation, metric, **labels)
        assert (failed.status, failed.threshold) == (Status.ERROR, 0.5)
        assert "no room left" in failed.detail
    assert one(evaluation, "intra_list_diversity").definition == "1;similarity=category"  # as when measured


def test_an_objective_that_the_logs_cannot_serve_leaves_the_window_unjudged(shop: Shop) -> None:
    shop.config["logs"]["catalog"] = {"path": str(shop.folder / "nothing" / "*.csv")}
    shop.config["objectives"] = [{"metric": "gini", "max": 0.5}]
    shop.write("logs/0.parquet", rows(0))
    evaluation = shop.judge(hour(0))
    assert one(evaluation, "gini").status is Status.NO_DATA
    assert statuses(evaluation)["exposure"] == ("ok", Status.NO_DATA)


def test_an_objective_on_a_slice_counts_in_the_verdict_of_the_window(shop: Shop) -> None:
    labels = {"by": "top_item", "dimension": "scene", "value": "home"}
    shop.config["slices"] = {"by": ["scene"]}
    shop.config["objectives"] = [{"metric": "popularity_share", "labels": labels, "max": 0.01}]
    shop.write("logs/0.parquet", rows(0, scene="home"))
    evaluation = shop.judge(hour(0))
    assert one(evaluation, "popularity_share", **labels).status is Status.VIOLATED
    assert statuses(evaluation)["exposure"] == ("ok", Status.VIOLATED)


def test_an_interrupt_from_outside_leaves_the_window_unjudged(shop: Shop) -> None:
    with_slow_rule(shop, "1h")
    shop.write("logs/0.parquet", slow_rows(0))
    assert shop.evaluator
    timer = threading.Timer(1.0, shop.runtime.interrupt)
    timer.start()
    with pytest.raises(duckdb.InterruptException):
        shop.judge(hour(0))
    timer.join()
    shop.runtime.renew()
    shop.write("logs/1.parquet", rows(1))
    assert ruled(shop.judge(hour(1)), "known").status is Status.OK


def comparable(evaluation: Evaluation) -> list[tuple[str, Status | None, list[Result]]]:
    """What is recorded of a window, but for the time it took; sums as far as their order allows."""
    return [(run.check, run.status, [rounded(result) for result in run.results]) for run in evaluation.runs]


def rounded(result: Result) -> Result:
    numbers = {name: getattr(result, name) for name in ("value", "lower", "upper")}
    return replace(result, **{n: None if v is None else float(f"{v:.9g}") for n, v in numbers.items()})


def test_the_order_of_judging_does_not_matter(another_shop: Callable[[str], Shop]) -> None:
    numbers = [21, 22, 24, 25, 26]  # over a midnight, with an hour that holds nothing
    windows = [hour(number) for number in range(21, 27)]
    orders = {"oldest first": windows, "newest first": windows[::-1]}
    found = {}
    for name, order in orders.items():
        shop = another_shop(name.replace(" ", "_"))
        shop.config["slices"] = {"by": ["scene"]}
        shop.config["metrics"] = {"history": "3h"}
        shop.config["objectives"] = [{"metric": "update_rate", "labels": {"by": "day"}, "min": 0.99}]
        shop.config["logs"]["feedback"] = {"path": str(shop.folder / "feedback" / "*")}
        shop.config["logs"]["catalog"] = {"path": str(shop.folder / "catalog.csv")}
        categories = "".join(f"i{n},{'abc'[n % 3]}\n" for n in range(13))
        shop.write("catalog.csv", "item_id,category\n" + categories)
        shop.rule(
            "often", "hard", "expect_column_values_to_be_between", table="user_items_day",
            column="exposures", max_value=9,
        )  # fmt: skip
        for number in numbers:
            frame = rows(
                number, 60, scene=lambda row: ["home", "search"][row % 2], score=lambda row: row / 60
            )
            shop.write(f"logs/{number}.parquet", frame)
            shop.write(f"feedback/{number}.csv", rows(number, 9, event="click"))
        found[name] = {window: comparable(shop.judge(window)) for window in order}
    for window in windows:
        assert found["oldest first"][window] == found["newest first"][window]
    statuses = {result.status for run in found["oldest first"][hour(26)] for result in run[2]}
    assert Status.VIOLATED in statuses, "the rule of a day or the objective should see the hours before"


@pytest.mark.parametrize(("window", "by_day"), [("8h", True), ("1d", True), ("7h", False), ("2d", False)])
def test_daily_values_are_left_out_if_a_window_may_span_two_days(
    shop: Shop, window: str, by_day: bool
) -> None:
    shop.config["window"] = window
    shop.write("logs/a.parquet", rows(20))
    length = shop.evaluator.settings.window
    found = shop.judge(Window.of(hour(20).start, length))
    by = {r.labels["by"] for r in found.results if r.metric == "update_rate"}
    assert by == ({"refresh", "day"} if by_day else {"refresh"})
