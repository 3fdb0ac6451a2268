"""What another policy would have earned, as results: the values of each estimator, and the overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.results import Result, Status, Window
from monitor.core.text import quoted
from monitor.engines.duckdb import Engine
from monitor.logs.empty import feedback_of
from monitor.logs.source import Source
from monitor.metrics.feedback.business import ratio_sums
from monitor.metrics.shared import Shared
from monitor.off_policy import lists, queries
from monitor.off_policy.results import (
    CLICKED,
    NOT_1,
    OUT_OF_RANGE,
    POLICY_OVERLAP,
    TOO_FEW,
    Question,
    result_of,
    value_of,
    why_none,
)
from monitor.off_policy.reward_model import MOST_CELLS, ROWS, Predictions, predictions
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.effects import Estimate, RatioSums, effective_size, ratio_delta
from monitor.statistics.intervals import CONFIDENCE, most_variance, quantile
from monitor.statistics.off_policy import MOST_UNSEEN, Overlap, from_sums

_ROUNDING: Final = 1e-12


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
    around = _around(span, settings)
    actions = feedback_of(engine, source, around, "responses")
    edges = (span.start.replace(tzinfo=None), span.end.replace(tzinfo=None))
    shared = Shared(
        shown,
        feedback=actions,
        responses=actions,
        around=source.load(engine, c.EXPOSURES, around, table="exposures_around"),
        window=edges,
        materialise=engine.create,
    )
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
    if usable:
        (sums,) = queries.totals(rows, largest or 1.0, question.cap).to_pyarrow().to_pylist()
        if target is not None and wanted is not None:
            (support,) = queries.supported(rows, wanted, target).to_pyarrow().to_pylist()
            unsupported = max(0.0, 1.0 - (support["supported"] or 0.0))  # null: the target shows no item
            unsupported = 0.0 if unsupported < _ROUNDING else unsupported
    size = effective_size(sums["part"], sums["square"]) if largest > 0 else 0.0
    overlap = Overlap(
        rows=usable + sum(faults.values()),
        left_out=sum(faults.values()),
        effective=size,
        largest=largest,
        mean=ratio_delta(ratio_sums(sums, queries.WEIGHT)) if sums else None,
        unsupported=unsupported,
    )
    reason = overlap.reason
    if not reason and not source.logs[c.FEEDBACK].rows_in(Window(span.start, around.end)):
        reason = _NO_FEEDBACK
    results = [*_skipped(question, source, span), *_overlap(question, overlap, faults, sums)]
    results += _no_data(question, reason, usable) if reason else _values(question, overlap, sums, usable)
    if found := lists.read(engine, rows, c.POSITION in shown.columns):
        results += lists.overlap_of_lists(question, found)
        results += lists.values_of_lists(question, found, reason)
    return results if reason else [*results, *_by_model(engine, question, overlap, rows, wanted, usable)]


def _around(span: Window, settings: RecommenderSettings) -> Window:
    """The span and the attribution on both sides, in whole windows.

    An action belongs to one list only, and that may be one outside the span.
    """
    reach = -(-settings.metrics.attribution // settings.window) * settings.window
    return Window(span.start - reach, span.end + reach)


def _by_model(
    engine: Engine, question: Question, overlap: Overlap, rows: ir.Table, wanted: ir.Table | None, usable: int
) -> Iterator[Result]:
    """The direct method and doubly robust, by a model of the reward that is fitted on other users."""
    model: Predictions | str = _UNKNOWN_ITEMS
    fault, doubt = ("", "") if wanted is None else _of_items(rows, question.context)
    if fault:
        model = fault
    elif wanted is not None:
        counted = queries.rewards(rows, question.context)
        context = queries.context_names(question.context)
        model = predictions(counted.limit(MOST_CELLS + 1).to_pandas(), wanted.to_pandas(), context)
    if isinstance(model, str):
        for name in (queries.DIRECT, queries.DOUBLY_ROBUST):
            yield value_of(question, name, None, usable, model)
        return
    predicted, expected = (
        engine.create(name, ibis.memtable(table))
        for name, table in (("predicted", model.shown), ("expected", model.expected))
    )
    (sums,) = queries.corrected(rows, predicted, expected, question.context).to_pyarrow().to_pylist()
    few = "too few users to fit the model again"
    direct = value_of(question, queries.DIRECT, model.direct, usable, few, doubt)
    if wrong := _wrong_model(ratio_sums(sums, queries.MODEL_ERROR), model.direct, overlap.effective):
        direct = replace(direct, detail="; ".join(filter(None, (wrong, doubt))))
    yield direct
    of = ratio_sums(sums, queries.DOUBLY_ROBUST)
    robust = from_sums(of, CLICKED, overlap.effective)
    yield value_of(question, queries.DOUBLY_ROBUST, robust, usable, why_none(of), doubt)


def _of_items(rows: ir.Table, context: Sequence[str]) -> tuple[str, str]:
    """Why a column of the context cannot be one, and why it may be none: it belongs to the item.

    The model asks what each item of the target would earn in the context of a list. A context that the item
    brings along is that of the logged item, and not of the target's.
    """
    if not context:
        return "", ""
    (found,) = queries.kinds_of_context(rows, context).to_pyarrow().to_pylist()
    doubts = []
    for column, name in zip(context, queries.context_names(context), strict=True):
        varying = found[f"{name}_{queries.VARYING}"] or 0
        if found[f"{name}_{queries.OF_A_PLACE}"] != 1 and varying > MOST_UNSEEN * found[queries.LISTS]:
            where = f"{varying:,} of {found[queries.LISTS]:,} lists"
            return f"the column {quoted(column)} differs within {where}; {_BEFORE}", ""
        alone = found[queries.SEVERAL] == 0 and found[f"{name}_{queries.VALUES}"] > 1
        if alone and found[queries.REPEATED] and found[f"{name}_{queries.OF_AN_ITEM}"] == 1:
            doubts.append(
                f"each item has one value of {quoted(column)}; if it belongs to the item, leave it out"
            )
    return "", "; ".join(doubts)


def _values(question: Question, overlap: Overlap, sums: Mapping[str, Any], usable: int) -> Iterator[Result]:
    cut = effective_size(sums["cut_part"], sums["cut_square"])
    found: dict[str, tuple[RatioSums, float]] = {
        queries.LOGGED: (ratio_sums(sums, queries.LOGGED), float(usable)),
        queries.IPS: (ratio_sums(sums, queries.IPS), overlap.effective),
        queries.CLIPPED: (ratio_sums(sums, queries.CLIPPED), cut),
        queries.SELF_NORMALISED: (ratio_sums(sums, queries.SELF_NORMALISED), overlap.effective),
    }
    for name, (of, effective) in found.items():
        yield value_of(question, name, from_sums(of, CLICKED, effective), usable, why_none(of))


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


def _skipped(question: Question, source: Source, span: Window) -> Iterator[Result]:
    """The files of exposures and feedback that were not read, if there are any: no number has their rows.

    A file that was written before the span began holds no row of it.
    """
    logs = [source.logs[name] for name in (c.EXPOSURES, c.FEEDBACK)]
    faults = [
        f"{log.name}: {one.file.path}: {one.reason}"
        for log in logs
        for one in log.skipped
        if not one.is_duplicate and one.file.modified >= span.start
    ]
    faults += [f"{log.name}: {one}" for log in logs for one in log.unlisted]
    if faults:
        shown = "; ".join(faults[:_MOST_FAULTS])
        files = sum(len(log.entries) for log in logs)
        one = result_of(
            question, POLICY_OVERLAP, "skipped_files", float(len(faults)), samples=files, detail=shown
        )
        yield replace(one, status=Status.ERROR)


def _overlap(
    question: Question, overlap: Overlap, faults: Mapping[str, int], sums: Mapping[str, Any]
) -> Iterator[Result]:
    result = partial(result_of, question, POLICY_OVERLAP, samples=overlap.rows)
    left = ", ".join(f"{count} with {name}" for name, count in sorted(faults.items()))
    yield result("rows_without_weight", float(overlap.left_out), detail=left)
    yield result("effective_sample_size", overlap.effective)
    yield result("largest_weight", overlap.largest)
    if overlap.mean is None:
        few = not sums or ratio_sums(sums, queries.WEIGHT).n < 2
        yield result("mean_weight", None, detail=f"{TOO_FEW} have a weight" if few else OUT_OF_RANGE)
    else:
        lower, upper = overlap.mean.interval
        odd = "" if lower <= 1 <= upper else NOT_1
        yield result("mean_weight", overlap.mean.value, lower=lower, upper=upper, detail=odd)
    unknown = ""
    if overlap.unsupported is None:
        unknown = _NO_WEIGHT if overlap.left_out == overlap.rows else _SHOWN_ITEMS
    yield result("unsupported", overlap.unsupported, detail=unknown)


_MOST_FAULTS: Final = 3
_NO_FEEDBACK: Final = (
    "the feedback has no row from the start of the span on, so nobody knows what users did; see logs.feedback"
)
_NO_WEIGHT: Final = "no row has a weight"
_SHOWN_ITEMS: Final = "the target is known only for the items that were shown"
_BEFORE: Final = "a context is known before an item is drawn, and is the same for all items of a list"
_UNKNOWN_ITEMS: Final = "the target's probabilities of the items that were not shown are unknown"


def _no_data(question: Question, reason: str, samples: int = 0) -> list[Result]:
    names = (queries.IPS, queries.CLIPPED, queries.SELF_NORMALISED, queries.DIRECT, queries.DOUBLY_ROBUST)
    return [value_of(question, name, None, samples, reason) for name in names]
