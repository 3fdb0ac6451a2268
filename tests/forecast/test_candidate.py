"""The forecast of a candidate, and afterwards whether it came true."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.core.results import ResultKind, Status
from monitor.forecast.candidate import CandidateError, forecast_of, forecasts_of
from monitor.forecast.outcomes import calibration, newly_decided
from monitor.forecast.study import study
from monitor.history.forecasts import Outcome, StoredForecast
from monitor.history.store import Store
from tests.forecast.past_days import (
    CLICKS,
    NDCG,
    START,
    put,
    put_days,
    put_models,
    related,
    result,
    settings,
)

MADE = START + timedelta(days=60)


def given(value: float) -> list[tuple[str, dict[str, str], float]]:
    return [("ndcg", {}, value)]


def test_a_given_offline_value_predicts_the_online_one_with_an_interval(store: Store) -> None:
    put_days(store, 60, *related())
    one = forecast_of(store, settings(), "m9", "ctr", given=given(0.33))
    assert one.status is Status.OK
    # ndcg is 0.3 and ctr 0.05 on average, 2/7 of 0.05 and of 0.03 more at weekends; the slope is 0.5
    expected = 0.05 + 0.03 * 2 / 7 + 0.5 * (0.33 - 0.3 - 0.05 * 2 / 7)
    assert one.value == pytest.approx(expected, abs=0.004)
    assert one.lower is not None
    assert one.upper is not None
    assert one.lower < expected < one.upper
    assert one.upper - one.lower < 0.03
    assert one.detail.startswith("ctr 0.06")
    assert one.can_come_true


def test_beyond_all_past_days_the_sentence_says_so_and_far_beyond_there_is_none(store: Store) -> None:
    put_days(store, 60, *related())
    beyond, far = (forecast_of(store, settings(), "m9", "ctr", given=given(at)) for at in (0.41, 0.9))
    assert beyond.status is Status.OK
    assert "lies outside of all past days by" in beyond.detail
    assert far.status is Status.UNDEFINED
    assert far.value is None
    assert "no past day says what happens there" in far.detail


def test_large_numbers_of_a_forecast_are_written_in_full(store: Store) -> None:
    ndcg, clicks = related()
    put_days(store, 60, lambda number: 1e6 * ndcg(number), lambda number: 1e6 * clicks(number))
    usual, beyond, far = (
        forecast_of(store, settings(), "m9", "ctr", given=given(at)).detail
        for at in (330_000.0, 410_000.0, 900_000.0)
    )
    assert "from ndcg (k=10) 330,000, by 60" in usual
    assert "; 410,000 lies outside" in beyond
    assert "ndcg (k=10) 900,000 lies outside" in far
    assert "e+0" not in usual + beyond + far


def test_a_metric_that_does_not_predict_gives_no_forecast(store: Store) -> None:
    put_days(store, 60, related(1)[0], related(2)[1])
    one = forecast_of(store, settings(), "m9", "ctr", given=given(0.33))
    assert one.status is Status.UNDEFINED
    assert "the interval of the correlation contains 0" in one.detail


def test_too_few_days_are_no_data(store: Store) -> None:
    put_days(store, 10, *related())
    one = forecast_of(store, settings(), "m9", "ctr", given=given(0.33))
    assert one.status is Status.NO_DATA
    assert "21 are needed" in one.detail


def test_an_unknown_candidate_is_no_data_for_a_gate_and_an_error_for_a_person(store: Store) -> None:
    put_days(store, 60, *related())
    one = forecast_of(store, settings(), "m\x1b[31m", "ctr")
    assert one.status is Status.NO_DATA
    assert "knows no model called" in one.detail
    assert "\x1b" not in one.detail
    with pytest.raises(CandidateError, match="--at METRIC=NUMBER"):
        forecasts_of(store, study(store, settings()), "m9")
    with pytest.raises(CandidateError, match="'gauc'"):
        forecasts_of(store, study(store, settings()), "m9", given=[("gauc", {}, 0.5)])


def test_another_recommender_is_a_candidate_by_its_own_days(store: Store) -> None:
    put_days(store, 60, *related())
    put_days(store, 60, lambda _: 0.32, lambda _: 0.06, "new")
    shop, new = settings(), settings().model_copy(update={"name": "new"})
    one = forecast_of(store, shop, "new", "ctr", everybody=[shop, new])
    assert one.x == pytest.approx(0.32)
    assert one.status is Status.OK
    assert one.online_since is not None


def test_a_model_is_a_candidate_by_its_test_samples(store: Store) -> None:
    auc = [0.6 + 0.01 * ((7 * place) % 12) for place in range(12)]
    ctr = related()[1]
    put_days(store, 60, related()[0], lambda number: auc[number // 5] / 10 + 0.02 * (ctr(number) - 0.05))
    put_models(store, 60, lambda number: f"m{number // 5}", lambda number: auc[number // 5])
    target = {
        "name": "ctr", "metric": "action_rate", "labels": CLICKS,
        "used": [{"metric": "auc", "labels": {"split": "test"}}],
    }  # fmt: skip
    tested = result("auc", 0.655, 9000, ResultKind.MODEL, split="test", model="m99")
    put(store, 60, "models", [tested], places=[0])
    one = forecast_of(store, settings(forecast={"targets": [target]}), "m99", "ctr")
    assert one.x == 0.655
    assert one.points == 12
    assert one.value == pytest.approx(0.0655, abs=0.001)
    assert one.online_since is None


def with_forecast(store: Store, lower: float, upper: float) -> StoredForecast:
    """60 days, a stored forecast of the model m9, and then nine days on which m9 serves."""
    put_days(store, 60, *related())
    made = forecast_of(store, settings(), "m9", "ctr", given=given(0.33)).stored(MADE)
    one = replace(made, content={**made.content, "lower": lower, "upper": upper})
    assert store.put_forecast(one)
    return one


@pytest.mark.parametrize(
    ("lower", "upper", "outcome"), [(0.0, 1.0, Outcome.CAME_TRUE), (0.5, 0.6, Outcome.MISSED)]
)
def test_a_forecast_comes_true_or_not_after_truth_days(
    store: Store, lower: float, upper: float, outcome: Outcome
) -> None:
    with_forecast(store, lower, upper)
    put_days(store, 7, *related(), first=60)
    put_models(store, 7, lambda _: "m9", lambda _: 0.7, first=60)
    assert newly_decided(store, study(store, settings()), (), MADE) == []  # its 6 whole days are too few
    put_days(store, 2, *related(), first=67)
    put_models(store, 2, lambda _: "m9", lambda _: 0.7, first=67)
    found = newly_decided(store, study(store, settings()), (), MADE)
    assert [one.outcome for one in found] == [outcome]
    store.decide_forecasts(found)
    (kept,) = store.forecasts()
    assert kept.outcome is outcome
    assert kept.content["truth"] == pytest.approx(0.058, abs=0.01)
    assert kept.content["truth_from"] == "2026-05-02"  # the first whole day after the forecast
    assert newly_decided(store, study(store, settings()), (), MADE) == []
    record = calibration(store.forecasts(), "ctr")
    assert (record.came_true, record.decided, record.pending) == (outcome is Outcome.CAME_TRUE, 1, 0)


def test_a_candidate_that_never_goes_online_stays_not_yet_known(store: Store) -> None:
    with_forecast(store, 0.0, 1.0)
    put_days(store, 20, *related(), first=60)
    put_models(store, 20, lambda _: "m8", lambda _: 0.7, first=60)
    assert newly_decided(store, study(store, settings()), (), MADE) == []
    record = calibration(store.forecasts())
    assert (record.share, record.interval, record.pending) == (None, None, 1)


def test_the_name_of_a_label_chooses_the_series(store: Store) -> None:
    put_days(store, 60, *related())
    one = forecast_of(store, settings(), "m9", "ctr", given=[("ndcg", NDCG, 0.31)])
    assert one.x == 0.31
