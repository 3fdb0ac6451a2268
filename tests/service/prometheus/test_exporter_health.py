"""What /metrics says of the health score."""

from __future__ import annotations

from dataclasses import replace

from monitor.core.results import Status
from monitor.history.snapshot import Snapshot
from tests.service import pictures
from tests.service.made import metric, series
from tests.service.prometheus.test_exporter import find, samples, scrape

SCORE = metric("health_score", value=0.625, samples=2)
LISTS = metric("health_part", labels={"part": "lists"}, value=0.25, lower=0.2, upper=0.3, samples=400)
RECALL = metric("health_part", status=Status.NO_DATA, labels={"part": "recall"}, detail="nobody acted")


def text_of(*results) -> str:
    shown = tuple(series(one, check="health") for one in results)
    state = replace(pictures.shop(), series=shown)
    return scrape(Snapshot(taken_at=pictures.NOW, recommenders=(state,)))


def test_the_score_and_each_of_its_parts_is_a_gauge():
    text = text_of(SCORE, LISTS, RECALL)
    assert find(text, "recsys_health_score_ratio", recommender="shop") == 0.625
    assert find(text, "recsys_health_score_samples", recommender="shop") == 2
    assert find(text, "recsys_health_part_ratio", recommender="shop", part="lists") == 0.25
    assert find(text, "recsys_health_part_lower_ratio", recommender="shop", part="lists") == 0.2
    parts = [dict(labels)["part"] for name, labels in samples(text) if name == "recsys_health_part_ratio"]
    assert parts == ["lists"]


def test_a_missing_score_is_a_state_and_never_zero():
    text = text_of(replace(SCORE, value=None, status=Status.NO_DATA), LISTS, RECALL)
    assert "recsys_health_score_ratio" not in {name for name, _ in samples(text)}
    labels = {"recommender": "shop", "metric": "health_score", "by": ""}
    assert find(text, "recsys_metric_status", status="no_data", **labels) == 1
    assert find(text, "recsys_metric_status", status="ok", **labels) is None
