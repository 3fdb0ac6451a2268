"""The benchmark of Spark: what it prints is what was measured, and engines that differ are a failure."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import data, spark

ONE = {"volume": ("ok", 3.0), "auc": ("no_data", None)}


def test_a_window_is_judged_at_the_settings_of_a_user(tmp_path: Path) -> None:
    data.write(tmp_path, 400)
    found = spark.judge(tmp_path, 400, "duckdb", None)
    assert found["seconds"] > 0
    assert len(found["results"]) > 150
    text = spark.config(tmp_path, 400, "spark", "local[2]").read_text("utf-8")
    assert '"spark_from": 0' in text
    assert text.count('"spark.') == text.count('"spark.eventLog.'), "Spark keeps its own defaults"


def test_jobs_and_shuffled_bytes_are_those_of_the_event_log(tmp_path: Path) -> None:
    task = {"Event": "SparkListenerTaskEnd", "Task Metrics": {}}
    wrote = {**task, "Task Metrics": {"Shuffle Write Metrics": {"Shuffle Bytes Written": 5}}}
    events = [{"Event": "SparkListenerJobStart"}] * 2 + [wrote, wrote, task, {**task, "Task Metrics": None}]
    (tmp_path / "local-1").write_text("\n".join(map(json.dumps, events)), "utf-8")
    (tmp_path / ".local-1.crc").write_bytes(b"\xff")
    assert spark.events(tmp_path) == (2, 10)


def test_a_result_that_differs_is_named() -> None:
    embedded = spark.Cost(1000, "duckdb", 2.0, ONE)
    alike = spark.Cost(1000, "spark", 5.0, {**ONE, "volume": ("ok", 3.0 + 1e-12)}, 7, 3 << 20)
    text, agree = spark.table([embedded, alike])
    assert agree
    assert text.splitlines()[-1] == "| 1,000 | 2.0 s | 5.0 s | 2.5 | 7 | 3 MiB | 0 of 2 |"
    for other in (
        {**ONE, "volume": ("ok", 3.1)},
        {**ONE, "volume": ("violated", 3.0)},
        {**ONE, "volume": ("ok", None)},
        {"auc": ONE["auc"]},
    ):
        text, agree = spark.table([embedded, spark.Cost(1000, "spark", 5.0, other)])
        assert not agree
        assert text.splitlines()[-1] == "1,000: volume"
