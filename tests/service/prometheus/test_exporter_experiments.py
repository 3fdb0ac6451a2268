"""What /metrics says of experiments."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import yaml

from monitor.core.results import Result, ResultKind, Status
from monitor.experiments.describe import page
from monitor.experiments.specs import BUCKET_P, EXPERIMENT_SPECS, MIXED_USERS
from monitor.history.snapshot import Snapshot
from monitor.service.prometheus.families import all_families
from tests.service import pictures
from tests.service.prometheus.test_exporter import find, samples, scrape

ROOT = Path(__file__).resolve().parents[3]
P = Result(
    kind=ResultKind.EXPERIMENT,
    metric="experiment_split_p_value",
    labels={"experiment": "rank", "by": "anytime"},
    status=Status.OK,
    definition="1",
    value=0.5,
    samples=100,
    threshold=0.001,
    bound="min",
)


def text_of(*results: Result, **standing: Status) -> str:
    shown = tuple(pictures.series(one, check="experiments", **standing) for one in results)
    state = replace(pictures.shop(), series=shown)
    return scrape(Snapshot(taken_at=pictures.NOW, recommenders=(state,)))


def test_a_broken_split_stays_violated_while_there_is_no_data() -> None:
    text = text_of(replace(P, status=Status.NO_DATA, value=None), standing=Status.VIOLATED)
    labels = {"recommender": "shop", "experiment": "rank", "metric": P.metric, "by": "anytime"}
    assert find(text, "recsys_experiment_status", status="violated", **labels) == 1
    assert find(text, "recsys_experiment_status", status="no_data", **labels) is None


def test_experiments_have_a_status_of_their_own_each() -> None:
    other = replace(P, labels={"experiment": "page", "by": "anytime"}, value=1e-9, status=Status.VIOLATED)
    text = text_of(P) + text_of(other)
    for name in ("recsys_metric_status", "recsys_objective_status"):
        assert name not in {found for found, _ in samples(text)}
    labels = {"recommender": "shop", "metric": P.metric, "by": "anytime", "status": "violated"}
    assert find(text_of(P, other), "recsys_experiment_status", experiment="page", **labels) == 1
    assert find(text_of(P, other), "recsys_experiment_status", experiment="rank", **labels) is None


def test_the_worst_arm_of_a_metric_is_exported() -> None:
    arms = [
        Result(
            kind=ResultKind.EXPERIMENT,
            metric="experiment_conversion",
            labels={"experiment": "rank", "arm": arm, "event": "click"},
            status=status,
            definition="1",
            value=0.1 if status is Status.OK else None,
        )
        for arm, status in (("a", Status.OK), ("b", Status.ERROR), ("c", Status.OK))
    ]
    text = text_of(*arms)
    labels = {"recommender": "shop", "experiment": "rank", "metric": "experiment_conversion", "by": ""}
    assert find(text, "recsys_experiment_status", status="error", **labels) == 1
    assert find(text, "recsys_experiment_status", status="ok", **labels) is None
    values = [dict(own)["arm"] for name, own in samples(text) if name == "recsys_experiment_conversion_ratio"]
    assert values == ["a", "c"]


def test_every_metric_of_experiments_is_exported_whole_and_never_by_slice() -> None:
    names = all_families().keys()
    for name in EXPERIMENT_SPECS:
        assert f"recsys_{name}_samples" in names
        assert f"recsys_slice_{name}_samples" not in names
    labels = all_families()["recsys_experiment_difference_lower"].labels
    assert labels == ("recommender", "by", "experiment", "arm", "event")


def test_the_page_of_experiments_matches_the_code() -> None:
    written = (ROOT / "docs" / "experiments.md").read_text("utf-8")
    assert written == page(), "run: python -m monitor.experiments.describe > docs/experiments.md"
    for name in EXPERIMENT_SPECS:
        assert f"## {name}\n" in written


def test_the_documented_limits_of_buckets_and_arms_match_the_alert() -> None:
    groups = yaml.safe_load((ROOT / "rules" / "alerts" / "metrics.yaml").read_text("utf-8"))["groups"]
    (expr,) = (
        rule["expr"]
        for group in groups
        for rule in group["rules"]
        if rule["alert"] == "RecsysAssignmentBroken"
    )
    bucket, _, share, users = re.findall(r"(?:<|>=|>|==) ([0-9.]+)", expr)[:4]
    assert (float(bucket), float(share), float(users)) == (1e-6, 1 / 20, 20)
    assert "RecsysAssignmentBroken fires if p is below 1e-6" in BUCKET_P.misleads
    assert "fires if it is 20 or more, and above a twentieth of all users" in MIXED_USERS.misleads
