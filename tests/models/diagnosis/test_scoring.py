"""What a score would have been: the surrogate against known effects, and a scoring function of the user."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from monitor.models.diagnosis.columns import read_column
from monitor.models.diagnosis.sample import Sample
from monitor.models.diagnosis.scoring import Rescored, Surrogate


def sides(score, rows=6000, seed=0):
    rng = np.random.default_rng(seed)
    samples = {}
    for side in ("better", "worse"):
        x, z = rng.normal(size=rows), rng.normal(size=rows)
        city = rng.choice(np.array(["a", "b", "c"], dtype=object), rows)
        x[rng.random(rows) < 0.1] = np.nan
        features = {"x": x, "z": 0.7 * np.nan_to_num(x) + z, "city": city}
        samples[side] = Sample(score(features), (rng.random(rows) < 0.5).astype(float), features)
    columns = {
        name: read_column(name, {side: one.features[name] for side, one in samples.items()})
        for name in ("x", "z", "city")
    }
    return samples, columns


def additive(features):
    return (
        0.8 * np.where(np.isnan(features["x"]), 1.5, features["x"])
        - 0.5 * features["z"]
        + 0.7 * (features["city"] == "a")
    )


@pytest.mark.parametrize("link", [special.expit, lambda score: 5 * score])
def test_a_surrogate_finds_the_effects_of_correlated_features(link):
    samples, columns = sides(lambda features: link(additive(features)))
    surrogate = Surrogate(samples, columns)
    assert min(surrogate.fidelity.values()) > 0.97
    new = {"x": np.zeros(6000), "city": np.zeros(6000)}
    features = samples["better"].features | {"x": np.zeros(6000), "city": np.full(6000, "a", dtype=object)}
    truth = additive(features)
    assert np.corrcoef(surrogate.changed("better", new), truth)[0, 1] > 0.99


def crossed(features):
    return np.where(features["city"] == "a", 1.5, -1.5) * np.nan_to_num(features["x"])


def test_a_surrogate_learns_an_interaction_without_main_effects():
    samples, columns = sides(lambda features: special.expit(crossed(features)))
    surrogate = Surrogate(samples, columns)
    assert min(surrogate.fidelity.values()) > 0.95
    turned = np.where(columns["city"].sides["worse"] == 0, 1.0, 0.0)
    truth = -crossed(samples["worse"].features)
    assert np.corrcoef(surrogate.changed("worse", {"city": turned}), truth)[0, 1] > 0.97


def test_fidelity_is_measured_on_held_out_rows_of_each_split():
    samples, columns = sides(lambda features: special.expit(additive(features)))
    noisy = np.random.default_rng(1).permutation(samples["worse"].scores)
    samples["worse"] = Sample(noisy, samples["worse"].labels, samples["worse"].features)
    found = Surrogate(samples, columns).fidelity
    assert found["better"] > 0.4
    assert found["worse"] < 0.3


def test_unchanged_values_change_no_score():
    samples, columns = sides(lambda features: special.expit(additive(features)))
    surrogate = Surrogate(samples, columns)
    same = surrogate.changed("worse", {"x": columns["x"].sides["worse"]})
    assert same == pytest.approx(surrogate.base("worse"), abs=1e-12)
    assert np.argsort(surrogate.base("worse")).tolist() == np.argsort(samples["worse"].scores).tolist()


def test_without_a_feature_the_score_no_longer_depends_on_it():
    samples, columns = sides(lambda features: special.expit(additive(features)))
    x = np.nan_to_num(samples["better"].features["x"], nan=1.5)
    for found in Surrogate(samples, columns).without("better", ("x",)):
        rest = found + 0.5 * samples["better"].features["z"]
        assert abs(np.corrcoef(x, rest)[0, 1]) < 0.05


def test_constant_scores_have_no_effects():
    samples, columns = sides(lambda features: np.full(6000, 0.3))
    surrogate = Surrogate(samples, columns)
    assert set(surrogate.fidelity.values()) == {0.0}
    assert np.unique(surrogate.changed("better", {"x": np.zeros(6000)})).tolist() == [special.logit(0.3)]


def test_infinite_scores_are_ranked():
    samples, columns = sides(lambda features: np.where(features["x"] > 1, np.inf, additive(features)))
    surrogate = Surrogate(samples, columns)
    assert np.isfinite(surrogate.base("better")).all()
    assert all(0 <= one <= 1 for one in surrogate.fidelity.values())


def test_a_feature_that_a_side_lacks_is_missing_there():
    samples, columns = sides(lambda features: special.expit(additive(features)))
    columns = {"x": read_column("x", {"better": columns["x"].sides["better"]})}
    surrogate = Surrogate(samples, columns)
    values = {"x": np.full(6000, np.nan)}
    assert surrogate.changed("worse", values).tolist() == surrogate.base("worse").tolist()
    assert surrogate.changed("worse", {"x": np.zeros(6000)}).tolist() != surrogate.base("worse").tolist()


def test_the_scoring_function_gets_the_features_as_the_log_has_them():
    samples, columns = sides(additive)
    rescored = Rescored(additive, samples, columns)
    assert rescored.base("worse").tolist() == samples["worse"].scores.tolist()
    city = np.where(np.arange(6000) % 2, np.nan, 0.0)
    wanted = samples["worse"].features | {"city": np.where(np.arange(6000) % 2, None, "a")}
    assert rescored.changed("worse", {"city": city}).tolist() == additive(wanted).tolist()


def test_permuting_keeps_the_distribution_and_ignores_the_order_of_the_rows():
    samples, columns = sides(additive)
    found = Rescored(lambda features: features["z"], samples, columns).without("better", ("z",))
    z = samples["better"].features["z"]
    for one in found:
        assert np.sort(one).tolist() == np.sort(z).tolist()
        assert abs(np.corrcoef(one, z)[0, 1]) < 0.05


@pytest.mark.parametrize("answer", [np.zeros(3), np.full(6000, np.nan), 0.5])
def test_a_scoring_function_must_return_one_number_for_each_row(answer):
    samples, columns = sides(additive)
    with pytest.raises(ValueError, match="one number a row"):
        Rescored(lambda features: answer, samples, columns).base("better")
