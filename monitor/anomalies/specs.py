"""Specs of the results on a series and its past: band, deviation, drift and causes.

They come from the results of other metrics, so no family has them. `metric`, `by` and `of` name the series:
`by` is empty if the metric has none, `of` holds its further labels as `k=10,event=click`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from monitor.core.results import ResultKind
from monitor.metrics.family import MetricSpec
from monitor.models.specs import CAUSE_LABEL

METRIC_LABEL: Final = "metric"
BY_LABEL: Final = "by"
OF_LABEL: Final = "of"
OF_SERIES: Final = (METRIC_LABEL, BY_LABEL, OF_LABEL)


def written_of(labels: Mapping[str, str]) -> str:
    """The value of the label `of`: the labels of a series beside `by` and those of its slice, sorted.

    >>> written_of({"by": "macro", "k": "10", "event": "click", "dimension": "scene", "value": "home"})
    'event=click,k=10'
    >>> written_of({"by": "pv"})
    ''
    """
    left = sorted(set(labels) - {BY_LABEL, "dimension", "value"})
    return ",".join(f"{label}={labels[label]}" for label in left)


EXPECTED: Final = MetricSpec(
    name="expected",
    kind=ResultKind.BAND,
    help="The expected value of a metric in this window, from its own past, with the band around it.",
    formula="level of the last days + profile of the time of day and weekday + what the last windows "
    "share, on the metric's scale; lower and upper are expected -/+ bound x spread, taken back to the "
    "metric's own unit",
    answers="What would this number be if nothing had happened?",
    misleads="It knows only the past: the first holiday, sale or new scene is out of the band. Windows of "
    "incidents and of maintenance are left out. After a known change the past begins again.",
    labels=OF_SERIES,
    interval="band",
    requires=("exposures",),
    samples="past windows used",
    no_data="too few past windows; the detail says how many there are and how many are needed",
)
DEVIATION: Final = MetricSpec(
    name="deviation",
    kind=ResultKind.BAND,
    help="Difference between a metric and its expected value, in robust standard deviations, signed.",
    formula="(mean of the last 1, 2, 3, 6 or 12 windows - forecast from before them) / spread, the farthest "
    "of them if the series is out of its band, else that of the window alone; on the scale of the metric "
    "(for shares the arcsine of the root; for counts its inverse hyperbolic sine, near the root where they "
    "are small and the logarithm where they are large); the spread combines that of past forecasts and that "
    "of this window's samples",
    answers="Does this window differ from the past, and in which direction?",
    misleads="Among hundreds of series some always deviate: the bounds are set for all of them together, "
    "and alerts use `anomaly`, not a single series. A deviation is not always bad: a better list deviates "
    "too.",
    labels=OF_SERIES,
    requires=("exposures",),
    samples="past windows used",
    counted=False,
    no_data="too few past windows, or the metric has no value in the window",
)
DAILY: Final = MetricSpec(
    name="daily",
    kind=ResultKind.BAND,
    help="The value of a metric over a whole day (UTC), from which drift is judged.",
    formula="mean over the day's windows; of shares weighted by their samples",
    answers="What is a number's level, without the shape of the day?",
    misleads="It has no value for a day in which the metric left its band, or with less than half of its "
    "windows.",
    labels=OF_SERIES,
    requires=("exposures",),
    samples="those of the day's windows together, or the windows where they have none",
    no_data="the metric left its band that day, or less than half of its windows have a value",
    sliced=False,
)
DRIFT: Final = MetricSpec(
    name="drift",
    kind=ResultKind.DRIFT,
    help="Slow change of a metric: its last three days against the weeks before, standardised.",
    formula="(mean of the last three days - robust mean of days 5 to 28 before, by weekday) / its spread",
    answers="Does a number change so slowly that no single window shows it?",
    misleads="Sudden changes are judged in the windows, not here. The days of a drift are no past of the "
    "series for eight weeks; then the new level is the usual one.",
    labels=OF_SERIES,
    requires=("exposures",),
    samples="days used",
    counted=False,
    no_data="too few days",
    sliced=False,
)
ANOMALY: Final = MetricSpec(
    name="anomaly",
    kind=ResultKind.ANOMALY,
    help="Number of series that are out of their bands and fit this cause's pattern.",
    formula="series that deviate beyond their bounds and that the cause explains; violated if they suffice "
    "to name it and no earlier cause explains them",
    answers="What happened, in one word?",
    misleads="A cause is an interpretation of the pattern, not a proof: the evidence lists its series. A "
    "cause that another cause explains stays ok, and its detail names the other one. A series out of its "
    "band in one slice explains only that slice. While traffic is out of its band, series that follow the "
    "number of rows, such as the items shown, count for no other cause.",
    labels=(CAUSE_LABEL,),
    requires=("exposures",),
    samples="series with a band",
    counted=False,
    no_data="no series of the cause has both a value and a band, or a series that was out of its band has "
    "no value now",
    sliced=False,
)
ANOMALY_SEVERITY: Final = MetricSpec(
    name="anomaly_severity",
    kind=ResultKind.BAND,
    help="Missing share of the expected value, for the series of the cause.",
    unit="ratio",
    formula="traffic_lost: 1 - requests / expected; clicks_lost: 1 - actions / expected, of all events "
    "together; lists_empty: how much more of the requests have no list; cut at 0 and 1",
    answers="Is it bad enough to wake somebody?",
    misleads="It measures the size, not the certainty, and is 0 in every window in which the cause is ok.",
    labels=(CAUSE_LABEL,),
    requires=("exposures",),
    samples="series that it covers",
    counted=False,
    no_data="the cause has no verdict, or is violated without an amount",
    sliced=False,
)

BAND_SPECS: Final = {
    spec.name: spec for spec in (EXPECTED, DEVIATION, DAILY, DRIFT, ANOMALY, ANOMALY_SEVERITY)
}
