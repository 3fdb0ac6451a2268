"""Log loss and calibration: do scores, read as probabilities, match the observed actions?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import ibis
import ibis.expr.types as ir

from monitor.core.columns import LABEL, SCORE
from monitor.core.results import Result
from monitor.metrics.family import ALL, AddsUp, AggregateRow, Family, make
from monitor.metrics.scores.labelled import (
    LABELS,
    NO_POSITIVE,
    NO_REQUEST,
    labelled,
    left_out,
    nothing_scored,
    score_counts,
    score_spec,
    sentences,
)
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import RatioSums, ratio_delta

_PROBABILITY = (
    "p is the score, taken as at least e and at most 1 - e, e the setting `clip`. The detail counts the "
    "scores outside [0, 1], which are no probabilities, and the others that were moved. "
)

_probability_spec = partial(
    score_spec,
    of_rows=True,
    range=(0.0, math.inf),
    parameters=("clip", "events", "attribution"),
    samples="exposures with a finite score",
    no_data="nothing was shown; no exposure has a finite score",
)

LOG_LOSS = _probability_spec(
    name="log_loss",
    better="lower",
    help="Mean negative log-likelihood of users' actions, in nats; 0 is a perfect prediction.",
    interval="normal",
    formula="mean over exposures of -(y ln p + (1 - y) ln(1 - p)), y the label. "
    + _PROBABILITY
    + "Normal interval over the exposures. "
    + LABELS,
    answers="How good are the scores as probabilities, both their order and their size?",
    misleads="The rarer the actions, the lower it is for any model: at a click rate of 1 % the rate itself "
    "as score has 0.056. Compare models on the same exposures only. A few confident wrong scores can "
    "dominate it. If the scores are not probabilities, the number has no meaning. " + NO_REQUEST,
)

CALIBRATION = _probability_spec(
    name="calibration",
    help="Mean predicted over mean observed rate of action; 1 is right, above 1 the scores are too high.",
    interval="delta",
    formula="sum p / sum y over exposures, y the label. "
    + _PROBABILITY
    + "Interval by the delta method over the exposures. "
    + LABELS,
    answers="Are the scores, on average, as large as the rate at which users act?",
    misleads="It is one average: a model that gives everybody the mean rate has 1, and so has one that is "
    "too high for half and too low for the rest. Actions that have not come in yet, or lie outside "
    "`attribution`, raise it. " + NO_REQUEST,
    undefined="nothing was acted on, so that the observed rate is 0",
)


class Calibration(Family):
    """Log loss and calibration, from one scan."""

    name = "calibration"
    outputs = ((LOG_LOSS, ()), (CALIBRATION, ()))
    needs = ("feedback", "exposures.score")
    adds_up = AddsUp(columns=(ALL,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        sums = probability_sums(labelled(shared, settings, key), settings.clip, listed(key))
        return shared.side_by_side(key, score_counts(shared, key), sums)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        log_loss, calibration = make(LOG_LOSS, settings), make(CALIBRATION, settings)
        nothing = nothing_scored(row)
        if nothing:
            yield log_loss.no_data(nothing)
            yield calibration.no_data(nothing)
            return
        n, observed = int(row["n"]), float(row["observed"])
        detail = sentences(moved(row, settings.clip), left_out(row))
        yield log_loss.mean(n, row["loss"], row["loss_squared"], nothing or "", detail=detail)
        if observed == 0:
            yield calibration.undefined(f"{NO_POSITIVE}: the observed rate is 0", n)
        else:
            found = ratio_delta(calibration_sums(row))
            value = float(row["predicted"]) / observed
            yield calibration.value(value, n, found.interval if found else None, detail=detail)


def probability_sums(rows: ir.Table, clip: float, by: Sequence[str] = ()) -> ir.Table:
    """One row (a group) with the sums for log loss and calibration.

    `n` rows, `loss` and `loss_squared`, `predicted` (the sum of p), `observed` (of y), `predicted_squared`,
    `both` (of p y); `outside`, scores outside [0, 1], and `moved`, others that the clip changed.

    Args:
        rows: score (finite), label (0 or 1), and the columns of `by`.
        clip: p lies in [clip, 1 - clip].
        by: the columns of a group.
    """
    score, label = rows[SCORE], rows[LABEL]
    p = ibis.greatest(ibis.least(score, 1.0 - clip), clip)
    rows = rows.mutate(
        p=p,
        loss=-ibis.ifelse(label == 1, p, 1.0 - p).ln(),
        outside=((score < 0) | (score > 1)).cast("int64"),
        changed=(p != score).cast("int64"),
    )
    return rows.aggregate(
        by=list(by),
        n=rows.count(),
        loss=rows.loss.sum(),
        loss_squared=(rows.loss * rows.loss).sum(),
        predicted=rows.p.sum(),
        observed=rows[LABEL].sum(),
        predicted_squared=(rows.p * rows.p).sum(),
        both=(rows.p * rows[LABEL].cast("float64")).sum(),
        outside=rows.outside.sum(),
        moved=(rows.changed - rows.outside).sum(),
    )


def calibration_sums(row: AggregateRow) -> RatioSums:
    """A row of `probability_sums` as a ratio over the exposures: predicted over observed."""
    predicted, observed, squares, both = (
        float(row[name]) for name in ("predicted", "observed", "predicted_squared", "both")
    )
    return RatioSums(int(row["n"]), predicted, observed, squares, observed, both)


def moved(row: AggregateRow, clip: float) -> str:
    """A sentence about the scores that the clip changed; empty if none.

    >>> moved({"n": 9, "outside": 0, "moved": 1}, 1e-15)
    '1 of 9 scores is nearer than 1e-15 to 0 or 1, and clipped'
    >>> moved({"n": 12345, "outside": 2000, "moved": 0}, 1e-15)
    '2,000 of 12,345 scores lie outside [0, 1] and are no probabilities'
    """
    n, outside, within = int(row["n"]), int(row["outside"]), int(row["moved"])
    verb = "is" if within == 1 else "are"
    return sentences(
        f"{outside:,} of {n:,} scores lie outside [0, 1] and are no probabilities" if outside else "",
        f"{within:,} of {n:,} scores {verb} nearer than {clip:g} to 0 or 1, and clipped" if within else "",
    )
