"""The kind of every spec, and of every result of a judged world."""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from monitor.catalogue import ALL_SPECS
from monitor.core.results import ResultKind, Status
from monitor.health.score import health
from monitor.metrics.catalogue import SPECS
from monitor.settings.health import HealthPart, HealthSettings
from tests.anomalies.banded import NOW, a_check, judge, store_hour, usual_hour
from tests.models import model_world
from tests.shop import DAY, HOUR, Shop, hour, one, rows

LATER = DAY + 40 * HOUR


def test_every_spec_has_a_kind() -> None:
    names = defaultdict(set)
    for name, spec in ALL_SPECS.items():
        names[spec.kind].add(name)
    experiments = {name for name in ALL_SPECS if name.startswith("experiment_")}
    assert len(experiments) == 13
    assert names[ResultKind.METRIC] == set(SPECS), "the kind of a spec that is not a metric of what was shown"
    known = {
        ResultKind.EXPERIMENT: experiments,
        ResultKind.MODEL: {"sample_rows", "feature_skew", "feature_distance", "score_distance"},
        ResultKind.GAP: {"auc_gap"},
        ResultKind.CAUSE: {"auc_gap_cause"},
        ResultKind.BAND: {"expected", "deviation", "daily", "anomaly_severity"},
        ResultKind.DRIFT: {"drift"},
        ResultKind.ANOMALY: {"anomaly"},
        ResultKind.HEALTH: {"health_score", "health_part"},
        ResultKind.PLATFORM: {
            "platform_amount", "platform_arm_difference", "platform_change", "platform_least_rise",
            "platform_share",
        },
        ResultKind.SUBSTITUTION: {"substitution", "substitution_in_experiment"},
        ResultKind.FORECAST: {
            "forecast_basis", "forecast_came_true", "forecast_correlation", "forecast_error",
            "forecast_skill",
        },
    }  # fmt: skip
    assert {kind: names[kind] & expected for kind, expected in known.items()} == known


def test_every_result_of_a_judged_window_has_the_right_kind(shop: Shop) -> None:
    shop.rule("known", "hard", "expect_column_values_to_not_be_null", column="item_id")
    shop.config |= {
        "experiments": [{"name": "rank", "split": {"old": 1, "new": 1}}],
        "slices": {"by": ["scene"]},
        "objectives": [{"metric": "volume", "labels": {"by": "requests"}, "min": 1}],
    }
    arms = {"arm": lambda row: ("old", "new")[row // 2 % 2], "scene": "home"}
    shop.write("logs/0.parquet", rows(0, **arms))
    evaluation = shop.judge(hour(0))
    assert {run.outcome for run in evaluation.runs} == {"ok"}
    kinds = {
        "rules": ResultKind.RULE, "logs": ResultKind.LOG, "exposure": ResultKind.METRIC,
        "experiments": ResultKind.EXPERIMENT,
    }  # fmt: skip
    found = {run.check: {each.kind for each in run.results} for run in evaluation.runs}
    assert {check: found[check] for check in kinds} == {check: {kind} for check, kind in kinds.items()}
    for each in evaluation.results:
        assert each.metric not in ALL_SPECS or each.kind is ALL_SPECS[each.metric].kind
    assert one(evaluation, "volume", by="requests").threshold == 1
    part = HealthPart(metric="coverage", labels={"by": "pv"}, zero=0, one=1)
    assert {each.kind for each in health(evaluation.results, HealthSettings(parts=(part,)))} == {
        ResultKind.HEALTH
    }


def test_every_failed_check_gives_results_of_its_kind(shop: Shop) -> None:
    shop.write("logs/0.parquet", pd.DataFrame({"item_id": ["a"]}))
    shop.rule("known", "hard", "expect_column_values_to_not_be_null", column="item_id")
    results = [each for run in shop.judge(hour(0)).runs for each in run.results]
    assert {(each.kind, each.metric) for each in results if each.metric not in ALL_SPECS} == {
        (ResultKind.RULE, "rule"),
        (ResultKind.LOG, "log_rows"),
        (ResultKind.LOG, "log_bad_values"),
        (ResultKind.LOG, "log_skipped_files"),
    }
    assert all(each.kind is ALL_SPECS[each.metric].kind for each in results if each.metric in ALL_SPECS)


def test_a_metric_measured_on_samples_of_a_model_has_the_kind_model(shop: Shop) -> None:
    shop.config["logs"] = {"samples": {"path": str(shop.folder / "samples" / "*")}}
    shop.config["models"] = {"by": ["city"]}
    right = model_world.rows("online", 2000, 3, at=5)
    wrong = model_world.with_default(right, "age", 0.6)
    splits = (model_world.rows("train", 2000, 1), model_world.rows("test", 2000, 2))
    for frame in (*splits, wrong, model_world.offline_of(right)):
        shop.write(f"samples/{frame['split'][0]}.parquet", frame, LATER)
    found = shop.judge(hour(5), part="samples").results
    kinds = {each.kind: {one.metric for one in found if one.kind is each.kind} for each in found}
    assert kinds.pop(ResultKind.MODEL) >= {
        "auc", "log_loss", "sample_rows", "feature_skew", "feature_distance", "score_distance",
    }  # fmt: skip
    assert kinds == {ResultKind.GAP: {"auc_gap"}, ResultKind.CAUSE: {"auc_gap_cause"}}
    assert any(each.metric == "auc" and "dimension" in each.labels for each in found)


def test_results_of_bands_and_causes_have_their_kind(three_weeks) -> None:
    store_hour(three_weeks, NOW, usual_hour(NOW))
    found = judge(three_weeks, a_check(), NOW).results
    assert {each.status for each in found} >= {Status.OK, Status.NO_DATA}
    assert {(each.metric, each.kind) for each in found} == {
        ("expected", ResultKind.BAND),
        ("deviation", ResultKind.BAND),
        ("anomaly", ResultKind.ANOMALY),
        ("anomaly_severity", ResultKind.BAND),
    }
