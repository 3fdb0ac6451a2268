"""The families of verdicts: the states of metrics, objectives and rules, and the rules' numbers."""

from __future__ import annotations

from typing import Final

from monitor.anomalies.specs import OF_SERIES
from monitor.models.specs import CAUSE_LABEL
from monitor.service.prometheus.family import RECOMMENDER, SLICE_LABELS, Family

_RULE = (RECOMMENDER, "rule", "kind")

STATUSES: Final = (
    Family(
        "recsys_metric_status",
        "gauge",
        "1 for the state of the metric in the last window, 0 for its other states: ok, violated, no_data, "
        "late, error, undefined. `by` is empty for a metric without it; of several series that differ in a "
        "further label, such as `k`, the worst state is given.",
        (RECOMMENDER, "metric", "by", "status"),
    ),
    Family(
        "recsys_objective_status",
        "gauge",
        "1 for the current verdict on the objective, 0 for the others: ok, violated, no_data, late, "
        "error. It stays violated until the value itself is back at its bound.",
        (RECOMMENDER, "metric", "by", "status"),
    ),
    Family(
        "recsys_slice_objective_status",
        "gauge",
        "As recsys_objective_status, of objectives on one value of a slice; they are in no other family.",
        (RECOMMENDER, "metric", "by", *SLICE_LABELS, "status"),
    ),
    Family(
        "recsys_experiment_status",
        "gauge",
        "1 for the state of the experiment's metric, 0 for the others: ok, violated, no_data, late, error, "
        "undefined. For the metrics that judge the split (experiment_split_p_value by anytime, "
        "experiment_unknown_arm_users) it is the current verdict; of several arms, the worst.",
        (RECOMMENDER, "experiment", "metric", "by", "status"),
    ),
    Family(
        "recsys_auc_gap_status",
        "gauge",
        "1 for the current verdict on the gap, 0 for the others: ok, violated, no_data, late, error. It "
        "stays violated until the gap itself is back at its bound.",
        (RECOMMENDER, "pair", "model", "status"),
    ),
    Family(
        "recsys_auc_gap_cause_unknown_share",
        "gauge",
        "1 for a cause of a violated gap that has evidence, but whose share of the gap is unknown. A "
        "cause with a share is in recsys_auc_gap_cause_ratio.",
        (RECOMMENDER, "pair", "model", "cause"),
    ),
    Family(
        "recsys_deviation_status",
        "gauge",
        "1 for the verdict on the series' deviation from its own past, 0 for the others: ok, violated, "
        "no_data, late, error. Of hundreds of series some are always far from their past: alerts "
        "use recsys_anomaly_status.",
        (RECOMMENDER, *OF_SERIES, "status"),
    ),
    Family(
        "recsys_slice_deviation_status",
        "gauge",
        "As recsys_deviation_status, by slice; only series that are currently violated.",
        (RECOMMENDER, *OF_SERIES, *SLICE_LABELS, "status"),
    ),
    Family(
        "recsys_drift_status",
        "gauge",
        "1 for the verdict on the series' slow change over days, 0 for the others: ok, violated, no_data, "
        "late, error.",
        (RECOMMENDER, *OF_SERIES, "status"),
    ),
    Family(
        "recsys_anomaly_status",
        "gauge",
        "1 for the verdict on the cause, 0 for the others: ok, violated, no_data, late, error. Violated "
        "where the series that are out of their bands show the pattern of this cause, and no cause before it "
        "explains them.",
        (RECOMMENDER, CAUSE_LABEL, "status"),
    ),
    Family(
        "recsys_anomaly_detail_info",
        "info",
        "1, with the sentence on a cause that is currently violated: what it says, and the series furthest "
        "out of its band.",
        (RECOMMENDER, CAUSE_LABEL, "detail"),
    ),
    Family(
        "recsys_drift_detail_info",
        "info",
        "1, with the sentence on a drift that is currently violated: from where to where.",
        (RECOMMENDER, *OF_SERIES, "detail"),
    ),
    Family(
        "recsys_rule_status",
        "gauge",
        "1 for the current verdict on the rule, 0 for the others: ok, violated, no_data, late, error. "
        "A soft rule stays violated until the rate itself is back at its threshold.",
        (*_RULE, "status"),
    ),
)

RULES: Final = (
    Family(
        "recsys_rule_violation_ratio",
        "gauge",
        "Share of the last window's rows (or lists) that violate the rule.",
        _RULE,
        "ratio",
    ),
    Family(
        "recsys_rule_violation_lower_ratio",
        "gauge",
        "Lower bound of the interval of the violation ratio.",
        _RULE,
        "ratio",
    ),
    Family(
        "recsys_rule_violation_upper_ratio",
        "gauge",
        "Upper bound of the interval of the violation ratio.",
        _RULE,
        "ratio",
    ),
    Family(
        "recsys_rule_threshold_ratio",
        "gauge",
        "The violation ratio up to which the rule holds; 0 for a hard rule.",
        _RULE,
        "ratio",
    ),
    Family("recsys_rule_window_violations", "gauge", "Violations of the rule in the last window.", _RULE),
    Family("recsys_rule_samples", "gauge", "What the rule's ratio rests on: rows (or lists) judged.", _RULE),
    Family(
        "recsys_rule_since_timestamp_seconds",
        "gauge",
        "Start of the first window of the current verdict on the rule.",
        _RULE,
        "seconds",
    ),
    Family(
        "recsys_rule_violations_total",
        "counter",
        "Violations of the rule in all judged windows. Starts at 0 for every configured rule, counts each "
        "window once (corrections by late data are left out), and survives restarts. Windows in maintenance "
        "are left out of a soft rule's.",
        _RULE,
    ),
    Family(
        "recsys_rule_judged_total",
        "counter",
        "Rows (or lists) judged by the rule in all windows, counted as its violations are: what a soft rule "
        "has used of its error budget is the ratio of the two over its threshold.",
        _RULE,
    ),
)
