"""Random lists: every metric at every k, overall and by slice, against the definitions by brute force."""

from __future__ import annotations

import random

import pytest

from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.feedback.ranked_worlds import liked, measured
from tests.metrics.feedback.ranking_oracle import expected
from tests.metrics.worlds import lists


def random_world(seed):
    dice = random.Random(seed)
    scores = [None, float("nan"), float("inf"), -float("inf"), 0.0, 0.5, 0.5, 1.0]
    shown = lists(
        *(
            (dice.choice(["u", "v", "w", "x", None]), "".join(dice.choices("abcdefg", k=dice.randrange(7))))
            for _ in range(dice.choice([0, 1, 5, 25]))
        )
    )
    odd, first = (
        dice.choice([0.0, 0.2, 0.7]),
        {row["request_id"]: dice.choice([0, 0, 3, 58]) for row in shown},
    )
    for row in shown:
        row["position"] += first[row["request_id"]]
        if dice.random() < odd:
            row["position"] = dice.choice([1, None])
        row["score"] = dice.choice(scores)
        row["shelf"] = dice.choice(["top", "<b>", None])
        row["scene"] = f"scene {row['request_id'][-1]}"
    requests = {row["request_id"]: row["user_id"] for row in shown}
    done = []
    for request, user in requests.items():
        for event in ("click", "buy", "hide", "scroll"):
            done += liked(request, dice.choices("abcdefgh", k=dice.choice([0, 0, 1, 3])), event, user)
    dice.shuffle(done)
    settings = {
        "events": {"click": EventSettings(), "buy": EventSettings(grade=2.5), "hide": EventSettings(grade=0)},
        "k": tuple(dice.sample(range(1, 9), dice.choice([1, 3]))),
        "beta": dice.choice([0.5, 1.0, 2.0]),
        "gain": dice.choice(["exponential", "linear"]),
        "unrated": dice.choice(["as_negative", "ignore", "liked_only"]),
    }
    return shown, done, settings


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, want in wanted.items():
        result = found[key]
        if isinstance(want, str):
            assert (key, result.status.value, result.value) == (key, want, None)
            assert result.detail
        else:
            _, value, samples, lower, upper = want
            assert result.value == pytest.approx(value, rel=1e-9, abs=1e-9), key
            assert result.samples == samples, key
            assert result.lower == (None if lower is None else pytest.approx(lower, rel=1e-6, abs=1e-7)), key
            assert result.upper == (None if upper is None else pytest.approx(upper, rel=1e-6, abs=1e-7)), key


@pytest.mark.parametrize("seed", range(12))
def test_every_metric_agrees_with_its_definition_overall_and_by_slice(seed):
    shown, done, settings = random_world(seed)
    dimensions = {"scene": "scene", "on shelf": "shelf"}
    found = measured(shown, done, dimensions, **settings)
    assert_same(
        {k: r for k, r in found.items() if len(k) == 3}, expected(shown, done, MetricSettings(**settings))
    )
    for dimension, column in dimensions.items():
        for value in {row[column] or "unknown" for row in shown}:
            own = [row for row in shown if (row[column] or "unknown") == value]
            of_slice = {k[:3]: r for k, r in found.items() if k[3:] == (dimension, value)}
            assert_same(of_slice, expected(own, done, MetricSettings(**settings)))
