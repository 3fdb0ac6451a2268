"""Which series are tried as predictors if the config names none."""

from __future__ import annotations

import pytest

from monitor.forecast.series import ForecastSeries


@pytest.mark.parametrize("metric", ["unattributed", "other_events", "actions_without_item"])
def test_what_says_whether_actions_find_their_lists_is_no_offline_metric(metric: str) -> None:
    assert not ForecastSeries(metric).is_offline


@pytest.mark.parametrize(
    ("metric", "labels"),
    [
        ("ndcg", {"k": "10"}),
        ("user_auc", {"by": "impression"}),
        ("calibration", {}),
        ("auc", {"split": "test"}),
    ],
)
def test_what_judges_lists_and_scores_is_an_offline_metric(metric: str, labels: dict[str, str]) -> None:
    assert ForecastSeries(metric, tuple(sorted(labels.items()))).is_offline


def test_a_business_metric_and_a_slice_are_none() -> None:
    assert not ForecastSeries("action_rate", (("by", "pv"), ("event", "click"))).is_offline
    sliced = (("dimension", "scene"), ("k", "10"), ("value", "home"))
    assert not ForecastSeries("ndcg", sliced).is_offline
