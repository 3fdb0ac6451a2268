"""AUC on windows worked by hand, against pairs compared one by one, and against scikit-learn."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from monitor.core.results import Status
from monitor.metrics.scores.auc import auc_sums, placed, placed_by_steps, rank_sums
from monitor.metrics.scores.labelled import labelled
from monitor.settings.metrics import MetricSettings
from monitor.statistics.auc import auc_sums as of_arrays
from monitor.statistics.auc import delong_interval
from tests.metrics.scores.scored import EVENTS, random_world, rows_of, scored
from tests.metrics.worlds import World, by_name, embedded, lists, results_of, shared_of


def auc(world, dimensions=None, **settings):
    return by_name(results_of(world, MetricSettings(**settings), dimensions, only=("auc",)))


def of_table(scores, labels, **groups):
    """The rows of `rank_sums` of a plain table, by group."""
    backend = embedded()
    table = backend.create_table("samples", pa.table({"score": scores, "label": labels, **groups}))
    return rank_sums(table, list(groups)).to_pyarrow().to_pylist()


def test_auc_is_the_share_of_pairs_in_the_right_order_with_ties_as_half():
    result = auc(scored([("u", 0.1, 0), ("u", 0.4, 0), ("v", 0.35, 1), ("v", 0.8, 1)]))["auc", ""]
    assert (result.value, result.samples, result.detail) == (0.75, 4, "")
    tied = auc(scored([("u", 0.4, 0), ("u", 0.4, 1), ("u", 0.2, 0), ("u", 0.9, 0)]))["auc", ""]
    assert tied.value == 0.5  # half a pair, a whole one, and none


def test_the_interval_of_auc_is_delongs():
    rows = [
        ("u", score, label)
        for label, scores in ((0, (0.1, 0.4, 0.5)), (1, (0.35, 0.5, 0.8)))
        for score in scores
    ]
    result = auc(scored(rows))["auc", ""]
    _, scores, labels = zip(*rows, strict=True)
    lower, upper = delong_interval(of_arrays(scores, labels))
    assert (result.lower, result.upper) == (pytest.approx(lower), pytest.approx(upper))


def test_an_exposure_with_an_action_of_a_grade_above_0_has_label_1():
    shown = lists(("u", "aab"), ("v", "c"), score=0.5)
    shown.append({**shown[0], "request_id": None})
    done = [
        {"request_id": "r0", "user_id": "u", "item_id": "a", "event": "click"},
        {"request_id": "r0", "user_id": "u", "item_id": "b", "event": "hide"},
        {"request_id": "r1", "user_id": "v", "item_id": "z", "event": "click"},
    ]
    settings = MetricSettings(events=EVENTS)
    rows = labelled(shared_of(World(shown, feedback=done, columns=("score",))), settings)
    labels = sorted(row["label"] for row in rows.to_pyarrow().to_pylist())
    assert labels == [0, 0, 0, 1, 1]  # a twice; not b, which was hidden, c, and the row without a request


def test_scores_that_are_not_finite_are_left_out_and_counted():
    odd = [("u", score, 1) for score in (None, math.nan, math.inf, -math.inf)]
    result = auc(scored([("u", 0.1, 0), ("u", 0.4, 1), *odd]))["auc", ""]
    assert (result.value, result.samples) == (1.0, 2)
    assert result.detail == "4 of 6 exposures have no finite score"


@pytest.mark.parametrize(
    ("rows", "status", "detail"),
    [
        ([], Status.NO_DATA, "the window holds no exposures"),
        ([("u", None, 1), ("u", math.nan, 0)], Status.NO_DATA, "no exposure has a finite score"),
        (
            [("u", 0.5, 0)],
            Status.UNDEFINED,
            "the only label is 0: no exposure with a score has an action of a grade above 0",
        ),
        (
            [("u", 0.5, 1)] * 2,
            Status.UNDEFINED,
            "all 2 labels are 1: every exposure with a score was acted on",
        ),
    ],
)
def test_without_two_classes_there_is_no_auc(rows, status, detail):
    result = auc(scored(rows))["auc", ""]
    assert (result.status, result.value, result.detail) == (status, None, detail)


def test_one_row_of_a_class_gives_a_value_and_no_interval():
    result = auc(scored([("u", 0.1, 0), ("u", 0.4, 1), ("u", 0.3, 1)]))["auc", ""]
    assert (result.value, result.lower, result.upper) == (1.0, None, None)


def test_zero_and_minus_zero_are_a_tie():
    (row,) = of_table([0.0, -0.0], [0, 1])
    assert auc_sums(row, 2).auc == 0.5


def pairs(scores, labels):
    """AUC and both sums of squares, from every pair."""
    up, down = scores[labels == 1], scores[labels == 0]
    wins = (up[:, None] > down[None, :]) + 0.5 * (up[:, None] == down[None, :])
    return wins.mean(), (wins.mean(axis=1) ** 2).sum(), (wins.mean(axis=0) ** 2).sum()


@pytest.mark.parametrize("seed", range(20))
def test_the_sums_equal_those_over_all_pairs(seed):
    dice = np.random.default_rng(seed)
    n = int(dice.integers(2, 300))
    scores = dice.integers(0, dice.choice([1, 3, 50, 10**6]), n) / 7
    labels = (dice.random(n) < dice.choice([0.02, 0.5, 0.98])).astype("int64")
    groups = dice.integers(0, 3, n)
    for row in of_table(scores, labels, group=groups):
        mine = groups == row["group"]
        sums = auc_sums(row, int(mine.sum()))
        if sums is None:
            assert labels[mine].all()
            continue
        assert (sums.auc, sums.v10_squared, sums.v01_squared) == pytest.approx(
            pairs(scores[mine], labels[mine]), rel=1e-12
        )
        assert sums.auc == pytest.approx(roc_auc_score(labels[mine], scores[mine]), rel=1e-12)


def test_auc_is_exact_if_squares_of_ranks_have_more_digits_than_float64():
    n = 200_000
    labels = np.arange(n) % 2
    (row,) = of_table(np.arange(n, dtype="float64"), labels)
    half = n // 2
    assert row["wins"] == half * (half + 1)  # the positive of number i beats i negatives, twice
    sums = auc_sums(row, n)
    assert sums.auc == (half + 1) / (2 * half)
    assert sums.v10_squared == pytest.approx((half + 1) * (2 * half + 1) / (6 * half), rel=1e-13)


@pytest.mark.parametrize(("auc_is", "labels"), [(1.0, (0, 1)), (0.0, (1, 0))])
def test_rounding_never_leaves_the_possible_range_at_auc_0_and_1(auc_is, labels):
    n = 3000
    (row,) = of_table(np.arange(2.0 * n), np.repeat(labels, n))
    sums = auc_sums(row, 2 * n)
    assert (sums.auc, sums.v10_squared, sums.v01_squared) == (auc_is, auc_is * n, auc_is * n)
    assert delong_interval(sums) is not None


@pytest.mark.parametrize("seed", range(25))
def test_random_windows_and_slices_agree_with_scikit_learn(seed):
    world = random_world(seed)
    found = auc(world, {"place": "scene"}, events=EVENTS)
    values = {row["scene"] or "unknown" for row in world.exposures}
    assert {key[3] for key in found if len(key) == 4} == values
    for key, result in found.items():
        rows = rows_of(world if len(key) == 2 else world.where("scene", key[3]))
        labels = [label for _, _, label in rows]
        if not rows:
            assert (result.status, result.value) == (Status.NO_DATA, None)
        elif len(set(labels)) == 1:
            assert (result.status, result.value, result.samples) == (Status.UNDEFINED, None, len(rows))
        else:
            scores = [score for _, score, _ in rows]
            assert result.value == pytest.approx(roc_auc_score(labels, scores), abs=1e-11)
            assert result.samples == len(rows)
            interval = delong_interval(of_arrays(scores, labels))
            ends = (None, None) if interval is None else tuple(map(pytest.approx, interval))
            assert (result.lower, result.upper) == ends


@pytest.mark.parametrize("seed", range(6))
def test_many_small_sorts_place_as_one_large_sort(seed):
    dice = random.Random(seed)
    values = [0.0, -0.0, 0.5, 1.0, -1e308, 1e308, 5e-324, 1 / 3, *(dice.gauss(0, 1) for _ in range(40))]
    values = dice.sample(values, dice.choice([1, 2, 30]))
    rows = [(dice.choice(values), dice.randrange(2), dice.choice("ab")) for _ in range(dice.choice([3, 200]))]
    backend = embedded()
    table = backend.create_table(
        "samples", pa.table(dict(zip(("score", "label", "of"), zip(*rows, strict=True), strict=True)))
    )
    for by in ([], ["of"]):
        one, many = (
            sorted(
                map(
                    tuple,
                    rank_sums(table, by, place).order_by(by or ["wins"]).to_pandas().to_numpy().tolist(),
                )
            )
            for place in (placed, placed_by_steps)
        )
        assert one == many
