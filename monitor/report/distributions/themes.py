"""The one list of figures, in the order of the page. To add a figure: its file, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from monitor.report.distributions import categories, curves, features, items, lengths, positions, scores
from monitor.report.distributions.figure import Figure
from monitor.report.distributions.labelled import Scores, scores_of
from monitor.report.distributions.rows import Missing, SpanRows

_Value = TypeVar("_Value")


class Memo:
    """The rows of a span, and what several figures read: each is computed once, or is missing for all."""

    def __init__(self, rows: SpanRows) -> None:
        self.rows = rows
        self._scores: Scores | Missing | None = None
        self._cuts: curves.Cuts | Missing | None = None

    @property
    def scores(self) -> Scores:
        """The scored rows. Raises Missing if there are none."""
        if self._scores is None:
            self._scores = _or_missing(lambda: scores_of(self.rows))
        return _there(self._scores)

    @property
    def cuts(self) -> curves.Cuts:
        """The cut-offs of the scores. Raises Missing if there is no curve."""
        if self._cuts is None:
            self._cuts = _or_missing(lambda: curves.cuts_of(self.scores))
        return _there(self._cuts)


def _or_missing(compute: Callable[[], _Value]) -> _Value | Missing:
    try:
        return compute()
    except Missing as missing:
        return missing


def _there(value: _Value | Missing) -> _Value:
    if isinstance(value, Missing):
        raise value
    return value


@dataclass(frozen=True, slots=True)
class Theme:
    """A figure without its numbers, and the function that computes them."""

    empty: Figure
    compute: Callable[[Memo], Figure]


THEMES: Final = (
    Theme(items.EMPTY, lambda memo: items.items_figure(memo.rows)),
    Theme(lengths.EMPTY, lambda memo: lengths.lengths_figure(memo.rows)),
    Theme(categories.EMPTY, lambda memo: categories.categories_figure(memo.rows)),
    Theme(positions.EMPTY, lambda memo: positions.positions_figure(memo.rows)),
    Theme(scores.HISTOGRAM, lambda memo: scores.histogram_figure(memo.scores)),
    Theme(
        scores.CALIBRATION,
        lambda memo: scores.calibration_figure(memo.scores, memo.rows.settings.metrics.clip),
    ),
    Theme(curves.ROC, lambda memo: curves.roc_figure(memo.scores, memo.cuts)),
    Theme(curves.PRECISION_RECALL, lambda memo: curves.precision_recall_figure(memo.scores, memo.cuts)),
    Theme(features.EMPTY, lambda memo: features.features_figure(memo.rows)),
)
