"""What another policy would have earned, as results: the values of each estimator, and the overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.results import Result, Status, Window
from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.metrics.feedback.business import ratio_sums
from monitor.metrics.shared import Shared
from monitor.off_policy import queries
from monitor.off_policy.reward_model import MOST_CELLS, ROWS, Predictions, predictions
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.effects import Estimate, RatioSums, effective_size, ratio_delta
from monitor.statistics.intervals import CONFIDENCE, most_variance, quantile
from monitor.statistics.off_policy import Overlap, from_sums
from monitor.window.tables import feedback_of

POLICY_VALUE: Final = "policy_value"
POLICY_OVERLAP: Final = "policy_overlap"
_CLICKED: Final = (0.0, 1.0)
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Question:
    """What is estimated.

    Attributes:
        event: the event that is the reward.
        target: the column of the exposures with the target's probability, or the name of the recommender
            whose log shows it.
        cap: where `clipped_ips` cuts weights.
        context: columns of the exposures that the model of the reward reads.
    """

    event: str
    target: str
    cap: float
    context: tuple[str, ...] = ()


def target_cells(engine: Engine, source: Source, span: Window, by_position: bool) -> ir.Table | None:
    """How often the target's log shows each item at each position; None if it has no rows in the span."""
    rows = source.load(engine, c.EXPOSURES, span, table="target_exposures")
    return None if rows is None else queries.cells(rows, by_position)


def estimate(
    engine: Engine,
    source: Source,
    span: Window,
    settings: RecommenderSettings,
    question: Question,
    target: ir.Table | None,
    by_position: bool,
) -> list[Result]:
    """The results of one log for one target.

    Args:
        engine: of the log.
        source: the log, which has propensities and feedback.
        span: whole windows.
        settings: of the log's recommender.
        question: what is estimated.
        target: the counts of `target_cells` as a table of this engine; None if a column has the probability.
        by_position: whether the target is known by position.
    """
    shown = source.load(engine, c.EXPOSURES, span, table="exposures")
    if shown is None:
        return _no_data(question, "the log has no row")
    after = Window(span.start, span.end + settings.metrics.attribution)
    actions = feedback_of(engine, source, after, "responses")
    edges = (span.start.replace(tzinfo=None), span.end.replace(tzinfo=None))
    shared = Shared(shown, feedback=actions, responses=actions, window=edges, materialise=engine.create)
    wanted = None if target is None else engine.create("target_shares", queries.shares(target))
    rows = engine.create(
        "weighted",
        queries.weighted(
            shared,
            settings.metrics,
            question.event,
            question.target if wanted is None else wanted,
            by_position,
            question.context,
        ),
    )
    counted = queries.faults(rows).to_pyarrow().to_pylist()
    faults = {row[queries.FAULT]: row[ROWS] for row in counted}
    usable = faults.pop(None, 0)
    largest = max((row["largest"] or 0.0 for row in counted), default=0.0)
    sums: dict[str, Any] = {}
    unsupported = None
    if largest > 0:
        (sums,) = queries.totals(rows, largest, question.cap).to_pyarrow().to_pylist()
        if wanted is not None:
            (support,) = queries.supported(rows, wanted).to_pyarrow().to_pylist()
            unsupported = max(0.0, 1.0 - support["supported"])
            unsupported = 0.0 if unsupported < _ROUNDING else unsupported
    size = effective_size(sums["part"], sums["square"]) if sums else 0.0
    overlap = Overlap(
        rows=usable + sum(faults.values()),
        left_out=sum(faults.values()),
        effective=size,
        largest=largest,
        mean=ratio_delta(ratio_sums(sums, queries.WEIGHT)) if sums else None,
        unsupported=unsupported,
    )
    results = [*_overlap(question, overlap, faults), *_values(question, overlap, sums, usable)]
    return (
        results if overlap.reason else [*results, *_by_model(engine, question, overlap, rows, wanted, usable)]
    )


def _by_model(
    engine: Engine, question: Question, overlap: Overlap, rows: ir.Table, wanted: ir.Table | None, usable: int
) -> Iterator[Result]:
    """The direct method and doubly robust, by a model of the reward that is fitted on other users."""
    model: Predictions | str = _UNKNOWN_ITEMS
    if wanted is not None:
        counted = queries.rewards(rows, question.context)
        context = queries.context_names(question.context)
        model = predictions(counted.limit(MOST_CELLS + 1).to_pandas(), wanted.to_pandas(), context)
    if isinstance(model, str):
        for name in (queries.DIRECT, queries.DOUBLY_ROBUST):
            yield _value(question, name, None, usable, model)
        return
    predicted, expected = (
        engine.create(name, ibis.memtable(table))
        for name, table in (("predicted", model.shown), ("expected", model.expected))
    )
    (sums,) = queries.corrected(rows, predicted, expected, question.context).to_pyarrow().to_pylist()
    direct = _value(question, queries.DIRECT, model.direct, usable, "too few users to fit the model again")
    if wrong := _wrong_model(ratio_sums(sums, queries.MODEL_ERROR), model.direct, overlap.effective):
        direct = replace(direct, detail=wrong)
    yield direct
    robust = from_sums(ratio_sums(sums, queries.DOUBLY_ROBUST), _CLICKED, overlap.effective)
    yield _value(question, queries.DOUBLY_ROBUST, robust, usable, _TOO_FEW)


