from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from monitor.core.columns import SAMPLES, TYPES
from monitor.simulate.retraining import in_force_from
from monitor.simulate.samples import ONLINE_ROWS, TEST_ROWS, TRAIN_ROWS, WEIGHTS
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import World
from monitor.statistics.auc import auc_sums

WORLD = World(seed=2)
RETRAINED = in_force_from(WORLD, 1)


@pytest.fixture(scope="module")
def retrained() -> pd.DataFrame:
    return Simulation(WORLD).samples(WORLD.moment(RETRAINED)).to_pandas()


def auc(rows: pd.DataFrame) -> float:
    sums = auc_sums(rows.score, rows.label)
    assert sums is not None
    return sums.auc


def test_train_and_test_are_written_once_a_model_and_online_rows_every_hour(retrained: pd.DataFrame):
    assert retrained.split.value_counts().to_dict() == {
        "train": TRAIN_ROWS,
        "test": TEST_ROWS,
        "online": ONLINE_ROWS,
    }
    simulation = Simulation(WORLD)
    for hour in (RETRAINED - 1, RETRAINED + 1):
        rows = simulation.samples(WORLD.moment(hour)).to_pandas()
        assert rows.split.tolist() == ["online"] * ONLINE_ROWS
    first = simulation.samples(WORLD.start).to_pandas()
    assert set(first.split) == {"train", "test", "online"}
    assert set(first.model) == {"m1"}
    assert set(retrained.model) == {"m2"}


def test_samples_have_the_columns_of_the_log_and_features(retrained: pd.DataFrame):
    assert set(TYPES[SAMPLES]) <= set(retrained.columns)
    assert set(retrained.columns) - set(TYPES[SAMPLES]) == {*WEIGHTS, "device"}
    assert not retrained.isna().any(axis=None)
    assert retrained.request_id.is_unique
    assert set(retrained.scene) == {"home", "detail", "search"}


def test_training_ends_before_the_test_begins_and_both_before_the_model_serves(retrained: pd.DataFrame):
    spans = retrained.groupby("split").ts.agg(["min", "max"])
    start = pd.Timestamp(WORLD.moment(RETRAINED)).tz_localize(None)
    assert spans.loc["train", "max"] < spans.loc["test", "min"]
    assert spans.loc["test", "max"] < start <= spans.loc["online", "min"]
    assert spans.loc["online", "max"] < start + timedelta(hours=1)


def test_labels_have_their_true_probability(retrained: pd.DataFrame):
    train = retrained[retrained.split == "train"]
    assert set(train.label) == {0, 1}
    calibration = train.label.sum() / train.score.sum()
    assert calibration == pytest.approx(1, abs=0.03)
    for _, part in train.groupby(pd.qcut(train.score, 10)):
        spread = 4 * np.sqrt(0.25 / len(part)) + 0.02  # the model's own error draws the ends in a little
        assert part.label.mean() == pytest.approx(part.score.mean(), abs=spread)


def test_the_samples_have_no_gap(retrained: pd.DataFrame):
    simulation = Simulation(WORLD)
    day = [simulation.samples(WORLD.moment(RETRAINED + hour)).to_pandas() for hour in range(24)]
    online = pd.concat(day).query("split == 'online'")
    train, test = (retrained[retrained.split == split] for split in ("train", "test"))
    assert 0.7 < auc(test) < 0.9
    assert auc(train) == pytest.approx(auc(test), abs=0.02)
    assert auc(online) == pytest.approx(auc(test), abs=0.02)
    assert online.request_id.is_unique


def test_the_features_differ_between_hours_but_not_in_their_distribution():
    simulation = Simulation(WORLD)
    one, other = (simulation.samples(WORLD.moment(hour)).to_pandas() for hour in (10, 60))
    for name in WEIGHTS:
        assert not one[name].equals(other[name])
        spread = np.hypot(one[name].sem(), other[name].sem())
        assert one[name].mean() == pytest.approx(other[name].mean(), abs=4 * spread)
