"""Rows of the overview: the logs, and the monitor itself."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.panels import OF_MONITORS, OURS, SCRAPED, Panel, graph, listed, number, ours

NOT_OK = ours('status!="ok"')


def logs() -> Sequence[Panel]:
    return (
        graph(
            "Age of the logs",
            "Time since the latest row seen in each log, and the age at which a log counts as stalled, "
            "where its pace is known.",
            [
                (f"time() - recsys_log_watermark_timestamp_seconds{OURS}", "{{recommender}} {{log}}"),
                (f"recsys_log_stalled_after_seconds{OURS}", "{{recommender}} {{log}} stalled after"),
            ],
            unit="s",
        ),
        graph(
            "Unread files",
            "Files that cannot be read, files whose rows were lost, and folders that cannot be listed.",
            [
                (f"recsys_log_skipped_files{OURS}", "{{recommender}} {{log}} skipped"),
                (f"recsys_log_lost_files{OURS}", "{{recommender}} {{log}} lost"),
                (f"recsys_log_listing_errors{OURS}", "{{recommender}} {{log}} not listed"),
            ],
            unit="short",
        ),
        graph(
            "Files",
            "Files of each log that are known and readable.",
            [(f"recsys_log_files{OURS}", "{{recommender}} {{log}}")],
            unit="short",
        ),
        graph(
            "Windows judged",
            "Windows by the worst status in them, between two points of the graph; corrections by late data.",
            [
                (f"increase(recsys_windows_total{OURS}[$__rate_interval])", "{{recommender}} {{status}}"),
                (f"increase(recsys_corrections_total{OURS}[$__rate_interval])", "{{recommender}} corrected"),
            ],
            unit="short",
            bars=True,
        ),
        graph(
            "Pending windows",
            "Windows that are due and not judged yet. It should return to 0.",
            [(f"recsys_pending_windows{OURS}", "{{recommender}}")],
            unit="short",
        ),
        graph(
            "Results without a value",
            "Results that had data, but whose formula has no value for it, such as a denominator of 0.",
            [
                (
                    f"increase(recsys_undefined_total{OURS}[$__rate_interval]) "
                    f"or 0 * recsys_recommender_error{OURS}",
                    "{{recommender}} {{metric}}",
                )
            ],
            unit="short",
            bars=True,
        ),
    )


def itself() -> Sequence[Panel]:
    return (
        graph(
            "Duration of the checks",
            "How long each check took in its last window. At the recommender's deadline it is interrupted.",
            [(f"recsys_check_duration_seconds{OURS}", "{{recommender}} {{check}}")],
            unit="s",
        ),
        graph(
            "Checks that failed",
            "Runs that ended in an error or were interrupted at the deadline.",
            [
                (
                    f"increase(recsys_check_runs_total{NOT_OK}[$__rate_interval])",
                    "{{recommender}} {{check}} {{status}}",
                )
            ],
            unit="short",
            bars=True,
        ),
        graph(
            "Scheduled runs",
            "Runs by outcome: ok, failed, missed (not started in time), overrun (the last run still ran).",
            [
                (
                    f"increase(recsys_scheduler_runs_total{OURS}[$__rate_interval])",
                    "{{recommender}} {{outcome}}",
                )
            ],
            unit="short",
            bars=True,
        ),
        graph(
            "Time since the last run and the last success",
            "Time since each recommender was last run, and since each part of a window was judged and each "
            "log last read without an error.",
            [
                (f"time() - recsys_last_run_timestamp_seconds{OURS}", "{{recommender}} run"),
                (f"time() - recsys_last_success_timestamp_seconds{OURS}", "{{recommender}} {{part}} judged"),
                (f"time() - recsys_log_last_scan_timestamp_seconds{OURS}", "{{recommender}} {{log}} read"),
            ],
            unit="s",
        ),
        graph(
            "Series",
            "Series of a scrape, their limit, and the series left out to stay within it.",
            [
                (f"recsys_series{SCRAPED}", "{{instance}}"),
                (f"recsys_series_limit{SCRAPED}", "{{instance}} limit"),
                (f"sum by (instance) (recsys_series_dropped{SCRAPED})", "{{instance}} left out"),
                (f"sum by (instance) (recsys_series_without_room{SCRAPED})", "{{instance}} bounds left out"),
            ],
            unit="short",
            dashed=("B",),
        ),
        graph(
            "Errors of the history",
            "Reads and writes of the history that failed, by fault.",
            [(f"increase(recsys_store_errors_total{SCRAPED}[$__rate_interval])", "{{instance}} {{fault}}")],
            unit="short",
            bars=True,
        ),
        graph(
            "Memory",
            "Memory of the monitor's process: what it holds in RAM.",
            [(f"process_resident_memory_bytes{SCRAPED} {OF_MONITORS}", "{{instance}}")],
            unit="bytes",
        ),
        graph(
            "Processor",
            "Processor time of the monitor's process. 100 % is one core.",
            [
                (
                    f"rate(process_cpu_seconds_total{SCRAPED}[$__rate_interval]) {OF_MONITORS}",
                    "{{instance}}",
                )
            ],
            unit="percentunit",
        ),
        graph(
            "Open files",
            "File descriptors that the monitor's process has open. Dashed: how many it may have.",
            [
                (f"process_open_fds{SCRAPED} {OF_MONITORS}", "{{instance}}"),
                (f"process_max_fds{SCRAPED} {OF_MONITORS}", "{{instance}} limit"),
            ],
            unit="short",
            dashed=("B",),
            logarithmic=True,
        ),
        graph(
            "Time since the start",
            "Time since the monitor's process was started.",
            [(f"time() - process_start_time_seconds{SCRAPED} {OF_MONITORS}", "{{instance}}")],
            unit="s",
        ),
        listed(
            "Which monitor judges which recommender",
            "Each recommender with the monitor that judges it now. Monitors that share a history take over "
            "from each other.",
            f"recsys_lease{OURS} == 1 or 1 + 0 * recsys_recommender_error{OURS}",
            ("recommender", "instance"),
        ),
        number(
            "Configuration refused",
            "1 if the configuration on disk was refused and the older one is still in use.",
            f"1 - min(recsys_config_reload_success{SCRAPED})",
            bad_from=1,
        ),
        number(
            "Age of the configuration",
            "Time since the current configuration was read.",
            f"time() - min(recsys_config_reload_timestamp_seconds{SCRAPED})",
            unit="s",
        ),
        number(
            "Version",
            "Version of the monitor.",
            f"recsys_build_info{SCRAPED}",
            legend="{{version}}",
            show_name=True,
        ),
    )
