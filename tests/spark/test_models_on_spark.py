"""The models' check on Spark says what it says on DuckDB: splits, gaps, features, and the cause."""

from __future__ import annotations

import json
import math

import pytest

from tests.cli.conftest import run_monitor
from tests.models.model_world import write_world
from tests.spark.conftest import OPTIONS

CONFIG = """\
engine: {engine}
recommenders:
  - name: shop
    window: 1h
    logs:
      samples: {{path: samples/*.parquet}}
    models: {{by: [city]}}
"""


@pytest.fixture(scope="module")
def diagnosed(spark_is_here, tmp_path_factory):
    """The results on each engine, by their labels."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder / "samples", n=3000)
    found = {}
    engines = {"duckdb": {"kind": "duckdb"}, "spark": {"kind": "spark", "options": OPTIONS}}
    for kind, engine in engines.items():
        (folder / f"{kind}.yaml").write_text(CONFIG.format(engine=json.dumps(engine)))
        ran = run_monitor("diagnose", "-c", f"{kind}.yaml", "-f", "json", cwd=folder)
        assert (ran.code, "Traceback" in ran.err) == (1, False), ran.err
        results = json.loads(ran.out)
        found[kind] = {(one["metric"], *sorted(one["labels"].items())): one for one in results}
        assert len(found[kind]) == len(results)
    return found


def test_every_number_is_the_same_to_nine_digits(diagnosed):
    wanted, found = diagnosed["duckdb"], diagnosed["spark"]
    assert found.keys() == wanted.keys()
    assert {"auc", "user_auc", "auc_gap", "feature_skew", "feature_distance", "auc_gap_cause"} <= {
        metric for metric, *_ in wanted
    }
    for key, want in wanted.items():
        got = found[key]
        assert (got["status"], got["samples"]) == (want["status"], want["samples"]), key
        for name in ("value", "lower", "upper"):
            assert (got[name] is None) == (want[name] is None), (key, name)
            if want[name] is not None:
                assert math.isclose(got[name], want[name], rel_tol=1e-9, abs_tol=1e-9), (key, name)


def test_the_cause_is_named_on_both(diagnosed):
    for results in diagnosed.values():
        causes = [dict(labels)["cause"] for metric, *labels in results if metric == "auc_gap_cause"]
        assert causes == ["serving_skew"]
