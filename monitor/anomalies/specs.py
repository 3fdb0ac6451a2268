"""What is told of a series against its own past: its band, how far it is off, slow changes, and named causes.

These are made of other metrics' results, and are of no family. `metric`, `by` and `of` say which series is
meant: `by` is empty where the metric has none, and `of` holds its further labels as `k=10,event=click`.
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
    help="What a metric is expected to be in this window, from its own past, and the band around it.",
    formula="robust centre of the metric's past windows: of the same weekday and time of day where there are "
    "enough, else of the same time of day, else of any; lower and upper are expected -/+ bound x spread, "
    "taken back to the metric's own unit",
    answers="What would this number be today if nothing had happened?",
    misleads="It knows the past alone: the first holiday, sale or new scene is outside of it. Windows of an "
    "incident and of maintenance are left out of it, a known change begins it anew.",
    labels=OF_SERIES,
    interval="band",
    requires=("exposures",),
    samples="past windows used",
    no_data="too little past; the detail says how many windows of how many are there",
)
DEVIATION: Final = MetricSpec(
    name="deviation",
    kind=ResultKind.BAND,
    help="How far a metric is from what is expected of it, in robust standard deviations, signed.",
    formula="(value - expected) / spread on the scale of the metric (for shares the arcsine of the root; for "
    "counts its inverse hyperbolic sine, near the root where they are small and the logarithm where they are "
    "large); the spread holds the past windows' own and that of the samples at hand",
    answers="Is this window unlike the past, and in which direction?",
    misleads="Of hundreds of series some are always far: the bounds are set for all of them together, and "
    "alerts go by `anomaly`, not by a single series. Far is not bad: a better list deviates as well.",
    labels=OF_SERIES,
    requires=("exposures",),
    samples="past windows used",
    counted=False,
    no_data="too little past, or the metric has no value in the window",
)
DAILY: Final = MetricSpec(
    name="daily",
    kind=ResultKind.BAND,
    help="What a metric was over a whole day (UTC), as the drift is judged on it.",
    formula="mean over the day's windows; of shares weighted by their samples",
    answers="Where does a number stand, without the shape of the day?",
    misleads="A day in which the metric left its band has none, nor has one with less than half of its "
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
    help="How far a metric has moved slowly: its last three days against the weeks before, standardised.",
    formula="(mean of the last three days - robust mean of days 5 to 28 before, by weekday) / its spread",
    answers="Does a number slide that no single window shows?",
    misleads="A step is judged by the windows, not here. What slides for more than four weeks becomes its "
    "own past.",
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
    help="How many series are out of their bands in the pattern that this cause leaves.",
    formula="series that deviate beyond their bounds and that the cause explains; violated where they "
    "suffice to name it and no cause before it explains them",
    answers="What has happened, in one word?",
    misleads="A cause is a reading of the pattern, not a proof: the evidence lists the series it was read "
    "from. A cause that another explains stays ok, and its detail says which one; what is out in one slice "
    "explains that slice alone. While the traffic is out of its band, what more or fewer rows move by their "
    "number alone, such as the items shown, is told of no other cause.",
    labels=(CAUSE_LABEL,),
    requires=("exposures",),
    samples="series with a band",
    counted=False,
    no_data="no series that the cause is read from has both a value and a band, or one that stood out has no "
    "value now",
    sliced=False,
)
ANOMALY_SEVERITY: Final = MetricSpec(
    name="anomaly_severity",
    kind=ResultKind.BAND,
    help="Share of what was expected that is gone, of the series that the cause is read from.",
    unit="ratio",
    formula="traffic_lost: 1 - requests / expected; clicks_lost: 1 - actions / expected, of all events "
    "together; lists_empty: how much more of the requests have no list; cut at 0 and 1",
    answers="Must somebody get up for it?",
    misleads="It says how much, not how surely, and is 0 in every window in which the cause is ok.",
    labels=(CAUSE_LABEL,),
    requires=("exposures",),
    samples="series that it is taken over",
    counted=False,
    no_data="the cause has no verdict, or stands and says nothing about an amount",
    sliced=False,
)

BAND_SPECS: Final = {
    spec.name: spec for spec in (EXPECTED, DEVIATION, DAILY, DRIFT, ANOMALY, ANOMALY_SEVERITY)
}
