"""Series in and out of their bands, and the causes that are reported for them."""

from __future__ import annotations

from monitor.anomalies.causes import EXPOSURE_CAUSES, FEEDBACK_CAUSES
from monitor.anomalies.explain import anomalies
from monitor.anomalies.results import Banded
from monitor.anomalies.series import BandedSeries
from monitor.core.results import Result, Status

EVERY = (*EXPOSURE_CAUSES, *FEEDBACK_CAUSES)
USUAL = tuple(
    BandedSeries(metric, by[0] if by else "", "", *place)
    for cause in EVERY
    for sign in cause.signs
    for metric, by in [(sign.metric, sign.by)]
    for place in ([("scene", "quiet")] if sign.sliced else [()])
)
"""One series for each sign of each cause."""


def within(series: BandedSeries, **numbers: object) -> Banded:
    given = {"measured": 2.0, "expected": 2.0, "lower": 1.5, "upper": 2.5, "deviation": 0.1} | numbers
    return Banded(series=series, points=90, reached=4.0, **({"departed": False} | given))


def out(metric: str, side: str, by: str = "", of: str = "", slice_: str = "", **numbers: object) -> Banded:
    deviation = 9.0 if side == "above" else -9.0
    place = ("scene", slice_) if slice_ else ()
    given = {"measured": 1.0, "deviation": deviation, "departed": True} | numbers
    return within(BandedSeries(metric, by, of, *place), **given)


def missing(metric: str, side: str, by: str = "", slice_: str = "") -> Banded:
    """A series that was out of its band on this side and has no value now."""
    place = ("scene", slice_) if slice_ else ()
    return Banded.unseen(BandedSeries(metric, by, "", *place), 9.0 if side == "above" else -9.0)


def anomaly_results(found, causes=EVERY, usual=USUAL, **more) -> dict[str, Result]:
    results = anomalies([*found, *map(within, usual)], causes, **({"version": "1"} | more))
    return {one.labels["cause"]: one for one in results if one.metric == "anomaly"}


def violated_causes(found, causes=EVERY, **more) -> list[str]:
    return [
        name for name, one in anomaly_results(found, causes, **more).items() if one.status is Status.VIOLATED
    ]
