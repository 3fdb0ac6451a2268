"""Real predictions through the models' check, where they lie beside the checkout."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from monitor.core.results import Status, Window
from monitor.judging.runtime import Runtime
from tests.shop import Shop

SPLITS = {"test": "reference", "online": "current"}


def gap_of(shared, folder, name: str, **models):
    """The gap of one set as of its newest row, with the name that its splits have there."""
    runtime = Runtime(folder / "spill", threads=2)
    try:
        shop = Shop(folder, runtime)
        path = shared / "data" / "predictions" / f"predictions_{name}.csv.gz"
        shop.config |= {"window": "1d", "models": models}
        shop.config["logs"] = {"samples": {"path": str(path), "splits": SPLITS}}
        source = shop.evaluator.source
        source.logs["samples"].refresh(runtime.index, datetime.now(UTC))
        newest: Window = max(source.logs["samples"].windows())
        found = shop.judge(newest, part="samples").results
        (gap,) = [one for one in found if one.metric == "auc_gap"]
        return gap, found
    finally:
        runtime.close()


def test_the_gap_of_one_set_is_asserted(shared, tmp_path):
    gap, found = gap_of(shared, tmp_path, "california", over="52w")
    aucs = {one.labels["split"]: one.value for one in found if one.metric == "auc"}
    assert aucs == {"test": pytest.approx(0.907942, abs=5e-7), "online": pytest.approx(0.840246, abs=5e-7)}
    assert gap.status is Status.VIOLATED
    assert gap.lower is not None
    assert gap.lower > 0.05
    # Nothing but scores and labels is in this log: no feature could be to blame, and none is.
    assert not [
        one for one in found if one.metric == "auc_gap_cause" and one.labels["cause"] != "score_shift"
    ]


def test_the_other_data_set_has_no_gap(shared, tmp_path):
    gap, found = gap_of(shared, tmp_path, "employment", over="157w")
    aucs = {one.labels["split"]: one.value for one in found if one.metric == "auc"}
    assert aucs == {"test": pytest.approx(0.903361, abs=5e-7), "online": pytest.approx(0.904282, abs=5e-7)}
    assert gap.status is Status.OK
    assert not [one for one in found if one.metric == "auc_gap_cause"]
