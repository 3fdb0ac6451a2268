"""Importance weights: whether a log with propensities supports an off-policy estimate."""

from __future__ import annotations

from collections.abc import Iterator

import ibis.expr.types as ir

from monitor.core.columns import PROPENSITY
from monitor.core.results import Result
from monitor.metrics.family import AggregateRow, Family, MetricSpec, make
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import effective_size

IMPORTANCE_WEIGHT = MetricSpec(
    name="importance_weight",
    of_rows=True,
    help="The smallest and the largest importance weight 1 / propensity.",
    by=("min", "max"),
    formula="w = 1 / p over the exposures whose logged propensity p lies in (0, 1]; min w, max w",
    answers="Does a single exposure stand for a million?",
    misleads="One extreme row determines it: read it together with effective_sample_size.",
    requires=("exposures.propensity",),
    samples="propensities in (0, 1]",
    no_data="no exposure carries a propensity",
    undefined="no propensity lies in (0, 1]; 1 / p is beyond float64",
)
EFFECTIVE_SAMPLE_SIZE = MetricSpec(
    name="effective_sample_size",
    better="higher",
    of_rows=True,
    help="How many equally weighted exposures the weighted ones are worth.",
    formula="(sum w)^2 / sum w^2, w = 1 / p over the exposures whose propensity p lies in (0, 1]",
    answers="How many samples does an inverse-propensity estimate on this log really have?",
    misleads="It grows with the window: compare it with its samples.",
    requires=("exposures.propensity",),
    samples="propensities in (0, 1]",
    no_data="no exposure carries a propensity",
    undefined="no propensity lies in (0, 1]",
)
LOW_PROPENSITY = MetricSpec(
    name="low_propensity",
    better="lower",
    of_rows=True,
    help="Share of propensities below `min_propensity`.",
    unit="ratio",
    parameters=("min_propensity",),
    formula="finite propensities p < `min_propensity` (0 and negative ones included) / finite propensities",
    answers="How much of the log would be clipped before it is used to learn or to estimate?",
    misleads="With many candidates small propensities are normal: choose `min_propensity` by their number.",
    requires=("exposures.propensity",),
    samples="finite propensities",
    no_data="no exposure carries a finite propensity",
)


class Importance(Family):
    """The weights' range, their effective sample size, and the share of small propensities."""

    name = "importance_weights"
    outputs = (
        (IMPORTANCE_WEIGHT, IMPORTANCE_WEIGHT.by),
        (EFFECTIVE_SAMPLE_SIZE, ()),
        (LOW_PROPENSITY, ()),
    )
    needs = ("exposures.propensity",)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        rows = shared.shown(key)
        rows = rows.select(*by, p=rows[PROPENSITY].cast("float64"))
        rows = rows.filter(rows.p.notnull())
        finite = ~rows.p.isnan() & ~rows.p.isinf()
        every = rows.aggregate(
            by=by,
            logged=rows.count(),
            finite=finite.sum(),
            low=(finite & (rows.p < settings.min_propensity)).sum(),
        )
        usable = rows.filter(finite & (rows.p > 0.0) & (rows.p <= 1.0))
        edges = usable.aggregate(
            by=by, usable=usable.count(), smallest=usable.p.min(), largest=usable.p.max()
        )
        # Weights relative to the largest one: their squares neither overflow nor all vanish.
        both = usable.cross_join(edges) if key is None else usable.join(edges, key)
        both = both.mutate(part=both.smallest / both.p)
        parts = both.aggregate(by=by, parts=both.part.sum(), squares=(both.part * both.part).sum())
        return shared.side_by_side(key, every, edges, parts)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        logged, usable, finite = row["logged"] or 0, row["usable"] or 0, row["finite"] or 0
        lowest, highest = (make(IMPORTANCE_WEIGHT, settings, by) for by in ("min", "max"))
        size = make(EFFECTIVE_SAMPLE_SIZE, settings)
        nothing = "no exposure carries a propensity"
        if logged == 0:
            yield from (builder.no_data(nothing) for builder in (lowest, highest, size))
        elif usable == 0:
            detail = f"none of {logged} propensities lies in (0, 1]"
            yield from (builder.undefined(detail, 0) for builder in (lowest, highest, size))
        else:
            left_out = (
                f"{logged - usable:,} of {logged:,} propensities do not lie in (0, 1]"
                if usable < logged
                else ""
            )
            yield lowest.value(1.0 / row["largest"], usable, detail=left_out)
            yield highest.value(1.0 / row["smallest"], usable, detail=left_out)
            yield size.value(effective_size(row["parts"], row["squares"]), usable, detail=left_out)
        yield make(LOW_PROPENSITY, settings).share(
            row["low"], finite, "no exposure carries a finite propensity" if logged else nothing
        )
