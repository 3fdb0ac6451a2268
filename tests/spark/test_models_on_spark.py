"""The models' check gives the same results on Spark as on DuckDB: splits, gaps, features, and the cause."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest

from monitor.cli.diagnose import diagnose
from monitor.cli.terminal import VIOLATED
from monitor.models import splits
from monitor.models.sampling import sample_rows
from monitor.settings.models import DiagnosedModels
from tests.models.model_world import write_world
from tests.spark.conftest import OPTIONS
from tests.spark.test_metrics_on_spark import Tables

CONFIG = """\
engine: {engine}
recommenders:
  - name: shop
    window: 1h
    logs:
      samples: {{path: samples/*.parquet}}
    models: {{by: [city]}}
"""
ENGINES = {"duckdb": {"kind": "duckdb"}, "spark": {"kind": "spark", "url": "local[2]", "options": OPTIONS}}


@pytest.fixture(scope="module")
def diagnosed(spark_session, tmp_path_factory):
    """The results on each engine, by their labels; in this process, for the shared Spark session."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder / "samples", n=3000)
    by_engine = {}
    for kind, engine in ENGINES.items():
        config = folder / f"{kind}.yaml"
        config.write_text(CONFIG.format(engine=json.dumps(engine)))
        judged, code = diagnose(config, model=None, only=None)
        assert code == VIOLATED
        results = [one.result for one in judged]
        by_engine[kind] = {(one.metric, *sorted(one.labels.items())): one for one in results}
        assert len(by_engine[kind]) == len(results)
    return by_engine


def test_every_number_is_the_same_to_nine_digits(diagnosed):
    expected, actual = diagnosed["duckdb"], diagnosed["spark"]
    assert actual.keys() == expected.keys()
    assert {"auc", "user_auc", "auc_gap", "feature_skew", "feature_distance", "auc_gap_cause"} <= {
        metric for metric, *_ in expected
    }
    for key, want in expected.items():
        got = actual[key]
        assert (got.status, got.samples) == (want.status, want.samples), key
        for name in ("value", "lower", "upper"):
            number, wanted = getattr(got, name), getattr(want, name)
            assert (number is None) == (wanted is None), (key, name)
            if wanted is not None:
                assert math.isclose(number, wanted, rel_tol=1e-9, abs_tol=1e-9), (key, name)


def test_the_cause_is_named_on_both(diagnosed):
    for results in diagnosed.values():
        causes = [dict(labels)["cause"] for metric, *labels in results if metric == "auc_gap_cause"]
        assert causes == ["serving_skew"]


def test_equal_rows_are_sampled_independently_on_spark(spark):
    n = 4000
    rows = {
        "request_id": pa.nulls(n, pa.string()),
        "score": [0.2, 0.8] * (n // 2),
        "label": [0, 1] * (n // 2),
    }
    sample = sample_rows(
        Tables(spark).create_table("equal", pa.table(rows)), (), DiagnosedModels(), limit=1000
    )
    assert 850 < len(sample) < 1150
    assert 0.4 < sample.labels.mean() < 0.6


def test_the_part_of_many_rows_has_its_share_of_the_rows_without_a_user_on_spark(spark, monkeypatch):
    n = 4000
    rows = pa.table(
        {
            "model": ["m"] * n, "split": ["test"] * n, "label": [0, 1] * (n // 2),
            "score": [0.2, 0.6] * (n // 2),
            "user_id": [f"u{at // 4}" if at % 8 < 4 else None for at in range(n)],
        }
    )  # fmt: skip
    monkeypatch.setattr(splits, "_ROWS", n // 4)
    monkeypatch.setattr(splits, "_USERS", 10)
    found = splits.measure_splits(Tables(spark).create_table("split", rows), 1e-6).of("m", "test")
    assert found.auc.clusters.clusters == pytest.approx(500 + 2000, rel=0.1)
