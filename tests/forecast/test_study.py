"""The pairs of offline and business metrics on stored days: found, corrected, left out, marked, vanished."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from monitor.core.results import Kind, ResultKind, Status
from monitor.forecast.study import study
from monitor.history.store import Store
from tests.forecast import past_days
from tests.forecast.past_days import NDCG, put, put_days, put_models, related, result, settings


def noise(number: int) -> float:
    return float(np.random.default_rng([77, number]).normal(0.2, 0.02))


def test_a_metric_that_goes_with_the_business_metric_is_found_and_ranked_first(store: Store) -> None:
    others = [{"k": k} for k in ("5", "20", "50")]
    put_days(
        store, 60, *related(),
        more=lambda number: [
            result("ndcg", noise(100 * place + number), **labels) for place, labels in enumerate(others)
        ],
    )  # fmt: skip
    found = study(store, settings(forecast={"targets": [{"name": "ctr", "metric": "action_rate",
                                                          "labels": past_days.CLICKS}]}))  # fmt: skip
    assert found.pairs[0].series.labels == tuple(sorted(NDCG.items()))
    first, *rest = found.pairs
    assert len(rest) == 3
    assert first.is_certain
    assert first.predicts
    assert first.correlation is not None
    assert first.correlation.value > 0.8
    assert not any(one.is_certain for one in rest)
    assert first.confidence == pytest.approx(1 - 0.05 / 4)  # four pairs are tried
    assert found.used_days == 60


def test_the_rhythm_of_the_week_alone_is_no_relation(store: Store) -> None:
    """Both numbers rise at the weekend, and nothing else ties them."""
    ndcg, _ = related(1)
    _, ctr = related(2)
    put_days(store, 60, ndcg, ctr)
    (pair,) = study(store, settings()).pairs
    assert not pair.is_certain
    assert pair.detail() == "the interval of the correlation contains 0"


def test_days_of_incidents_are_left_out_counted_and_named(store: Store) -> None:
    ndcg, ctr = related()
    put_days(store, 60, ndcg, lambda number: 0.0 if number == 30 else ctr(number))
    violated = result("exposure", 1.0, 10, ResultKind.RULE, rule="blacklist", kind=str(Kind.HARD))
    put(store, 30, "rules", [replace(violated, status=Status.VIOLATED)], status=Status.VIOLATED, places=[1])
    found = study(store, settings(bands={"holidays": ["2026-04-06"]}))
    assert found.table is not None
    assert found.table.left_out() == {"rule": 1, "holiday": 1}
    assert found.left_out_text() == "left out: 1 (a violated hard rule), 1 (a day off)"
    (pair,) = found.pairs
    assert pair.days == 58
    marked = {dot.day: dot.reason for dot in pair.dots if dot.reason}
    assert marked == {past_days.day(30): "rule", datetime(2026, 4, 6, tzinfo=UTC).date(): "holiday"}
    assert len(pair.dots) == 60


@pytest.mark.parametrize(
    ("metric", "status", "left_out"),
    [
        ("log_rows", Status.LATE, {"log": 1}),
        ("log_rows", Status.ERROR, {"log": 1}),
        ("log_skipped_files", Status.ERROR, {"log": 1}),
        ("log_rows", Status.NO_DATA, {}),  # a shop may sleep at night
        ("log_lacks_slices", Status.ERROR, {}),  # a setting, and no rows are missing
    ],
)
def test_days_with_lost_or_unreadable_rows_are_left_out(
    store: Store, metric: str, status: Status, left_out: dict[str, int]
) -> None:
    put_days(store, 60, *related())
    one = replace(result(metric, 1.0, 10, ResultKind.LOG, log="exposures"), status=status)
    put(store, 30, "logs", [one], status=status, places=[1])
    found = study(store, settings())
    assert found.table is not None
    assert found.table.left_out() == left_out
    kept = study(store, settings(forecast={"incidents": ["anomaly", "drift", "rule"]}))
    assert kept.table is not None
    assert kept.table.left_out() == {}


def test_a_day_with_too_few_windows_is_left_out(store: Store) -> None:
    put_days(store, 60, *related())
    put(store, 60, "feedback", [result("ndcg", 0.3, **NDCG)], places=[1])
    found = study(store, settings())
    assert found.table is not None
    assert found.table.left_out() == {"windows": 1}


def test_under_min_days_there_is_no_data_and_the_reason(store: Store) -> None:
    put_days(store, 20, *related())
    (pair,) = study(store, settings()).pairs
    assert pair.status is Status.NO_DATA
    assert pair.why.startswith("20 of 60 days can be used, and 21 are needed")
    assert pair.correlation is None


def test_reasons_count_one_in_the_singular(store: Store) -> None:
    auc = {"metric": "auc", "labels": {"split": "test"}}
    target = {"name": "ctr", "metric": "action_rate", "labels": past_days.CLICKS, "used": [auc]}
    put_days(store, 24, *related())
    put_models(store, 23, lambda _: "m1", lambda _: 0.7)
    few, more = (
        study(store, settings(forecast={"targets": [target], "min_days": least})).pairs[0].why
        for least in (24, 21)
    )
    assert "and 24 are needed; 1 lacks the offline metric" in few
    assert more.startswith("the 23 days hold 1 different value of auc (split=test)")


@pytest.mark.filterwarnings("error")
def test_days_with_a_number_out_of_range_are_left_out_and_counted(store: Store) -> None:
    x, y = related()
    put_days(store, 60, x, lambda number: -1.7e308 if number in (5, 9) else y(number))
    few, found = (study(store, settings(forecast={"min_days": least})).pairs[0] for least in (59, 21))
    assert few.why == "58 of 60 days can be used, and 59 are needed; 2 have a number beyond 1e+300"
    assert (found.predicts, found.days) == (True, 58)


@pytest.mark.filterwarnings("error")
def test_a_line_out_of_range_is_said_to_be(store: Store) -> None:
    """The correlation is of ranks. A slope of 0.1 in 1e-320 is no float64."""
    x, y = related()
    put_days(store, 60, lambda number: x(number) * 1e-320, y)
    (pair,) = study(store, settings()).pairs
    assert (pair.is_certain, pair.predicts, pair.relation) == (True, False, None)
    assert pair.detail() == "related, but its line is out of the range of numbers, so it does not predict"


def test_an_empty_history_has_no_pair_and_says_so(store: Store) -> None:
    found = study(store, settings())
    assert found.pairs == ()
    assert found.why == "the history has no judged day yet"


def test_a_metric_that_never_changes_is_no_data(store: Store) -> None:
    put_days(store, 60, lambda _: 0.3, related()[1])
    (pair,) = study(store, settings()).pairs
    assert pair.status is Status.NO_DATA
    assert "never changes" in pair.why


def test_a_correlation_that_vanishes_is_violated(store: Store) -> None:
    ndcg, ctr = related()
    _, other = related(5)
    put_days(store, 90, ndcg, lambda number: ctr(number) if number < 60 else other(number))
    (pair,) = study(store, settings(forecast={"days": 84, "recent": 28})).pairs
    assert pair.status is Status.VIOLATED
    assert not pair.predicts
    assert "so it no longer predicts" in pair.detail()


def test_a_relation_that_holds_is_ok(store: Store) -> None:
    put_days(store, 90, *related())
    (pair,) = study(store, settings(forecast={"days": 84, "recent": 28})).pairs
    assert pair.status is Status.OK
    assert pair.detail().startswith("predicts: the line saves ")


def test_the_auc_of_a_model_counts_once_however_long_the_model_serves(store: Store) -> None:
    """Twelve models of five days each: twelve points, not sixty."""
    auc = [0.6 + 0.01 * ((7 * place) % 12) for place in range(12)]
    put_days(store, 60, related()[0], lambda number: auc[number // 5] / 10 + 1e-4 * noise(number))
    put_models(store, 60, lambda number: f"m{number // 5}", lambda number: auc[number // 5])
    used = [{"metric": "auc", "labels": {"split": "test"}}]
    target = {"name": "ctr", "metric": "action_rate", "labels": past_days.CLICKS, "used": used}
    found = study(store, settings(forecast={"targets": [target]}))
    pair = next(one for one in found.pairs if one.is_used)
    assert (pair.days, pair.points) == (60, 12)
    assert pair.predicts


def test_two_numbers_with_nothing_but_a_strong_trend_in_common_are_warned_of(store: Store) -> None:
    """So strong a trend leaves few days that are worth something, and is seen all the same."""
    random, days = np.random.default_rng(0), 45
    x, y = (np.arange(days) / days + random.normal(0, 0.18, days) for _ in range(2))
    put_days(store, days, lambda at: 0.3 + 0.1 * float(x[at]), lambda at: 0.1 + 0.1 * float(y[at]))
    (pair,) = study(store, settings()).pairs
    assert pair.is_certain
    assert "both follow a trend, and nothing certain is left without it" in pair.detail()
