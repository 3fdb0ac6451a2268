"""The dashboard of what is unlike the past: causes, deviations, slow changes, and forecasts."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.actions import panel
from grafana.links import label
from grafana.panels import OF_SLICE, OURS, Panel, counted, graph, number, ours, timeline
from grafana.states import VIOLATED
from monitor.forecast.specs import FORECAST_SPECS

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
            "Causes of anomalies that are currently violated. The status page shows their series.",
            counted("recsys_anomaly_status", VIOLATED),
            bad_from=1,
        ),
        number(
            "Drifts",
            "Metrics that drift over days and are currently violated.",
            counted("recsys_drift_status", VIOLATED),
            bad_from=1,
        ),
        number(
            "Series out of their bands",
            "Series out of their bands, including slices. Alerts fire for causes, not for single series.",
            counted("recsys_deviation_status", VIOLATED, of_slices="recsys_slice_deviation_status"),
        ),
        number(
            "Series with a band",
            "Series of whole recommenders with enough past to have a band.",
            f"count(recsys_expected{OURS})",
        ),
        number(
            "Series without a band",
            "Series of whole recommenders that need more past, or had no value in the last window.",
            counted("recsys_deviation_status", LEARNING),
        ),
        number(
            "In maintenance",
            "Recommenders whose config sets maintenance now. Their alerts are held back.",
            f"sum(recsys_maintenance{OURS})",
        ),
        timeline(
            "Causes",
            "The current verdict on every cause.",
            "recsys_anomaly_status",
            ("recommender", "cause"),
            "{{recommender}} {{cause}}",
            page=f"/anomalies/{label('cause')}",
        ),
        graph(
            "Series that a cause explains",
            "Number of series that are out of their bands in the pattern of each cause.",
            [(f"recsys_anomaly{OURS}", "{{recommender}} {{cause}}")],
            unit="short",
        ),
        graph(
            "Share that is gone",
            "Share of the expected traffic, lists or actions that is gone, for causes that have an amount.",
            [(f"recsys_anomaly_severity_ratio{OURS}", "{{recommender}} {{cause}}")],
            unit="percentunit",
        ),
    )


def deviations() -> Sequence[Panel]:
    """The series that are farthest from what was expected, and what the bands rest on."""
    return (
        graph(
            "Farthest above expected",
            f"The {_MOST} series of whole recommenders farthest above, in robust standard deviations.",
            [(f"topk({_MOST}, recsys_deviation{OURS} > 0)", _OF_SERIES)],
            unit=_SD,
        ),
        graph(
            "Farthest below expected",
            f"The {_MOST} series of whole recommenders farthest below, in robust standard deviations.",
            [(f"bottomk({_MOST}, recsys_deviation{OURS} < 0)", _OF_SERIES)],
            unit=_SD,
        ),
        graph(
            "Slices farthest from expected",
            f"The {_MOST} series of slices farthest from expected, above or below.",
            [(f"topk({_MOST}, abs(recsys_slice_deviation{OF_SLICE}))", _OF_SLICES)],
            unit=_SD,
        ),
        graph(
            "Past windows behind the bands",
            "Number of past windows behind the bands of each metric, for its series with the fewest.",
            [(f"min by (recommender, metric) (recsys_expected_samples{OURS})", "{{recommender}} {{metric}}")],
            unit="short",
        ),
        timeline(
            "Series against their bands",
            "The current verdict on the deviation of every series. No data means that it needs more past.",
            "recsys_deviation_status",
            ("recommender", "metric", "by", "of"),
            _OF_SERIES,
            page="#anomalies",
        ),
    )


def forecasts() -> Sequence[Panel]:
    """Whether the offline metrics that are used still predict, and whether forecasts come true."""
    return (
        timeline(
            "Offline metrics that are used",
            "The current verdict on every offline metric that is used to predict a business metric.",
            "recsys_forecast_status",
            ("recommender", "target", "metric", "by", "of"),
            "{{recommender}} {{target}} {{metric}} {{by}} {{of}}",
            page="#forecast",
        ),
        *(panel(spec) for spec in FORECAST_SPECS.values()),
    )


def drifts() -> Sequence[Panel]:
    """What slides over days."""
    return (
        timeline(
            "Drift",
            "The current verdict on the drift of every series, judged every six hours.",
            "recsys_drift_status",
            ("recommender", "metric", "by", "of"),
            _OF_SERIES,
            page="#anomalies",
        ),
        graph(
            "Farthest drifts",
            f"The {_MOST} series whose last three days are farthest from the weeks before, above or below.",
            [(f"topk({_MOST}, abs(recsys_drift{OURS}))", _OF_SERIES)],
            unit=_SD,
        ),
        graph(
            "Daily values of what drifts",
            "Value over each whole day of the series that are currently violated, in the unit of each.",
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
