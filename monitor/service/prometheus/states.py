"""The gauges of states: 1 for the current status. Prometheus marks a series as stale that leaves the scrape.

Deviations, drifts, causes and substitution have families of their own. As the state of a metric, they would
look like a violated objective.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from monitor.anomalies.specs import DEVIATION, OF_SERIES
from monitor.core.results import Result, ResultKind, Status, rank
from monitor.core.text import LABEL_LENGTH, encodable, fit
from monitor.forecast.specs import FORECAST_CORRELATION, ROLE_LABEL, TARGET_LABEL, USED
from monitor.history.snapshot import Series
from monitor.metrics.exported import SLICE_LABELS
from monitor.models.specs import CAUSE_LABEL
from monitor.platform.specs import SUBSTITUTION_LABELS

Labels = tuple[str, ...]  # the values of a family's labels, in the family's order
Values = dict[str, dict[Labels, float]]  # family name -> its series

_WORDS: Final = tuple(status.value for status in Status)
_OF_SLICE: Final = frozenset(SLICE_LABELS)


@lru_cache(maxsize=65_536)
def label(text: str) -> str:
    """A label value that can be encoded, of bounded length. The same few occur in thousands of series."""
    return encodable(fit(text, LABEL_LENGTH, "…"))


def verdict(standing: Status) -> Status:
    """The standing as one of the five verdicts: undefined is exported as no_data."""
    return Status.NO_DATA if standing is Status.UNDEFINED else standing


def set_status(values: Values, name: str, labels: Labels, status: Status) -> None:
    """Set the status of these labels, unless a worse one is set.

    Several series can have the same labels, because a metric has labels that its state lacks, such as `k`.
    """
    series = values[name]
    current = next((word for word in _WORDS if (*labels, word) in series), None)
    if current is not None:
        if rank(status) >= rank(Status(current)):
            return
        del series[*labels, current]
    series[*labels, status.value] = 1.0


def add_status(values: Values, series: Series) -> None:
    """Add the state of any series but that of a rule."""
    result = series.result
    current = verdict(series.standing)

    def labels(*names: str) -> Labels:
        return (label(series.recommender), *(label(result.labels.get(name, "")) for name in names))

    match result.kind:
        case ResultKind.ANOMALY:
            set_status(values, "recsys_anomaly_status", labels(CAUSE_LABEL), current)
            _add_worst(values, labels(CAUSE_LABEL), series)
        case ResultKind.DRIFT:
            set_status(values, "recsys_drift_status", labels(*OF_SERIES), current)
        case ResultKind.FORECAST if _is_used(result):
            of_pair = labels(TARGET_LABEL, *OF_SERIES)
            set_status(values, "recsys_forecast_status", of_pair, current)
        case ResultKind.BAND if result.metric == DEVIATION.name and is_slice(result):
            if current is Status.VIOLATED:  # slices are many, so only the violated ones have a state
                of_slice = labels(*OF_SERIES, *SLICE_LABELS)
                values["recsys_slice_deviation_status"][*of_slice, current.value] = 1.0
        case ResultKind.BAND if result.metric == DEVIATION.name:
            set_status(values, "recsys_deviation_status", labels(*OF_SERIES), current)
        case ResultKind.EXPERIMENT:
            recommender, experiment, by = labels("experiment", "by")
            of_metric = (recommender, experiment, label(result.metric), by)
            status = result.status if result.threshold is None else current
            set_status(values, "recsys_experiment_status", of_metric, status)
        case ResultKind.SUBSTITUTION:
            of_total = labels(*SUBSTITUTION_LABELS)
            set_status(values, "recsys_substitution_status", of_total, current)
        case ResultKind.GAP:
            set_status(values, "recsys_auc_gap_status", labels("pair", "model"), current)
        case ResultKind.CAUSE if result.value is None:  # a known share is in recsys_auc_gap_cause_ratio
            values["recsys_auc_gap_cause_unknown_share"][labels("pair", "model", "cause")] = 1.0
        case ResultKind.CAUSE | ResultKind.MODEL | ResultKind.BAND | ResultKind.FORECAST:
            pass  # not judged: of a model only the gap is, of a band the deviation, of a forecast a used pair
        case _:
            _add_metric_status(values, series)


def _is_used(result: Result) -> bool:
    return result.metric == FORECAST_CORRELATION.name and result.labels.get(ROLE_LABEL) == USED


def is_slice(result: Result) -> bool:
    return not _OF_SLICE.isdisjoint(result.labels)


def _add_metric_status(values: Values, series: Series) -> None:
    result, current = series.result, verdict(series.standing)
    if result.status is Status.OK and result.threshold is None:
        return  # what is ok has a value, and most are
    # A check of the logs has the label `log` instead of `by`.
    by = result.labels.get("by", result.labels.get("log", ""))
    labels = (label(series.recommender), label(result.metric), label(by))
    is_judged = result.threshold is not None
    if not is_slice(result):
        if result.status is not Status.OK:
            set_status(values, "recsys_metric_status", labels, result.status)
        if is_judged:
            set_status(values, "recsys_objective_status", labels, current)
    elif is_judged:
        of_slice = (*labels, *(label(result.labels.get(name, "")) for name in SLICE_LABELS))
        set_status(values, "recsys_slice_objective_status", of_slice, current)


def _add_worst(values: Values, labels: Labels, series: Series) -> None:
    """While a cause is violated, add the series that was furthest out of its band."""
    violated = series.violation.result if series.violation else series.result
    if series.standing is not Status.VIOLATED or not violated.evidence:
        return
    row = violated.evidence[0]  # the worst comes first
    of_worst = (*labels, *(label(str(row.get(name) or "")) for name in (*OF_SERIES, *SLICE_LABELS)))
    for family, column in (
        ("recsys_anomaly_worst", "measured"),
        ("recsys_anomaly_worst_expected", "expected"),
    ):
        value = row.get(column)
        if isinstance(value, int | float) and math.isfinite(value):
            values[family].setdefault(of_worst, float(value))
