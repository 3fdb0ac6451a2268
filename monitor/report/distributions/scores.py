"""The histogram of the scores, and how far they are from the rate of actions."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import LABEL, MODEL, SCORE, SPLIT
from monitor.core.text import plural
from monitor.report import numbers
from monitor.report.distributions.figure import Axis, Drawing, Figure, Line, Plot, Point, Table
from monitor.report.distributions.labelled import GROUP, Scores, in_words, title_of
from monitor.statistics.intervals import wilson

BINS: Final = 40
PARTS: Final = 15
_TAIL: Final = 0.001
_FAR: Final = 20.0  # times the range of nearly all scores: a farther score would leave the others one bar
HISTOGRAM: Final = Figure(
    name="scores",
    title="Scores",
    how="The line is the share of rows in each bin of the score: lines of two splits that differ mean that "
    "the model meets other rows there, or scores them in another way.",
)
CALIBRATION: Final = Figure(
    name="calibration",
    title="Calibration",
    how="Each dot is one part of the rows by score, with its mean score across and the share of label 1 up: "
    "on the diagonal a score is the rate of actions, below it the scores are too high.",
)


def histogram_figure(scores: Scores) -> Figure:
    """The scores of each split, a plot for each model, over the same bins."""
    low, high, is_cut = _range(scores.table)
    bins = BINS if high > low else 1
    counted: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for row in binned(scores.table, low, high, bins).to_pyarrow().to_pylist():
        counted[str(row[MODEL]), str(row[SPLIT])][int(row["bin"])] = int(row["rows"])
    left, right = (low, high) if high > low else (low - 0.5, low + 0.5)
    # Halved first: the difference of two scores may exceed float64.
    edges = [2 * (left / 2 + (right / 2 - left / 2) * at / bins) for at in range(bins + 1)]
    drawing = Drawing(notes=list(scores.notes))
    most = max(rows / one.n for one in scores.groups for rows in counted[one.key].values())
    for model in scores.models:
        lines = []
        for one in scores.of_model(model):
            points = []
            for at in range(bins):
                rows, (first, last) = counted[one.key].get(at, 0), (edges[at], edges[at + 1])
                share = rows / one.n
                said = (
                    f"{one.split}: {numbers.number(first)} to {numbers.number(last)}: {numbers.share(share)}"
                )
                points += [
                    Point(first, share),
                    Point(2 * (first / 4 + last / 4), share, said),
                    Point(last, share),
                ]
                drawing.rows.append((model, one.split, first, last, rows, share))
            lines.append(Line(scores.splits.index(one.split), tuple(points)))
        drawing.plots.append(
            Plot(
                title_of(model),
                Axis("score", left, right),
                Axis("share of rows", 0.0, most),
                lines=tuple(lines),
            )
        )
    if is_cut:
        drawing.notes.append("A few scores lie far outside; the outer bins count them.")
    return Figure(
        HISTOGRAM.name,
        HISTOGRAM.title,
        HISTOGRAM.how,
        rests_on=scores.rests_on,
        plots=tuple(drawing.plots),
        legend=scores.splits if len(scores.splits) > 1 else (),
        notes=tuple(drawing.notes),
        table=Table(("model", "split", "from", "to", "rows", "share of rows"), tuple(drawing.rows)),
    )


def _range(table: ir.Table) -> tuple[float, float, bool]:
    """The range of the bins, and whether a few scores lie far outside of it."""
    score = table[SCORE]
    row: dict[str, Any] = (
        table.aggregate(
            low=score.min(), high=score.max(), near=score.quantile(_TAIL), far=score.quantile(1 - _TAIL)
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    low, high, near, far = (float(row[name]) for name in ("low", "high", "near", "far"))
    if far > near and high / 2 - low / 2 > _FAR * (far / 2 - near / 2):
        return near, far, True
    return low, high, False


def binned(table: ir.Table, low: float, high: float, bins: int) -> ir.Table:
    """The rows of each model, split and bin from `low` to `high`; the outer bins take what lies beyond."""
    width = high / 2 - low / 2
    if width > 0:
        part = ((table[SCORE] / 2 - low / 2) / width * bins).floor()
        place = ibis.greatest(ibis.least(part, float(bins - 1)), 0.0).cast("int64")
    else:
        place = ibis.literal(0, "int64")
    return table.aggregate(by=[*GROUP, place.name("bin")], rows=table.count())


def calibration_figure(scores: Scores, clip: float) -> Figure:
    """The rate of label 1 over parts of the rows with equal scores or neighbouring ones, for each split."""
    scores.need_labels()
    found = calibrated(scores.table, clip).to_pyarrow().to_pylist()
    found.sort(key=lambda row: row["part"])
    drawing = Drawing(notes=list(scores.notes))
    most = 0.0
    for model in scores.models:
        lines = []
        for one in scores.of_model(model):
            points = []
            for row in found:
                if (str(row[MODEL]), str(row[SPLIT])) != one.key:
                    continue
                n, hits, mean = int(row["n"]), int(row["hits"]), float(row["predicted"]) / int(row["n"])
                interval = wilson(hits, n)
                assert interval is not None  # a part has rows
                said = (
                    f"{one.split}: mean score {numbers.number(mean)}, rate {numbers.number(hits / n)} "
                    f"({numbers.number(interval.lower)} to {numbers.number(interval.upper)}), "
                    f"{plural(n, 'row')}"
                )
                points.append(Point(mean, hits / n, said, *interval))
                drawing.rows.append((model, one.split, mean, hits / n, *interval, n))
                most = max(most, mean, interval.upper)
            lines.append(Line(scores.splits.index(one.split), tuple(points), marked=True))
            own = [row for row in found if (str(row[MODEL]), str(row[SPLIT])) == one.key]
            predicted, observed = (
                math.fsum(float(row[name]) for row in own) for name in ("predicted", "hits")
            )
            if observed:
                drawing.facts.append(
                    (f"{in_words(one)}: predicted / observed", numbers.number(predicted / observed))
                )
            outside = sum(int(row["outside"]) for row in own)
            if outside:
                drawing.notes.append(
                    f"{in_words(one)}: {numbers.count(outside)} of {numbers.count(one.n)} scores lie outside "
                    "[0, 1] and are no probabilities. They count as 0 or 1."
                )
        drawing.plots.append(Plot(title_of(model), _UNIT, _UNIT, lines=tuple(lines)))
    most = min(1.0, most * 1.02)
    across, up = Axis("mean score", 0.0, most), Axis("share of label 1", 0.0, most)
    diagonal = ((0.0, 0.0), (most, most))
    return Figure(
        CALIBRATION.name,
        CALIBRATION.title,
        CALIBRATION.how,
        rests_on=scores.rests_on,
        plots=tuple(Plot(one.title, across, up, one.lines, reference=diagonal) for one in drawing.plots),
        legend=scores.splits if len(scores.splits) > 1 else (),
        facts=tuple(drawing.facts),
        notes=tuple(drawing.notes),
        table=Table(
            ("model", "split", "mean score", "share of label 1", "lower", "upper", "rows"),
            tuple(drawing.rows),
        ),
    )


_UNIT: Final = Axis("", 0.0, 1.0)


def calibrated(table: ir.Table, clip: float) -> ir.Table:
    """Parts of about equal size by score; rows of one score are in one part.

    Each has `n` rows, `predicted` (the sum of p), `hits` (rows of label 1) and `outside` (scores outside
    [0, 1]). p is the score, clipped as for the metric `calibration`.
    """
    score = table[SCORE]
    group = list(GROUP)
    ranked = table.mutate(
        p=ibis.greatest(ibis.least(score, 1.0 - clip), clip),
        below=ibis.rank().over(ibis.window(group_by=group, order_by=score)),
        size=table.count().over(ibis.window(group_by=group)),
        outside=((score < 0) | (score > 1)).cast("int64"),
    )
    part = ((ranked.below * PARTS) // ranked["size"]).cast("int64")
    return ranked.aggregate(
        by=[*group, part.name("part")],
        n=ranked.count(),
        predicted=ranked.p.sum(),
        hits=ranked[LABEL].sum(),
        outside=ranked.outside.sum(),
    )
