"""What the check of the models says of the simulated samples: of healthy ones, and of broken models."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitor.core.results import Status, Window
from monitor.judging.runtime import Runtime
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.simulation import Simulation
from tests.shop import DAY, Shop
from tests.simulate.incidents.conftest import SHOP, SINCE

HOUR = timedelta(hours=1)


@pytest.fixture
def gaps(tmp_path):
    """Every gap of the newest model with what explains it most, as the second window since `SINCE` has it."""
    runtime = Runtime(tmp_path / "spill", threads=1)

    def judge(simulation: Simulation):
        shop = Shop(tmp_path, runtime)
        shop.config |= {
            "logs": {"samples": {"path": str(tmp_path / "samples" / "*")}},
            "models": {"over": "2h"},
        }
        for at in (SHOP.start, *(SINCE + number * HOUR for number in range(2))):
            shop.write(f"samples/{at:%dT%H}.parquet", simulation.samples(at).to_pandas(), DAY)
        return _gaps(shop, SINCE + HOUR)

    yield judge
    runtime.close()


def _gaps(shop, start):
    results = shop.judge(Window(start, start + HOUR), part="samples").results
    newest = max(one.labels["model"] for one in results if one.metric == "auc_gap")
    own = [one for one in results if one.labels.get("model") == newest]
    causes = sorted((one for one in own if "cause" in one.labels), key=lambda one: one.value)
    most = {one.labels["pair"]: one.labels["cause"] for one in causes}
    gaps = {one.labels["pair"]: one.status for one in own if one.metric == "auc_gap"}
    return {pair: (status, most.get(pair)) for pair, status in gaps.items()}


def test_healthy_hours_have_enough_rows_and_are_ok(gaps, healthy):
    assert gaps(healthy) == {"train_test": (Status.OK, None), "test_online": (Status.OK, None)}


@pytest.mark.parametrize(
    ("name", "pair", "middle", "large"),
    [
        ("feature_default", "test_online", "serving_skew", "pruned_features"),
        ("overfit_model", "train_test", "overfitting", "overfitting"),
        ("time_travel", "test_online", "time_travel", "time_travel"),
    ],
)
@pytest.mark.parametrize("size", ["middle", "large"])
def test_a_broken_model_is_reported_with_its_cause_within_two_windows(
    name, pair, middle, large, size, gaps, healthy
):
    incident = INCIDENTS[name]
    found = gaps(Struck(healthy, incident, incident.sizes[size], SINCE))
    assert found.pop(pair) == (Status.VIOLATED, middle if size == "middle" else large)
    assert set(found.values()) == {(Status.OK, None)}
