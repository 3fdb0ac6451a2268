"""A recommender that is compared with its own past: made by hand, with a cause found and a hostile slice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from monitor.anomalies.causes import CAUSES
from monitor.anomalies.specs import written_of
from monitor.core.results import Result, Status, Window
from monitor.history.snapshot import LogState, RecommenderState, Series
from tests.service.made import HOSTILE, LAST, NOW, metric, past, series

NAME = "feeds"
SCENE = f"{HOSTILE}\n\u202e"
TOLD = (
    "more lists are empty than usual; failure by pv is 0.41, expected 0.0102 (0.0061 to 0.0155), and 2 more"
)
DAY = Window(LAST.start.replace(hour=0) - timedelta(days=1), LAST.start.replace(hour=0))


def labels_of(of: Result) -> dict[str, str]:
    """The labels by which a band names its series."""
    place = {key: of.labels[key] for key in ("dimension", "value") if key in of.labels}
    return {"metric": of.metric, "by": of.labels.get("by", ""), "of": written_of(of.labels)} | place


def banded(
    of: Result, expected: float, half: float, deviation: float, *, wave: float = 0.1, violated: int = 0
) -> tuple[Series, Series, Series]:
    """A measured series with its band: level but for the last `violated` windows."""
    assert of.value is not None
    hours = 48
    foreseen = [expected * (1 + wave * math.sin(hour / 4)) for hour in range(hours - 1)] + [expected]
    values = [*foreseen[: hours - max(violated, 1)], *[of.value] * max(violated, 1)]
    broken = dict.fromkeys(range(hours - violated, hours), Status.VIOLATED)
    name = labels_of(of)
    state = Status.VIOLATED if violated else Status.OK
    band = metric(
        "expected",
        labels=name,
        value=expected,
        lower=expected - half,
        upper=expected + half,
        samples=112,
    )
    bound = "max" if deviation > 0 else "min"
    far = metric(
        "deviation",
        status=state,
        labels=name,
        value=deviation,
        samples=112,
        threshold=math.copysign(5.2, deviation),
        bound=bound,
    )
    return (
        series(of, recommender=NAME, points=past(values), hours=300),
        series(band, recommender=NAME, check="bands", points=past(foreseen, half=half)),
        series(far, recommender=NAME, check="bands", hours=max(violated - 1, 0),
               points=past([0.1] * (hours - violated) + [deviation] * violated, broken)),
    )  # fmt: skip


def learning(of: Result) -> tuple[Series, Series, Series]:
    """A series whose past is too short."""
    fields: dict[str, Any] = {"status": Status.NO_DATA, "labels": labels_of(of), "samples": 7}
    return (
        series(of, recommender=NAME),
        *(
            series(metric(name, detail="7 of 24 windows", **fields), recommender=NAME, check="bands")
            for name in ("expected", "deviation")
        ),
    )


def out_of_band(of: Result, expected: float, half: float, deviation: float) -> Mapping[str, Any]:
    """A row of evidence."""
    name = {"dimension": "", "value": ""} | labels_of(of)
    return {
        **name, "measured": of.value, "expected": expected, "lower": expected - half,
        "upper": expected + half, "deviation": deviation,
    }  # fmt: skip


def anomaly(cause: str, status: Status = Status.OK, value: float | None = 0.0, **fields: Any) -> Result:
    return metric(
        "anomaly", status=status, labels={"cause": cause}, value=value, samples=41, threshold=0.0, **fields
    )


FAILURE = metric("failure", "pv", value=0.41, lower=0.4, upper=0.42, samples=11873)
COVERAGE = metric("coverage", "pv", value=0.59, lower=0.58, upper=0.6, samples=11873)
IN_SCENE = metric(
    "failure", "pv", value=0.97, lower=0.96, upper=0.98, samples=4100,
    labels={"dimension": "scene", "value": SCENE},
)  # fmt: skip
FOUND = anomaly(
    "lists_empty",
    Status.VIOLATED,
    3.0,
    detail=f"{TOLD}; model m7 since 2026-03-09 11:00 UTC",
    evidence=(
        out_of_band(IN_SCENE, 0.011, 0.006, 61.3),
        out_of_band(FAILURE, 0.0102, 0.005, 55.1),
        out_of_band(COVERAGE, 0.99, 0.005, -55.1),
    ),
)


def daily(name: str, by: str, value: float) -> Series:
    """What a metric was yesterday."""
    found = metric("daily", labels={"metric": name, "by": by, "of": "event=click"}, value=value)
    return replace(series(found, recommender=NAME, check="drift"), window=DAY, since=DAY.start)


def drift(name: str, by: str, deviation: float, status: Status, detail: str = "") -> Series:
    """How a metric slides, as of yesterday."""
    found = metric(
        "drift", status=status, labels={"metric": name, "by": by, "of": "event=click"}, value=deviation,
        threshold=math.copysign(4.5, deviation), bound="max" if deviation > 0 else "min", samples=27,
        detail=detail,
    )  # fmt: skip
    made = series(found, recommender=NAME, check="drift", points=past([-0.2, 0.3, -1.2, -3.9, deviation]))
    return replace(made, window=DAY, since=DAY.start)


def feeds(*found: Result, causes: Sequence[str] = tuple(CAUSES)) -> RecommenderState:
    """The recommender with these anomalies (default: empty lists), every other cause looked for in vain."""
    found = found or (FOUND,)
    named = {one.labels["cause"] for one in found}
    anomalies = [
        *(
            series(one, recommender=NAME, check="bands", hours=2, points=past([0.0] * 21 + [1.0, 3.0, 3.0]))
            for one in found
        ),
        *(series(anomaly(name), recommender=NAME, check="bands") for name in causes if name not in named),
    ]
    requests = metric("volume", "requests", value=11873.0, samples=11873)
    click = metric("action_rate", "exposure", value=0.031, samples=40000, labels={"event": "click"})
    return RecommenderState(
        name=NAME,
        series=(
            *banded(FAILURE, 0.0102, 0.005, 55.1, violated=3),
            *banded(COVERAGE, 0.99, 0.005, -55.1, wave=0.001, violated=3),
            *banded(IN_SCENE, 0.011, 0.006, 61.3, violated=3),
            *banded(requests, 11500.0, 900.0, 0.8, wave=0.4),
            *banded(click, 0.032, 0.0021, -0.02, wave=0.05),
            *learning(metric("gini", value=0.65, samples=11873)),
            *anomalies,
            daily("action_rate", "exposure", 0.027),
            drift("action_rate", "exposure", -6.1, Status.VIOLATED, "fell from 0.031 to 0.027 in three days"),
            drift("conversion", "user", 0.7, Status.OK),
        ),
        logs=(LogState("exposures", watermark=NOW - timedelta(minutes=3), files=212),),
        last_run=NOW - timedelta(seconds=41),
        last_window=LAST,
        check_seconds={"exposure": 3.9, "bands": 0.2, "drift": 0.1},
    )