def _values(question: Question, overlap: Overlap, sums: Mapping[str, Any], usable: int) -> Iterator[Result]:
    if overlap.reason:
        yield from _no_data(question, overlap.reason, usable)
        return
    cut = effective_size(sums["cut_part"], sums["cut_square"])
    longest = float(sums["longest"])
    lists = ratio_sums(sums, queries.LISTS)
    found: dict[str, tuple[RatioSums, float, tuple[float, float]]] = {
        queries.LOGGED: (ratio_sums(sums, queries.LOGGED), float(usable), _CLICKED),
        queries.IPS: (ratio_sums(sums, queries.IPS), overlap.effective, _CLICKED),
        queries.CLIPPED: (ratio_sums(sums, queries.CLIPPED), cut, _CLICKED),
        queries.SELF_NORMALISED: (ratio_sums(sums, queries.SELF_NORMALISED), overlap.effective, _CLICKED),
    }
    if longest > 1:
        found[queries.LISTS] = (lists, overlap.effective, (0.0, longest))
    for name, (of, effective, bounds) in found.items():
        samples = int(of.denominator) if name == queries.LISTS else usable
        one = from_sums(of, bounds, effective)
        yield _value(question, name, one, samples, _TOO_FEW)


def _wrong_model(sums: RatioSums, direct: Estimate | None, effective: float) -> str:
    """What the weighted error of the model says of the direct method; empty if it is not clearly wrong.

    The error has at least the variance of a share of so many effective rows, as in `from_sums`.
    """
    error = ratio_delta(sums)
    if direct is None or error is None:
        return ""
    least = math.sqrt(most_variance(direct.value) / effective)
    half = quantile(CONFIDENCE) * max(error.error, least)
    if abs(error.value) <= half:
        return ""
    side = "low" if error.value > 0 else "high"
    return (
        f"do not use it: by the weighted rows, the predictions are too {side} by {abs(error.value):.3g} "
        f"({abs(error.value) - half:.3g} to {abs(error.value) + half:.3g})"
    )


def _overlap(question: Question, overlap: Overlap, faults: Mapping[str, int]) -> Iterator[Result]:
    result = partial(_result, question, POLICY_OVERLAP, samples=overlap.rows)
    left = ", ".join(f"{count} with {name}" for name, count in sorted(faults.items()))
    yield result("rows_without_weight", float(overlap.left_out), detail=left)
    yield result("effective_sample_size", overlap.effective)
    yield result("largest_weight", overlap.largest)
    if overlap.mean is None:
        yield result("mean_weight", None, detail="fewer than two users or requests have a weight")
    else:
        lower, upper = overlap.mean.interval
        odd = "" if lower <= 1 <= upper else _NOT_1
        yield result("mean_weight", overlap.mean.value, lower=lower, upper=upper, detail=odd)
    unknown = "the target is known only for the items that were shown"
    yield result("unsupported", overlap.unsupported, detail=unknown if overlap.unsupported is None else "")


_TOO_FEW: Final = "fewer than two users or requests"
_UNKNOWN_ITEMS: Final = "the target's probabilities of the items that were not shown are unknown"
_NOT_1: Final = (
    "1 is expected: the propensities or the target's probabilities are wrong, or the target shows items that "
    "the log cannot show"
)


def _no_data(question: Question, reason: str, samples: int = 0) -> list[Result]:
    names = (queries.IPS, queries.CLIPPED, queries.SELF_NORMALISED, queries.DIRECT, queries.DOUBLY_ROBUST)
    return [_value(question, name, None, samples, reason) for name in names]


def _value(question: Question, name: str, one: Estimate | None, samples: int, reason: str) -> Result:
    if one is None:
        return _result(question, POLICY_VALUE, name, None, samples=samples, detail=reason)
    lower, upper = one.interval
    return _result(question, POLICY_VALUE, name, one.value, samples=samples, lower=lower, upper=upper)


def _result(
    question: Question,
    metric: str,
    by: str,
    value: float | None,
    *,
    samples: int,
    lower: float | None = None,
    upper: float | None = None,
    detail: str = "",
) -> Result:
    definition = f"1;cap={question.cap:g}" if by == queries.CLIPPED else "1"
    return Result(
        metric=metric,
        status=Status.NO_DATA if value is None else Status.OK,
        definition=definition,
        labels={"by": by, "target": question.target, "event": question.event},
        value=value,
        samples=samples,
        lower=lower,
        upper=upper,
        detail=detail,
    )
