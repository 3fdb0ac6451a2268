"""Rows of the overview: states, and rules against their thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.panels import OURS, Panel, graph, number, ours, timeline

VIOLATED = ours('status="violated"')
NOT_JUDGED = ours('status=~"no_data|late|error"')


def states() -> Sequence[Panel]:
    return (
        number(
            "Rules violated",
            "Rules that are currently violated. The status page shows the evidence.",
            f"sum(recsys_rule_status{VIOLATED})",
            bad_from=1,
        ),
        number(
            "Objectives violated",
            "Health metrics that are beyond their objective, as a whole or on a slice.",
            f"(sum(recsys_objective_status{VIOLATED}) or vector(0)) "
            f"+ (sum(recsys_slice_objective_status{VIOLATED}) or vector(0))",
            bad_from=1,
        ),
        number(
            "Rules not judged",
            "Rules without a verdict in the last window: no data, late, or an error. They check nothing.",
            f"sum(recsys_rule_status{NOT_JUDGED})",
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
            "Monitors that Prometheus can read.",
            'sum(up{job="recsys-monitor"})',
        ),
        timeline(
            "Rules",
            "The current verdict on every rule.",
            "recsys_rule_status",
            ("recommender", "rule"),
            "{{recommender}} {{rule}}",
        ),
        timeline(
            "Objectives",
            "The current verdict on every objective.",
            "recsys_objective_status",
            ("recommender", "metric", "by"),
            "{{recommender}} {{metric}} {{by}}",
        ),
        timeline(
            "Objectives on slices",
            "The current verdict on every objective for one value of a slice.",
            "recsys_slice_objective_status",
            ("recommender", "metric", "by", "dimension", "value"),
            "{{recommender}} {{metric}} {{by}} {{dimension}} {{value}}",
        ),
    )


def rules() -> Sequence[Panel]:
    legend = "{{recommender}} {{rule}}"
    ratio = graph(
        "Violation ratio and threshold",
        "Share of the last window's rows that violate the rule. Dashed: the threshold up to which it holds.",
        [
            (f"recsys_rule_violation_ratio{OURS}", legend),
            (f"recsys_rule_threshold_ratio{OURS}", f"{legend} threshold"),
        ],
        unit="percentunit",
        dashed=("B",),
    )
    bounds = graph(
        "Violation ratio with its interval",
        "The interval by which a soft rule is judged. It is violated if the lower bound is above its "
        "threshold.",
        [
            (f"recsys_rule_violation_ratio{OURS}", legend),
            (f"recsys_rule_violation_lower_ratio{OURS}", f"{legend} lower"),
            (f"recsys_rule_violation_upper_ratio{OURS}", f"{legend} upper"),
        ],
        unit="percentunit",
        dashed=("B", "C"),
    )
    return (
        ratio,
        bounds,
        graph(
            "Violations",
            "Violations counted between two points of the graph, also in windows shorter than a scrape.",
            [(f"increase(recsys_rule_violations_total{OURS}[$__rate_interval])", legend)],
            unit="short",
            bars=True,
        ),
        graph(
            "Violation ratio of a day",
            "Share of the rows judged in a day that violate the rule. Dashed: the threshold, which is the "
            "budget of a soft rule. A day shows small excesses that one window cannot tell from chance.",
            [
                (
                    f"increase(recsys_rule_violations_total{OURS}[1d]) "
                    f"/ increase(recsys_rule_judged_total{OURS}[1d])",
                    legend,
                ),
                (f"recsys_rule_threshold_ratio{OURS}", f"{legend} threshold"),
            ],
            unit="percentunit",
            dashed=("B",),
        ),
        graph(
            "Rows judged",
            "Number of rows behind every rule's ratio in the last window.",
            [(f"recsys_rule_samples{OURS}", legend)],
            unit="short",
        ),
    )
