"""Who is in which arm, and what the arms did, on Spark and on DuckDB: the same rows."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa

from monitor.experiments.queries import (
    arm_sums,
    assigned,
    by_user,
    changes,
    in_arms,
    in_both,
    mixed,
    once_each,
    per_bucket,
    totals,
    unknown_arms,
)
from monitor.metrics.shared import Shared
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.experiments.test_queries import ARMS, NAN, logs, rows_of
from tests.metrics.worlds import START, embedded, table
from tests.spark.test_metrics_on_spark import Tables

COLUMNS = ("arm", "bucket")
SETTINGS = MetricSettings(events={"click": EventSettings(), "buy": EventSettings(grade=2)})
EXPERIMENT = ExperimentSettings(name="e", split={"a": 1, "b": 1})


def world() -> tuple[list[dict], list[dict]]:
    random = np.random.default_rng(7)
    rows, done = [], []
    for number in range(60):
        user = None if random.random() < 0.1 else f"u{random.integers(25)}"
        own = {
            "user_id": user,
            "request_id": f"r{number}",
            "ts": START + timedelta(minutes=int(random.integers(300))),
            "arm": [None, "a", "b", "a", "b", "it's"][random.integers(6)],
            "bucket": str(random.integers(4)),
        }
        rows += [own | {"item_id": item} for item in ("x", "y", None)[: random.integers(1, 4)]]
        if user and random.random() < 0.5:
            seen = own["ts"] + timedelta(minutes=1)
            action = {"user_id": user, "item_id": "x", "request_id": own["request_id"], "ts": seen}
            done.append(action | {"event": str(random.choice(["click", "buy"])), "value": 0.1 * number})
    return rows, done


def everything(shared: Shared, backend) -> list[list[tuple]]:
    users = assigned(shared.exposures, COLUMNS, timedelta(hours=1))
    alone = assigned(shared.exposures, COLUMNS)
    kept = (
        in_arms(users, 0)
        .to_pyarrow()
        .cast(pa.schema([("user_id", pa.string()), ("arm", pa.string()), ("first", pa.int64())]))
    )
    rows = kept.to_pylist()
    types = {"user_id": pa.string(), "arm": pa.string(), "first": pa.int64()}
    pairs = once_each(table(backend, "kept", rows, list(types), types))
    out = shared.exposures.select("user_id").limit(0)
    found = [
        pairs,
        mixed(by_user(pairs, ARMS)),
        changes(pairs, by_user(pairs, ARMS), ARMS),
        totals(by_user(pairs, ARMS)),
        unknown_arms(pairs, ARMS, 3),
        per_bucket(alone, 1, 9),
        in_both(alone, 0, 1, ARMS, ("0", "1", "2")),
        in_arms(alone, 0, 7),
        arm_sums(shared, shared.exposures, SETTINGS, EXPERIMENT, COLUMNS, out),
    ]
    return [sorted(map(rounded, one.to_pyarrow().to_pylist()), key=repr) for one in found]


def rounded(row: dict) -> tuple:
    return tuple(float(f"{value:.10g}") if isinstance(value, float) else value for value in row.values())


def test_experiments_are_the_same_on_spark_and_on_duckdb(spark) -> None:
    rows, done = world()
    backend = embedded()
    wanted = everything(logs(rows, done, COLUMNS, backend), backend)
    assert all(wanted)
    tables = Tables(spark)
    assert everything(logs(rows, done, COLUMNS, tables), tables) == wanted


def test_numbers_become_the_same_texts_on_spark_and_on_duckdb(spark) -> None:
    numbers = pa.table({"user_id": [1.0, 2.0, 3.0, NAN], "arm": [0.0, 1.5, NAN, 1.0]})
    found = [
        {(row["user_id"], row["arm"]) for row in rows_of(in_arms(assigned(shown, ["arm"]), 0, first=0))}
        for shown in (one.create_table("numbers", numbers) for one in (embedded(), Tables(spark)))
    ]
    assert found == [{("1", "0"), ("2", "1.5")}] * 2
