"""The families of the monitor itself, of the logs that it reads and the runs that it makes."""

from __future__ import annotations

from typing import Final

from monitor.service.prometheus.family import RECOMMENDER, Family

_LOG = (RECOMMENDER, "log")

MONITOR: Final = (
    Family("recsys_build_info", "info", "1, with the version of the monitor.", ("version",)),
    Family("recsys_web_info", "info", "1, with the address of the status page as people reach it.", ("url",)),
    Family(
        "recsys_config_reload_success",
        "gauge",
        "1 if the configuration on disk was accepted when last read, 0 if it was refused and the older "
        "one runs on.",
        (),
    ),
    Family(
        "recsys_config_reload_timestamp_seconds",
        "gauge",
        "When the configuration that is running was read.",
        (),
        "seconds",
    ),
    Family(
        "recsys_recommender_error",
        "gauge",
        "1 if the recommender cannot be run at all; its status page says why.",
    ),
    Family(
        "recsys_last_run_timestamp_seconds", "gauge", "When the recommender was last run.", unit="seconds"
    ),
    Family(
        "recsys_last_window_end_timestamp_seconds",
        "gauge",
        "End of the newest window that was judged.",
        unit="seconds",
    ),
    Family(
        "recsys_maintenance",
        "gauge",
        "1 while maintenance of the config holds alerts back: from its start until its last window has been "
        "judged and no alert looks back on it; else 0.",
    ),
    Family("recsys_pending_windows", "gauge", "Windows that are due and not judged yet."),
    Family(
        "recsys_check_duration_seconds",
        "gauge",
        "How long the check took in its last window.",
        (RECOMMENDER, "check"),
        "seconds",
    ),
    Family(
        "recsys_log_watermark_timestamp_seconds",
        "gauge",
        "The latest time seen in the log.",
        _LOG,
        "seconds",
    ),
    Family(
        "recsys_log_stalled_after_seconds",
        "gauge",
        "Age of the newest row from which on the log counts as stalled: `stalled_after` of the config, or "
        "learned from the times at which files arrived. No series where the usual pace is unknown.",
        _LOG,
        "seconds",
    ),
    Family("recsys_log_files", "gauge", "Files of the log that are known and readable.", _LOG),
    Family(
        "recsys_log_skipped_files",
        "gauge",
        "Files of the log that could not be read; each is tried again.",
        _LOG,
    ),
    Family(
        "recsys_log_lost_files",
        "gauge",
        "Files whose rows were read before and cannot be read any more; rotated files do not count.",
        _LOG,
    ),
    Family(
        "recsys_log_listing_errors",
        "gauge",
        "Folders or globs of the log that could not be listed at the last look.",
        _LOG,
    ),
    Family("recsys_series", "gauge", "Series in this scrape.", ()),
    Family("recsys_series_limit", "gauge", "Series that a scrape may hold.", ()),
    Family(
        "recsys_series_dropped",
        "gauge",
        "Series left out of this scrape to keep to the limit; slices go first.",
        (),
    ),
    Family(
        "recsys_windows_total",
        "counter",
        "Judged windows by the worst status in them.",
        (RECOMMENDER, "status"),
    ),
    Family(
        "recsys_check_runs_total",
        "counter",
        "Runs of a check by how they ended: ok, error, interrupted (past the deadline).",
        (RECOMMENDER, "check", "status"),
    ),
    Family(
        "recsys_corrections_total",
        "counter",
        "Windows judged again because data came after they had been judged.",
    ),
    Family(
        "recsys_scheduler_runs_total",
        "counter",
        "Scheduled runs by outcome: ok, failed, missed (not started in time), overrun (the last one "
        "still ran).",
        (RECOMMENDER, "outcome"),
    ),
    Family(
        "recsys_store_errors_total",
        "counter",
        "Reads and writes of the history that failed, by what was at fault.",
        ("fault",),
    ),
    Family(
        "recsys_undefined_total",
        "counter",
        "Results without a value although there was data, such as a denominator of 0.",
        (RECOMMENDER, "metric"),
    ),
)
