"""The models' benchmark: what it writes, what it claims, and that a broken bound is no success."""

from __future__ import annotations

import json

import duckdb
import pytest

from benchmarks import models
from monitor.models.feature_values import BATCH


def part(seconds, beside, peak=500.0):
    return {"seconds": seconds, "beside": beside, "peak_mib": peak, "rows": 10, "said": "so"}


def test_the_median_ratio_of_the_rounds_counts():
    assert models.ratio(part([2.0, 9.0, 3.0], [1.0, 1.0, 2.0])) == 2.0


@pytest.mark.parametrize(
    ("auc", "features", "within"),
    [
        (part([2.0], [1.0]), part([20.0], [1.0]), True),
        (part([3.1], [1.0]), part([20.0], [1.0]), False),
        (part([2.0], [1.0]), part([31.0], [1.0]), False),
        (part([2.0], [1.0]), part([20.0], [1.0], 2049.0), False),
    ],
)
def test_a_broken_bound_of_time_or_memory_is_reported(auc, features, within):
    parts = {"auc": auc, "features": features}
    assert models.kept(parts) is within
    assert f"| {models.ratio(features):.1f} | 30 |" in models.report(parts)


def test_the_files_have_the_claimed_rows_and_features(tmp_path):
    sides = [tmp_path / "online.parquet", tmp_path / "offline.parquet"]
    for side in sides:
        models.write_features(side, 2000, 40, side.stem)
    models.write_samples(tmp_path / "samples.parquet", 5000, 0.1)
    share, distinct = duckdb.execute(
        f"SELECT avg(label), count(DISTINCT score) FROM '{tmp_path}/samples.parquet'"
    ).fetchone()
    assert share == pytest.approx(0.1, abs=0.02)
    assert distinct > 4990
    types = [row[1] for row in duckdb.execute(f"DESCRIBE SELECT * FROM '{sides[0]}'").fetchall()[2:]]
    assert (types.count("DOUBLE"), types.count("VARCHAR"), types.count("BIGINT")) == (36, 2, 2)
    orders = [duckdb.execute(f"SELECT request_id FROM '{side}' LIMIT 20").fetchall() for side in sides]
    assert orders[0] != orders[1]
    assert BATCH < 40  # the comparison takes more than one query
    found = models.timed_features(*sides, 1)
    assert found["said"] == "2,000 pairs, 4 of 40 features wrong somewhere"
    nulls = duckdb.execute(f"SELECT avg(CAST(f0 IS NULL AS INT)) FROM '{sides[0]}'").fetchone()[0]
    assert nulls == pytest.approx(0.05, abs=0.02)


def test_the_command_prints_a_table_and_fails_if_a_bound_is_broken(monkeypatch, capsys):
    small = ["--samples", "1000", "--pairs", "100", "--features", "2", "--threads", "1"]
    monkeypatch.setattr(models, "in_a_process", in_this_one(capsys))
    monkeypatch.setattr(models, "LIMITS", {"auc": 1e9, "features": 1e9})
    monkeypatch.setattr(models, "MEMORY_LIMIT_MIB", 1e9)
    assert models.main(small) == 0
    assert "| AUC with DeLong's interval | 1,000 |" in capsys.readouterr().out
    monkeypatch.setattr(models, "LIMITS", {"auc": 0.0, "features": 1e9})
    assert models.main(small) == 1


def in_this_one(capsys):
    """A part measured without a process of its own, which would take longer than the part."""

    def run(*arguments: str) -> dict:
        assert models.main(list(arguments)) == 0
        return json.loads(capsys.readouterr().out)

    return run
