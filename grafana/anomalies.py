"""The dashboard of what is unlike the past: causes that were found, deviations, and slow changes."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.panels import OURS, Panel, graph, number, ours, timeline
from grafana.states import VIOLATED

LEARNING = ours('status="no_data"')
_OF_SERIES = "{{recommender}} {{metric}} {{by}} {{of}}"
_OF_SLICES = f"{_OF_SERIES} {{{{dimension}}}} {{{{value}}}}"
_SD = "suffix: sd"
_MOST = 10


def causes() -> Sequence[Panel]:
    """Which causes were found, how much of the traffic is gone, and how many series say so."""
    return (
        number(
            "Causes found",
            "Causes of anomalies that stand violated now. The status page shows their series.",
            f"sum(recsys_anomaly_status{VIOLATED})",
            bad_from=1,
        ),
        number(
            "Drifts",
            "Metrics that slide over days and stand violated.",
            f"sum(recsys_drift_status{VIOLATED})",
            bad_from=1,
        ),
        number(
            "Series out of their bands",
            "Series, also of slices, that stand out of their bands. Alerts go by causes, not by these.",
            f"(sum(recsys_deviation_status{VIOLATED}) or vector(0)) "
            f"+ (sum(recsys_slice_deviation_status{VIOLATED}) or vector(0))",
        ),
        number(
            "Series with a band",
            "Series of the whole that have enough of a past to be compared with it.",
            f"count(recsys_expected{OURS})",
        ),
        number(
            "Series without a band",
            "Series of the whole that need more past, or had no value in the last window.",
            f"sum(recsys_deviation_status{LEARNING})",
        ),
        number(
            "In maintenance",
            "Recommenders in maintenance as their configs say: nobody is alerted about them.",
            f"sum(recsys_maintenance{OURS})",
        ),
        timeline(
            "Causes",
            "The verdict that every cause stands at.",
            "recsys_anomaly_status",
            ("recommender", "cause"),
            "{{recommender}} {{cause}}",
        ),
        graph(
            "Series that a cause explains",
            "How many series are out of their bands in the pattern of each cause.",
            [(f"recsys_anomaly{OURS}", "{{recommender}} {{cause}}")],
            unit="short",
        ),
        graph(
            "Share that is gone",
            "Of causes that tell an amount: how much of the expected traffic, lists or actions is gone.",
            [(f"recsys_anomaly_severity_ratio{OURS}", "{{recommender}} {{cause}}")],
            unit="percentunit",
        ),
    )


def deviations() -> Sequence[Panel]:
    """The series that are farthest from what was expected, and what the bands rest on."""
    return (
        graph(
            "Farthest above what is expected",
            f"The {_MOST} series of the whole that are farthest above, in robust standard deviations.",
            [(f"topk({_MOST}, recsys_deviation{OURS} > 0)", _OF_SERIES)],
            unit=_SD,
        ),
        graph(
            "Farthest below what is expected",
            f"The {_MOST} series of the whole that are farthest below, in robust standard deviations.",
            [(f"bottomk({_MOST}, recsys_deviation{OURS} < 0)", _OF_SERIES)],
            unit=_SD,
        ),
        graph(
            "Slices farthest from what is expected",
            f"The {_MOST} series of slices that are farthest off, on either side.",
            [(f"topk({_MOST}, abs(recsys_slice_deviation{OURS}))", _OF_SLICES)],
            unit=_SD,
        ),
        graph(
            "Past windows behind the bands",
            "How many past windows the bands of each metric rest on, of its series with the fewest.",
            [(f"min by (recommender, metric) (recsys_expected_samples{OURS})", "{{recommender}} {{metric}}")],
            unit="short",
        ),
        timeline(
            "Series against their bands",
            "The verdict that the deviation of every series stands at; no data while it needs more past.",
            "recsys_deviation_status",
            ("recommender", "metric", "by", "of"),
            _OF_SERIES,
        ),
    )


def drifts() -> Sequence[Panel]:
    """What slides over days."""
    return (
        timeline(
            "Drift",
            "The verdict that the slow change of every series stands at, judged once a day.",
            "recsys_drift_status",
            ("recommender", "metric", "by", "of"),
            _OF_SERIES,
        ),
        graph(
            "Farthest drifts",
            f"The {_MOST} series whose last three days are farthest from the weeks before, on either side.",
            [(f"topk({_MOST}, abs(recsys_drift{OURS}))", _OF_SERIES)],
            unit=_SD,
        ),
        graph(
            "Daily values of what drifts",
            "What the series that stand violated were over each whole day, in the unit of each.",
            [
                (
                    f"recsys_daily{OURS} and on (recommender, metric, by, of) "
                    f"recsys_drift_status{VIOLATED} == 1",
                    _OF_SERIES,
                )
            ],
            unit="short",
        ),
    )
