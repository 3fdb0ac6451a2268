"""Row of the anomalies dashboard: the platform around the recommender, and who gains at whose cost."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.panels import OURS, Panel, bounds, graph, timeline

_OF_SYSTEM = "{{recommender}} {{total}} {{system}}"
_OF_ARM = "{{recommender}} {{total}} {{experiment}} {{arm}}"


def _with_bounds(name: str, legend: str, unit: str = "") -> list[tuple[str, str]]:
    return [(f"{name}{unit}{OURS}", legend), (bounds(name, unit), f"{legend} {{{{bound}}}}")]


def platform() -> Sequence[Panel]:
    """Verdicts by day and by experiment, the totals, the recommender's share, and the changes."""
    return (
        timeline(
            "Substitution",
            "Whether the recommender gains at the cost of a system, judged once a day; with an experiment, "
            "from its arms.",
            "recsys_substitution_status",
            ("recommender", "total", "system", "experiment", "arm"),
            f"{_OF_SYSTEM} {{{{experiment}}}} {{{{arm}}}}",
            page="#platform",
        ),
        graph(
            "Totals of a day",
            "What the recommender, each other system and the whole platform brought on the last judged day.",
            [(f"recsys_platform_amount{OURS}", _OF_SYSTEM)],
            unit="short",
        ),
        graph(
            "Share of the recommender",
            "The part of the platform's total of the day that the recommender brings.",
            [(f"recsys_platform_share_ratio{OURS}", "{{recommender}} {{total}}")],
            unit="percentunit",
        ),
        graph(
            "Change against the days before",
            "Relative change of each system. Dashed: the bounds of its interval.",
            _with_bounds("recsys_platform_change", _OF_SYSTEM, "_ratio"),
            unit="percentunit",
            dashed=("B",),
        ),
        graph(
            "Gain of the platform",
            "What the platform gains for each unit that the recommender gains: 1 all of it, 0 nothing. "
            "Dashed: the bounds of its interval.",
            _with_bounds("recsys_substitution", _OF_SYSTEM),
            unit="none",
            dashed=("B",),
        ),
        graph(
            "Gain of the platform in experiments",
            "The same, between the arms of an experiment. Dashed: the bounds of its interval.",
            _with_bounds("recsys_substitution_in_experiment", _OF_ARM),
            unit="none",
            dashed=("B",),
        ),
    )
