"""Score health: scores that are missing, broken, out of range, saturated or all the same."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace

import ibis.expr.types as ir

from monitor.core.columns import SCORE
from monitor.core.results import Result
from monitor.metrics.family import ALL, NOTHING_SHOWN, AddsUp, AggregateRow, Family, MetricSpec, make
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

SCORE_HEALTH = MetricSpec(
    name="score_health",
    of_rows=True,
    help="Shares of scores that are missing, broken or suspicious, and of lists whose scores are all equal.",
    unit="ratio",
    by=("null", "nan", "infinite", "out_of_range", "zero", "one", "denormal", "all_equal_lists", "distinct"),
    interval="Wilson",
    without_interval=("distinct",),
    parameters=("score_range",),
    formula="null: exposures without a score / exposures. nan, infinite, zero (exactly 0), one (exactly "
    "1), denormal (0 < |score| < 2.2e-308): / scores that are not null. out_of_range: scores below lo "
    "or above hi of `score_range`, both infinities included, / scores that are not null; only where it "
    "is set. all_equal_lists: lists whose scores are all equal / lists with two scores or more. "
    "distinct: distinct finite scores / finite scores.",
    answers="Does the model work: are all scores there, finite, in range, and different?",
    misleads="A model that rounds its scores has few distinct ones, and that is fine. `distinct` falls as a "
    "window grows, and has no interval: distinct values are not independent trials. NaN equals NaN in "
    "all_equal_lists.",
    requires=("exposures.score",),
    samples="exposures; scores; lists with two scores; finite scores",
    no_data="no exposures; no score; no list with two scores; no finite score",
)
SMALLEST_NORMAL = sys.float_info.min

_OF_SCORES = ("nan", "infinite", "out_of_range", "zero", "one", "denormal")


class ScoreHealth(Family):
    """All shares of scores, from one scan of the rows and one of the lists."""

    name = "score_health"
    outputs = ((SCORE_HEALTH, SCORE_HEALTH.by),)
    needs = ("exposures.score",)
    adds_up = AddsUp(columns=(ALL,), without=((SCORE_HEALTH.name, "distinct"),))

    def series(self, settings: MetricSettings) -> Iterator[tuple[MetricSpec, dict[str, str]]]:
        for spec, labels in super().series(settings):
            if labels["by"] != "out_of_range" or settings.score_range is not None:
                yield spec, labels

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        rows = shared.shown(key)
        rows = rows.select(*by, score=rows[SCORE].cast("float64"))
        score = rows.score
        # NaN sorts above everything in some engines and fails every comparison in others.
        number = ~score.isnan()
        low, high = settings.score_range or (-math.inf, math.inf)
        counts = rows.aggregate(
            by=by,
            rows=rows.count(),
            scores=score.count(),
            nan=score.isnan().sum(),
            infinite=score.isinf().sum(),
            out_of_range=(number & ((score < low) | (score > high))).sum(),
            zero=(score == 0.0).sum(),
            one=(score == 1.0).sum(),
            denormal=((score != 0.0) & (score.abs() < SMALLEST_NORMAL)).sum(),
        )
        requests = shared.requests(key)
        several = requests.filter(requests.scored >= 2)
        lists = several.aggregate(
            by=by, lists=several.count(), all_equal=(several.score_min == several.score_max).sum()
        )
        # Engines group -0.0 with 0.0. To leave out what is not finite after grouping costs less than before.
        values = rows.distinct()
        finite = values.score.notnull() & ~values.score.isnan() & ~values.score.isinf()
        distinct = values.aggregate(by=by, distinct=values.count(where=finite))
        return shared.side_by_side(key, counts, lists, distinct)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        rows, scores = row["rows"] or 0, row["scores"] or 0
        no_scores = "no exposure carries a score" if rows else NOTHING_SHOWN
        yield make(SCORE_HEALTH, settings, "null").share(rows - scores, rows, NOTHING_SHOWN)
        for by in _OF_SCORES:
            if by != "out_of_range" or settings.score_range is not None:
                yield make(SCORE_HEALTH, settings, by).share(row[by], scores, no_scores)
        equal = make(SCORE_HEALTH, settings, "all_equal_lists")
        yield equal.share(row["all_equal"], row["lists"], "no list has two scores")
        finite = scores - (row["nan"] or 0) - (row["infinite"] or 0)
        distinct = make(SCORE_HEALTH, settings, "distinct").share(
            row["distinct"], finite, "no score is finite"
        )
        yield replace(distinct, lower=None, upper=None)
