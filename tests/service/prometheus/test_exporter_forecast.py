"""What /metrics says of the offline metrics that predict a business metric."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.core.results import Status
from monitor.history.snapshot import Snapshot
from tests.service import pictures
from tests.service.made import NOW, metric, series
from tests.service.prometheus.test_exporter import find, samples, scrape

OF = {"target": "ctr", "metric": "auc", "by": "", "of": "split=test"}
USED = metric(
    "forecast_correlation", labels=OF | {"role": "used"}, value=0.8, lower=0.6, upper=0.9, samples=60
)
BROKEN = replace(USED, status=Status.VIOLATED, detail="so it no longer predicts")


def snapshot(*results) -> Snapshot:
    shown = tuple(series(one, check="forecast") for one in results)
    return Snapshot(taken_at=NOW, recommenders=(replace(pictures.shop(), series=shown),))


@pytest.mark.parametrize("result", [USED, BROKEN])
def test_a_used_pair_has_its_correlation_and_a_verdict(result):
    text = scrape(snapshot(result))
    assert find(text, "recsys_forecast_correlation_lower", recommender="shop", **OF, role="used") == 0.6
    for status in Status.OK, Status.VIOLATED:
        found = find(text, "recsys_forecast_status", recommender="shop", **OF, status=str(status))
        assert found == (1 if result.status is status else None)


def test_a_pair_that_was_only_tried_has_no_verdict():
    text = scrape(snapshot(replace(USED, labels=OF | {"role": "tried"})))
    assert find(text, "recsys_forecast_correlation", recommender="shop", **OF, role="tried") == 0.8
    assert not [name for name, _ in samples(text) if name.endswith("_status") and "forecast" in name]
    assert "recsys_metric_status" not in {name for name, _ in samples(text)}
