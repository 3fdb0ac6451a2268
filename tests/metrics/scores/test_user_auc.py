"""User AUC on windows worked by hand, and against a loop over the users."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from monitor.core.results import Status
from monitor.metrics.scores.user_auc import WEIGHTS
from monitor.settings.metrics import MetricSettings
from tests.metrics.oracle import of_shares
from tests.metrics.scores.scored import EVENTS, random_world, rows_of, scored
from tests.metrics.worlds import by_name, results_of

TWO_USERS = [
    *(("u", 0.9, 1), ("u", 0.1, 0)),  # 1
    *(("v", 0.1, 1), ("v", 0.2, 0), ("v", 0.3, 1), ("v", 0.3, 0)),  # half a pair of four, and a whole one
]


def user_auc(rows, dimensions=None, **settings):
    world = scored(rows) if isinstance(rows, list) else rows
    found = results_of(world, MetricSettings(**settings), dimensions, only=("user_auc",))
    return {key[1:]: result for key, result in by_name(found).items()}


def test_users_are_weighted_equally_or_by_exposures_or_by_positives():
    found = user_auc(TWO_USERS)
    assert found["equal",].value == (1 + 0.375) / 2
    assert found["samples",].value == pytest.approx((2 * 1 + 4 * 0.375) / 6)
    assert found["positives",].value == pytest.approx((1 * 1 + 2 * 0.375) / 3)
    assert {result.samples for result in found.values()} == {2}


def test_high_scores_of_one_user_do_not_change_the_auc_of_another():
    rows = [("u", 0.9, 0), ("u", 0.8, 1), ("v", 0.2, 0), ("v", 0.1, 1)]
    assert user_auc(rows)["equal",].value == 0.0


def test_users_with_one_class_and_scores_that_are_not_finite_are_left_out_and_counted():
    rows = [*TWO_USERS, ("x", 0.5, 0), ("y", 0.5, 1), ("y", 0.4, 1), ("u", math.nan, 1), (None, 0.5, 1)]
    result = user_auc(rows)["equal",]
    assert (result.value, result.samples) == (0.6875, 2)
    assert (
        result.detail == "2 of 4 users have labels of one class only; 1 of 11 exposures have no finite score"
    )


@pytest.mark.parametrize(
    ("rows", "status", "detail"),
    [
        ([], Status.NO_DATA, "the window holds no exposures"),
        ([("u", None, 1)], Status.NO_DATA, "no exposure has a finite score"),
        ([(None, 0.5, 1), (None, 0.1, 0)], Status.NO_DATA, "no exposure with a score has a user id"),
        ([("u", 0.5, 1), ("v", 0.1, 0)], Status.UNDEFINED, "none of 2 users has labels of both classes"),
    ],
)
def test_there_is_no_value_if_no_user_has_both_classes(rows, status, detail):
    found = user_auc(rows)
    assert {by for (by,) in found} == set(WEIGHTS)
    assert {(r.status, r.value, r.detail) for r in found.values()} == {(status, None, detail)}


def test_one_user_gives_a_value_and_no_interval():
    result = user_auc(TWO_USERS[:2])["samples",]
    assert (result.value, result.lower, result.upper) == (1.0, None, None)


def expected(rows):
    """(value, lower, upper) by weight over the users with both classes, as the formula says it."""
    users = {user for user, _, _ in rows if user is not None}
    aucs, weights = [], {by: [] for by in WEIGHTS}
    for user in users:
        scores = [score for one, score, _ in rows if one == user]
        labels = [label for one, _, label in rows if one == user]
        if len(set(labels)) == 2:
            aucs.append(roc_auc_score(labels, scores))
            weights["equal"].append(1)
            weights["samples"].append(len(labels))
            weights["positives"].append(sum(labels))
    a, n = np.array(aucs), len(aucs)
    found = {}
    for by, one in weights.items() if n else ():
        w = np.array(one, dtype=float)
        mean = float((w * a).sum() / w.sum())
        ends = (None, None)
        if n > 1:
            ends = of_shares(a, w)
        found[by] = (mean, *ends)
    return found, n


@pytest.mark.parametrize("seed", range(25))
def test_random_windows_and_slices_agree_with_brute_force(seed):
    world = random_world(seed)
    found = user_auc(world, {"place": "scene"}, events=EVENTS)
    assert found.keys() >= {(by,) for by in WEIGHTS}
    for (by, *place), result in found.items():
        wanted, n = expected(rows_of(world.where("scene", place[1]) if place else world))
        if n == 0:
            assert result.status in (Status.NO_DATA, Status.UNDEFINED)
            assert result.value is None
            continue
        ends = [None if one is None else pytest.approx(one, abs=1e-6) for one in wanted[by][1:]]
        assert result.value == pytest.approx(wanted[by][0], abs=1e-11)
        assert (result.samples, result.lower, result.upper) == (n, *ends)


def test_equal_weights_give_the_interval_of_a_mean():
    aucs = (1.0, 0.5, 0.0, 1.0)
    shapes = {1.0: (0.1, 0.9), 0.5: (0.5, 0.5), 0.0: (0.9, 0.1)}
    rows = [(f"u{i}", shapes[auc][label], label) for i, auc in enumerate(aucs) for label in (0, 1)]
    result = user_auc(rows)["equal",]
    assert (result.lower, result.upper) == pytest.approx(of_shares(aucs))
