"""ROC and precision-recall curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import LABEL, MODEL, SCORE, SPLIT
from monitor.core.text import plural
from monitor.metrics.scores.auc import auc_sums, rank_sums
from monitor.report import numbers
from monitor.report.distributions.figure import Axis, Drawing, Figure, Line, Plot, Point, Table
from monitor.report.distributions.labelled import GROUP, Group, Scores, in_words, title_of
from monitor.report.distributions.rows import Missing

POINTS: Final = 200
POINTS_OF_MANY: Final = 60  # for each curve, if there are several
ROC: Final = Figure(
    name="roc",
    title="ROC curve",
    how="Each point is a cut-off of the score: the share of label 1 above it up, the share of label 0 above "
    "it across. The nearer the curve comes to the upper left corner, the better the scores separate them.",
)
PRECISION_RECALL: Final = Figure(
    name="precision-recall",
    title="Precision-recall curve",
    how="Each point is a cut-off of the score: the share of label 1 among the rows above it up, the share of "
    "all label 1 that is above it across. The first points rest on few rows.",
)


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows with at least this score: `hits` of label 1 among `upto`."""

    score: float
    hits: int
    upto: int


Cuts = Mapping[tuple[str, str], Sequence[Cut]]
"""By model and split."""


def roc_figure(scores: Scores, found: Cuts) -> Figure:
    """The ROC curve of each split, a plot for each model, with the AUC of the metric."""
    drawing = _drawing(scores)
    areas = _areas(scores)
    for model in scores.models:
        lines = []
        for one in _with_curve(scores, model):
            positives, negatives = _classes(one)
            points = [Point(0.0, 0.0)]
            for cut in found[one.key]:
                x, y = (cut.upto - cut.hits) / negatives, cut.hits / positives
                said = (
                    f"{one.split}: score {numbers.number(cut.score)} and above: "
                    f"{numbers.share(y)} of label 1, {numbers.share(x)} of label 0"
                )
                points.append(Point(x, y, said))
                drawing.rows.append((model, one.split, cut.score, x, y))
            lines.append(Line(scores.splits.index(one.split), tuple(points)))
            drawing.facts.append((f"{in_words(one)}: AUC", numbers.number(areas[one.key])))
        if lines:
            axes = Axis("share of label 0", 0.0, 1.0), Axis("share of label 1", 0.0, 1.0)
            diagonal = ((0.0, 0.0), (1.0, 1.0))
            drawing.plots.append(Plot(title_of(model), *axes, lines=tuple(lines), reference=diagonal))
    return _figure(ROC, scores, drawing, ("score", "share of label 0", "share of label 1"))


def precision_recall_figure(scores: Scores, found: Cuts) -> Figure:
    """The precision-recall curve of each split, a plot for each model, with the share of label 1."""
    drawing = _drawing(scores)
    for model in scores.models:
        lines = []
        for one in _with_curve(scores, model):
            positives, _ = _classes(one)
            points = []
            for cut in found[one.key]:
                x, y = cut.hits / positives, cut.hits / cut.upto
                said = (
                    f"{one.split}: score {numbers.number(cut.score)} and above: "
                    f"precision {numbers.share(y)}, recall {numbers.share(x)}, "
                    f"{plural(cut.upto, 'row')}"
                )
                points.append(Point(x, y, said))
                drawing.rows.append((model, one.split, cut.score, x, y))
            lines.append(Line(scores.splits.index(one.split), tuple(points)))
            drawing.facts.append((f"{in_words(one)}: share of label 1", numbers.share(positives / one.n)))
        if lines:
            axes = Axis("recall", 0.0, 1.0), Axis("precision", 0.0, 1.0)
            drawing.plots.append(Plot(title_of(model), *axes, lines=tuple(lines)))
    return _figure(PRECISION_RECALL, scores, drawing, ("score", "recall", "precision"))


def cuts(table: ir.Table, points: int) -> ir.Table:
    """About so many cut-offs of each model and split, evenly spread along the ROC curve.

    Every one is exact: `hits` of label 1 among the `upto` rows with a score of at least `score`. The lowest
    score of all is one of them.

    Args:
        table: model, split, score, label; each group has both labels.
        points: how many.
    """
    group = list(GROUP)
    by_score = table.aggregate(by=[*group, SCORE], hits=table[LABEL].sum(), rows=table.count())
    from_above = ibis.cumulative_window(group_by=group, order_by=by_score[SCORE].desc())
    whole = ibis.window(group_by=group)
    summed = by_score.select(
        *group,
        SCORE,
        hits=by_score.hits.sum().over(from_above).cast("int64"),
        upto=by_score.rows.sum().over(from_above).cast("int64"),
        positives=by_score.hits.sum().over(whole).cast("float64"),
        rows=by_score.rows.sum().over(whole).cast("float64"),
    )
    up = summed.hits.cast("float64") / summed.positives
    across = (summed.upto - summed.hits).cast("float64") / (summed.rows - summed.positives)
    place = ((up + across) / 2.0 * points).ceil().cast("int64")
    # Both sums grow along the curve: their largest values belong to the lowest score of the part.
    return summed.aggregate(
        by=[*group, place.name("place")],
        score=summed[SCORE].min(),
        hits=summed.hits.max(),
        upto=summed.upto.max(),
    )


def cuts_of(scores: Scores) -> Cuts:
    """The cut-offs of each group with both labels, from the highest score down.

    Raises Missing if there are no labels, or if every group has one class.
    """
    scores.need_labels()
    drawn = [one for one in scores.groups if not one.one_class]
    if not drawn:
        raise Missing(" ".join(one.one_class for one in scores.groups))
    table = scores.table
    for one in scores.groups:
        if one.one_class:
            table = table.filter((table[MODEL] != one.model) | (table[SPLIT] != one.split))
    found: dict[tuple[str, str], list[Cut]] = defaultdict(list)
    points = POINTS if len(drawn) == 1 else POINTS_OF_MANY
    for row in cuts(table, points).to_pyarrow().to_pylist():
        found[str(row[MODEL]), str(row[SPLIT])].append(Cut(row["score"], int(row["hits"]), int(row["upto"])))
    for own in found.values():
        own.sort(key=lambda cut: cut.upto)
    return found


def _areas(scores: Scores) -> dict[tuple[str, str], float]:
    """The exact AUC of each group with both classes."""
    sizes = {one.key: one.n for one in scores.groups}
    areas = {}
    for row in rank_sums(scores.table, GROUP).to_pyarrow().to_pylist():
        key = str(row[MODEL]), str(row[SPLIT])
        sums = auc_sums(row, sizes[key])
        if sums is not None:
            areas[key] = sums.auc
    return areas


def _with_curve(scores: Scores, model: str) -> list[Group]:
    return [one for one in scores.of_model(model) if not one.one_class]


def _classes(group: Group) -> tuple[int, int]:
    assert group.positives is not None  # labels were asked for
    return group.positives, group.n - group.positives


def _drawing(scores: Scores) -> Drawing:
    return Drawing(notes=[*scores.notes, *(one.one_class for one in scores.groups if one.one_class)])


def _figure(empty: Figure, scores: Scores, drawing: Drawing, columns: tuple[str, ...]) -> Figure:
    return Figure(
        empty.name,
        empty.title,
        empty.how,
        rests_on=scores.rests_on,
        plots=tuple(drawing.plots),
        legend=scores.splits if len(scores.splits) > 1 else (),
        facts=tuple(drawing.facts),
        notes=tuple(drawing.notes),
        table=Table(("model", "split", *columns), tuple(drawing.rows)),
    )
