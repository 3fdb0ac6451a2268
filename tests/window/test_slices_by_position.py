"""The click rate by position, and nothing that has no meaning there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from monitor.cli.judge import judge, load
from monitor.config.problems import ConfigError
from monitor.metrics.catalogue import SPECS
from tests.window.test_slices import table, values_of


def shop(folder: Path, **settings) -> tuple[Path, pd.DataFrame]:
    """A day of lists of 12 items; the rate at which an item is clicked falls with its place."""
    draw = np.random.default_rng(1)
    n, length = 500, 12
    at = np.repeat(
        pd.Timestamp("2026-03-01") + pd.to_timedelta(np.sort(draw.integers(0, 86_000, n)), "s"), length
    )
    shown = pd.DataFrame({"request_id": np.repeat(np.arange(n), length), "ts": at})
    shown["user_id"] = "u" + (shown.request_id % 100).astype(str)
    shown["item_id"] = [f"i{one}" for _ in range(n) for one in draw.choice(80, length, replace=False)]
    shown["position"] = np.tile(np.arange(1, length + 1), n)
    shown["page"] = shown.position // 7
    clicked = shown[draw.random(len(shown)) < 0.5 / shown.position].drop(columns=["position", "page"])
    shown.to_parquet(folder / "exposures.parquet", index=False)
    clicked.assign(event="click").to_parquet(folder / "feedback.parquet", index=False)
    logs = {name: {"path": f"{name}.parquet"} for name in ("exposures", "feedback")}
    one = {"name": "shop", "window": "1d", "logs": logs, "slices": {"by": ["position"]}, **settings}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"state": str(folder / "state"), "recommenders": [one]}))
    rates = clicked.merge(shown[["request_id", "item_id", "position"]]).position.value_counts() / n
    return path, rates


def test_the_click_rate_by_position_equals_that_of_its_rows_and_the_rest_is_other(tmp_path):
    path, rates = shop(tmp_path)
    found, _ = judge(path, None, None, None)
    sliced = [one.result for one in found if one.result.labels.get("dimension") == "position"]
    by = {"by": "exposure", "event": "click", "dimension": "position"}
    rate = {
        one.labels["value"]: one.value
        for one in sliced
        if one.metric == "action_rate" and one.labels == {**by, "value": one.labels["value"]}
    }
    assert list(rate) == sorted([*map(str, range(1, 11)), "other"])
    for place in range(1, 11):
        assert rate[str(place)] == pytest.approx(rates[place])
    assert rate["other"] == pytest.approx((rates[11] + rates[12]) / 2)
    names = {one.metric for one in sliced}
    assert {"volume", "action_rate", "average_popularity"} <= names
    assert not {"coverage", "ndcg", "precision", "list_length", "conversion", "gini"} & names
    assert all(SPECS[name].of_rows for name in names)


def test_another_whole_number_slices_every_metric(tmp_path):
    path, _ = shop(tmp_path, slices={"by": ["page"]})
    found, _ = judge(path, None, None, None)
    sliced = {one.result.metric for one in found if one.result.labels.get("dimension") == "page"}
    assert {"action_rate", "coverage", "precision"} <= sliced


@pytest.mark.parametrize("metric", ["coverage", "recall"])
def test_an_objective_on_lists_by_position_is_refused(tmp_path, metric):
    labels = {"dimension": "position", "value": "1", "by": "pv" if metric == "coverage" else "macro"}
    labels |= {"k": "5"} if metric == "recall" else {}
    path, _ = shop(tmp_path, objectives=[{"metric": metric, "labels": labels, "min": 0.1}])
    with pytest.raises(ConfigError, match=f"{metric} cannot be sliced by position"):
        load(path)


def test_a_metric_of_lists_that_is_sliced_by_position_alone_is_refused(tmp_path):
    path, _ = shop(tmp_path, slices={"by": ["position"], "metrics": ["ndcg"]})
    with pytest.raises(ConfigError, match="ndcg cannot be sliced by position"):
        load(path)


def test_the_first_positions_of_long_lists_keep_their_number():
    shown = table(
        [{"item_id": "a", "position": place} for place in (30, 2, 10, 9, 1, 30, 30, None)],
        position=pa.int64(),
    )
    found = Counter(values_of("position", budget=3, exposures=shown))
    assert found == {"1": 1, "2": 1, "9": 1, "other": 5}


def test_ties_of_whole_numbers_are_ordered_by_size():
    shown = table([{"item_id": "a", "page": page} for page in (10, 9, 100, 1)], page=pa.int64())
    assert Counter(values_of("page", budget=2, exposures=shown)) == {"1": 1, "9": 1, "other": 2}
