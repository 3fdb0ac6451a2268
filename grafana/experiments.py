"""The board of experiments: whether the split is as intended, and what the arms differ in."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.actions import panel
from grafana.panels import Panel, counted, number, ours, timeline
from monitor.experiments.specs import EXPERIMENT_SPECS

CHOSEN = ours('experiment=~"$experiment"')
_VIOLATED = ours('status="violated", experiment=~"$experiment"')
_NOT_JUDGED = ours('status=~"no_data|late|error", experiment=~"$experiment"')
_OF_ARMS = (
    "experiment_users",
    "experiment_share",
    "experiment_action_rate",
    "experiment_conversion",
    "experiment_actions_per_user",
    "experiment_value_per_user",
    "experiment_difference",
    "experiment_difference_p_value",
)


def splits() -> Sequence[Panel]:
    """Whether users are divided as intended. If not, the metrics of the arms mean nothing."""
    return (
        number(
            "Experiments",
            "Experiments whose split is judged.",
            f"count(sum by (recommender, experiment) (recsys_experiment_status{CHOSEN}))",
        ).span(8),
        number(
            "Broken splits",
            "Metrics of experiments that are currently violated. Do not read the arms of these experiments.",
            counted("recsys_experiment_status", _VIOLATED, CHOSEN),
            bad_from=1,
        ).span(8),
        number(
            "Not judged",
            "Metrics of experiments without a verdict in the last window: no data, late, or an error.",
            counted("recsys_experiment_status", _NOT_JUDGED, CHOSEN),
        ).span(8),
        timeline(
            "Experiments over time",
            "The state of every metric of an experiment; for those that judge the split, the verdict.",
            "recsys_experiment_status",
            ("recommender", "experiment", "metric", "by"),
            "{{recommender}} {{experiment}} {{metric}} {{by}}",
            selector=CHOSEN,
        ),
        *(panel(spec, CHOSEN) for name, spec in EXPERIMENT_SPECS.items() if name not in _OF_ARMS),
    )


def arms() -> Sequence[Panel]:
    """What the arms do, and how they differ from the control."""
    return [panel(EXPERIMENT_SPECS[name], CHOSEN) for name in _OF_ARMS]
