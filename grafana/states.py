"""Rows of states: what is violated now, and the verdicts over time."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.links import label
from grafana.panels import OF_SLICE, OURS, SCRAPED, Panel, counted, number, ours, timeline

VIOLATED = ours('status="violated"')
NOT_JUDGED = ours('status=~"no_data|late|error"')


def states() -> Sequence[Panel]:
    return (
        number(
            "Rules violated",
            "Rules that are currently violated. The status page shows the evidence.",
            counted("recsys_rule_status", VIOLATED),
            bad_from=1,
        ),
        number(
            "Objectives violated",
            "Health metrics that are beyond their objective, as a whole or on a slice.",
            counted("recsys_objective_status", VIOLATED, of_slices="recsys_slice_objective_status"),
            bad_from=1,
        ),
        number(
            "Rules not judged",
            "Rules without a verdict in the last window: no data, late, or an error. They check nothing.",
            counted("recsys_rule_status", NOT_JUDGED),
            bad_from=1,
        ),
        number(
            "Recommenders that cannot run",
            "Recommenders that the monitor cannot run. Their status pages say why.",
            f"sum(recsys_recommender_error{OURS})",
            bad_from=1,
        ),
        number(
            "Age of the newest window",
            "Time since the end of the newest judged window, for the recommender that is furthest behind.",
            f"max(time() - recsys_last_window_end_timestamp_seconds{OURS})",
            unit="s",
        ),
        number(
            "Monitors up",
            "Monitors that Prometheus can read, of those that it could read within a day.",
            # "All" is every job of Prometheus. A monitor that is down has no series but this one.
            f"sum(up{SCRAPED} and on (job, instance) last_over_time(recsys_build_info{SCRAPED}[1d]))",
        ),
        timeline_of_rules(),
        timeline_of_objectives(),
    )


def timeline_of_rules() -> Panel:
    return timeline(
        "Rules",
        "The current verdict on every rule. A click leads to its evidence.",
        "recsys_rule_status",
        ("recommender", "rule"),
        "{{recommender}} {{rule}}",
        page=f"/rules/{label('rule')}",
    )


def timeline_of_objectives() -> Panel:
    return timeline(
        "Objectives",
        "The current verdict on every objective.",
        "recsys_objective_status",
        ("recommender", "metric", "by"),
        "{{recommender}} {{metric}} {{by}}",
    )


def timeline_of_slices() -> Panel:
    return timeline(
        "Objectives on slices",
        "The current verdict on every objective for one value of a slice.",
        "recsys_slice_objective_status",
        ("recommender", "metric", "by", "dimension", "value"),
        "{{recommender}} {{metric}} {{by}} {{dimension}} {{value}}",
        selector=OF_SLICE,
    )
