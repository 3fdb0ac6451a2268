"""How often each score was acted on: an AUC that adds up over windows.

Scores are kept with `DIGITS` significant digits, so a window has thousands of them at most, not one for each
exposure. Scores that only rounding makes equal count as a tie, which bounds the error.
"""

from __future__ import annotations

from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import LABEL, SCORE
from monitor.metrics.scores.labelled import labelled
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings

LABEL_COUNTS: Final = "label_counts"
DIGITS: Final = 4
SMALLEST, LARGEST_SCORE = "score_min", "score_max"
POSITIVES, NEGATIVES = "positives", "negatives"
_SMALLEST_SIZE: Final = -300.0
"""The power of ten below which scores are rounded no further: a smaller step is 0 in float64."""


def label_counts(shared: Shared, settings: MetricSettings) -> ir.Table:
    """One row a rounded score: `positives`, `negatives`, and the smallest and largest score behind it."""

    def build() -> ir.Table:
        rows = labelled(shared, settings)
        rows = rows.mutate(rounded=rounded(rows[SCORE]))
        return rows.aggregate(
            by="rounded",
            **{
                POSITIVES: rows[LABEL].sum(),
                NEGATIVES: (1 - rows[LABEL]).sum(),
                SMALLEST: rows[SCORE].min(),
                LARGEST_SCORE: rows[SCORE].max(),
            },
        ).rename({SCORE: "rounded"})

    return shared.once(LABEL_COUNTS, None, build)


def rounded(score: ir.FloatingColumn) -> ir.FloatingColumn:
    """A finite score with `DIGITS` significant digits."""
    size = score.abs().nullif(0.0).log10().floor()
    step = ibis.literal(10.0) ** (ibis.greatest(size, _SMALLEST_SIZE) - (DIGITS - 1))
    return ((score / step).round().cast("float64") * step).fill_null(0.0)


def wins_of_counts(counts: ir.Table) -> ir.Table:
    """One row: `positives`, `wins` = 2 M N AUC, and `unsure`, the largest error of `wins`.

    With p and t the positives and negatives of a score, and B the negatives below it, each of its positives
    wins 2 B + t. Two scores that rounding made equal may have been in either order: that is p t either way.
    """
    order = ibis.window(order_by=counts[SCORE], preceding=None, following=0)
    below = counts[NEGATIVES].sum().over(order) - counts[NEGATIVES]
    placed = counts.mutate(
        won=counts[POSITIVES].cast("float64") * (2 * below + counts[NEGATIVES]).cast("float64"),
        unsure=ibis.ifelse(
            counts[SMALLEST] == counts[LARGEST_SCORE],
            0.0,
            counts[POSITIVES].cast("float64") * counts[NEGATIVES].cast("float64"),
        ),
    )
    return placed.aggregate(
        positives=placed[POSITIVES].sum(), wins=placed.won.sum(), unsure=placed.unsure.sum()
    )
