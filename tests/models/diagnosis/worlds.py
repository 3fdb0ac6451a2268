"""Worlds in which the cause of a gap is known: real models on synthetic rows, one thing broken in each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy import special

from monitor.models.diagnosis.diagnose import Pair
from monitor.models.diagnosis.sample import Pairs, Sample
from tests.models.diagnosis.models import Model

MODELS = ("boosting", "logistic", "forest")
DAY = 86400.0
NUMBERS = ("age", "price", "clicks", "dwell", "rank", "recency", "rating", "distance", "noise_1", "noise_2")
TEXTS = ("city", "device", "category", "segment")


@dataclass(frozen=True)
class World:
    """One gap, and what has to be said of it."""

    name: str
    cause: str | None
    pair: Pair
    better: Sample
    worse: Sample
    train: Sample
    features: tuple[str, ...] = ()
    pairs: Pairs | None = None
    model: object = field(default=None, repr=False)


def draw(rng, rows, start, days, *, hard=0.5, signal=1.0):
    """Rows of a recommender, the true logit, and what happened; a share of `hard` is harder to foretell."""
    columns = {
        "age": rng.normal(40, 12, rows).round(),
        "price": rng.lognormal(3, 1, rows),
        "clicks": rng.poisson(2, rows).astype(float),
        "dwell": rng.exponential(30, rows),
        "rank": rng.uniform(0, 1, rows),
        "recency": rng.gamma(2, 5, rows),
        "rating": rng.integers(1, 6, rows).astype(float),
        "distance": rng.normal(0, 1, rows),
        "noise_1": rng.normal(0, 1, rows),
        "noise_2": rng.integers(0, 100, rows).astype(float),
    }
    texts = {
        "city": rng.choice(["Rome", "Bern", "Oslo", "Bonn", "Nice"], rows, p=[0.4, 0.25, 0.2, 0.1, 0.05]),
        "device": rng.choice(["ios", "android", "web"], rows, p=[0.3, 0.5, 0.2]),
        "category": rng.choice([f"c{one}" for one in range(12)], rows),
        "segment": np.where(rng.random(rows) < hard, "new", "known"),
    }
    columns["dwell"][rng.random(rows) < 0.03] = np.nan
    at = {name: np.nan_to_num(values, nan=20.0) for name, values in columns.items()}
    logit = (
        0.9 * at["distance"]
        + 0.35 * (at["clicks"] - 2)
        - 0.7 * (np.log(at["price"]) - 3)
        + 0.02 * (at["dwell"] - 30)
        + 0.4 * np.sin(6 * at["rank"])
        + 0.3 * (at["rating"] - 3) * (texts["device"] == "ios")
        + 0.6 * (texts["city"] == "Rome")
        - 0.5 * np.isin(texts["category"], ["c1", "c2", "c3"])
    )
    logit = signal * logit * np.where(texts["segment"] == "new", 0.25, 1.0) - 0.8
    times = np.sort(rng.uniform(start, start + days * DAY, rows))
    return {
        "features": columns | {name: values.astype(object) for name, values in texts.items()},
        "labels": (rng.random(rows) < special.expit(logit)).astype(float),
        "logit": logit,
        "times": times,
        "scene": np.where(rng.random(rows) < 0.5, "home", "search").astype(object),
        "users": rng.integers(0, max(rows // 10, 1), rows),
    }


def sample_of(drawn, model, *, served=None, slices=("scene",), **more):
    """The rows as the log of samples has them; `served` are the features that the model got."""
    served = drawn["features"] if served is None else served
    return Sample(
        scores=model(served),
        labels=drawn["labels"],
        features=served,
        times=drawn["times"],
        slices={name: drawn["scene"] if name == "scene" else drawn["features"][name] for name in slices},
        ids=np.array([f"r{at}" for at in range(len(drawn["labels"]))], dtype=object),
        entities={"user_id": drawn["users"]},
        **more,
    )


def splits(rng, rows, **more):
    """Train, test and online, one after the other in time."""
    return (
        draw(rng, rows, 0, 30, **more),
        draw(rng, rows, 30 * DAY, 7, **more),
        draw(rng, rows, 37 * DAY, 1, **more),
    )


@cache
def base(seed, kind, rows):
    """Splits with nothing wrong and a model of them; many worlds differ only in what is broken afterwards."""
    train, test, online = splits(np.random.default_rng(seed), rows)
    model = Model(kind, train["features"], train["labels"])
    return sample_of(train, model), sample_of(test, model), online, model


def overfitted(seed, kind, rows):
    rng = np.random.default_rng(seed)
    train, test = draw(rng, rows // 8, 0, 30), draw(rng, rows, 30 * DAY, 7)
    if kind == "logistic":  # a linear model learns rows by heart through a column that names them
        for one in (train, test):
            one["features"]["item"] = (
                rng.integers(0, rows // 16, len(one["labels"])).astype(str).astype(object)
            )
    model = Model(kind, train["features"], train["labels"], overfitted=True)
    better, worse = sample_of(train, model), sample_of(test, model)
    return World("overfitted", "overfitting", "train_test", better, worse, better, model=model)


def leaked(seed, kind, rows):
    rng = np.random.default_rng(seed)
    parts = splits(rng, rows)
    for at, one in enumerate(parts):
        known = at == 2
        reaction = rng.normal(0, 1, rows) + (0.5 * one["logit"] if known else 1.6 * one["labels"])
        one["features"]["session_length"] = reaction
    model = Model(kind, parts[0]["features"], parts[0]["labels"])
    timed = seed % 2 == 0
    samples = []
    for at, one in enumerate(parts):
        away = rng.uniform(60, 3600, rows) * (-1 if at == 2 else 1)
        own = {"session_length": one["times"] + away, "clicks": one["times"] - 60} if timed else {}
        samples.append(sample_of(one, model, feature_times=own))
    train, test, online = samples
    return World(
        "leaked", "time_travel", "test_online", test, online, train, ("session_length",), model=model
    )


DEFAULTS = {"distance": -9.0, "price": 0.0, "city": "unknown", "clicks": np.nan}


def defaulted(seed, kind, rows):
    rng = np.random.default_rng([seed, 1])
    train, test, online, model = base(seed, kind, rows)
    names = ["distance", *list(DEFAULTS)[1 : 1 + seed % 4]]
    struck = rng.random(rows) < 0.45
    served = dict(online["features"])
    for name in names:
        value = None if name == "city" and seed % 4 == 1 else DEFAULTS[name]
        served[name] = np.where(struck, value, served[name])
    paired = seed % 2 == 0
    worse = sample_of(online, model, served=served)
    pairs = Pairs(worse, online["features"]) if paired else None
    return World(
        "defaulted",
        "serving_skew",
        "test_online",
        test,
        worse,
        train,
        tuple(names),
        pairs,
        model,
    )


def stale(seed, kind, rows):
    train, test, online, model = base(seed, kind, rows)
    order = np.lexsort((online["times"], online["users"]))
    users = online["users"][order]
    lag = 1 + seed % 2
    names = ("distance", "price")[: 1 + seed % 2]
    has_before = np.r_[np.zeros(lag, bool), users[lag:] == users[:-lag]]
    served, times = dict(online["features"]), {}
    for name in names:
        values = online["features"][name][order]
        values = np.where(has_before, np.roll(values, lag), values)
        served[name] = np.empty_like(values)
        served[name][order] = values
        own = np.where(has_before, np.roll(online["times"][order], lag), online["times"][order])
        times[name] = np.empty_like(own)
        times[name][order] = own
    timed = seed % 2 == 0
    worse = sample_of(online, model, served=served, feature_times=times if timed else {})
    offline_times = dict.fromkeys(names, online["times"]) if timed else {}
    pairs = Pairs(worse, online["features"], offline_times)
    return World("stale", "serving_skew", "test_online", test, worse, train, names, pairs, model)


def pruned(seed, kind, rows):
    train, test, online, model = base(seed, kind, rows)
    names = ("distance", "city", "price")[: 1 + seed % 3]
    served = dict(online["features"])
    for name in names:
        empty = None if name == "city" else np.nan if seed % 2 else 0.0
        served[name] = np.full(rows, empty, dtype=served[name].dtype)
    worse = sample_of(online, model, served=served)
    if seed % 2:
        worse = replace(worse, features={name: one for name, one in served.items() if name not in names})
    return World("pruned", "pruned_features", "test_online", test, worse, train, names, None, model)


def shifted(seed, kind, rows):
    rng = np.random.default_rng(seed)
    train, test = draw(rng, rows, 0, 30, hard=0.2), draw(rng, rows, 30 * DAY, 7, hard=0.2)
    online = draw(rng, rows, 37 * DAY, 1, hard=0.75)
    model = Model(kind, train["features"], train["labels"])
    parts = [sample_of(one, model, slices=("scene", "segment")) for one in (train, test, online)]
    if seed % 2:  # known by the slice alone
        parts = [
            replace(one, features={k: v for k, v in one.features.items() if k != "segment"}) for one in parts
        ]
    train, test, online = parts
    if seed % 3 == 2:
        return World("shifted", "population_shift", "train_test", train, online, train, ("segment",))
    return World("shifted", "population_shift", "test_online", test, online, train, ("segment",))


def scene_scores(seed, kind, rows):
    train, test, online, model = base(seed, kind, rows)
    worse = sample_of(online, model)
    logit = special.logit(np.clip(worse.scores, 1e-4, 1 - 1e-4))
    moved = 0.5 * logit - 1.5 if seed % 2 else logit + 1.5
    scores = special.expit(np.where(online["scene"] == "home", moved, logit))
    return World(
        "scene_scores",
        "score_shift",
        "test_online",
        test,
        replace(worse, scores=scores),
        train,
        ("scene",),
    )


def healthy(seed, kind, rows):
    """Nothing is wrong, and yet nothing stays quite as it was."""
    rng = np.random.default_rng([seed, 1])
    train, test, online, model = base(seed, kind, rows)
    if seed % 4 == 0:  # a random split: test rows among those of training
        train, test = (replace(one, times=rng.uniform(0, 37 * DAY, rows)) for one in (train, test))
    served = dict(online["features"])
    if seed % 3 == 0:
        served["noise_1"] = served["noise_1"] + 0.3
        served["age"] = served["age"] + 1
    if seed % 3 == 1:
        served["recency"] = np.where(rng.random(rows) < 0.02, np.nan, served["recency"])
    worse = sample_of(online, model, served=served)
    if seed % 3 == 2:
        logit = special.logit(np.clip(worse.scores, 1e-6, 1 - 1e-6))
        worse = replace(worse, scores=special.expit(logit + 0.4))
    pairs = Pairs(worse, online["features"]) if seed % 2 else None
    if seed % 5 == 4:
        return World("healthy", None, "train_test", train, test, train, model=model)
    return World("healthy", None, "test_online", test, worse, train, (), pairs, model)


KINDS = (overfitted, leaked, defaulted, stale, pruned, shifted, scene_scores)


@cache
def world(make, seed, rows=20_000):
    """The world of this kind and seed; the models take turns."""
    return make(seed, MODELS[seed % len(MODELS)], rows)
