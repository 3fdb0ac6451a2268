"""Specs of what the forecast says about pairs of metrics, about its days, and about its own record."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from monitor.anomalies.specs import OF_SERIES
from monitor.core.results import ResultKind
from monitor.metrics.family import MetricSpec

TARGET_LABEL: Final = "target"
ROLE_LABEL: Final = "role"
USED, TRIED = "used", "tried"
"""Values of the label `role`: whether the config says that the pair is used, or it was only tried."""
REASON_LABEL: Final = "reason"
OF_PAIR: Final = (TARGET_LABEL, *OF_SERIES, ROLE_LABEL)

_spec = partial(MetricSpec, kind=ResultKind.FORECAST, requires=("exposures", "feedback"), sliced=False)
_of_pair = partial(
    _spec,
    labels=OF_PAIR,
    samples="points: days, or models with one value each",
    no_data="fewer days than `min_days`, too few different values, or a number that never changes",
)

FORECAST_CORRELATION: Final = _of_pair(
    name="forecast_correlation",
    help="Rank correlation of an offline metric with a business metric, over days.",
    range=(-1.0, 1.0),
    interval="Fisher",
    formula="Spearman's correlation of the points, each number without the median of its weekday; the "
    "interval by Fisher's transformation, with as many points as neighbouring days that are alike are worth, "
    "so wide that the intervals of all pairs hold together (Bonferroni). Violated if a used pair was "
    "certainly related before the last `recent` days, is not any more, and has certainly another slope",
    answers="Does this offline metric say anything about the business metric?",
    misleads="It is not a cause: something else may move both. Metrics that are measured on the clicks of "
    "the live model share their chance with the business metric. docs/forecast.md lists more.",
)
FORECAST_SKILL: Final = _of_pair(
    name="forecast_skill",
    unit="ratio",
    range=(-math.inf, 1.0),
    help="Part of the naive forecast's error that the regression saves.",
    formula="1 - mean absolute error of the line / that of the median of the other days; each point is "
    "predicted from all others (leave one out)",
    answers="Is the line better than no line?",
    misleads="It is of the past days: a candidate that differs in another way is not covered. Of many pairs "
    "the best one looks better than it is.",
)
FORECAST_ERROR: Final = _of_pair(
    name="forecast_error",
    range=(0.0, math.inf),
    help="Mean absolute error of the forecast of a left-out day, in the unit of the business metric.",
    formula="mean over the points of |y - line of the other points|; the line is Theil and Sen's",
    answers="How far off is a forecast usually?",
    misleads="It is of single days. The mean of a candidate's first week has less chance in it.",
)
FORECAST_DAYS: Final = _spec(
    name="forecast_basis",
    labels=(REASON_LABEL,),
    help="Days of the past by what became of them: used, or the reason why they are left out.",
    formula="days of the last `days`; of several reasons the first counts: windows, maintenance, season, "
    "anomaly, drift, rule, log, holiday",
    answers="How many days does the forecast rest on, and why not on more?",
    misleads="A day that is used can still lack one of the two metrics; the detail of a pair says so.",
    samples="days looked at",
    counted=False,
    no_data="the history has no judged day",
)
FORECAST_CAME_TRUE: Final = _spec(
    name="forecast_came_true",
    unit="ratio",
    labels=(TARGET_LABEL,),
    interval="Wilson",
    help="Share of the forecasts whose interval contained the truth; it should be `confidence`.",
    formula="forecasts of candidates whose interval contains the mean of their first `truth_days` "
    "days online / forecasts that could be compared",
    answers="Can you believe the forecasts?",
    misleads="Only candidates that went live are counted. Those with a poor forecast often do not.",
    samples="forecasts that could be compared",
    no_data="no candidate with a forecast has been online for `truth_days` days",
)
FORECAST_SPECS: Final = {
    spec.name: spec
    for spec in (
        FORECAST_CORRELATION, FORECAST_SKILL, FORECAST_ERROR, FORECAST_DAYS, FORECAST_CAME_TRUE
    )
}  # fmt: skip
