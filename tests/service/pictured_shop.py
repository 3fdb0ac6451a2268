"""A recommender with something in every state."""

from __future__ import annotations

from datetime import timedelta

from monitor.core.results import Kind, Status
from monitor.history.snapshot import LogState, RecommenderState, RuleInfo, SkippedFile
from tests.service.made import LAST, NOW, evidence, metric, past, rule, series


def shop() -> RecommenderState:
    """A recommender with something in every state."""
    return RecommenderState(
        name="shop",
        series=(
            series(
                rule(
                    "blacklist",
                    status=Status.VIOLATED,
                    value=9 / 11873,
                    lower=0.0004,
                    upper=0.00143,
                    samples=11873,
                    violations=9,
                    detail="9 exposures show an item of lists/blacklist.csv",
                    evidence=evidence(),
                ),
                check="rules",
                hours=2,
                points=past(
                    [0.0] * 20 + [0.0, 2e-4, 5e-4, 9 / 11873],
                    {21: Status.VIOLATED, 22: Status.VIOLATED, 23: Status.VIOLATED},
                ),
            ),
            series(
                rule(
                    "duplicate_item",
                    Kind.SOFT,
                    threshold=0.001,
                    severity="warning",
                    value=0.0009,
                    lower=0.0004,
                    upper=0.0019,
                    samples=11873,
                    violations=11,
                ),
                check="rules",
                standing=Status.VIOLATED,
                hours=5,
                points=past([0.0005, 0.0004, 0.004, 0.003, 0.002, 0.0009], {2: Status.VIOLATED}),
            ),
            series(
                rule("score_is_finite", Kind.NUMERIC, value=0.0, samples=11873, violations=0),
                check="rules",
                hours=300,
                points=past([0.0] * 24),
            ),
            series(
                rule("list_length", Kind.SOFT, threshold=0.01, value=1.3e-7, samples=11873, violations=1),
                check="rules",
                hours=30,
                points=past([1e-7, 0.0, 2e-7, 1.3e-7]),
            ),
            series(
                rule("item_off_shelf", status=Status.ERROR, detail="the catalog has no column off_shelf_at"),
                check="rules",
                hours=1,
            ),
            series(
                rule(
                    "capped_category",
                    Kind.SOFT,
                    Status.NO_DATA,
                    threshold=0.02,
                    samples=0,
                    detail="no list of two or more items in the window",
                ),
                check="rules",
            ),
            series(
                rule("future_timestamp", Kind.HARD, Status.LATE, detail="the log stopped at 13:12 UTC"),
                check="rules",
            ),
            series(
                metric(
                    "coverage",
                    "pv",
                    Status.VIOLATED,
                    value=0.9712,
                    lower=0.968,
                    upper=0.974,
                    samples=11873,
                    threshold=0.99,
                    bound="min",
                ),
                hours=3,
                points=past([0.995, 0.994, 0.996, 0.981, None, 0.973, 0.9712], {6: Status.VIOLATED}),
            ),
            series(metric("coverage", "uv", value=0.9999993, lower=0.9998, upper=1.0, samples=4410)),
            series(metric("coverage", "item", value=0.61, samples=46)),
            series(metric("coverage_unknown_items", value=3.0, samples=311)),
            series(
                metric("failure", "pv", value=0.0288, lower=0.026, upper=0.032, samples=11873),
                points=past([0.005, 0.006, 0.004, 0.019, None, 0.027, 0.0288]),
            ),
            series(metric("failure", "uv", value=0.0311, lower=0.0264, upper=0.0366, samples=4410)),
            series(metric("gini", value=0.6512, samples=11873), points=past([0.04, 0.05, 0.31, 0.6512])),
            series(
                metric("matthew_effect", status=Status.NO_DATA, samples=0, detail="no feedback in the window")
            ),
            series(
                metric(
                    "category_entropy",
                    "overall",
                    Status.UNDEFINED,
                    samples=11873,
                    detail="the catalog has a single category",
                )
            ),
            series(metric("self_information", value=9.23, lower=9.1, upper=9.36, samples=11873)),
            series(metric("effective_sample_size", value=2.04, samples=10000)),
            series(metric("importance_weight", "max", value=1000000.0, samples=10000)),
            series(
                metric(
                    "log_rows", status=Status.OK, value=11873.0, samples=11873, labels={"log": "exposures"}
                ),
                check="logs",
            ),
            series(
                metric("log_rows", status=Status.LATE, labels={"log": "feedback"}, detail="stopped at 13:12"),
                check="logs",
            ),
            *(
                series(
                    metric(
                        "coverage",
                        "pv",
                        value=0.9 + index / 100,
                        lower=0.89,
                        upper=0.99,
                        samples=1000 + index,
                        labels={"dimension": "scene", "value": scene},
                    )
                )
                for index, scene in enumerate(["home", "cart", 'we"ird\\ \n<scene>', "other"])
            ),
        ),
        logs=(
            LogState(
                "exposures",
                watermark=NOW - timedelta(minutes=3, seconds=20),
                files=212,
                stalled_after=timedelta(minutes=9),
                skipped=(
                    SkippedFile("logs/2026-03-09T13-40.parquet", "no Parquet footer: still being written?"),
                    SkippedFile("logs/<b>odd</b>\nname.csv", "column user_id is missing"),
                ),
                lost=(SkippedFile("logs/<i>lost</i>\n.csv", "the file is <u>gone</u>", 1200),),
                unlisted=(SkippedFile("logs/<s>folder</s>", "Permission denied"),),
            ),
            LogState("feedback", watermark=NOW - timedelta(minutes=55), files=40),
            LogState("catalog", watermark=None, files=1),
        ),
        last_run=NOW - timedelta(seconds=41),
        changed_at={
            "model": NOW - timedelta(hours=3),
            "list": NOW - timedelta(hours=1),
            "declared": NOW - timedelta(days=2),
        },
        judged_at={"exposures": NOW - timedelta(minutes=2), "feedback": NOW - timedelta(hours=1)},
        scanned_at={"exposures": NOW - timedelta(seconds=41)},
        last_window=LAST,
        pending_windows=1,
        check_seconds={"rules": 0.412, "exposure": 3.91, "logs": 0.0004},
        rules=(
            RuleInfo(
                "blacklist",
                Kind.HARD,
                "No item of the blacklist is ever shown.",
                "shop-oncall",
                "https://runbooks.example.org/blacklist",
            ),
            RuleInfo("brand_new", Kind.SOFT, "Added a minute ago.", runbook="javascript:alert(1)"),
        ),
    )
