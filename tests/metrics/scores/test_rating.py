"""Rating errors on windows worked by hand, and against a loop over the rated exposures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import norm

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from tests.metrics.scores.scored import random_world
from tests.metrics.worlds import World, by_name, lists, results_of

ERRORS = ("mae", "rmse", "nmae", "nrmse")


def settings(**rating):
    return MetricSettings(
        events={"click": {}, "buy": {"grade": 2}, "rate": {"grade": 0}}, rating={"event": "rate", **rating}
    )


def rate(user, item, value, request):
    return {"user_id": user, "item_id": item, "event": "rate", "request_id": request, "value": value}


def window(*rows):
    """Exposures given as (user, item, score, rating or None), each a list of its own."""
    shown = lists(*((user, item) for user, item, _, _ in rows))
    for row, (_, _, score, _) in zip(shown, rows, strict=True):
        row["score"] = score
    done = [rate(user, item, given, f"r{n}") for n, (user, item, _, given) in enumerate(rows) if given]
    return World(shown, feedback=done, columns=("score", "scene"), feedback_columns=("request_id", "value"))


def measured(world, dimensions=None, **rating):
    found = results_of(world, settings(**rating), dimensions, only=(*ERRORS, "distortion"))
    return by_name(found)


FIVE = window(
    ("u", "a", 3.5, 4), ("u", "b", 5.0, 2), ("v", "a", 1.0, 1), ("v", "c", 2.0, None), ("w", "b", 4.5, 4)
)  # errors of 0.5, 3, 0, none, 0.5


def test_errors_over_exposures_and_as_means_over_items_and_users():
    found = measured(FIVE)
    assert found["mae", "overall"].value == pytest.approx(1.0)
    assert found["mae", "item"].value == pytest.approx((0.25 + 1.75) / 2)
    assert found["mae", "user"].value == pytest.approx((1.75 + 0 + 0.5) / 3)
    assert found["rmse", "overall"].value == pytest.approx(math.sqrt(9.5 / 4))
    assert found["rmse", "item"].value == pytest.approx((math.sqrt(0.125) + math.sqrt(4.625)) / 2)
    assert found["rmse", "user"].value == pytest.approx((math.sqrt(4.625) + 0 + 0.5) / 3)
    for by, n in (("overall", 4), ("item", 2), ("user", 3)):
        for metric in ("mae", "rmse"):
            plain, part = found[metric, by], found["n" + metric, by]
            assert part.value == pytest.approx(plain.value / 4)
            assert (part.lower, part.upper) == pytest.approx((plain.lower / 4, plain.upper / 4), abs=1e-11)
            assert {plain.samples, part.samples} == {n}
    assert ("distortion", "") not in found


def test_predictions_are_rounded_to_whole_numbers_with_halves_upwards():
    found = measured(FIVE, rounded=True)
    assert found["mae", "overall"].value == pytest.approx((0 + 3 + 0 + 1) / 4)
    assert found["mae", "overall"].definition.startswith("1;rating=(event=rate,")


def test_an_exposure_without_a_rating_may_count_as_rated_lowest():
    found = measured(FIVE, unrated="as_negative")
    assert (found["mae", "overall"].value, found["mae", "overall"].samples) == (pytest.approx(5 / 5), 5)
    assert found["mae", "item"].samples == 3


def test_only_liked_items_may_count():
    found = measured(FIVE, unrated="liked_only", liked=4)
    assert (found["mae", "overall"].value, found["mae", "overall"].samples) == (0.5, 2)


def test_distortion_is_the_mean_by_the_teams_matrix_and_missing_pairs_are_counted():
    matrix = {5: {2: 10.0, 4: 1.0}, 4: {4: 0.0}, 1: {2: 3.0}}
    result = measured(FIVE, distortion=matrix)["distortion", ""]
    assert (result.value, result.samples) == (pytest.approx((0 + 10 + 1) / 3), 3)
    assert result.detail == "the matrix lacks 1 of 4 pairs of a prediction and a rating"
    result = measured(FIVE, distortion={9: {9: 1.0}})["distortion", ""]
    assert (result.status, result.value) == (Status.UNDEFINED, None)


def test_a_rating_is_the_mean_of_its_values_and_ratings_out_of_range_are_counted():
    world = window(("u", "a", 3.0, 5), ("u", "b", 3.0, 3), ("v", "a", math.nan, 4), ("v", "b", 3.0, 9))
    world = replace(world, feedback=[*world.feedback, rate("u", "a", 2.0, "r0")])
    result = measured(world)["mae", "overall"]
    assert (result.value, result.samples) == (0.25, 2)
    assert result.detail == (
        "1 of 3 ratings lie outside [1, 5] and are left out; 1 of 4 exposures have no finite score"
    )
    assert measured(world, unrated="as_negative")["mae", "overall"].samples == 2


@pytest.mark.parametrize(
    ("rows", "rating", "details"),
    [
        ([], {}, {"the window holds no exposures"}),
        ([("u", "a", 1.0, None)], {}, {"no rated exposure with a finite score"}),
        ([("u", "a", math.nan, 3)], {"unrated": "as_negative"}, {"no exposure with a finite score"}),
        (
            [("u", "a", 1.0, 3)],
            {"unrated": "liked_only", "liked": 4},
            {"no exposure rated 4 or more with a finite score"},
        ),
    ],
)
def test_without_ratings_there_is_no_data(rows, rating, details):
    found = measured(window(*rows), distortion={1: {1: 1.0}}, **rating)
    assert len(found) == 13
    assert {r.status for r in found.values()} == {Status.NO_DATA}
    assert {r.detail for r in found.values()} == details


def test_ratings_without_a_user_count_overall_and_by_item():
    found = measured(window((None, "a", 1.0, 3)))
    assert found["mae", "item"].value == 2.0
    assert (found["mae", "user"].status, found["mae", "user"].detail) == (
        Status.NO_DATA,
        "no rated exposure with a finite score has a user id",
    )


@pytest.mark.parametrize("score", [1e300, -1e300])
@pytest.mark.parametrize("rating", [{}, {"rounded": True, "distortion": {3: {3: 0.0}}}])
def test_a_score_whose_square_overflows_gives_no_rmse(score, rating):
    found = measured(window(("u", "a", score, 3)), **rating)
    assert found["mae", "overall"].value == 1e300
    assert found["rmse", "overall"].status is Status.UNDEFINED


def expected(world, how):
    """metric, by -> (value, samples, lower, upper): exposure by exposure."""
    ratings = {}
    for action in world.feedback:
        if action["event"] == "click":
            ratings.setdefault((action["request_id"], action["item_id"]), []).append(action["value"])
    rows = []
    for row in world.exposures:
        if row["item_id"] is None or row["score"] is None or not math.isfinite(row["score"]):
            continue
        given = ratings.get((row["request_id"], row["item_id"]))
        actual = np.mean(given) if given else None
        if how == "as_negative" and actual is None:
            actual = 1
        if actual is None or (how == "liked_only" and actual < 3):
            continue
        rows.append((row["item_id"], row["user_id"], abs(row["score"] - actual)))
    found = {}
    errors = np.array([e for _, _, e in rows])
    _put(found, "mae", "overall", errors)
    _put(found, "rmse", "overall", errors**2, root=True)
    for by, column in (("item", 0), ("user", 1)):
        of = {}
        for row in rows:
            if row[column] is not None:
                of.setdefault(row[column], []).append(row[2])
        _put(found, "mae", by, np.array([np.mean(one) for one in of.values()]))
        _put(found, "rmse", by, np.array([np.sqrt(np.mean(np.square(one))) for one in of.values()]))
    return found


def _put(found, metric, by, values, root=False):
    n = len(values)
    if n == 0:
        return
    shape = (lambda x: math.sqrt(max(0.0, x))) if root else float
    mean = float(np.mean(values))
    half = norm.ppf(0.975) * np.std(values, ddof=1) / math.sqrt(n) if n > 1 else None
    ends = (None, None) if half is None else (shape(mean - half), shape(mean + half))
    found[metric, by] = (shape(mean), n, *ends)


@pytest.mark.parametrize("seed", range(18))
def test_random_windows_and_slices_agree_with_brute_force(seed):
    world = random_world(seed)
    how = ("ignore", "as_negative", "liked_only")[seed % 3]
    rating = {"event": "click", "unrated": how, "liked": 3 if how == "liked_only" else None}
    given = MetricSettings(events={"click": {}}, rating=rating)
    results = by_name(results_of(world, given, {"place": "scene"}, only=ERRORS))
    for (metric, by, *place), result in results.items():
        wanted = expected(world.where("scene", place[1]) if place else world, how)
        if (metric.removeprefix("n"), by) not in wanted:
            assert (result.status, result.value) == (Status.NO_DATA, None)
            continue
        scale = 4 if metric.startswith("n") else 1
        value, n, *ends = wanted[metric.removeprefix("n"), by]
        assert result.value == pytest.approx(value / scale, abs=1e-9)
        ends = [None if end is None else pytest.approx(end / scale, abs=1e-5) for end in ends]
        assert (result.samples, result.lower, result.upper) == (n, *ends)


@pytest.mark.parametrize(
    ("rating", "message"),
    [
        ({"event": "stars"}, "'stars' is not one of `events`"),
        ({"range": [5, 1]}, "the lower one first"),
        ({"range": [1, "inf"]}, "two finite numbers"),
        ({"unrated": "liked_only"}, "is needed with `unrated: liked_only`"),
        ({"liked": 3}, "is needed with `unrated: liked_only`"),
        ({"unrated": "liked_only", "liked": 7}, "must lie in the range"),
        ({"distortion": {}}, "at least 1"),
        ({"distortion": {1: {1: "nan"}}}, "finite"),
    ],
)
def test_invalid_settings_are_refused(rating, message):
    with pytest.raises(ValidationError, match=message):
        settings(**rating)
