"""Forecasts stay in the history; a pending one may be replaced, a decided one never."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from monitor.history.forecasts import Outcome, StoredForecast
from monitor.history.store import Store

AT = datetime(2026, 11, 1, 10, tzinfo=UTC)
SERIES = {"metric": "ndcg", "labels": {"k": "10"}}
ONE = StoredForecast("shop", "m\0 \ud800'; DROP TABLE forecasts; --", "ctr", SERIES, AT, {"value": 0.05})


def test_a_pending_forecast_is_replaced_and_a_decided_one_is_not(url: str) -> None:
    later = replace(ONE, made_at=AT + timedelta(days=1), content={"value": 0.06})
    with Store.open(url) as store:
        assert store.put_forecast(ONE)
        assert store.put_forecast(later)
        (found,) = store.forecasts()
        assert found.content == {"value": 0.06}
        assert found.made_at == later.made_at
        store.decide_forecasts([replace(later, outcome=Outcome.MISSED, content={"truth": 0.1})])
        assert not store.put_forecast(replace(ONE, content={"value": 0.5}))
        store.decide_forecasts([replace(later, outcome=Outcome.CAME_TRUE)])
    with Store.open(url) as store:
        (found,) = store.forecasts()
        assert found.outcome is Outcome.MISSED
        assert found.content == {"truth": 0.1}


def test_recommenders_targets_and_metrics_have_forecasts_of_their_own(url: str) -> None:
    others = [
        replace(ONE, recommender="cart", made_at=AT - timedelta(days=1)),
        replace(ONE, target="pay", made_at=AT + timedelta(days=1)),
        replace(ONE, series={"metric": "auc", "labels": {}}, made_at=AT + timedelta(days=2)),
    ]
    with Store.open(url) as store:
        for one in [ONE, *others]:
            store.put_forecast(one)
        assert [one.recommender for one in store.forecasts()] == ["cart", "shop", "shop", "shop"]
        assert [one.target for one in store.forecasts(recommenders=["shop"])] == ["ctr", "pay", "ctr"]
        assert store.forecasts(recommenders=[]) == []
