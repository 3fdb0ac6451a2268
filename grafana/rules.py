"""The board of the rules: verdicts, violations against thresholds, and the objectives beside them."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.links import evidence, label
from grafana.panels import OURS, Panel, bounds, counted, graph, linked, number
from grafana.states import NOT_JUDGED, VIOLATED, timeline_of_objectives, timeline_of_rules, timeline_of_slices

_OF_RULE = ("recommender", "rule", "kind")
_LEGEND = "{{recommender}} {{rule}}"
_PAGE = (evidence(f"/rules/{label('rule')}"),)


def verdicts() -> Sequence[Panel]:
    """What is violated or not judged, now and over time."""
    return (
        number(
            "Rules violated",
            "Rules that are currently violated.",
            counted("recsys_rule_status", VIOLATED),
            bad_from=1,
        ),
        number(
            "Rules not judged",
            "Rules without a verdict in the last window: no data, late, or an error. They check nothing.",
            counted("recsys_rule_status", NOT_JUDGED),
            bad_from=1,
        ),
        number(
            "Rules",
            "Rules with a verdict of any kind.",
            f"count(sum by (recommender, rule) (recsys_rule_status{OURS}))",
        ),
        number(
            "Violations in the last window",
            "Violations of all rules in the last window of each recommender.",
            f"sum(recsys_rule_window_violations{OURS})",
            bad_from=1,
        ),
        number(
            "Rows judged in the last window",
            "Rows (or lists) of the rule that judged the most of them.",
            f"max(recsys_rule_samples{OURS})",
        ),
        number(
            "Last change of a verdict",
            "Time since the newest change of a verdict on a rule.",
            f"min(time() - recsys_rule_since_timestamp_seconds{OURS})",
            unit="s",
        ),
        timeline_of_rules(),
    )


def thresholds() -> Sequence[Panel]:
    """How often each rule is violated, and how often it may be."""
    return (
        graph(
            "Violation ratio and threshold",
            "Share of the last window's rows that violate the rule. Dashed: the threshold of the rule.",
            [
                (linked(f"recsys_rule_violation_ratio{OURS}", _OF_RULE), _LEGEND),
                (f"recsys_rule_threshold_ratio{OURS}", f"{_LEGEND} threshold"),
            ],
            unit="percentunit",
            dashed=("B",),
            data_links=_PAGE,
        ),
        graph(
            "Violation ratio with its interval",
            "The interval by which a soft rule is judged. It is violated if the lower bound is above its "
            "threshold.",
            [
                (linked(f"recsys_rule_violation_ratio{OURS}", _OF_RULE), _LEGEND),
                (bounds("recsys_rule_violation", "_ratio"), f"{_LEGEND} {{{{bound}}}}"),
            ],
            unit="percentunit",
            dashed=("B",),
            data_links=_PAGE,
        ),
        graph(
            "Violations",
            "Violations counted between two points of the graph, also in windows shorter than a scrape.",
            [
                (
                    linked(f"increase(recsys_rule_violations_total{OURS}[$__rate_interval])", _OF_RULE),
                    _LEGEND,
                )
            ],
            unit="short",
            bars=True,
            data_links=_PAGE,
        ),
        graph(
            "Violation ratio of a day",
            "Share of the rows judged in a day that violate the rule. Dashed: the threshold, which is the "
            "budget of a soft rule. A day shows small excesses that one window cannot tell from chance.",
            [
                (
                    linked(
                        f"increase(recsys_rule_violations_total{OURS}[1d]) "
                        f"/ increase(recsys_rule_judged_total{OURS}[1d])",
                        _OF_RULE,
                    ),
                    _LEGEND,
                ),
                (f"recsys_rule_threshold_ratio{OURS}", f"{_LEGEND} threshold"),
            ],
            unit="percentunit",
            dashed=("B",),
            data_links=_PAGE,
        ),
        graph(
            "Rows judged",
            "Number of rows behind every rule's ratio in the last window.",
            [(f"recsys_rule_samples{OURS}", _LEGEND)],
            unit="short",
        ),
    )


def objectives() -> Sequence[Panel]:
    return timeline_of_objectives(), timeline_of_slices()
