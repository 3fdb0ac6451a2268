"""Every family that /metrics exports, declared once: name, help, labels, unit, kind.

The exporter builds its families from this table, and docs/gauges.md is written from it. Tests compare the
alerts and the dashboards with it. The families of metrics follow from the catalogue; all others are declared
here.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from monitor.anomalies.specs import OF_SERIES
from monitor.catalogue import optional_families
from monitor.forecast.specs import TARGET_LABEL
from monitor.history import counters
from monitor.metrics.exported import RECOMMENDER, SLICE_LABELS, ExportedFamily
from monitor.models.specs import CAUSE_LABEL
from monitor.platform.specs import SUBSTITUTION_LABELS
from monitor.service.prometheus.process import PROCESS

OFFENDERS: Final = 3
"""Offending values of a column that a violated rule exports."""


_RULE = (RECOMMENDER, "rule", "kind")

STATUSES: Final = (
    ExportedFamily(
        "recsys_metric_status",
        "1 for the state of a metric that is not ok in the last window: violated, no_data, late, error, "
        "undefined. `by` is empty for a metric without it; of several series that differ in a further "
        "label, such as `k`, the worst state is given.",
        (RECOMMENDER, "metric", "by", "status"),
    ),
    ExportedFamily(
        "recsys_objective_status",
        "1 for the current verdict on the objective: ok, violated, no_data, late, error. It stays violated "
        "until the value itself is back at its bound.",
        (RECOMMENDER, "metric", "by", "status"),
    ),
    ExportedFamily(
        "recsys_slice_objective_status",
        "As recsys_objective_status, of objectives on one value of a slice; they are in no other family.",
        (RECOMMENDER, "metric", "by", *SLICE_LABELS, "status"),
    ),
    ExportedFamily(
        "recsys_experiment_status",
        "1 for the state of the experiment's metric: ok, violated, no_data, late, error, undefined. For "
        "the metrics that judge the split (experiment_split_p_value by anytime, "
        "experiment_unknown_arm_users) it is the current verdict; of several arms, the worst.",
        (RECOMMENDER, "experiment", "metric", "by", "status"),
    ),
    ExportedFamily(
        "recsys_auc_gap_status",
        "1 for the current verdict on the gap: ok, violated, no_data, late, error. It stays violated until "
        "the gap itself is back at its bound.",
        (RECOMMENDER, "pair", "model", "status"),
    ),
    ExportedFamily(
        "recsys_auc_gap_cause_unknown_share",
        "1 for a cause of a violated gap that has evidence, but whose share of the gap is unknown. A "
        "cause with a share is in recsys_auc_gap_cause_ratio.",
        (RECOMMENDER, "pair", "model", "cause"),
    ),
    ExportedFamily(
        "recsys_deviation_status",
        "1 for the verdict on the series' deviation from its own past: ok, violated, no_data, late, error. "
        "Among hundreds of series some always deviate, so alerts use recsys_anomaly_status.",
        (RECOMMENDER, *OF_SERIES, "status"),
    ),
    ExportedFamily(
        "recsys_slice_deviation_status",
        "As recsys_deviation_status, by slice; only series that are currently violated.",
        (RECOMMENDER, *OF_SERIES, *SLICE_LABELS, "status"),
    ),
    ExportedFamily(
        "recsys_drift_status",
        "1 for the verdict on the series' slow change over days: ok, violated, no_data, late, error.",
        (RECOMMENDER, *OF_SERIES, "status"),
    ),
    ExportedFamily(
        "recsys_anomaly_status",
        "1 for the verdict on the cause: ok, violated, no_data, late, error. Violated if "
        "the series that are out of their bands show the pattern of this cause, and no earlier cause "
        "explains them.",
        (RECOMMENDER, CAUSE_LABEL, "status"),
    ),
    ExportedFamily(
        "recsys_anomaly_worst",
        "Measured value of the series furthest out of its band, for each cause that is currently violated: "
        "in its newest violated window.",
        (RECOMMENDER, CAUSE_LABEL, *OF_SERIES, *SLICE_LABELS),
    ),
    ExportedFamily(
        "recsys_anomaly_worst_expected",
        "Expected value of the same series.",
        (RECOMMENDER, CAUSE_LABEL, *OF_SERIES, *SLICE_LABELS),
    ),
    ExportedFamily(
        "recsys_substitution_status",
        "1 for the verdict on substitution: ok, violated, no_data, late, error. Violated "
        "if the recommender gains at the cost of the system and the platform gains too little. `system` is "
        "empty for the verdict of an experiment, `experiment` and `arm` for the one by days.",
        (RECOMMENDER, *SUBSTITUTION_LABELS, "status"),
    ),
    ExportedFamily(
        "recsys_forecast_status",
        "1 for the verdict on an offline metric that is used to predict a business metric: ok, violated, "
        "no_data, late, error. Violated if it certainly did predict it and no longer does.",
        (RECOMMENDER, TARGET_LABEL, *OF_SERIES, "status"),
    ),
    ExportedFamily(
        "recsys_rule_status",
        "1 for the current verdict on the rule: ok, violated, no_data, late, error. A soft rule stays "
        "violated until the rate itself is back at its threshold.",
        (*_RULE, "status"),
    ),
)

RULES: Final = (
    ExportedFamily(
        "recsys_rule_violation_ratio",
        "Share of the last window's rows (or lists) that violate the rule.",
        _RULE,
        "ratio",
    ),
    ExportedFamily(
        "recsys_rule_violation_lower_ratio",
        "Lower bound of the interval of the violation ratio.",
        _RULE,
        "ratio",
    ),
    ExportedFamily(
        "recsys_rule_violation_upper_ratio",
        "Upper bound of the interval of the violation ratio.",
        _RULE,
        "ratio",
    ),
    ExportedFamily(
        "recsys_rule_threshold_ratio",
        "The violation ratio up to which the rule holds; 0 for a hard rule.",
        _RULE,
        "ratio",
    ),
    ExportedFamily("recsys_rule_window_violations", "Violations of the rule in the last window.", _RULE),
    ExportedFamily("recsys_rule_samples", "Sample size of the rule's ratio: rows (or lists) judged.", _RULE),
    ExportedFamily(
        "recsys_rule_since_timestamp_seconds",
        "Start of the first window of the current verdict on the rule.",
        _RULE,
        "seconds",
    ),
    ExportedFamily(
        "recsys_rule_violated_timestamp_seconds",
        "Start of the newest violated window of the rule; no series where no recent window is violated.",
        _RULE,
        "seconds",
    ),
    ExportedFamily(
        "recsys_rule_info",
        "1, with the owner of the rule: that of its suite, or that of the recommender. Alerts on the rule "
        "carry it as the label `owner`.",
        (*_RULE, "owned_by"),
        kind="info",
    ),
    ExportedFamily(
        "recsys_rule_offender_rows",
        "Rows that hold this value in the evidence of the newest violated window of the last day. `column` "
        f"is item_id, scene or model; of each, only the {OFFENDERS} values with the most rows. Alerts name "
        "them.",
        (RECOMMENDER, "rule", "column", "value"),
    ),
    ExportedFamily(
        counters.RULE_VIOLATIONS,
        "Violations of the rule in all judged windows. Starts at 0 for every configured rule, counts each "
        "window once (corrections by late data are left out), and survives restarts. A soft rule's "
        "counters leave out windows in maintenance.",
        _RULE,
        kind="counter",
    ),
    ExportedFamily(
        counters.RULE_JUDGED,
        "Rows (or lists) judged by the rule in all windows, counted in the same way as its violations. The "
        "used share of a soft rule's error budget is the ratio of the two, divided by its threshold.",
        _RULE,
        kind="counter",
    ),
)


_LOG = (RECOMMENDER, "log")

MONITOR: Final = (
    ExportedFamily("recsys_build_info", "1, with the version of the monitor.", ("version",), kind="info"),
    ExportedFamily(
        "recsys_web_info", "1, with the address of the status page as people reach it.", ("url",), kind="info"
    ),
    ExportedFamily(
        "recsys_dashboards_info",
        "1, with `server.grafana_url`, if it is set: alerts link to the dashboards there.",
        ("url",),
        kind="info",
    ),
    ExportedFamily(
        "recsys_recommender_info",
        "1, with the owner of the recommender. Alerts on it carry it as the label `owner`.",
        (RECOMMENDER, "owned_by"),
        kind="info",
    ),
    ExportedFamily(
        "recsys_config_reload_success",
        "1 if the configuration on disk was accepted when last read, 0 if it was refused and the old one "
        "stays in use.",
        (),
    ),
    ExportedFamily(
        "recsys_shared_history_info",
        "1, with the id of the history. Monitors with the same one share it and take over from each other.",
        ("history",),
        kind="info",
    ),
    ExportedFamily(
        "recsys_lease",
        "Where monitors share a history: 1 if this monitor judges the recommender, 0 if another one does.",
        (RECOMMENDER,),
    ),
    ExportedFamily(
        "recsys_config_reload_timestamp_seconds", "When the running configuration was read.", (), "seconds"
    ),
    ExportedFamily(
        "recsys_recommender_error", "1 if the recommender cannot run at all; its status page says why."
    ),
    ExportedFamily(
        "recsys_last_run_timestamp_seconds", "Time of the recommender's last run.", unit="seconds"
    ),
    ExportedFamily(
        "recsys_last_window_end_timestamp_seconds", "End of the newest judged window.", unit="seconds"
    ),
    ExportedFamily(
        "recsys_change_timestamp_seconds",
        "When the newest change of this kind took effect. model: another model serves most (needs `model` "
        "in `slices.by`); list: a list file of a rule was replaced; declared: a change in the config.",
        (RECOMMENDER, "kind"),
        "seconds",
    ),
    ExportedFamily(
        "recsys_last_success_timestamp_seconds",
        "When a part of a window (exposures, feedback, samples) was last judged, with no check in error.",
        (RECOMMENDER, "part"),
        "seconds",
    ),
    ExportedFamily(
        "recsys_maintenance",
        "1 while configured maintenance suppresses alerts: from its start until its last window is judged "
        "and no alert looks back on it; else 0.",
    ),
    ExportedFamily("recsys_pending_windows", "Windows that are due and not judged yet."),
    ExportedFamily(
        "recsys_check_duration_seconds",
        "Run time of the check in its last window.",
        (RECOMMENDER, "check"),
        "seconds",
    ),
    ExportedFamily(
        "recsys_log_watermark_timestamp_seconds", "The latest time seen in the log.", _LOG, "seconds"
    ),
    ExportedFamily(
        "recsys_log_stalled_after_seconds",
        "Age of the newest row at which the log counts as stalled: `stalled_after` of the config, or "
        "learned from the times at which files arrived. No series where the usual pace is unknown.",
        _LOG,
        "seconds",
    ),
    ExportedFamily(
        "recsys_log_last_scan_timestamp_seconds",
        "When the files of the log were last listed, and new ones indexed, without an error.",
        _LOG,
        "seconds",
    ),
    ExportedFamily("recsys_log_files", "Files of the log that are known and readable.", _LOG),
    ExportedFamily(
        "recsys_log_skipped_files",
        "Files of the log that could not be read; each is tried again. Files that are still being written, "
        "and copies of other files, do not count.",
        _LOG,
    ),
    ExportedFamily(
        "recsys_log_lost_files",
        "Files whose rows were read before and can no longer be read; rotated files do not count.",
        _LOG,
    ),
    ExportedFamily(
        "recsys_log_listing_errors",
        "Folders or globs of the log that could not be listed at the last look.",
        _LOG,
    ),
    ExportedFamily("recsys_series", "Series in this scrape.", ()),
    ExportedFamily("recsys_series_limit", "Series that a scrape may hold.", ()),
    ExportedFamily(
        "recsys_series_dropped",
        "Series of the recommender that this scrape leaves out, because it has more than its share of the "
        "limit; slices are left out first, and its page names the families.",
    ),
    ExportedFamily(
        "recsys_series_without_room",
        "Bounds of intervals of the recommender for which this scrape has no room: the first that a large "
        "fleet does without.",
    ),
    ExportedFamily(
        counters.WINDOWS,
        "Judged windows by the worst status in them.",
        (RECOMMENDER, "status"),
        kind="counter",
    ),
    ExportedFamily(
        counters.CHECK_RUNS,
        "Runs of a check by how they ended: ok, error, interrupted (past the deadline).",
        (RECOMMENDER, "check", "status"),
        kind="counter",
    ),
    ExportedFamily(counters.CORRECTIONS, "Windows judged again because of late data.", kind="counter"),
    ExportedFamily(
        counters.SCHEDULED,
        "Scheduled runs by outcome: ok, failed, missed (not started in time), overrun (the last one "
        "still ran).",
        (RECOMMENDER, "outcome"),
        kind="counter",
    ),
    ExportedFamily(
        counters.STORE_ERRORS, "Failed reads and writes of the history, by fault.", ("fault",), kind="counter"
    ),
    ExportedFamily(
        counters.UNDEFINED,
        "Results without a value although there was data, such as a denominator of 0. A series begins with "
        "the first such result.",
        (RECOMMENDER, "metric"),
        kind="counter",
    ),
)


_OF_ALERTS: Final = (
    "recsys_anomaly_severity_ratio",
    "recsys_auc_gap_cause_ratio",
    "recsys_experiment_bucket_p_value",
    "recsys_experiment_mixed_users",
    "recsys_experiment_mixed_users_samples",
    "recsys_feature_skew_lower_ratio",
)
"""Families of metrics without which an alert could not fire."""
REQUIRED: Final = frozenset(
    (*(family.name for family in (*STATUSES, *RULES, *MONITOR, *PROCESS)), *_OF_ALERTS)
)
"""The families that no limit and no setting leaves out."""


@cache
def all_families() -> dict[str, ExportedFamily]:
    """Every exported family by its name."""
    families = (*STATUSES, *RULES, *MONITOR, *PROCESS, *optional_families().values())
    return {family.name: family for family in families}
