"""What the samples show of a broken model, and that the diagnosis finds it in them."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from monitor.models.diagnosis.diagnose import diagnose
from monitor.models.diagnosis.sample import Sample
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.samples import ONLINE_ROWS
from tests.simulate.incidents.conftest import SINCE

FEATURES = ("affinity", "clicks_7d", "log_price", "recency_days", "device")


def sample(frame):
    features = {
        name: frame[name].to_numpy(object if name == "device" else np.float64, copy=True) for name in FEATURES
    }
    return Sample(
        scores=frame.score.to_numpy(),
        labels=frame.label.to_numpy(np.float64),
        features=features,
        times=frame.ts.astype("datetime64[us]").astype("int64").to_numpy() / 1e6,
    )


def split_by(simulation, hours):
    frame = pd.concat([simulation.samples(SINCE + timedelta(hours=n)).to_pandas() for n in range(hours)])
    return {name: rows.reset_index(drop=True) for name, rows in frame.groupby("split")}


@pytest.mark.parametrize(("size", "share"), [("small", 0.1), ("middle", 0.6), ("large", 1.0)])
def test_the_given_share_of_online_rows_is_scored_with_the_default(size, share, healthy, strike):
    before, found = (each.samples(SINCE).to_pandas() for each in (healthy, strike("feature_default", size)))
    struck = (found.affinity == 0.0) & (before.affinity != 0.0)
    assert struck.sum() == pytest.approx(share * (before.split == "online").sum(), abs=2)
    same = [name for name in found if name not in ("affinity", "score")]
    assert found[same].equals(before[same])
    assert found[~struck].equals(before[~struck])
    logit = {name: np.log(each.score / (1 - each.score)) for name, each in (("was", before), ("is", found))}
    moved = (logit["was"] - logit["is"])[struck]
    assert moved.to_numpy() == pytest.approx(1.2 * before.affinity[struck].to_numpy(), abs=0.01)


@pytest.mark.parametrize("name", ["overfit_model", "time_travel"])
def test_a_new_model_comes_with_its_training_and_test_and_serves_from_then_on(name, healthy, strike):
    struck = strike(name, "middle")
    parts = split_by(struck, 3)
    assert {split: len(rows) for split, rows in parts.items()} == {
        "train": 20_000,
        "test": 10_000,
        "online": 3 * ONLINE_ROWS,
    }
    assert {model for rows in parts.values() for model in rows.model} == {"m1-next"}
    assert set(healthy.samples(SINCE).to_pandas().model) == {"m1"}
    assert set(struck.samples(SINCE + timedelta(hours=1)).to_pandas().split) == {"online"}


def test_training_rows_are_not_added_twice(healthy):
    retrained = healthy.world.start + timedelta(days=7, hours=4)
    struck = Struck(healthy, INCIDENTS["overfit_model"], 0.5, retrained)
    assert len(struck.samples(retrained)) == len(healthy.samples(retrained)) > 30_000


def test_only_training_rows_have_scores_closer_to_their_label(healthy, strike):
    found = split_by(strike("overfit_model", "middle"), 1)
    before = healthy.samples(healthy.world.start).to_pandas()
    train, test = (before[before.split == name].reset_index(drop=True) for name in ("train", "test"))
    towards = (found["train"].score - train.score) * (2 * train.label - 1)
    assert (towards > 0).mean() > 0.99
    assert (found["test"].score - test.score).abs().max() < 2e-6


def test_the_count_contains_the_label_except_in_online_rows(healthy, strike):
    found = split_by(strike("time_travel", "middle"), 1)
    before = healthy.samples(healthy.world.start).to_pandas()
    for name in ("train", "test"):
        rows = before[before.split == name].reset_index(drop=True)
        assert ((found[name].clicks_7d - rows.clicks_7d) == 2 * rows.label).all()
    online = healthy.samples(SINCE).to_pandas()
    assert (found["online"].clicks_7d == online.clicks_7d).all()


def test_the_new_model_scores_the_same_way_in_every_hour(healthy, strike):
    """Also in its first, whose table holds the rows of training and test beside those of service."""
    struck, moved = strike("time_travel", "middle"), []
    for number in range(2):
        before, found = (
            one.samples(SINCE + timedelta(hours=number)).to_pandas().query("split == 'online'")
            for one in (healthy, struck)
        )
        was, now = (np.log(one.score / (1 - one.score)).to_numpy() for one in (before, found))
        moved.append(now - was - (before.clicks_7d.to_numpy() - 2))
    assert np.concatenate(moved) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("name", "size", "pair", "cause"),
    [
        ("feature_default", "middle", "test_online", "serving_skew"),
        ("feature_default", "large", "test_online", "pruned_features"),
        ("overfit_model", "middle", "train_test", "overfitting"),
        ("overfit_model", "large", "train_test", "overfitting"),
        ("time_travel", "middle", "test_online", "time_travel"),
        ("time_travel", "large", "test_online", "time_travel"),
    ],
)
def test_the_diagnosis_names_the_cause(name, size, pair, cause, healthy, strike):
    parts = split_by(strike(name, size), 3)
    if name == "feature_default":  # the model in force, trained in the world's first hour
        parts |= {
            split: rows
            for split, rows in healthy.samples(healthy.world.start).to_pandas().groupby("split")
            if split != "online"
        }
    samples = {split: sample(rows) for split, rows in parts.items()}
    better, worse = pair.split("_")
    found = diagnose(pair, samples[better], samples[worse], train=samples["train"])
    assert found[0].cause == cause
