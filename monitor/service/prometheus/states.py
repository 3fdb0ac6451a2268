"""Which family tells the state of a series: one gauge a status, 1 for the one that holds.

What stands on a metric's own past (its deviation, its drift, the causes read from them) has families of its
own: as a metric's state it would be taken for a broken objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from monitor.anomalies.specs import DEVIATION, OF_SERIES
from monitor.core.results import VERDICTS, ResultKind, Status, rank
from monitor.core.text import LABEL_LENGTH, SENTENCE_LENGTH, encodable, fit
from monitor.history.snapshot import Series
from monitor.models.specs import CAUSE_LABEL
from monitor.service.prometheus.families import SLICE_LABELS

Labels = tuple[str, ...]  # the values of a family's labels, in the family's order
Values = dict[str, dict[Labels, float]]  # family name -> its series

_STATUSES: Final = tuple(Status)


def label(text: str, length: int = LABEL_LENGTH) -> str:
    """A label value that can be encoded, of bounded length."""
    return encodable(fit(text, length, "…"))


def verdict(standing: Status) -> Status:
    """One of the five verdicts: an undefined value leaves nothing to judge."""
    return Status.NO_DATA if standing is Status.UNDEFINED else standing


def set_status(values: Values, name: str, labels: Labels, status: Status, known: Sequence[Status]) -> None:
    """Tell the status in the family; of several series with the same labels the worst is told."""
    # A metric has further labels of its own, such as `k`, that its state has not.
    series = values[name]
    told = next((each for each in known if series.get((*labels, each.value))), None)
    if told is None or rank(status) < rank(told):
        series |= {(*labels, each.value): float(each is status) for each in known}


def emit_status(values: Values, series: Series) -> None:
    """The state of a measurement, of an experiment, of a model's gap, or of what the past says."""
    result = series.result
    given = result.labels
    recommender = label(series.recommender)
    if result.kind.is_of_the_past:
        _of_the_past(values, series)
    elif result.kind is ResultKind.EXPERIMENT:
        by = label(given.get("by", ""))
        which = (recommender, label(given["experiment"]), label(result.metric), by)
        status = result.status if result.threshold is None else verdict(series.standing)
        set_status(values, "recsys_experiment_status", which, status, _STATUSES)
    elif result.kind is ResultKind.GAP:
        of_gap = (recommender, label(given["pair"]), label(given["model"]))
        set_status(values, "recsys_auc_gap_status", of_gap, verdict(series.standing), VERDICTS)
    elif result.kind is ResultKind.CAUSE:
        if result.value is None:  # a cause with a share has it in recsys_auc_gap_cause_ratio
            of_cause = (recommender, *(label(given[one]) for one in ("pair", "model", "cause")))
            values["recsys_auc_gap_cause_unknown_share"][of_cause] = 1.0
    elif result.kind is ResultKind.MODEL:
        pass  # of a model the gap alone is judged; what could not be measured has no series
    elif not any(one in given for one in SLICE_LABELS):
        # A check of the logs has the label `log` in place of `by`.
        labels = (recommender, label(result.metric), label(given.get("by", given.get("log", ""))))
        set_status(values, "recsys_metric_status", labels, result.status, _STATUSES)
        if result.threshold is not None:
            set_status(values, "recsys_objective_status", labels, verdict(series.standing), VERDICTS)
    elif result.threshold is not None:
        own = (result.metric, given.get("by", ""), *(given.get(one, "") for one in SLICE_LABELS))
        of_slice = (recommender, *map(label, own))
        set_status(values, "recsys_slice_objective_status", of_slice, verdict(series.standing), VERDICTS)


def _of_the_past(values: Values, series: Series) -> None:
    result = series.result
    stands = verdict(series.standing)

    def where(*names: str) -> Labels:
        return (label(series.recommender), *(label(result.labels.get(one, "")) for one in names))

    if result.kind is ResultKind.ANOMALY:
        set_status(values, "recsys_anomaly_status", where(CAUSE_LABEL), stands, VERDICTS)
        _emit_detail(values, "recsys_anomaly_detail_info", where(CAUSE_LABEL), series)
    elif result.kind is ResultKind.DRIFT:
        set_status(values, "recsys_drift_status", where(*OF_SERIES), stands, VERDICTS)
        _emit_detail(values, "recsys_drift_detail_info", where(*OF_SERIES), series)
    elif result.metric == DEVIATION.name:
        if not any(one in result.labels for one in SLICE_LABELS):
            set_status(values, "recsys_deviation_status", where(*OF_SERIES), stands, VERDICTS)
        elif stands is Status.VIOLATED:
            # Slices are many: only those that are off are told, so a healthy recommender has none.
            told = where(*OF_SERIES, *SLICE_LABELS)
            values["recsys_slice_deviation_status"][*told, stands.value] = 1.0


def _emit_detail(values: Values, name: str, labels: Labels, series: Series) -> None:
    """The sentence of the newest violated window, while the violation stands: what an alert says."""
    told = [] if series.violation is None else [series.violation.result]
    if series.result.status is Status.VIOLATED:
        told.insert(0, series.result)
    if series.standing is Status.VIOLATED and told and told[0].detail:
        values[name][*labels, label(told[0].detail, SENTENCE_LENGTH)] = 1.0
