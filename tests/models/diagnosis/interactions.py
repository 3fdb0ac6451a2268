"""A second family of worlds: interactions, categories, rare positives, real features, and the true share.

The true share of a cause is a counterfactual by the deployed model itself: it scores the online rows again
with their right features. Where no score can be made again (another mix, an overfitted model) the share is 1,
since nothing else is wrong in the world.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from scipy import special
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.statistics.auc import auc_sums

MODELS = ("boosting", "forest", "logistic")
DAY = 86400.0
COUNTRIES = ("DE", "FR", "IT", "ES", "PT", "AT", "BE", "LU")
COUNTRY_SHARES = (0.36, 0.22, 0.15, 0.1, 0.06, 0.05, 0.03, 0.03)


@dataclass(frozen=True)
class World:
    """One gap, what is broken, and the true share of it."""

    name: str
    model: str
    cause: str | None
    pair: str
    better: Sample
    worse: Sample
    train: Sample
    features: tuple[str, ...] = ()
    share: float | None = None
    """The true share of the gap; None where no gap is, or where no share can be known."""
    pairs: Pairs | None = None


class Deployed:
    """A fitted model with interactions, as a service calls it."""

    def __init__(self, kind, rows, labels, overfitted=False):
        self.numbers = [name for name, values in rows.items() if values.dtype != object]
        self.texts = [name for name, values in rows.items() if values.dtype == object]
        ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        if kind == "boosting":
            steps = (
                make_column_transformer(("passthrough", self.numbers), (ordinal, self.texts)),
                (
                    HistGradientBoostingClassifier(max_iter=250, learning_rate=0.3, random_state=0)
                    if overfitted
                    else HistGradientBoostingClassifier(max_iter=80, learning_rate=0.1, random_state=0)
                ),
            )
        elif kind == "forest":
            coding = make_column_transformer(
                (SimpleImputer(strategy="median"), self.numbers), (ordinal, self.texts)
            )
            leaf = 1 if overfitted else 8
            steps = (
                coding,
                RandomForestClassifier(50, min_samples_leaf=leaf, max_features=0.4, random_state=0),
            )
        else:
            scale = make_pipeline(SimpleImputer(), StandardScaler())
            coding = make_column_transformer((scale, self.numbers), (hot, self.texts))
            crossed = PolynomialFeatures(2, interaction_only=True, include_bias=False)
            model = LogisticRegression(C=100.0 if overfitted else 0.02, max_iter=400 if overfitted else 300)
            steps = coding, crossed, model
        self.pipeline = make_pipeline(*steps)
        with threadpool_limits(1):  # on a busy machine threads mostly wait for each other
            self.pipeline.fit(self._frame(rows), labels)

    def _frame(self, rows):
        texts = {name: pd.Series(rows[name], dtype=object).fillna("").astype(object) for name in self.texts}
        return pd.DataFrame({name: rows[name] for name in self.numbers} | texts)

    def __call__(self, rows):
        with threadpool_limits(1):
            return np.clip(self.pipeline.predict_proba(self._frame(rows))[:, 1], 1e-5, 1 - 1e-5)


def intercept(logit, rate):
    """The constant that gives the labels this rate."""
    low, high = -15.0, 15.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if special.expit(logit + middle).mean() < rate else (low, middle)
    return middle


def draw(rng, rows, day, *, rate=0.25, small=0.03):
    """Rows whose labels follow products of features; those of the country LU hardly follow them at all.

    `small` is the share of LU.
    """
    shares = np.array(COUNTRY_SHARES)
    shares = np.r_[shares[:-1] / shares[:-1].sum() * (1 - small), small]
    country = rng.choice(np.array(COUNTRIES, dtype=object), rows, p=shares)
    numbers = {
        "affinity": rng.normal(0, 1, rows),
        "quality": rng.normal(0.5, 1, rows),
        "price": rng.lognormal(3, 1, rows),
        "fresh": rng.exponential(1, rows),
        "taste": rng.normal(0.3, 1.0, rows),
        "hour": rng.integers(0, 24, rows).astype(float),
        "discount": np.where(rng.random(rows) < 0.6, 0.0, rng.uniform(1, 50, rows).round()),
        "noise": rng.normal(0, 1, rows),
        "x": rng.uniform(0, 4, rows),
        "y": rng.uniform(0, 4, rows),
    }
    device = rng.choice(np.array(["ios", "android", "web"], dtype=object), rows, p=[0.3, 0.5, 0.2])
    genre = rng.choice(np.array([f"g{one}" for one in range(15)], dtype=object), rows)
    n = numbers
    logit = (
        1.1 * n["affinity"] * n["quality"]
        + 0.9 * n["affinity"] * np.isin(genre, ["g1", "g2", "g3", "g4"])
        - 0.9 * (np.log(n["price"]) - 3) * (device == "ios")
        + 0.8 * (n["fresh"] - 1) * np.isin(country, ["DE", "PT"])
        + 0.5 * np.sin(n["hour"] / 24 * 2 * np.pi) * (device != "web")
        + 0.9 * n["taste"] * (1 + 0.5 * (device == "android"))
        + 0.03 * n["discount"] * (n["taste"] > 0)
        + 0.9 * np.sin(2.2 * n["x"]) * np.cos(1.9 * n["y"])
    )
    logit = logit * np.where(country == "LU", 0.05, 1.0)
    logit = logit + intercept(logit, rate) + np.where(country == "LU", 0.4, 0.0)
    return {
        "features": numbers | {"country": country, "device": device, "genre": genre},
        "labels": (rng.random(rows) < special.expit(logit)).astype(float),
        "logit": logit,
        "times": np.sort(rng.uniform(day, day + 7, rows)) * DAY,
        "scene": np.where(rng.random(rows) < 0.5, "home", "search").astype(object),
        "users": rng.integers(0, max(rows // 4, 1), rows),
    }


REAL = {
    "cancer": (
        load_breast_cancer,
        0,
        ("worst concave points", "worst perimeter", "worst radius", "worst area"),
    ),
    "wine": (load_wine, 1, ("alcohol", "color_intensity", "proline")),
    "digits": (
        load_digits,
        8,
        ("pixel_2_4", "pixel_3_3", "pixel_3_4", "pixel_4_3", "pixel_4_4", "pixel_2_3"),
    ),
}


def real_draw(rng, rows, day, name):
    """Rows of a real data set, drawn again with a little noise; a fifth of the labels is another row's."""
    load, wanted, _ = REAL[name]
    data = load()
    at = rng.integers(0, len(data.target), rows)
    labels = (data.target == wanted)[at].astype(float)
    other = rng.random(rows) < 0.2
    labels[other] = rng.permutation(labels)[other]
    columns = range(data.data.shape[1]) if name != "digits" else range(8, 56)
    features = {}
    for column in columns:
        values = data.data[:, column]
        spread = values.std()
        if spread > 0:
            noisy = values[at] + rng.normal(0, 0.15 * spread, rows)
            features[str(data.feature_names[column])] = noisy
    return {
        "features": features,
        "labels": labels,
        "times": np.sort(rng.uniform(day, day + 7, rows)) * DAY,
        "scene": np.where(rng.random(rows) < 0.5, "home", "search").astype(object),
        "users": rng.integers(0, max(rows // 4, 1), rows),
    }


def sample_of(drawn, model, *, served=None, scores=None, slices=True, **more):
    """The rows as the log of samples has them; `served` are the features that the model got."""
    served = drawn["features"] if served is None else served
    return Sample(
        scores=model(served) if scores is None else scores,
        labels=drawn["labels"],
        features=served,
        times=drawn["times"],
        slices={"scene": drawn["scene"]} if slices else {},
        ids=np.array([f"r{at}" for at in range(len(drawn["labels"]))], dtype=object),
        entities={"user_id": drawn["users"].astype(str).astype(object)},
        **more,
    )


def auc(sample):
    return auc_sums(sample.scores, sample.labels).auc


@cache
def base(seed, kind, rows, of="all", rate=0.25):
    """Splits with nothing wrong and a model of them; many worlds differ only in what is broken afterwards."""
    rng = np.random.default_rng([seed, 77])

    def one(size, day):
        return real_draw(rng, size, day, of) if of in REAL else draw(rng, size, day, rate=rate)

    train, test, online = one(rows, 0), one(rows, 8), one(rows, 16)
    model = Deployed(kind, train["features"], train["labels"])
    return sample_of(train, model), sample_of(test, model), online, model


def broken(name, seed, kind, rows, of, rate, served_of, cause, features, paired=False, drop=()):
    """The world whose online rows got other features than their own."""
    train, test, online, model = base(seed, kind, rows, of, rate)
    rng = np.random.default_rng([seed, 5])
    served = online["features"] | served_of(rng, online["features"])
    worse = sample_of(online, model, served=served)
    right = auc_sums(model(online["features"]), online["labels"]).auc
    gap = auc(test) - auc(worse)
    share = min(1.0, (right - auc(worse)) / gap) if gap > 0 else None
    if drop:
        worse = replace(worse, features={one: v for one, v in served.items() if one not in drop})
    pairs = Pairs(worse, online["features"]) if paired else None
    return World(name, kind, cause, "test_online", test, worse, train, features, share, pairs)


def strong(of):
    """Two features that a model of these rows uses."""
    return ("taste", "affinity") if of not in REAL else REAL[of][2]


def constant(seed, kind, rows, of="all", rate=0.25):
    names = strong(of)

    def served(rng, own):
        return {name: np.full(rows, float(np.median(own[name]))) for name in names}

    return broken("constant", seed, kind, rows, of, rate, served, "pruned_features", names)


def defaulted(seed, kind, rows, of="all", rate=0.25):
    names = strong(of)

    def served(rng, own):
        struck = rng.random(rows) < 0.6
        return {name: np.where(struck, -1.0, own[name]) for name in names}

    paired = seed % 2 == 0
    return broken("defaulted", seed, kind, rows, of, rate, served, "serving_skew", names, paired)


def missing(seed, kind, rows, of="all", rate=0.25):
    names = strong(of)

    def served(rng, own):
        struck = rng.random(rows) < 0.6
        return {name: np.where(struck, np.nan, own[name]) for name in names}

    paired = seed % 2 == 1
    return broken("missing", seed, kind, rows, of, rate, served, "serving_skew", names, paired)


def swapped(seed, kind, rows, of="all", rate=0.25):
    """Two features change places; no request is paired."""
    names = ("taste", "fresh") if of not in REAL else REAL[of][2]

    def served(rng, own):
        return {names[0]: own[names[1]], names[1]: own[names[0]]}

    return broken("swapped", seed, kind, rows, of, rate, served, "serving_skew", names)


def unequal(seed, kind, rows, of="all", rate=0.25):
    """Online computes the features in another way, so that no pair is equal."""
    names = strong(of)

    def served(rng, own):
        return {one: 0.3 * own[one] + rng.normal(0, np.std(own[one]), rows) for one in names}

    return broken("unequal", seed, kind, rows, of, rate, served, "serving_skew", names, True)


def tenfold(seed, kind, rows, of="all", rate=0.25):
    """A category whose rows are hard to foretell grows tenfold, and nothing is broken."""
    rng = np.random.default_rng([seed, 3])
    train, test = draw(rng, rows, 0, rate=rate), draw(rng, rows, 8, rate=rate)
    online = draw(rng, rows, 16, rate=rate, small=0.45)
    model = Deployed(kind, train["features"], train["labels"])
    parts = [sample_of(one, model) for one in (train, test, online)]
    return World(
        "tenfold", kind, "population_shift", "test_online", parts[1], parts[2], parts[0], ("country",), 1.0
    )


def places(rng, rows, day, south):
    """Homes along a coast: in the south people like the sea, in the north the hills."""
    lat = rng.uniform(32, 34, rows) if south else rng.uniform(36, 40, rows)
    inland = rng.exponential(1.5, rows)
    lon = -117 - 0.3 * (lat - 32) + inland
    income = rng.lognormal(1.2, 0.45, rows)
    age = rng.integers(1, 52, rows).astype(float)
    rooms = rng.normal(5, 1, rows)
    logit = (
        np.where(lat < 35, 1.8 * (1.2 - inland), 0.2 * (inland - 1.2))
        + 0.8 * (income - 3.5) * (1 + 0.5 * (rooms > 5))
        + 0.02 * (age - 25)
    )
    return {
        "features": {"lat": lat, "lon": lon, "income": income, "age": age, "rooms": rooms},
        "labels": (rng.random(rows) < special.expit(logit)).astype(float),
        "times": np.sort(rng.uniform(day, day + 7, rows)) * DAY,
        "scene": np.where(rng.random(rows) < 0.5, "home", "search").astype(object),
        "users": np.arange(rows),
    }


def moved(seed, kind, rows, of="all", rate=0.25):
    """The rows come from other places, of which the model has seen none. No share of that can be known."""
    rng = np.random.default_rng([seed, 4])
    train, test, online = (places(rng, rows, day, day < 16) for day in (0, 8, 16))
    model = Deployed(kind, train["features"], train["labels"])
    parts = [sample_of(one, model) for one in (train, test, online)]
    return World("moved", kind, "population_shift", "test_online", parts[1], parts[2], parts[0], ("lat",))


def leaked(seed, kind, rows, of="all", rate=0.25, constant_online=False):
    rng = np.random.default_rng([seed, 6])
    parts = [draw(rng, rows, day, rate=rate) for day in (0, 8, 16)]
    honest = Deployed(kind, parts[0]["features"], parts[0]["labels"])
    gap = auc(sample_of(parts[1], honest)) - auc(sample_of(parts[2], honest))
    for at, one in enumerate(parts):
        known = rng.normal(0, 1, rows) + (0.5 * one["logit"] if at == 2 else 1.8 * one["labels"])
        if at == 2 and constant_online:
            known = np.zeros(rows)
        one["features"]["session_length"] = known
    model = Deployed(kind, parts[0]["features"], parts[0]["labels"])
    train, test, online = (sample_of(one, model) for one in parts)
    share = min(1.0, 1 - gap / (auc(test) - auc(online)))
    name, cause = ("constant_leak", "pruned_features") if constant_online else ("leaked", "time_travel")
    return World(name, kind, cause, "test_online", test, online, train, ("session_length",), share)


def constant_leak(seed, kind, rows, of="all", rate=0.25):
    """A feature from the future is one value online, where nobody knows it."""
    return leaked(seed, kind, rows, of, rate, constant_online=True)


def overfitted(seed, kind, rows, of="all", rate=0.25):
    rng = np.random.default_rng([seed, 8])
    size = rows // 5

    def one(count, day):
        return real_draw(rng, count, day, of) if of in REAL else draw(rng, count, day, rate=rate)

    train, test = one(size, 0), one(rows, 8)
    model = Deployed(kind, train["features"], train["labels"], overfitted=True)
    better, worse = sample_of(train, model), sample_of(test, model)
    return World("overfitted", kind, "overfitting", "train_test", better, worse, better, (), 1.0)


def scene_scores(seed, kind, rows, of="all", rate=0.25):
    train, test, online, model = base(seed, kind, rows, of, rate)
    right = sample_of(online, model)
    logit = special.logit(right.scores)
    scores = special.expit(np.where(online["scene"] == "home", logit + 2.5, logit))
    worse = replace(right, scores=scores)
    share = min(1.0, (auc(right) - auc(worse)) / (auc(test) - auc(worse)))
    return World("scene_scores", kind, "score_shift", "test_online", test, worse, train, ("scene",), share)


def healthy(seed, kind, rows, of="all", rate=0.25):
    """Nothing is wrong, and yet nothing stays quite as it was."""
    train, test, online, model = base(seed, kind, rows, of, rate)
    served = dict(online["features"])
    name = strong(of)[0]
    if seed % 3 == 0:
        served[name] = np.where(np.random.default_rng(seed).random(rows) < 0.01, np.nan, served[name])
    worse = sample_of(online, model, served=served)
    pairs = Pairs(worse, online["features"]) if seed % 2 else None
    return World("healthy", kind, None, "test_online", test, worse, train, (), None, pairs)


BROKEN = (constant, defaulted, missing, swapped, unequal, scene_scores, overfitted)
"""Worlds of every kind of rows."""
SHIFTED = (tenfold, moved, leaked, constant_leak)
"""Worlds of the drawn rows alone."""


def sweep(seeds=range(2), rows=8000):
    """Every world of the table: its function and its arguments."""
    for kind in MODELS:
        for seed in seeds:
            for make in (*BROKEN, *SHIFTED, healthy):
                yield make, (seed, kind, rows)
            for make in (constant, defaulted, swapped, unequal, healthy):
                yield make, (seed, kind, 2 * rows, "all", 0.02)
            for of in REAL:
                for make in (constant, defaulted, unequal, healthy):
                    yield make, (seed, kind, rows, of)
