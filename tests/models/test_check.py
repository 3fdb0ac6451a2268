"""The check of the models: a shop that logs samples of its models, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Result, Status
from monitor.models.feature_specs import DISTANCES
from monitor.models.samples import Samples
from monitor.models.split_results import SIDES
from tests.models import model_world
from tests.shop import DAY, Shop, hour

LATER = DAY + timedelta(hours=40)


def samples(split: str, strength: float, n: int = 2000, model: str = "v1", at: int | None = None, **columns):
    """Scores that know the label to some extent: 0 is chance."""
    rng = np.random.default_rng([n, round(strength * 100), len(model), at or 0])
    label = rng.integers(0, 2, n)
    frame = pd.DataFrame({"split": split, "score": rng.random(n) + strength * label, "label": label})
    frame["score"] /= 1 + strength
    frame["model"] = model
    frame["user_id"] = rng.integers(0, n // 10 + 1, n).astype(str)
    if at is not None:
        start = hour(at).start.replace(tzinfo=None)
        frame["ts"] = [start + timedelta(seconds=3600 * i / n) for i in range(n)]
    for name, given in columns.items():
        frame[name] = given
    return frame


@pytest.fixture
def models(shop: Shop) -> Shop:
    """A shop that logs nothing but samples."""
    shop.config["logs"] = {"samples": {"path": str(shop.folder / "samples" / "*")}}
    return shop


def judged(shop: Shop, at: int) -> list[Result]:
    evaluation = shop.judge(hour(at), part="samples")
    assert [run.check for run in evaluation.runs] == ["models"]
    assert {run.outcome for run in evaluation.runs} == {"ok"}
    return evaluation.results


def one(results: Sequence[Result], metric: str, **labels: str) -> Result:
    (found,) = [each for each in results if each.metric == metric and dict(each.labels) == labels]
    return found


def test_each_split_and_each_gap_of_a_model(models: Shop):
    models.write("samples/train.parquet", samples("train", 1.0), LATER)
    models.write("samples/test.parquet", samples("test", 0.9), LATER)
    models.write("samples/online.parquet", samples("online", 0.3, at=5), LATER)
    found = judged(models, 5)
    aucs = {s: one(found, "auc", split=s, model="v1").value for s in ("train", "test", "online")}
    assert all(value is not None for value in aucs.values())
    assert aucs["train"] > aucs["test"] > aucs["online"]
    small = one(found, "auc_gap", pair="train_test", model="v1")
    large = one(found, "auc_gap", pair="test_online", model="v1")
    assert small.status is Status.OK
    assert large.status is Status.VIOLATED
    for pair, gap in (("train_test", small), ("test_online", large)):
        better, worse = SIDES[pair]
        assert gap.value == pytest.approx(aucs[better] - aucs[worse], abs=1e-9)
    assert large.samples == 4000
    assert one(found, "user_auc", by="equal", split="test", model="v1").samples > 0


def test_online_rows_are_those_of_the_time_before_the_windows_end(models: Shop):
    models.config["models"] = {"over": "3h"}
    for at, n in ((1, 100), (2, 200), (3, 400), (4, 800), (5, 1600)):
        models.write(f"samples/{at}.parquet", samples("online", 0.5, n, at=at), LATER)
    assert one(judged(models, 4), "sample_rows", split="online", model="v1").value == 1400
    assert one(judged(models, 2), "sample_rows", split="online", model="v1").value == 300
    assert judged(models, 9) == []  # nothing is known of any model by then


def test_models_are_never_compared_with_each_other(models: Shop):
    models.write("samples/old.parquet", samples("test", 2.0, model="old"), LATER)
    models.write("samples/new.parquet", samples("online", 0.1, model="new", at=5), LATER)
    gap = one(judged(models, 5), "auc_gap", pair="test_online", model="new")
    assert (gap.status, gap.value) == (Status.NO_DATA, None)
    assert gap.detail == "there is no row of the split test"


def test_a_replaced_model_has_no_gap(models: Shop):
    models.config["models"] = {"over": "1h"}
    for model in ("bad", "good"):
        models.write(f"samples/{model}.parquet", samples("test", 1.0, model=model), LATER)
    models.write("samples/5.parquet", samples("online", 0.1, model="bad", at=5), LATER)
    models.write("samples/6.parquet", samples("online", 1.0, model="good", at=6), LATER)
    before = one(judged(models, 5), "auc_gap", pair="test_online", model="bad")
    assert before.status is Status.VIOLATED
    after = judged(models, 6)
    assert [each.labels["model"] for each in after if each.metric == "auc_gap"] == ["good"]
    assert not [
        each for each in after if each.labels.get("split") == "online" and each.labels["model"] == "bad"
    ]
    silent = judged(models, 9)  # nobody serves: of which model that is a fault nobody knows
    gaps = {each.labels["model"]: each.status for each in silent if each.metric == "auc_gap"}
    assert gaps == {"bad": Status.NO_DATA, "good": Status.NO_DATA}


def test_the_models_with_most_online_rows_are_judged_then_the_latest_trained(models: Shop):
    models.config["models"] = {"newest": 2}
    models.write("samples/a.parquet", samples("train", 0.5, model="a", at=1), LATER)
    models.write("samples/b.parquet", samples("train", 0.5, model="b", at=2), LATER)
    models.write("samples/c.parquet", samples("online", 0.5, model="c", at=5), LATER)
    assert {each.labels["model"] for each in judged(models, 5)} == {"c", "b"}


def test_a_log_without_models_has_one_unnamed_model(models: Shop):
    models.write("samples/test.parquet", samples("test", 0.9).drop(columns="model"), LATER)
    models.write("samples/on.parquet", samples("online", 0.9, at=5).drop(columns="model"), LATER)
    assert one(judged(models, 5), "auc_gap", pair="test_online", model="").status is not Status.NO_DATA


def test_missing_train_rows_are_not_reported_every_hour(models: Shop):
    models.write("samples/test.parquet", samples("test", 0.9), LATER)
    models.write("samples/online.parquet", samples("online", 0.9, at=5), LATER)
    found = judged(models, 5)
    assert [each.labels["pair"] for each in found if each.metric == "auc_gap"] == ["test_online"]
    assert not [each for each in found if each.labels.get("split") == "train"]


def test_missing_online_rows_are_no_data_and_not_ok(models: Shop):
    models.config["models"] = {"over": "1h"}
    models.write("samples/test.parquet", samples("test", 0.9), LATER)
    models.write("samples/online.parquet", samples("online", 0.9, at=5), LATER)
    assert one(judged(models, 5), "auc_gap", pair="test_online", model="v1").status is Status.OK
    assert one(judged(models, 6), "auc_gap", pair="test_online", model="v1").status is Status.NO_DATA


def test_splits_may_have_other_names_and_rows_without_a_split_are_counted(models: Shop):
    models.config["logs"]["samples"]["splits"] = {"test": ["reference", "holdout"], "online": "current"}
    frame = pd.concat([samples("reference", 0.9), samples("holdout", 0.9), samples("nonsense", 0.9, at=5)])
    models.write("samples/all.csv", frame, LATER)
    models.write("samples/online.csv", samples("current", 0.9, at=5), LATER)
    found = judged(models, 5)
    assert one(found, "sample_rows", split="test", model="v1").value == 4000
    assert one(found, "sample_rows", split="online", model="v1").value == 2000
    log = models.evaluator.source.logs["samples"]
    assert list(log.contents.unplaced.values()) == [2000]


def test_only_online_rows_need_a_time(models: Shop):
    timeless = samples("online", 0.9)
    models.write("samples/train.csv", samples("train", 0.9), LATER)
    models.write("samples/on.csv", pd.concat([samples("online", 0.9, at=5), timeless]), LATER)
    judged(models, 5)
    log = models.evaluator.source.logs["samples"]
    unplaced = {path.rsplit("/", 1)[1]: entry.unplaced for path, entry in log.entries.items()}
    assert unplaced == {"train.csv": 0, "on.csv": 2000}


def test_slices_have_the_same_values_in_every_split(models: Shop):
    models.config["models"] = {"by": ["scene"], "budget": 2}
    scenes = ["home"] * 1200 + ["shop"] * 600 + ["rare"] * 200
    turned = ["rare"] * 1200 + ["home"] * 800
    models.write("samples/test.parquet", samples("test", 0.9, scene=scenes), LATER)
    models.write("samples/online.parquet", samples("online", 0.9, at=5, scene=turned), LATER)
    found = judged(models, 5)
    aucs = [each for each in found if each.metric == "auc" and each.labels.get("dimension") == "scene"]
    rows = {(each.labels["split"], each.labels["value"]): each.samples for each in aucs}
    assert rows == {
        ("test", "home"): 1200,
        ("test", "shop"): 600,
        ("test", "other"): 200,
        ("online", "home"): 800,
        ("online", "other"): 1200,
    }


def test_train_and_test_are_measured_again_only_if_their_files_change(models: Shop, monkeypatch):
    from monitor.models import check as module

    measured = []
    original = module.measure_splits

    def counted(rows, *rest):
        measured.append(rows)
        return original(rows, *rest)

    monkeypatch.setattr(module, "measure_splits", counted)
    models.write("samples/test.parquet", samples("test", 0.9), LATER)
    for at in (5, 6):
        models.write(f"samples/{at}.parquet", samples("online", 0.9, at=at), LATER)
    judged(models, 5)
    assert len(measured) == 2
    judged(models, 6)
    assert len(measured) == 3  # the online rows alone
    models.write("samples/test.parquet", samples("test", 2.0), LATER + timedelta(hours=1))
    found = judged(models, 6)
    assert len(measured) == 5
    assert one(found, "auc", split="test", model="v1").value > 0.9


@pytest.mark.parametrize("step", ["explain", "features_in_service", "scores_of_pairs"])
def test_a_diagnosis_that_fails_is_counted_and_takes_no_gap_back(models: Shop, monkeypatch, step):
    from monitor.models import check as module

    def fails(*_):
        raise RuntimeError("no such leaf")

    models.write("samples/train.parquet", samples("train", 0.9), LATER)
    models.write("samples/test.parquet", samples("test", 0.9), LATER)
    models.write("samples/online.parquet", samples("online", 0.3, at=5), LATER)
    monkeypatch.setattr(module, step, fails)
    evaluation = models.judge(hour(5), part="samples")
    (run,) = evaluation.runs
    assert (run.outcome, run.status) == ("error", Status.VIOLATED)
    gap = one(run.results, "auc_gap", pair="test_online", model="v1")
    assert gap.status is Status.VIOLATED
    assert gap.value > 0.1
    assert gap.detail.endswith("its features, scores and causes are not all known: no such leaf")
    small = one(run.results, "auc_gap", pair="train_test", model="v1")
    assert (small.status, "no such leaf" in small.detail) == (Status.OK, True)
    assert one(run.results, "auc", split="online", model="v1").detail.count("leaf") == 0
    # A window whose rows cannot be measured has no gap of the window before.
    monkeypatch.setattr(module, "measure_splits", fails)
    models.write("samples/6.parquet", samples("online", 0.3, at=6), LATER)
    (run,) = models.judge(hour(6), part="samples").runs
    assert {gap.status for gap in run.results} == {Status.ERROR}
    assert run.status is Status.ERROR


def test_features_that_cannot_be_read_fail_in_each_window_and_are_measured_once_they_can(
    models: Shop, monkeypatch
):
    from monitor.models import features as module

    models.write("samples/train.parquet", samples("train", 0.9, price=np.arange(2000.0)), LATER)
    models.write("samples/online.parquet", samples("online", 0.9, at=5, price=np.arange(2000.0)), LATER)
    with monkeypatch.context() as patch:
        patch.setattr(module, "profiles", lambda *_, **__: 1 / 0)
        for _ in range(2):
            assert models.judge(hour(5), part="samples").runs[0].outcome == "error"
    assert any(one.metric == "feature_distance" for one in judged(models, 5))


def test_samples_without_a_feature_say_so_for_each_distance(models: Shop):
    models.write("samples/train.parquet", samples("train", 0.9), LATER)
    models.write("samples/online.parquet", samples("online", 0.9, at=5), LATER)
    found = [one for one in judged(models, 5) if one.metric == "feature_distance"]
    assert {one.status for one in found} == {Status.NO_DATA}
    assert all(one.detail.startswith("the samples have no feature") for one in found)
    assert {one.labels["by"] for one in found} == set(DISTANCES)


def test_train_and_test_are_not_read_if_the_window_does_not_need_them(models: Shop, monkeypatch):
    read = []
    original = Samples.reference
    monkeypatch.setattr(Samples, "reference", lambda *given: read.append(1) or original(*given))
    for split in ("train", "test"):
        models.write(f"samples/{split}.csv", samples(split, 0.9, price=np.arange(2000.0)), LATER)
    for at, strength in ((5, 0.9), (6, 0.9), (7, 0.1)):
        frame = samples("online", strength, at=at, price=np.arange(2000.0))
        models.write(f"samples/{at}.csv", frame, LATER)
    models.config["models"] = {"over": "1h"}
    first = judged(models, 5)
    before = len(read)
    assert before > 0
    second = judged(models, 6)
    assert len(read) == before
    assert {each.metric for each in second} == {each.metric for each in first}
    assert {"score_distance", "feature_distance"} < {each.metric for each in second}
    judged(models, 7)  # a gap that is to be explained
    assert len(read) > before


def test_a_file_without_the_label_is_skipped_and_the_rest_is_judged(models: Shop):
    models.write("samples/bad.parquet", samples("test", 0.9).drop(columns="label"), LATER)
    models.write("samples/online.parquet", samples("online", 0.9, at=5), LATER)
    found = judged(models, 5)
    assert one(found, "auc", split="online", model="v1").status is Status.OK
    (skipped,) = models.evaluator.source.logs["samples"].skipped
    assert "column label (looked for as 'label') is missing" in str(skipped.reason)


def test_a_hostile_model_and_scene_are_only_text(models: Shop):
    models.config["models"] = {"by": ["scene"]}
    nasty = "'); DROP TABLE x; --<script>"
    frame = samples("online", 0.9, at=5, model=nasty, scene=nasty)
    models.write("samples/online.parquet", frame, LATER)
    found = judged(models, 5)
    assert one(found, "auc", split="online", model=nasty).status is Status.OK
    assert one(found, "auc", split="online", model=nasty, dimension="scene", value=nasty).samples == 2000


def two_models_on_the_same_requests(shop: Shop, **offline: str | None) -> None:
    """Ranker-v7 was served a default age on 60 % of the rows, ranker-v8 the right one."""
    right = model_world.rows("online", 2000, 3, at=5)
    wrong = model_world.with_default(right, "age", 0.6)
    shop.write("samples/online.parquet", pd.concat([wrong, right.assign(model="ranker-v8")]), LATER)
    joined = [model_world.offline_of(right).assign(model=name) for name in offline.values()]
    shop.write("samples/offline.parquet", pd.concat(joined), LATER)
    tested = model_world.rows("test", 2000, 2)
    shop.write("samples/test.parquet", pd.concat([tested, tested.assign(model="ranker-v8")]), LATER)


def test_two_models_that_score_the_same_requests_keep_their_pairs(models: Shop):
    two_models_on_the_same_requests(models, one="ranker-v7", other="ranker-v8")
    found = judged(models, 5)
    age = [one(found, "feature_skew", model=name, feature="age") for name in ("ranker-v7", "ranker-v8")]
    assert [round(each.value or 0.0, 1) for each in age] == [0.6, 0.0]
    assert [each.samples for each in age] == [2000, 2000]
    causes = [each.detail for each in found if each.metric == "auc_gap_cause"]
    assert [one for one in causes if "'age' default on 6" in one and "on the pairs" in one], causes


def test_offline_rows_without_a_model_pair_with_the_rows_of_every_model(models: Shop):
    two_models_on_the_same_requests(models, every=None)
    found = judged(models, 5)
    age = [one(found, "feature_skew", model=name, feature="age") for name in ("ranker-v7", "ranker-v8")]
    assert [round(each.value or 0.0, 1) for each in age] == [0.6, 0.0]


def test_offline_rows_of_another_model_have_no_pairs_and_the_detail_says_so(models: Shop):
    two_models_on_the_same_requests(models, one="ranker-v7")
    (other,) = [
        each
        for each in judged(models, 5)
        if each.metric == "feature_skew" and each.labels["model"] == "ranker-v8"
    ]
    assert other.status is Status.NO_DATA
    assert other.detail.startswith("no pair among 2000 online and 2000 offline rows"), "those of its own test"
