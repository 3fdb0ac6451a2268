"""Hand-made snapshots with everything in them that the exporter and the pages have to show."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from monitor.core.results import Kind
from monitor.history.snapshot import LogState, RecommenderState, RuleInfo, Snapshot
from tests.service.made import HOSTILE, HOUR, LAST, NASTY, NOW, evidence, metric, past, rule, series
from tests.service.pictured_shop import shop

PATIENCE = 180  # seconds: only what hangs takes so long, however busy the machine is

__all__ = [
    "HOSTILE", "HOUR", "LAST", "NASTY", "NOW", "broken", "empty", "evidence", "full", "metric", "news",
    "past", "rule", "series", "shop", "wide",
]  # fmt: skip


def news() -> RecommenderState:
    """A recommender that is well."""
    return RecommenderState(
        name="news",
        series=(
            series(
                rule("empty_list", value=0.0, samples=900, violations=0),
                recommender="news",
                check="rules",
                hours=90,
                points=past([0.0] * 12),
            ),
            series(
                metric("coverage", "pv", value=1.0, lower=0.996, upper=1.0, samples=900), recommender="news"
            ),
        ),
        logs=(LogState("exposures", watermark=NOW - timedelta(minutes=1), files=12),),
        last_run=NOW - timedelta(seconds=20),
        last_window=LAST,
        check_seconds={"rules": 0.1},
    )


def broken() -> RecommenderState:
    """A recommender that cannot be run."""
    return RecommenderState(
        name="video",
        error="logs.exposures.path: no file matches 'video/*.parquet'",
        logs=(LogState("exposures"),),
        rules=(RuleInfo("blacklist", Kind.HARD),),
    )


def full() -> Snapshot:
    """Three recommenders: one in trouble, one well, one that cannot be run."""
    return Snapshot(
        taken_at=NOW,
        recommenders=(news(), shop(), broken()),
        counters={
            (
                "recsys_rule_violations_total",
                (("kind", "hard"), ("recommender", "shop"), ("rule", "blacklist")),
            ): 17.0,
            ("recsys_windows_total", (("recommender", "shop"), ("status", "violated"))): 3.0,
            ("recsys_windows_total", (("recommender", "shop"), ("status", "ok"))): 1412.0,
            ("recsys_corrections_total", (("recommender", "shop"),)): 2.0,
            ("recsys_gone_in_this_version_total", (("recommender", "shop"),)): 2.0,
        },
        config_loaded_at=NOW - timedelta(days=3),
    )


def empty() -> Snapshot:
    return Snapshot(
        taken_at=NOW,
        recommenders=(RecommenderState("shop", rules=(RuleInfo("blacklist", Kind.HARD),)),),
        config_loaded_at=NOW,
    )


def wide(slices: int) -> Snapshot:
    """One recommender with so many slices."""
    many = tuple(
        series(
            metric(
                "coverage",
                "pv",
                value=0.5,
                lower=0.4,
                upper=0.6,
                samples=10,
                labels={"dimension": "scene", "value": f"scene {index}"},
            )
        )
        for index in range(slices)
    )
    state = replace(shop(), series=(*shop().series, *many))
    return Snapshot(taken_at=NOW, recommenders=(state,))
