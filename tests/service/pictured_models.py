"""A recommender that is judged by its models alone: one in trouble, one without a name that is well."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from monitor.core.results import Result, Status
from monitor.history.snapshot import LogState, RecommenderState, Series
from tests.service.made import HOSTILE, LAST, NASTY, NOW, metric, past, series

MODEL = "a/b?<script>#%\n.."
FEATURE = "<img src=x onerror=\"document.title='pwned'\">"
WHY = (
    "price_band and days_since_visit are another online than offline on 31 % of 20,000 requests, mostly the "
    "default 0. Look at what the feature service gives when it times out, and log what the model was given."
)


def split(name: str, auc: float, model: str, n: int) -> list[Result]:
    labels = {"split": name, "model": model}
    return [
        metric("auc", value=auc, lower=auc - 0.006, upper=auc + 0.006, samples=n, labels=labels),
        metric("calibration", value=1.02, lower=0.99, upper=1.05, samples=n, labels=labels),
        metric("log_loss", value=0.4213, lower=0.41, upper=0.43, samples=n, labels=labels),
        metric("sample_rows", value=float(n), samples=n, labels=labels),
        *(
            metric("user_auc", by, value=auc - less, lower=0.6, upper=0.9, samples=n // 10, labels=labels)
            for by, less in (("equal", 0.02), ("positives", 0.011), ("samples", 0.013))
        ),
    ]


def gap(pair: str, model: str, status: Status = Status.OK, **fields: Any) -> Result:
    bound = {"train_test": 0.05, "test_online": 0.02}[pair]
    labels = {"pair": pair, "model": model}
    return metric("auc_gap", status=status, labels=labels, threshold=bound, bound="max", **fields)


def cause(name: str, share: float | None, model: str = MODEL, **fields: Any) -> Result:
    labels = {"pair": "test_online", "model": model, "cause": name}
    status = Status.NO_DATA if share is None else Status.OK
    return metric("auc_gap_cause", status=status, value=share, samples=40000, labels=labels, **fields)


def violated_gap(model: str = MODEL) -> Result:
    return gap(
        "test_online",
        model,
        Status.VIOLATED,
        value=0.0813,
        lower=0.0731,
        upper=0.0895,
        samples=60000,
        detail="AUC 0.7820 (test) and 0.7007 (online): the gap is at least 0.0731, and 0.02 is allowed",
    )


def causes(model: str = MODEL) -> list[Result]:
    """In no order: the page has to rank them."""
    rows = tuple(
        {"request_id": index, "feature": FEATURE, "online": text} for index, text in enumerate(NASTY)
    )
    return [
        cause("population_shift", 0.11, model, detail="New users: 34 % of online rows, 12 % of test."),
        cause("score_shift", None, model, detail=f"The scores online are another: {HOSTILE}"),
        cause("serving_skew", 0.68, model, detail=WHY, evidence=rows),
    ]


def features(model: str = MODEL) -> list[Result]:
    found = []
    for index, (name, share) in enumerate([("price_band", 0.31), ("age", 0.0), (FEATURE, 0.42)]):
        labels = {"model": model, "feature": name}
        found.append(
            metric(
                "feature_skew",
                value=share,
                lower=max(0.0, share - 0.01),
                upper=share + 0.01,
                samples=20000,
                labels=labels,
                detail=f"{share * 20000:.0f} of 20000 pairs differ: mostly '0' online" if share else "",
            )
        )
        for by, value in (("psi", 0.9), ("jensen_shannon", 0.31), ("ks", 0.2)):
            detail = "reference: 0% missing, 12 values, 20% '3'; online: 0% missing, 12 values, 44% '0'"
            if by == "ks" and index == 2:
                found.append(
                    metric("feature_distance", by, Status.UNDEFINED, labels=labels, detail="no order")
                )
            else:
                near = value / (1 + 8 * (index == 2))
                found.append(metric("feature_distance", by, value=near, labels=labels, detail=detail))
    return found


def unnamed() -> list[Result]:
    """A model without a name, of a log without train rows and without offline features."""
    detail = "AUC 0.7712 (test) and 0.7709 (online)"
    why = "no offline row of the model: log the same requests over again with the split `offline`"
    well = gap("test_online", "", value=0.0003, lower=-0.008, upper=0.009, samples=60000, detail=detail)
    skew = metric("feature_skew", status=Status.NO_DATA, labels={"model": ""}, detail=why)
    return [*split("test", 0.7712, "", 40000), *split("online", 0.7709, "", 20000), well, skew]


def ranker() -> RecommenderState:
    """A recommender with a model whose gap is violated, and one without a name that is well."""
    return RecommenderState(
        name="ranker",
        series=tuple(_series(result) for result in [*_troubled(), *unnamed()]),
        logs=(LogState("samples", watermark=NOW - timedelta(minutes=2), files=31),),
        last_run=NOW - timedelta(seconds=9),
        last_window=LAST,
        check_seconds={"models": 2.1},
    )


def _troubled() -> list[Result]:
    aucs = (("train", 0.801, 200000), ("test", 0.782, 40000), ("online", 0.7007, 20000))
    splits = [result for name, auc, n in aucs for result in split(name, auc, MODEL, n)]
    small = gap("train_test", MODEL, value=0.019, lower=0.012, upper=0.026, samples=240000)
    scores = [
        metric("score_distance", by, value=value, labels={"pair": "test_online", "model": MODEL})
        for by, value in (("psi", 0.213), ("jensen_shannon", 0.151), ("ks", 0.12))
    ]
    sliced = metric(
        "auc",
        value=0.69,
        samples=900,
        labels={"split": "online", "model": "", "dimension": "scene", "value": "home"},
    )
    return [*splits, violated_gap(), small, *causes(), *features(), *scores, sliced]


def _series(result: Result) -> Series:
    hours, points = 40, ()
    if result.status is Status.VIOLATED:
        hours = 2
        values = [0.004, 0.006, 0.003, 0.012, 0.071, 0.079, 0.0813]
        points = past(values, {4: Status.VIOLATED, 5: Status.VIOLATED, 6: Status.VIOLATED})
    elif result.metric in ("auc", "auc_gap") and "dimension" not in result.labels:
        points = past([0.78, 0.781, 0.779, 0.78] if result.metric == "auc" else [0.012, 0.018, 0.019])
    return series(result, recommender="ranker", check="models", hours=hours, points=points)
