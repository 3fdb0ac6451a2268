"""With Spark in the config, the embedded engine judges small windows, and Spark the large ones."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from monitor.core.results import Result, Status, Window
from monitor.rollups.measure import RollUp, Span
from monitor.settings.engine import EngineSettings
from tests.cli.conftest import run_monitor
from tests.shop import DAY, HOUR, Shop, hour, rows
from tests.spark.conftest import OPTIONS

REGEX = "expect_column_values_to_match_regex"
NOT_NULL = "expect_column_values_to_not_be_null"


@pytest.fixture
def runtime(spark_session: Any, tmp_path: Path) -> Iterator[Any]:
    """Windows of twenty rows or more are large."""
    from monitor.judging.spark_runtime import SparkRuntime

    settings = EngineSettings(kind="spark", url="local[2]", options=OPTIONS, spark_from=20)
    made = SparkRuntime(settings, tmp_path / "spill")
    yield made
    made.close()


@pytest.fixture
def shop(tmp_path: Path, runtime: Any) -> Shop:
    made = Shop(tmp_path, runtime)
    made.config["metrics"] = {"disable": ["personalization", "gini", "novelty", "item_similarity"]}
    return made


def jobs(runtime: Any) -> int:
    """The jobs that Spark has run for this runtime so far."""
    engine, _ = runtime._cluster
    return len(engine.session.sparkContext.statusTracker().getJobIdsForGroup(engine.group))


def test_windows_of_both_engines_add_up_to_a_day(shop: Shop) -> None:
    shop.config["rollups"] = ["1d"]
    counts = {0: 10, 1: 40, 2: 12}
    for number, count in counts.items():
        shop.write(f"logs/{number}.parquet", rows(number, count))
    for number in counts:
        shop.judge(hour(number))
    evaluator, runtime = shop.evaluator, shop.runtime
    assert evaluator.rollups is not None
    roll_up = RollUp(
        runtime.index, evaluator.source, evaluator.rollups, evaluator.kept, evaluator.settings.metrics
    )
    found = {
        (one.metric, one.labels.get("by")): one
        for one in roll_up.measure(Span(Window(DAY, DAY + 24 * HOUR), 24 * HOUR, len(counts)))
    }
    shown = [rows(number, count) for number, count in counts.items()]
    assert found["volume", "exposures"].value == sum(counts.values())
    assert found["volume", "users"].value == pd.concat(shown)["user_id"].nunique()
    assert found["volume", "items"].value == pd.concat(shown)["item_id"].nunique()
    assert {one.status for one in found.values()} == {Status.OK}


def test_the_size_of_a_window_chooses_the_engine(shop: Shop) -> None:
    shop.rule("known", "hard", NOT_NULL, column="item_id")
    for number, count in ((0, 10), (1, 40), (2, 12)):
        shop.write(f"logs/{number}.parquet", rows(number, count))
    used, engines, found = [], [], []
    for number in range(3):
        before = jobs(shop.runtime)
        found.append(shop.judge(hour(number)))
        used.append(jobs(shop.runtime) - before)
        engines.append(type(shop.runtime.engine).__name__)
    assert engines == ["Engine", "SparkEngine", "Engine"]
    assert used[0] == used[2] == 0
    assert used[1] > 10
    counted = [
        {(one.metric, *one.labels.values()): one.samples for one in each.results if one.metric == "rule"}
        for each in found
    ]
    assert [list(one.values()) for one in counted] == [[10], [40], [12]]
    assert all(one.is_without_error for one in found)


@pytest.mark.parametrize(
    ("slices", "rule"),
    [
        ([], (REGEX, {"column": "item_id", "regex": "^i"})),
        (["(user group)"], (NOT_NULL, {"column": "item_id"})),
    ],
)
def test_what_the_engines_read_in_their_own_way_stays_on_spark(
    shop: Shop, slices: list[str], rule: tuple[str, dict[str, Any]]
) -> None:
    kind, arguments = rule
    shop.rule("own", "hard", kind, **arguments)
    if slices:
        shop.config["slices"] = {"by": slices}
    shop.write("logs/0.parquet", rows(0, 10))
    judged = shop.judge(hour(0))
    assert type(shop.runtime.engine).__name__ == "SparkEngine"
    assert judged.is_without_error


def test_after_an_interrupt_both_engines_are_new(shop: Shop) -> None:
    shop.write("logs/0.parquet", rows(0, 10))
    shop.write("logs/1.parquet", rows(1, 40))
    before = [values(shop.judge(hour(number)).results) for number in (0, 1)]
    shop.runtime.interrupt()
    shop.runtime.renew()
    assert [values(shop.judge(hour(number)).results) for number in (0, 1)] == before


def values(results: list[Result]) -> dict[Any, Any]:
    return {(one.metric, *sorted(one.labels.items())): (one.status, one.value) for one in results}


CONFIG: dict[str, Any] = {
    "recommenders": [
        {
            "name": "shop",
            "logs": {name: {"path": f"{name}.parquet"} for name in ("exposures", "feedback", "catalog")},
            "window": "1h",
            "rules": [{"pack": "lists", "parameters": {"max_length": 20}}, {"pack": "scores"}],
            "metrics": {"events": {"click": {}}},
        }
    ]
}


def test_small_windows_with_the_settings_of_a_user(spark_is_here: None, tmp_path: Path) -> None:
    """Spark as it is by default, all default metrics: the results of the embedded engine."""
    random = np.random.default_rng(7)
    number = np.arange(4000)
    shown = pd.DataFrame(
        {
            "request_id": number // 10,
            "user_id": number // 10 % 300,
            "ts": pd.Timestamp(DAY.replace(tzinfo=None)) + pd.to_timedelta(number // 2, unit="s"),
            "item_id": random.integers(0, 500, 4000),
            "position": number % 10 + 1,
            "score": random.random(4000),
        }
    )
    clicked = shown.iloc[::17][["request_id", "user_id", "item_id", "ts"]].assign(event="click")
    catalog = pd.DataFrame({"item_id": range(500), "category": [f"c{item % 9}" for item in range(500)]})
    for name, frame in (("exposures", shown), ("feedback", clicked), ("catalog", catalog)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    found = {}
    for kind, engine in (("duckdb", {}), ("spark", {"kind": "spark", "url": "local[2]"})):
        whole = {"state": f"./{kind}", "engine": engine, **CONFIG}
        (tmp_path / f"{kind}.yaml").write_text(yaml.safe_dump(whole), "utf-8")
        span = ("--from", DAY.isoformat(), "--to", (DAY + HOUR).isoformat())
        ran = run_monitor("check", "-c", f"{kind}.yaml", *span, "--format", "json", cwd=tmp_path)
        assert ran.out.startswith("["), ran.err
        found[kind] = {(one["metric"], *sorted(one["labels"].items())): one for one in json.loads(ran.out)}
    assert found["spark"].keys() == found["duckdb"].keys()
    assert len(found["spark"]) > 80
    for key, wanted in found["duckdb"].items():
        got = found["spark"][key]
        assert got["status"] == wanted["status"], key
        assert got["samples"] == wanted["samples"], key
        assert (got["value"] is None) == (wanted["value"] is None)
        assert wanted["value"] is None or math.isclose(got["value"], wanted["value"], rel_tol=1e-9), key
