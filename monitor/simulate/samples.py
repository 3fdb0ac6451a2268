"""Labelled samples of the current model: train, test and online rows."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from monitor.core import columns as c
from monitor.simulate.draws import Stage, stream
from monitor.simulate.lists import Floats, Ints, item_names, micros, model_name, named, timestamps, user_names
from monitor.simulate.people import People
from monitor.simulate.retraining import in_force_from, model_of
from monitor.simulate.shop import Shop
from monitor.simulate.world import World

TRAIN_ROWS, TEST_ROWS = 20_000, 10_000
"""Train and test rows of each model."""
ONLINE_ROWS = 3_000
"""Labelled online rows of an hour."""
WEIGHTS: Final = {"affinity": 1.2, "clicks_7d": 0.3, "log_price": -0.5, "recency_days": -0.04}
"""The weight of each feature in the log odds of label 1."""
APP = 0.4
"""The weight of the device `app`."""
CLICKS = 2.0
"""The mean of `clicks_7d`."""

_DEVICES = ("app", "web")
_INTERCEPT = 0.3
_ERROR = 0.3  # standard deviation of the model's error in log odds
_HOUR = 3_600_000_000  # microseconds
_TRAINED_ON, _TESTED_ON = (8 * 24, 24), (24, 0)  # from and until: hours before the model goes into service


def samples(world: World, people: People, shop: Shop, hour: int) -> pa.Table:
    """The samples of an hour: online rows, and in a model's first hour also its train and test rows.

    split, score, label, user_id, request_id, item_id, ts, model, scene, and the features affinity,
    clicks_7d, log_price, recency_days and device. The label is 1 with its true probability. The score is that
    probability with an error in its log odds, the same in all splits, so there is no gap.
    """
    model = model_of(world, hour)
    begin = in_force_from(world, model)
    found = [_rows(world, people, shop, c.ONLINE, ONLINE_ROWS, hour, (hour, hour + 1), model)]
    if hour == begin:
        for split, count, (since, until) in (
            (c.TRAIN, TRAIN_ROWS, _TRAINED_ON),
            (c.TEST, TEST_ROWS, _TESTED_ON),
        ):
            span = (begin - since, begin - until)
            found.append(_rows(world, people, shop, split, count, hour, span, model))
    return pa.concat_tables(found)


def _rows(
    world: World,
    people: People,
    shop: Shop,
    split: str,
    count: int,
    hour: int,
    span: tuple[int, int],
    model: int,
) -> pa.Table:
    """Rows of one split with times in a span of hours, which may begin before the world."""
    rng = (
        stream(world.seed, Stage.ONLINE, hour)
        if split == c.ONLINE
        else stream(world.seed, Stage.TRAINING, model, c.SPLITS.index(split))
    )
    users = people.draw(rng, hour, count)
    items: Ints = rng.choice(shop.shelf(hour), count)
    start, end = (micros(world.start) + edge * _HOUR for edge in span)
    times: Ints = np.sort(rng.integers(start, end, count))
    scenes: Ints = rng.integers(0, len(world.scenes), count)
    features = _features(rng, count)
    device: Ints = rng.integers(0, len(_DEVICES), count)
    logit = _INTERCEPT + APP * (device == 0) + sum(WEIGHTS[name] * features[name] for name in WEIGHTS)
    label = (rng.random(count) < _expit(logit)).astype(np.int64)
    score = np.round(_expit(logit + rng.normal(0, _ERROR, count)), 6)
    return pa.table(
        {
            c.SPLIT: named(np.zeros(count, np.int64), [split]),
            c.SCORE: score,
            c.LABEL: label,
            c.USER_ID: user_names(users),
            c.REQUEST_ID: np.strings.add(f"{split}-{hour:05d}-", np.arange(count).astype(str)),
            c.ITEM_ID: item_names(items),
            c.TS: timestamps(times),
            c.MODEL: named(np.zeros(count, np.int64), [model_name(model)]),
            c.SCENE: named(scenes, [scene.name for scene in world.scenes]),
            **features,
            "device": named(device, _DEVICES),
        }
    )


def _features(rng: np.random.Generator, count: int) -> dict[str, Floats]:
    return {
        "affinity": np.round(rng.normal(size=count), 4),
        "clicks_7d": rng.poisson(CLICKS, count).astype(np.float64),
        "log_price": np.round(rng.normal(3.0, 0.8, count), 4),
        "recency_days": np.round(rng.exponential(10.0, count), 3),
    }


def _expit(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logit)))
