"""Log loss and calibration by hand, against scikit-learn, and against sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import log_loss

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from tests.metrics.scores.scored import EVENTS, random_world, rows_of, scored
from tests.metrics.worlds import by_name, results_of


def measured(rows, dimensions=None, **settings):
    world = scored(rows) if isinstance(rows, list) else rows
    only = ("log_loss", "calibration")
    return by_name(results_of(world, MetricSettings(**settings), dimensions, only=only))


def test_log_loss_is_the_mean_negative_log_of_the_probability_of_the_label():
    found = measured([("u", 0.9, 1), ("u", 0.2, 0), ("v", 0.5, 1)])
    losses = [-math.log(p) for p in (0.9, 0.8, 0.5)]
    result = found["log_loss", ""]
    half = norm.ppf(0.975) * np.std(losses, ddof=1) / math.sqrt(3)
    assert result.value == pytest.approx(np.mean(losses))
    assert (result.lower, result.upper) == pytest.approx((max(0.0, result.value - half), result.value + half))
    assert (result.samples, result.detail) == (3, "")


def test_calibration_is_the_predicted_over_the_observed_rate():
    found = measured([("u", 0.9, 1), ("u", 0.2, 0), ("v", 0.5, 1), ("v", 0.8, 0)])
    result = found["calibration", ""]
    assert (result.value, result.samples) == (1.2, 4)
    p, y = np.array([0.9, 0.2, 0.5, 0.8]), np.array([1, 0, 1, 0])
    error = math.sqrt(4 / 3 * ((p - 1.2 * y) ** 2).sum()) / 2
    assert (result.lower, result.upper) == pytest.approx(
        (max(0.0, 1.2 - norm.ppf(0.975) * error), 1.2 + norm.ppf(0.975) * error)
    )


def test_scores_near_or_outside_0_and_1_are_clipped_and_counted():
    rows = [("u", 0.0, 1), ("u", 1.0, 1), ("u", 7.0, 0), ("u", -1.0, 0), ("u", 0.5, 0), ("u", math.nan, 0)]
    found = measured(rows)
    result = found["log_loss", ""]
    wanted = [-math.log(1e-15), -math.log(1 - 1e-15), -math.log(1 - (1 - 1e-15)), -math.log(1 - 1e-15)]
    assert result.value == pytest.approx(sum([*wanted, math.log(2)]) / 5, rel=1e-9)
    assert result.detail == (
        "2 of 5 scores lie outside [0, 1] and are no probabilities; 2 of 5 scores are nearer than 1e-15 to "
        "0 or 1, and clipped; 1 of 6 exposures have no finite score"
    )
    assert found["calibration", ""].value == pytest.approx(2.5 / 2)
    assert found["calibration", ""].detail == result.detail
    wider = measured(rows, clip=0.1)["log_loss", ""]
    assert wider.value == pytest.approx(
        (-math.log(0.1) - math.log(0.9) - math.log(0.1) - math.log(0.9) + math.log(2)) / 5
    )
    assert wider.definition == "1;clip=0.1"


@pytest.mark.parametrize(
    ("rows", "detail"),
    [
        ([], "the window holds no exposures"),
        ([("u", None, 1), ("u", math.inf, 0)], "no exposure has a finite score"),
    ],
)
def test_without_scores_there_is_no_data(rows, detail):
    assert {(r.status, r.detail) for r in measured(rows).values()} == {(Status.NO_DATA, detail)}


def test_without_actions_there_is_a_log_loss_and_no_calibration():
    found = measured([("u", 0.5, 0), ("u", 0.5, 0)])
    assert found["log_loss", ""].value == pytest.approx(math.log(2))
    assert (found["calibration", ""].status, found["calibration", ""].samples) == (Status.UNDEFINED, 2)
    assert found["calibration", ""].detail == (
        "no exposure with a score has an action of a grade above 0: the observed rate is 0"
    )


@pytest.mark.parametrize("seed", range(25))
def test_random_windows_and_slices_agree_with_scikit_learn(seed):
    world = random_world(seed)
    found = measured(world, {"place": "scene"}, events=EVENTS)
    for (metric, *place), result in found.items():
        rows = rows_of(world.where("scene", place[2]) if place[1:] else world)
        if not rows:
            assert result.status is Status.NO_DATA
            continue
        p = np.clip([score for _, score, _ in rows], 1e-15, 1 - 1e-15)
        y = np.array([label for _, _, label in rows])
        assert result.samples == len(rows)
        if metric == "log_loss":
            assert result.value == pytest.approx(log_loss(y, p, labels=[0, 1]), rel=1e-9)
        elif y.sum() == 0:
            assert result.status is Status.UNDEFINED
        else:
            assert result.value == pytest.approx(p.mean() / y.mean(), rel=1e-9)
