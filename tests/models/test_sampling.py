"""The rows that are drawn for a diagnosis: which they are, and what becomes of their columns."""

from __future__ import annotations

import itertools
from datetime import datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest

from monitor.models.sampling import features_of, sample_pairs, sample_rows
from monitor.settings.models import DiagnosedModels
from tests.metrics.worlds import embedded

MODELS = DiagnosedModels()
AT = datetime(2026, 3, 1, 5)
NUMBERS = itertools.count()
engine = cache(embedded)


def table(**columns):
    n = len(next(iter(columns.values())))
    given = {"score": [0.5] * n, "label": [1, 0] * (n // 2) + [1] * (n % 2), **columns}
    return engine().create_table(f"samples_{next(NUMBERS)}", pd.DataFrame(given))


def test_pandas_row_numbers_are_not_a_feature():
    numbers = ["__index_level_0__", "_index_level_0_", "index_level_1", "Unnamed: 0", "Unnamed: 12"]
    rows = table(age=[30, 40], **{name: [0, 1] for name in numbers}, unnamed_price=[1, 2])
    assert features_of((rows,), MODELS) == ("age", "unnamed_price")
    assert features_of((rows,), DiagnosedModels(features=("Unnamed: 0",))) == ("Unnamed: 0",)


def test_every_column_is_converted_for_the_diagnosis():
    rows = table(
        age=[30, None, 50],
        clicks=[1, 2, 3],
        member=[True, False, None],
        city=["bern", None, "biel"],
        age_at=[AT, AT, None],
        ts=[AT, AT, AT],
        user_id=["u", "v", "u"],
        request_id=["r1", "r2", None],
        scene=["home", None, "home"],
    )
    models = DiagnosedModels(by=("scene",), feature_times={"age": "age_at"})
    features = features_of((rows,), models)
    assert features == ("age", "clicks", "member", "city")
    sample = sample_rows(rows, features, models)
    order = np.argsort(sample.features["clicks"])
    assert sample.features["age"][order].tolist()[0::2] == [30.0, 50.0]
    assert np.isnan(sample.features["age"][order][1])
    assert sample.features["clicks"].dtype == np.float64
    assert sample.features["city"][order].tolist() == ["bern", None, "biel"]
    assert sample.features["member"][order].tolist()[:2] == [1.0, 0.0]
    assert sample.times[order].tolist() == [1772341200.0] * 3
    assert np.isnan(sample.feature_times["age"][order][2])
    assert sample.slices["scene"][order].tolist() == ["home", None, "home"]
    assert sample.ids[order].tolist() == ["r1", "r2", None]
    users = sample.entities["user_id"][order].tolist()
    assert users[0] == users[2] != users[1]
    assert "u" not in users  # whose a row is stays in the log


def test_times_of_features_may_have_nanoseconds():
    at = "make_timestamp_ns(1772341200123456789) AS age_at"
    rows = engine().sql(f"SELECT 0.5 AS score, 1 AS label, 30 AS age, {at}")
    sample = sample_rows(rows, ("age",), DiagnosedModels(feature_times={"age": "age_at"}))
    assert sample.feature_times["age"].tolist() == [pytest.approx(1772341200.123456, abs=1e-6)]


def test_slices_of_the_diagnosis_are_written_as_those_of_the_splits():
    rows = table(tags=[["b", "a"], ["c"], [""]], zone=[1.0, 2.0, None], price=[1, 2, 3])
    models = DiagnosedModels(by=("tags", "zone", "price"), features=("price",))
    sample = sample_rows(rows, ("price",), models)
    order = np.argsort(sample.features["price"])
    assert sample.slices["tags"][order].tolist() == ["a", "c", None]
    assert sample.slices["zone"][order].tolist() == ["1", "2", None]
    assert sample.slices["price"][order].tolist() == ["1", "2", "3"]


def test_features_are_those_of_the_settings_or_all_unnamed_columns():
    rows = table(a=[1.0, 2.0], b=["x", "y"], scene=["h", "h"], item_id=["i", "j"], when=[AT, AT])
    assert features_of((rows,), MODELS) == ("a", "b")
    assert features_of((rows,), DiagnosedModels(features=("b", "gone"))) == ("b",)
    assert features_of((rows,), DiagnosedModels(by=("b",))) == ("a",)
    assert features_of((rows, rows.drop("a")), MODELS) == ("b",)
    assert features_of((None, rows), MODELS) == ("a", "b")
    assert features_of((None,), MODELS) == ()


def test_unusable_rows_are_not_sampled():
    rows = table(score=[0.1, None, float("inf"), 0.2], label=[0.0, 1.0, 1.0, 2.0], a=[1.0, 2.0, 3.0, 4.0])
    assert sample_rows(rows, ("a",), MODELS).features["a"].tolist() == [1.0]


@pytest.mark.parametrize("named", [True, False])
def test_a_sample_of_many_rows_has_about_the_asked_size_and_is_always_the_same(named):
    n = 20_000
    columns = {"request_id": [f"r{i}" for i in range(n)]} if named else {}
    rows = table(score=np.linspace(0, 1, n), a=np.arange(n, dtype=float), **columns)
    first, again = (sample_rows(rows, ("a",), MODELS, limit=2000) for _ in range(2))
    assert 1800 < len(first) < 2200
    assert sorted(first.features["a"]) == sorted(again.features["a"])
    assert abs(np.mean(first.features["a"]) / n - 0.5) < 0.05


@pytest.mark.parametrize(
    "ids",
    [
        {},
        {"request_id": [None] * 20_000},
        {"request_id": [None] * 19_900 + [f"r{i}" for i in range(100)]},
        {"user_id": [f"u{i % 3}" for i in range(20_000)]},
    ],
    ids=["no id", "no value", "few values", "three users"],
)
@pytest.mark.parametrize("values", [2, 7, 1000])
def test_a_sample_of_equal_ids_and_scores_is_neither_empty_nor_biased(ids, values):
    n = 20_000
    rng = np.random.default_rng(values)
    scores = rng.integers(0, values, n) / values
    columns = {"score": scores, "label": (rng.random(n) < scores).astype(int), **ids}
    rows = pd.DataFrame(columns).astype(dict.fromkeys(ids, "string"))
    sample = sample_rows(table(**rows), (), MODELS, limit=4000)
    assert 3700 < len(sample) < 4300
    assert abs(sample.scores.mean() - scores.mean()) < 0.03
    assert abs(sample.labels.mean() - columns["label"].mean()) < 0.03
    again = sample_rows(table(**rows.sample(frac=1.0, random_state=1)), (), MODELS, limit=4000)
    assert again.scores.tolist() == sample.scores.tolist()


def test_rows_without_a_key_take_no_place_in_the_sample_of_pairs():
    n = 4000
    keys = [None] * (n // 2) + [f"r{i}" for i in range(n // 2)]
    online = table(request_id=keys, a=np.arange(n, dtype=float))
    offline = table(request_id=keys[n // 2 :], a=np.arange(n // 2, dtype=float))
    models = DiagnosedModels(pair_by=("request_id",))
    assert len(sample_pairs(online, offline, ("a",), models, limit=n // 2).online) == n // 2
    assert 800 < len(sample_pairs(online, offline, ("a",), models, limit=1000).online) < 1200


def test_a_sampled_duplicate_key_has_no_pair():
    n = 4000
    keys = [f"r{i}" for i in range(n // 2)] * 2
    online = table(request_id=keys, a=np.arange(n, dtype=float))
    offline = table(request_id=keys[: n // 2], a=np.arange(n // 2, dtype=float))
    assert sample_pairs(online, offline, ("a",), DiagnosedModels(pair_by=("request_id",)), limit=500) is None


def test_pairs_share_a_request_and_a_duplicate_key_has_no_pair():
    online = table(
        request_id=["r1", "r1", "r2", "r3", "r3", None],
        item_id=[1, 2, 1, 1, 1, 1],
        a=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    )
    offline = table(
        request_id=["r1", "r2", "r3", "r2", None, "r9"], item_id=["1", "1", "1", "2", "1", "1"],
        a=[10.0, 30.0, 40.0, 99.0, 60.0, 90.0],
    )  # fmt: skip
    pairs = sample_pairs(online, offline, ("a",), MODELS)
    met = sorted(zip(pairs.online.features["a"].tolist(), pairs.offline["a"].tolist(), strict=True))
    assert met == [(1.0, 10.0), (3.0, 30.0)]


def test_pairs_carry_the_times_of_both_sides():
    later = datetime(2026, 3, 1, 6)
    online = table(request_id=["r1"], a=[1.0], a_at=[AT])
    offline = table(request_id=["r1"], a=[1.0], a_at=[later])
    pairs = sample_pairs(online, offline, ("a",), DiagnosedModels(feature_times={"a": "a_at"}))
    assert pairs.offline_times["a"][0] - pairs.online.feature_times["a"][0] == 3600


def test_without_a_shared_key_or_value_there_are_no_pairs():
    online = table(request_id=["r1"], a=[1.0])
    assert sample_pairs(online, table(request_id=["r2"], a=[1.0]), ("a",), MODELS) is None
    assert sample_pairs(online, table(a=[1.0]), ("a",), MODELS) is None


@pytest.mark.parametrize("ids", [["request_id"], ["request_id", "user_id"], []], ids="+".join)
def test_rows_have_one_order_whatever_the_order_of_the_engine(ids):
    n = 400
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {
            "request_id": [f"r{one // 2}" for one in range(n)],
            "user_id": [f"u{one % 7}" for one in range(n)],
            "score": rng.uniform(size=n),
            "label": rng.integers(0, 2, n),
            "age": rng.integers(18, 80, n),
        }
    )[[*ids, "score", "label", "age"]]
    first, second = (
        sample_rows(table(**one.to_dict("list")), ("age",), MODELS)
        for one in (rows, rows.sample(frac=1.0, random_state=1))
    )
    assert first.scores.tolist() == second.scores.tolist()
    assert first.features["age"].tolist() == second.features["age"].tolist()
    assert (first.ids is None) == (not ids)
    if ids:
        assert first.ids.tolist() == second.ids.tolist()


def test_pairs_have_one_order_whatever_the_order_of_the_engine():
    n = 400
    rng = np.random.default_rng(4)
    online = pd.DataFrame({"request_id": [f"r{one}" for one in range(n)], "score": rng.uniform(size=n),
                           "label": rng.integers(0, 2, n), "age": rng.integers(18, 80, n)})  # fmt: skip
    offline = online.assign(age=online["age"] + 1)
    models = DiagnosedModels(pair_by=("request_id",))
    found = [
        sample_pairs(
            table(**online.sample(frac=1.0, random_state=seed).to_dict("list")),
            table(**offline.sample(frac=1.0, random_state=seed + 5).to_dict("list")),
            ("age",), models,
        )
        for seed in (1, 2)
    ]  # fmt: skip
    assert found[0].online.ids.tolist() == found[1].online.ids.tolist()
    assert found[0].offline["age"].tolist() == found[1].offline["age"].tolist()
    assert found[0].offline["age"].tolist() == (found[0].online.features["age"] + 1).tolist()
