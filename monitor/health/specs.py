"""What the health score and its parts say. Both are made of other metrics' results, and are of no family."""

from __future__ import annotations

from typing import Final

from monitor.core.results import ResultKind
from monitor.metrics.family import MetricSpec, Theme

HEALTH_SCORE: Final = MetricSpec(
    name="health_score",
    theme=Theme.HEALTH,
    kind=ResultKind.HEALTH,
    help="One number for the recommender: the weighted mean of the worth of the chosen metrics, 0 to 1.",
    unit="ratio",
    formula="sum of weight x worth / sum of weight, over the parts of `health` that have a value in the "
    "window; worth = (value - zero) / (one - zero), cut at 0 and 1",
    answers="Is this recommender healthy, in one number?",
    misleads="It depends on its weights and targets: compare two recommenders only with the same ones. A "
    "part that rises can hide one that falls, so read the parts before the score, and judge with rules and "
    "objectives. It changes if a part has no value; the detail says so.",
    requires=("exposures",),
    samples="parts with a value",
    no_data="less than `min_weight` of the weight has a value",
    sliced=False,
)
HEALTH_PART: Final = MetricSpec(
    name="health_part",
    theme=Theme.HEALTH,
    kind=ResultKind.HEALTH,
    help="The worth of one metric in the health score: 0 at its value `zero`, 1 at its value `one`.",
    unit="ratio",
    labels=("part",),
    interval="mapped",
    formula="(value - zero) / (one - zero), cut at 0 and 1; of the metric's value, and of both ends of its "
    "interval where it has one",
    answers="Which metric lowers the health score?",
    misleads="Beyond its targets a part is constant: at 1 a metric may still get better, at 0 still worse.",
    requires=("exposures",),
    samples="those of the metric",
    no_data="the metric has no value in the window; it is not measured at all",
    sliced=False,
)
HEALTH_SPECS: Final = {spec.name: spec for spec in (HEALTH_SCORE, HEALTH_PART)}
