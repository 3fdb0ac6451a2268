"""AUC, log loss and calibration of real scores, where they lie beside the checkout."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as compute
import pyarrow.csv as csv
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from monitor.metrics.scores.auc import auc_sums, rank_sums
from monitor.metrics.scores.calibration import probability_sums
from monitor.metrics.scores.labelled import scored
from monitor.statistics.auc import auc_gap
from tests.metrics.scores.scored import rows_of
from tests.metrics.test_real_logs import read
from tests.metrics.worlds import World, by_name, embedded, results_of

# file of predictions, split -> AUC as measured, with six digits
SEEN = {
    ("employment", "reference"): 0.903361,
    ("employment", "current"): 0.904282,
    ("california", "reference"): 0.907942,
    ("california", "current"): 0.840246,
}


@pytest.fixture(scope="module")
def samples(shared):
    """(file, split) -> the scores and labels of its rows."""
    found = {}
    for name, split in SEEN:
        table = csv.read_csv(shared / "data" / "predictions" / f"predictions_{name}.csv.gz")
        table = table.filter(compute.equal(table["split"], split)).select(["score", "label"])
        found[name, split] = table.filter(compute.is_valid(table["label"]))
    return found


def sums_of(table):
    rows = scored(embedded().create_table("samples", table))
    return auc_sums(rank_sums(rows).to_pyarrow().to_pylist()[0], table.num_rows)


@pytest.mark.parametrize("which", SEEN, ids=" ".join)
def test_the_auc_of_predictions_agrees_with_scikit_learn(samples, which):
    table = samples[which]
    sums = sums_of(table)
    assert sums.auc == pytest.approx(roc_auc_score(table["label"], table["score"]), rel=1e-12)
    assert sums.auc == pytest.approx(SEEN[which], abs=5e-7)


def test_auc_falls_between_the_splits_of_one_set_and_stays_in_the_other(samples):
    gaps = {
        name: auc_gap(sums_of(samples[name, "reference"]), sums_of(samples[name, "current"]))
        for name in ("california", "employment")
    }
    assert gaps["california"].interval.lower > 0.05
    assert abs(gaps["employment"].difference) < 0.002


@pytest.mark.parametrize("which", SEEN, ids=" ".join)
def test_log_loss_and_calibration_of_predictions(samples, which):
    table = samples[which]
    rows = scored(embedded().create_table("samples", table))
    (row,) = probability_sums(rows, 1e-15).to_pyarrow().to_pylist()
    p = np.clip(table["score"].to_numpy(), 1e-15, 1 - 1e-15)
    assert row["loss"] / row["n"] == pytest.approx(log_loss(table["label"], p), rel=1e-9)
    assert row["predicted"] / row["observed"] == pytest.approx(p.mean() / table["label"].to_numpy().mean())
    assert row["outside"] == 0


def test_propensities_of_a_shop_do_not_predict_its_clicks(shared):
    exposures = read(shared / "data" / "obd" / "exposures.csv.gz")
    feedback = read(shared / "data" / "obd" / "feedback.csv.gz")
    found = {}
    for policy in ("random", "bts"):
        rows = [row for row in exposures if row["policy"] == policy]
        clicks = [row for row in feedback if row["request_id"].startswith(policy)]
        world = World(rows, feedback=clicks, columns=("score", "scene"))
        only = ("auc", "user_auc", "log_loss", "calibration")
        results = by_name(results_of(world, dimensions={"scene": "scene"}, only=only))
        scores, labels = zip(*((score, label) for _, score, label in rows_of(world)), strict=True)
        assert results["auc", ""].value == pytest.approx(roc_auc_score(labels, scores), abs=1e-11)
        found[policy] = results
    # One score for every item: all of them are ties.
    for scene in ("men", "women"):
        tied = found["random"]["auc", "", "scene", scene]
        assert (tied.value, tied.lower, tied.upper) == (0.5, 0.5, 0.5)
    learned = found["bts"]["auc", ""]
    assert learned.value == pytest.approx(0.543135, abs=1e-6)
    assert learned.lower < 0.5 < learned.upper
    assert found["bts"]["calibration", ""].value > found["random"]["calibration", ""].value > 4
