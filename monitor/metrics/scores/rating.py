"""Rating errors: the distance of scores from the ratings that users give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, REQUEST_ID, SCORE, USER_ID, VALUE
from monitor.core.results import Result
from monitor.metrics.attribution import VALUES, acted_rows, of_event, relevant
from monitor.metrics.family import NOTHING_SHOWN, AggregateRow, Family, MetricSpec, ResultBuilder, Theme, make
from monitor.metrics.scores.labelled import left_out, score_counts, scored, sentences
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.settings.rating import RatingSettings
from monitor.statistics.intervals import Interval, normal_mean

BY: Final = ("overall", "item", "user")

_PAIRS: Final = (
    "The prediction is the score (rounded first where `rating.rounded` says so), the rating the mean of the "
    "values of the event `rating.event` that belong to the exposure (see `attribution`). "
)
_MEANS: Final = (
    "`overall` is over exposures; `item` and `user` are means over items (users) of their own value."
)
_RATED: Final = (
    "Users rate items that they chose, or have strong feelings about: the error on unrated items is "
    "different. "
)
_rating_spec = partial(
    MetricSpec,
    theme=Theme.SCORES,
    of_rows=True,
    interval="normal",
    range=(0.0, math.inf),
    parameters=("rating", "events", "attribution"),
    requires=("setting rating", "exposures.score", "feedback.value"),
    no_data="nothing was shown; no rated exposure has a finite score; none has a user id (by user)",
    samples="rated exposures; items; users",
)
_error_spec = partial(
    _rating_spec,
    by=BY,
    by_help="over all exposures, or the mean over items, or over users",
    undefined="an error is so large that float64 does not hold the sums",
)

MAE = _error_spec(
    name="mae",
    better="lower",
    help="Mean absolute error: by how much the scores miss the ratings, in points of the scale.",
    formula="mean of |prediction - rating|. " + _PAIRS + _MEANS,
    answers="How large is the error of a predicted rating, on average?",
    misleads=_RATED + "A model that always says the mean rating does well, and orders nothing.",
)
RMSE = _error_spec(
    name="rmse",
    better="lower",
    help="Root mean square error of the ratings, in points of the scale; large misses weigh most.",
    formula="sqrt(mean of (prediction - rating)^2). " + _PAIRS + _MEANS + " The interval of `overall` is the "
    "root of the ends of the mean square's.",
    answers="How large is the error of predicted ratings, if one large error is worse than many small ones?",
    misleads=_RATED + "A few extreme scores can dominate it: compare with mae.",
)
NMAE = _error_spec(
    name="nmae",
    better="lower",
    help="Mean absolute error of the ratings, as a part of the scale's width.",
    unit="ratio",
    formula="mae / (highest - lowest rating of `rating.range`). " + _PAIRS + _MEANS,
    answers="How far off is a predicted rating, compared with the whole scale?",
    misleads=_RATED + "Above 1 where scores are on another scale than the ratings. A scale of which only the "
    "upper half is used makes every model look good.",
)
NRMSE = _error_spec(
    name="nrmse",
    better="lower",
    help="Root mean square error of the ratings, as a part of the scale's width.",
    unit="ratio",
    formula="rmse / (highest - lowest rating of `rating.range`). " + _PAIRS + _MEANS,
    answers="How far off are predicted ratings, large misses first, compared with the whole scale?",
    misleads=_RATED + "Others divide by the mean or the standard deviation of the ratings: ask which.",
)
DISTORTION = _rating_spec(
    name="distortion",
    better="lower",
    help="Mean cost of a prediction by the team's own matrix of predicted and actual ratings.",
    formula="mean of d(prediction, rating), both rounded to whole ratings, halves upwards, d the setting "
    "`rating.distortion`. Pairs that the matrix lacks are left out and counted. " + _PAIRS,
    answers="How costly are the errors, if 5 predicted for a 1 costs more than 1 predicted for a 5?",
    misleads=_RATED + "It is only as good as the matrix, and values of two matrices cannot be compared.",
    undefined="the matrix has none of the window's pairs",
)


PREDICTED, ACTUAL = "predicted", "actual"
_WHOLE = 2.0**52


class Rating(Family):
    """MAE and RMSE, plain and as parts of the scale, overall and by item and user; distortion."""

    name = "rating"
    outputs = ((MAE, BY), (RMSE, BY), (NMAE, BY), (NRMSE, BY), (DISTORTION, ()))
    needs = ("feedback", "feedback.value", "exposures.score")

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        if settings.rating is None:
            return "needs the setting rating: which event is a rating"
        return super().reason_not(shared, settings)

    def series(self, settings: MetricSettings) -> Iterator[tuple[MetricSpec, dict[str, str]]]:
        for spec, labels in super().series(settings):
            if spec is not DISTORTION or _of(settings).distortion:
                yield spec, labels

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        own, by = _of(settings), listed(key)
        rated = shared.once("rated", key, lambda: _rated(shared, settings, key))
        odd = ~rated[ACTUAL].between(*own.range)
        every = rated.aggregate(by=by, rated=rated.count(), odd=odd.cast("int64").sum())
        rows = rated.filter(~odd)
        if own.unrated == "liked_only":
            rows = rows.filter(rows[ACTUAL] >= own.liked)
        if own.unrated == "as_negative":
            rows = rows.union(_unrated(shared, settings, key).select(*rows.columns))
        if own.rounded:
            rows = rows.mutate(**{PREDICTED: _whole(rows[PREDICTED])})
        errors = error_sums(rows, own, key)
        return shared.side_by_side(key, score_counts(shared, key), every, *errors)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        own = _of(settings)
        width = own.range[1] - own.range[0]
        detail = _left_out(row, own)
        for by in BY:
            n = int(row[f"{by}_n"] or 0)
            nothing = _nothing(row, own, by)
            mean = _mean(row, by, n)
            root = _root_of_mean(row, n) if by == "overall" else _mean(row, by, n, "root")
            for spec, (value, interval), scale in (
                (MAE, mean, 1.0),
                (RMSE, root, 1.0),
                (NMAE, mean, width),
                (NRMSE, root, width),
            ):
                builder = make(spec, settings, by)
                if n == 0:
                    yield builder.no_data(nothing)
                else:
                    ends = interval and Interval(interval.lower / scale, interval.upper / scale)
                    yield builder.value(value / scale, n, ends, detail=detail)
        if own.distortion:
            yield _distortion(row, make(DISTORTION, settings), _nothing(row, own, "overall"), detail)


def _of(settings: MetricSettings) -> RatingSettings:
    if settings.rating is None:
        raise ValueError("no event is a rating")
    return settings.rating


def _ratings(shared: Shared, settings: MetricSettings) -> ir.Table:
    """One row a list and item with a rating: the mean of its values."""
    number = list(settings.events).index(_of(settings).event)
    found = relevant(shared, settings)
    total, values = found[of_event(VALUE, number)], found[of_event(VALUES, number)]
    found = found.mutate(**{ACTUAL: total.cast("float64") / values.cast("float64"), "given": values})
    found = found.filter(found.given > 0)
    return found.select(ACTUAL, rated_request=found[REQUEST_ID], rated_item=found[ITEM_ID])


def _rated(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    """The exposures with a finite score and a rating: item, user, group, `predicted`, `actual`."""
    rows, ratings = scored(acted_rows(shared, settings, key)), _ratings(shared, settings)
    rows = rows.join(
        ratings, [rows[REQUEST_ID] == ratings.rated_request, rows[ITEM_ID] == ratings.rated_item]
    )
    return rows.select(ITEM_ID, USER_ID, *listed(key), ACTUAL, **{PREDICTED: rows[SCORE]})


def _unrated(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    """The exposures with a finite score and no rating, with the lowest rating."""
    rows, ratings = scored(shared.shown(key)), _ratings(shared, settings)
    rows = rows.anti_join(
        ratings, [rows[REQUEST_ID] == ratings.rated_request, rows[ITEM_ID] == ratings.rated_item]
    )
    lowest = ibis.literal(_of(settings).range[0], type="float64")
    return rows.select(ITEM_ID, USER_ID, *listed(key), **{ACTUAL: lowest, PREDICTED: rows[SCORE]})


def _whole(number: ir.Value) -> ir.Value:
    """The nearest whole number, halves upwards. From 2^52 on every float64 is whole."""
    small = ibis.greatest(ibis.least(number, _WHOLE), -_WHOLE)
    return ibis.ifelse(number.abs() < _WHOLE, (small + 0.5).floor().cast("float64"), number)


def error_sums(rows: ir.Table, own: RatingSettings, key: str | None = None) -> tuple[ir.Table, ...]:
    """The sums of the errors, each table one row (a group): overall with distortion, by item, by user.

    Args:
        rows: item_id, user_id, the group `key`, `predicted` and `actual`.
        own: the settings of ratings.
        key: the column of the group.
    """
    error = rows[PREDICTED] - rows[ACTUAL]
    rows = rows.mutate(
        size=error.abs(),
        square=error * error,
        cost=_cost(rows, own.distortion or {}),
    )
    overall = rows.aggregate(
        by=listed(key),
        overall_n=rows.count(),
        overall_size=rows["size"].sum(),
        overall_size_squared=rows.square.sum(),
        overall_square=rows.square.sum(),
        overall_square_squared=(rows.square * rows.square).sum(),
        costs=rows.cost.count(),
        cost=rows.cost.sum(),
        cost_squared=(rows.cost * rows.cost).sum(),
    )
    return overall, *(_macro(rows, by, of, key) for by, of in (("item", ITEM_ID), ("user", USER_ID)))


def _cost(rows: ir.Table, distortion: dict[int, dict[int, float]]) -> ir.Value:
    predicted, actual = _whole(rows[PREDICTED]), _whole(rows[ACTUAL])
    cases = [
        ((predicted == p) & (actual == a), ibis.literal(float(d)))
        for p, of_actual in distortion.items()
        for a, d in of_actual.items()
    ]
    return ibis.cases(*cases) if cases else ibis.null("float64")


def _macro(rows: ir.Table, by: str, of: str, key: str | None) -> ir.Table:
    """The sums over items (or users) of their own mean and root mean square error."""
    known = rows.filter(rows[of].notnull())
    each = known.aggregate(by=[of, *listed(key)], mean=known["size"].mean(), square=known.square.mean())
    return each.aggregate(
        by=listed(key),
        **{
            f"{by}_n": each.count(),
            f"{by}_size": each["mean"].sum(),
            f"{by}_size_squared": (each["mean"] * each["mean"]).sum(),
            f"{by}_root": each.square.sqrt().sum(),
            f"{by}_root_squared": each.square.sum(),
        },
    )


ValueAndInterval = tuple[float, Interval | None]


def _mean(row: AggregateRow, by: str, n: int, what: str = "size") -> ValueAndInterval:
    total, squares = float(row[f"{by}_{what}"] or 0.0), float(row[f"{by}_{what}_squared"] or 0.0)
    return (total / n, normal_mean(n, total, squares)) if n else (math.nan, None)


def _root_of_mean(row: AggregateRow, n: int) -> ValueAndInterval:
    """The root of the overall mean square, and of the ends of its interval."""
    value, interval = _mean(row, "overall", n, "square")
    ends = interval and Interval(math.sqrt(max(0.0, interval.lower)), math.sqrt(interval.upper))
    return math.sqrt(value), ends


def _nothing(row: AggregateRow, own: RatingSettings, by: str) -> str:
    if not row["shown"]:
        return NOTHING_SHOWN
    what = "rated exposure" if own.unrated != "liked_only" else f"exposure rated {own.liked:g} or more"
    if own.unrated == "as_negative":
        what = "exposure"
    return f"no {what} with a finite score" + (" has a user id" if by == "user" and row["overall_n"] else "")


def _left_out(row: AggregateRow, own: RatingSettings) -> str:
    rated, odd = int(row["rated"] or 0), int(row["odd"] or 0)
    lowest, highest = own.range
    return sentences(
        f"{odd:,} of {rated:,} ratings lie outside [{lowest:g}, {highest:g}] and are left out" if odd else "",
        left_out(row),
    )


def _distortion(row: AggregateRow, builder: ResultBuilder, nothing: str, detail: str) -> Result:
    n, known = int(row["overall_n"] or 0), int(row["costs"] or 0)
    if n == 0:
        return builder.no_data(nothing)
    if known == 0:
        return builder.undefined(f"the matrix has none of the {n} pairs of a prediction and a rating", n)
    lacking = (
        f"the matrix lacks {n - known:,} of {n:,} pairs of a prediction and a rating" if known < n else ""
    )
    return builder.mean(known, row["cost"], row["cost_squared"], nothing, detail=sentences(lacking, detail))
