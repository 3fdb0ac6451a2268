"""The samples of a model by split: by hand, against the statistics on arrays, and what is said of gaps."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from monitor.core.results import Status
from monitor.models import splits
from monitor.models.split_results import gap_result, split_results
from monitor.models.splits import Sums, measure_splits
from monitor.settings.metrics import MetricSettings
from monitor.settings.models import ModelSettings
from monitor.statistics.auc import auc_gap, delong_interval
from monitor.statistics.auc import auc_sums as of_arrays
from tests.metrics.worlds import embedded

METRICS = MetricSettings()
NAN, INF = math.nan, math.inf


def sums_of(rows, dimensions=()) -> Sums:
    """Of rows (model, split, user, score, label), and a scene where it is asked for."""
    names = ("model", "split", "user_id", "score", "label", *dimensions)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    types = {"score": pa.float64(), "label": pa.float64()}
    arrays = {
        name: pa.array(column, types.get(name, pa.string()))
        for name, column in zip(names, columns, strict=True)
    }
    table = embedded().create_table("samples", pa.table(arrays))
    return measure_splits(table, METRICS.clip, dimensions)


def results(sums, split="test", model="m", **further):
    found = split_results(sums, METRICS, ModelSettings(), split=split, model=model, **further)
    return {(one.metric, one.labels.get("by", "")): one for one in found}


def world(rng, n, strength, model="m", split="test"):
    labels = rng.integers(0, 2, n)
    scores = np.round(rng.random(n) * (1 - strength) + labels * strength, 3)
    users = rng.integers(0, max(2, n // 5), n).astype(str)
    return [(model, split, u, float(s), float(y)) for u, s, y in zip(users, scores, labels, strict=True)]


def test_four_rows_by_hand():
    rows = [("m", "test", "u", 0.1, 0), ("m", "test", "u", 0.4, 0), ("m", "test", "v", 0.35, 1)]
    found = results(sums_of([*rows, ("m", "test", "v", 0.8, 1)]).of("m", "test"))
    assert found["auc", ""].value == 0.75
    assert found["sample_rows", ""].value == 4
    assert found["calibration", ""].value == pytest.approx(1.65 / 2)
    assert found["user_auc", "equal"].status is Status.UNDEFINED  # each user has one class
    assert found["user_auc", "equal"].detail == "none of 2 users has labels of both classes"
    assert found["auc", ""].labels == {"split": "test", "model": "m"}


def test_every_split_of_every_model_matches_the_references():
    rng = np.random.default_rng(7)
    groups = [("a", "train", 0.5), ("a", "test", 0.2), ("b", "test", 0.4), ("", "online", 0.1)]
    rows = {(m, s): world(rng, 400, strength, m, s) for m, s, strength in groups}
    sums = sums_of([row for group in rows.values() for row in group])
    assert set(sums.whole) == set(rows)
    assert sums.models("test") == {"a": 400, "b": 400}
    for (model, split), group in rows.items():
        scores, labels = np.array([row[3] for row in group]), np.array([row[4] for row in group])
        found = results(sums.of(model, split), split, model)
        assert found["auc", ""].value == pytest.approx(roc_auc_score(labels, scores), rel=1e-11)
        assert found["log_loss", ""].value == pytest.approx(log_loss(labels, scores), rel=1e-9)
        assert found["calibration", ""].value == pytest.approx(scores.sum() / labels.sum(), rel=1e-11)
        own = [
            roc_auc_score(labels[mine], scores[mine])
            for user in {row[2] for row in group}
            if (mine := np.array([row[2] == user for row in group])).any() and len(set(labels[mine])) == 2
        ]
        assert found["user_auc", "equal"].value == pytest.approx(np.mean(own), rel=1e-11)
        assert found["user_auc", "equal"].samples == len(own)


def test_unusable_rows_are_left_out_and_counted():
    bad = [(None, 1.0), (NAN, 0.0), (INF, 1.0), (0.5, None), (0.5, 2.0), (0.5, NAN)]
    good = [(0.2, 0.0), (0.7, 1.0)]
    found = results(sums_of([("m", "test", "u", s, y) for s, y in bad + good]).of("m", "test"))
    assert (found["sample_rows", ""].value, found["sample_rows", ""].samples) == (2, 8)
    said = "3 of 8 rows have no finite score; 3 of 8 rows have no label of 0 or 1"
    assert found["sample_rows", ""].detail == said
    few = "the rows come from 1 user; an interval needs at least 10; "
    assert (found["auc", ""].value, found["auc", ""].detail) == (1.0, few + said)


def test_a_split_without_usable_rows_is_no_data():
    empty = results(sums_of([]).of("m", "test"))
    assert {one.status for one in empty.values()} == {Status.NO_DATA}
    assert empty["auc", ""].detail == "there is no row of the split test"
    useless = results(sums_of([("m", "test", "u", None, 1.0)]).of("m", "test"))
    assert useless["auc", ""].status is Status.NO_DATA
    assert "1 of 1 rows have no finite score" in useless["auc", ""].detail
    assert useless["sample_rows", ""].value == 0


def test_one_class_has_no_auc_and_without_a_positive_no_calibration():
    none = results(sums_of([("m", "test", "u", 0.5, 0.0)] * 3).of("m", "test"))
    assert (none["auc", ""].status, none["calibration", ""].status) == (Status.UNDEFINED,) * 2
    assert none["auc", ""].detail == "all 3 labels of test are 0"
    every = results(sums_of([("m", "test", "u", 0.5, 1.0)] * 3).of("m", "test"))
    assert (every["auc", ""].status, every["calibration", ""].value) == (Status.UNDEFINED, 0.5)


def test_rows_without_a_user_have_an_auc_and_no_user_auc():
    found = results(sums_of([("m", "test", None, 0.1, 0.0), ("m", "test", None, 0.3, 1.0)]).of("m", "test"))
    assert found["auc", ""].value == 1.0
    assert (found["user_auc", "equal"].status, found["user_auc", "equal"].detail) == (
        Status.NO_DATA,
        "no row has a user id",
    )


def test_a_slice_equals_the_metrics_of_its_rows():
    rng = np.random.default_rng(3)
    rows = [(*row, "home" if i % 3 else "shop") for i, row in enumerate(world(rng, 300, 0.3))]
    sums = sums_of(rows, ("scene",))
    home = [row for row in rows if row[5] == "home"]
    found = results(sums.slices["scene"]["m", "test", "home"], dimension="scene", value="home")
    assert found["auc", ""].value == pytest.approx(
        roc_auc_score([row[4] for row in home], [row[3] for row in home]), rel=1e-11
    )
    assert found["auc", ""].labels["value"] == "home"
    assert ("sample_rows", "") not in found


def gap(better, worse, pair="train_test", **gaps):
    """The gap of two lists of (score, label)."""
    first, second = ("train", "test") if pair == "train_test" else ("test", "online")
    parts = ((first, better), (second, worse))
    sums = sums_of([("m", name, f"u{at}", *one) for name, part in parts for at, one in enumerate(part)])
    settings = ModelSettings(gaps=gaps)
    return gap_result(pair, sums.of("m", first), sums.of("m", second), METRICS, settings, "m")


def scored(n, auc, seed=0):
    """Normal scores of this AUC, half of them positive."""
    from scipy import stats

    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    scores = rng.normal(size=n) + labels * math.sqrt(2) * stats.norm.ppf(auc)
    return list(zip(scores.tolist(), labels.astype(float).tolist(), strict=True))


def test_a_gap_is_violated_only_if_its_interval_is_above_the_bound():
    better, worse = scored(4000, 0.9, 1), scored(4000, 0.8, 2)
    found = gap(better, worse, train_test=0.05)
    expected = auc_gap(of_arrays(*zip(*better, strict=True)), of_arrays(*zip(*worse, strict=True)))
    assert expected is not None
    assert found.value == pytest.approx(expected.difference, rel=1e-9)
    assert (found.lower, found.upper) == pytest.approx(tuple(expected.interval), rel=1e-9)
    assert (found.status, found.threshold, found.bound) == (Status.VIOLATED, 0.05, "max")
    assert found.labels == {"pair": "train_test", "model": "m"}
    inside = gap(better, worse, train_test=0.1)
    assert inside.status is Status.OK
    assert inside.value == found.value


def test_a_negative_gap_is_not_violated():
    found = gap(scored(4000, 0.8), scored(4000, 0.9), train_test=0.05)
    assert found.status is Status.OK
    assert found.value is not None
    assert found.value < -0.05


def test_too_few_rows_are_no_data_with_the_number_needed():
    few = gap(scored(60, 0.9, 1), scored(60, 0.85, 2), pair="test_online", test_online=0.05)
    assert (few.status, few.value, few.threshold) == (Status.NO_DATA, None, 0.05)
    needed = int(few.detail.split("about ")[1].split(" ")[0].replace(",", ""))
    enough = gap(
        scored(2 * needed, 0.9, 1), scored(2 * needed, 0.85, 2), pair="test_online", test_online=0.05
    )
    assert enough.status is not Status.NO_DATA
    half = gap(scored(needed, 0.9, 1), scored(needed, 0.85, 2), pair="test_online", test_online=0.05)
    assert half.status is Status.NO_DATA


@pytest.mark.parametrize(
    ("worse", "why"),
    [
        ([], "there is no row of the split test"),
        ([(0.1, 0.0), (0.2, 0.0)], "all 2 labels of test are 0: there is no AUC"),
        ([(0.1, 0.0), (0.2, 1.0), (0.3, 1.0)], "test has fewer than two labels of a class"),
    ],
)
def test_a_gap_that_cannot_be_measured_is_no_data_and_says_why(worse, why):
    found = gap(scored(100, 0.9), worse)
    assert (found.status, found.value, found.threshold) == (Status.NO_DATA, None, 0.05)
    assert found.detail.startswith(why)


def test_settings_of_online_rows_are_in_the_definitions_that_use_them():
    found = split_results(None, METRICS, ModelSettings(over="2d"), split="online", model="m")
    assert {one.definition for one in found} == {"1;over=172800s"}
    joined = ModelSettings(online="exposures")
    of_gap = gap_result("test_online", None, None, METRICS, joined, "m")
    assert of_gap.definition == "1;over=86400s;online=exposures"
    assert gap_result("train_test", None, None, METRICS, joined, "m").definition == "1"


def clustered(seed, users=40, rows=25):
    """Rows of users that differ: (model, split, user, score, label)."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(users), rows)
    score = rng.normal(size=len(who)) + rng.normal(0, 1, users)[who]
    labels = (rng.random(len(who)) < 1 / (1 + np.exp(-score - rng.normal(0, 1, users)[who]))).astype(float)
    return [
        ("m", "test", f"u{u}", round(float(s), 2), float(y))
        for u, s, y in zip(who, score, labels, strict=True)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_adds_up_what_each_user_contributes(seed):
    rows = clustered(seed)
    rows[::9] = [(*row[:2], None, *row[3:]) for row in rows[::9]]  # a row without a user is one of its own
    owners = [row[2] or str(at) for at, row in enumerate(rows)]
    found = results(sums_of(rows).of("m", "test"))["auc", ""]
    scores, labels = [row[3] for row in rows], [row[4] for row in rows]
    expected = delong_interval(of_arrays(scores, labels, owners))
    assert (found.lower, found.upper) == pytest.approx(tuple(expected), rel=1e-9)
    plain = delong_interval(of_arrays(scores, labels))
    assert found.upper - found.lower > 1.2 * (plain.upper - plain.lower)


def test_the_interval_of_many_rows_uses_a_part_of_the_users(monkeypatch):
    rows = clustered(0, users=2000, rows=10)
    whole = results(sums_of(rows).of("m", "test"))["auc", ""]
    monkeypatch.setattr(splits, "_ROWS", 5000)
    monkeypatch.setattr(splits, "_USERS", 300)
    part = results(sums_of(rows).of("m", "test"))["auc", ""]
    assert part.value == whole.value
    assert part.lower != whole.lower
    assert part.upper - part.lower == pytest.approx(whole.upper - whole.lower, rel=0.15)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_the_part_of_many_rows_has_its_share_of_the_rows_without_a_user(monkeypatch, share):
    rows = clustered(1, users=2000, rows=10)
    rows = [row if int(row[2][1:]) % 4 == 0 else (*row[:2], None, *row[3:]) for row in rows]
    whole = sums_of(rows).of("m", "test").auc
    monkeypatch.setattr(splits, "_ROWS", int(share * len(rows)))
    monkeypatch.setattr(splits, "_USERS", 10)
    part = sums_of(rows).of("m", "test").auc
    assert part.clusters != whole.clusters
    assert part.clusters.clusters == pytest.approx(whole.clusters.clusters, rel=0.05)
    (low, high), (lower, upper) = ((one.lower, one.upper) for one in map(delong_interval, (whole, part)))
    assert upper - lower == pytest.approx(high - low, rel=0.15)
    assert sums_of(rows[::-1]).of("m", "test").auc.clusters == pytest.approx(part.clusters)  # any order


def test_a_gap_of_few_users_is_no_data_and_says_how_many_there_are():
    rows = [*clustered(0, users=7, rows=400)]
    train = [("m", "train", f"u{at}", *row[3:]) for at, row in enumerate(rows)]
    sums = sums_of([*train, *rows])
    found = gap_result(
        "train_test", *(sums.of("m", one) for one in ("train", "test")), METRICS, ModelSettings(), "m"
    )
    assert (found.status, found.value) == (Status.NO_DATA, None)
    assert found.detail == "test: the rows come from 7 users; an interval needs at least 10"
