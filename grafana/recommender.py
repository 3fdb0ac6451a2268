"""The board of one recommender: what is wrong with it, its most important numbers, and one slice of them."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.actions import OF_EXPOSURES, panel
from grafana.links import label
from grafana.panels import OF_SLICE, OURS, Panel, counted, graph, number, ours, timeline
from grafana.states import NOT_JUDGED, VIOLATED, timeline_of_objectives, timeline_of_rules, timeline_of_slices
from monitor.catalogue import ALL_SPECS
from monitor.metrics.catalogue import FAMILIES

_KEY = ("volume", "coverage", "failure", "action_rate", "ndcg", "auc", "gini", "category_entropy")
_BY_SLICE = ("volume", "coverage", "failure", "action_rate", "list_length", "ndcg", "auc", "category_entropy")
_BY_DAY = ("volume", "coverage", "failure", "action_rate", "conversion", "auc", "gini", "category_entropy")
_OF_DAYS = ours('dimension="rollup"')
_NOT_OK = ours('status!="ok"')


def now() -> Sequence[Panel]:
    """What is violated, and how fresh the numbers are."""
    return (
        number(
            "Health score",
            "The health score of the last window, if the configuration has one.",
            f"min(recsys_health_score_ratio{OURS})",
            unit="percentunit",
        ),
        number(
            "Rules violated",
            "Rules that are currently violated.",
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
            "Causes of anomalies",
            "Causes of anomalies that are currently violated.",
            counted("recsys_anomaly_status", VIOLATED),
            bad_from=1,
        ),
        number(
            "Rules not judged",
            "Rules without a verdict in the last window: no data, late, or an error.",
            counted("recsys_rule_status", NOT_JUDGED),
            bad_from=1,
        ),
        number(
            "Age of the newest window",
            "Time since the end of the newest judged window.",
            f"max(time() - recsys_last_window_end_timestamp_seconds{OURS})",
            unit="s",
        ),
        timeline_of_rules(),
        timeline_of_objectives(),
        timeline(
            "Causes of anomalies over time",
            "The current verdict on every cause.",
            "recsys_anomaly_status",
            ("recommender", "cause"),
            "{{recommender}} {{cause}}",
            page=f"/anomalies/{label('cause')}",
        ),
    )


def numbers() -> Sequence[Panel]:
    """The metrics that most teams look at first."""
    return [panel(ALL_SPECS[name], _selector(name)) for name in _KEY]


def one_slice() -> Sequence[Panel]:
    """The same for the chosen slice: a value of a column such as scene, model or country."""
    chosen = [panel(ALL_SPECS[name], OF_SLICE, sliced="by slice") for name in _BY_SLICE]
    return (timeline_of_slices(), *chosen)


def days() -> Sequence[Panel]:
    """The same of whole days and weeks, where the configuration asks for roll-ups."""
    rounded = {
        spec.name
        for family in FAMILIES
        if family.adds_up is not None and family.adds_up.bounded
        for spec, _ in family.outputs
    }
    return [
        panel(ALL_SPECS[name], _OF_DAYS, sliced="of days and weeks", bounds=name not in rounded)
        for name in _BY_DAY
    ]


def models() -> Sequence[Panel]:
    return (
        timeline(
            "AUC gaps",
            "The current verdict on the gap of each model from training to test, and from test to service.",
            "recsys_auc_gap_status",
            ("recommender", "pair", "model"),
            "{{recommender}} {{pair}} {{model}}",
            page="#models",
        ),
    )


def freshness() -> Sequence[Panel]:
    return (
        graph(
            "Age of the logs of this recommender",
            "Time since the latest row seen in each log, and the age at which it counts as stalled.",
            [
                (f"time() - recsys_log_watermark_timestamp_seconds{OURS}", "{{recommender}} {{log}}"),
                (f"recsys_log_stalled_after_seconds{OURS}", "{{recommender}} {{log}} stalled after"),
            ],
            unit="s",
            dashed=("B",),
        ),
        graph(
            "States of the metrics",
            "Number of metrics that are not ok in the last window, by state.",
            [
                (
                    f"sum by (recommender, status) (recsys_metric_status{_NOT_OK})",
                    "{{recommender}} {{status}}",
                )
            ],
            unit="short",
        ),
        graph(
            "Changes",
            "Time since another model took over, a list file was replaced, or a declared change took effect.",
            [(f"time() - recsys_change_timestamp_seconds{OURS}", "{{recommender}} {{kind}}")],
            unit="s",
        ),
    )


def _selector(name: str) -> str:
    return OF_EXPOSURES if ALL_SPECS[name].of_samples else OURS
