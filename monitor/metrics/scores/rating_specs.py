"""What the rating errors are, and where they mislead."""

from __future__ import annotations

import math
from typing import Any, Final

from monitor.metrics.family import MetricSpec

BY: Final = ("overall", "item", "user")

_PAIRS: Final = (
    "The prediction is the score (rounded first where `rating.rounded` says so), the rating the mean of the "
    "values of the event `rating.event` that belong to the exposure (see `attribution`). "
)
_MEANS: Final = (
    "`overall` is over exposures; `item` and `user` are means over items (users) of their own value."
)
_RATED: Final = (
    "Users rate what they chose to look at, and what they feel strongly about: the error on what was never "
    "rated is another. "
)
_COMMON: Final[dict[str, Any]] = {
    "interval": "normal",
    "range": (0.0, math.inf),
    "parameters": ("rating", "events", "attribution"),
    "requires": ("setting rating", "exposures.score", "feedback.value"),
    "no_data": "nothing was shown; no rated exposure has a finite score; none has a user id (by user)",
    "samples": "rated exposures; items; users",
}
_ERRORS: Final = {**_COMMON, "undefined": "an error is so large that float64 does not hold the sums"}
_BY_HELP: Final = "over all exposures, or the mean over items, or over users"

MAE = MetricSpec(
    name="mae",
    of_rows=True,
    help="Mean absolute error: by how much the scores miss the ratings, in points of the scale.",
    by=BY,
    by_help=_BY_HELP,
    formula="mean of |prediction - rating|. " + _PAIRS + _MEANS,
    answers="How far off is a predicted rating, on average?",
    misleads=_RATED + "A model that always says the mean rating does well, and orders nothing.",
    **_ERRORS,
)
RMSE = MetricSpec(
    name="rmse",
    of_rows=True,
    help="Root mean square error of the ratings, in points of the scale; large misses weigh most.",
    by=BY,
    by_help=_BY_HELP,
    formula="sqrt(mean of (prediction - rating)^2). " + _PAIRS + _MEANS + " The interval of `overall` is the "
    "root of the ends of the mean square's.",
    answers="How far off are predicted ratings, where one large miss is worse than many small ones?",
    misleads=_RATED + "A handful of wild scores can be all of it: compare with mae.",
    **_ERRORS,
)
NMAE = MetricSpec(
    name="nmae",
    of_rows=True,
    help="Mean absolute error of the ratings, as a part of the scale's width.",
    unit="ratio",
    by=BY,
    by_help=_BY_HELP,
    formula="mae / (highest - lowest rating of `rating.range`). " + _PAIRS + _MEANS,
    answers="How far off is a predicted rating, compared with the whole scale?",
    misleads=_RATED + "Above 1 where scores are on another scale than the ratings. A scale of which only the "
    "upper half is used makes every model look good.",
    **_ERRORS,
)
NRMSE = MetricSpec(
    name="nrmse",
    of_rows=True,
    help="Root mean square error of the ratings, as a part of the scale's width.",
    unit="ratio",
    by=BY,
    by_help=_BY_HELP,
    formula="rmse / (highest - lowest rating of `rating.range`). " + _PAIRS + _MEANS,
    answers="How far off are predicted ratings, large misses first, compared with the whole scale?",
    misleads=_RATED + "Others divide by the mean or the standard deviation of the ratings: ask which.",
    **_ERRORS,
)
DISTORTION = MetricSpec(
    name="distortion",
    of_rows=True,
    help="Mean cost of a prediction by the team's own matrix of predicted and actual ratings.",
    formula="mean of d(prediction, rating), both rounded to whole ratings, halves upwards, d the setting "
    "`rating.distortion`. Pairs that the matrix lacks are left out and counted. " + _PAIRS,
    answers="How bad are the misses, where to promise 5 and give 1 costs more than the other way round?",
    misleads=_RATED + "It is no better than the matrix, and two teams' matrices do not compare.",
    undefined="the matrix has none of the window's pairs",
    **_COMMON,
)
