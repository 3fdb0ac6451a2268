"""A log of two hours that breaks every rule of the packs, with a catalog, feedback and a blacklist."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from monitor.metrics.catalogue import SPECS

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
SECOND = START + timedelta(hours=1)
HOSTILE = "<b>'\\`\n"
BANNED_SELLER = 2**63 + 4096  # a signed column of 64 bits cannot hold it
PACKS = [
    {
        "pack": "arithmetic",
        "parameters": {"denominators": ["seen"], "factors": ["boost"], "underflow": ["p"]},
    },
    {"pack": "blacklist", "parameters": {"blacklist": "blacklist.txt"}},
    {
        "pack": "catalog",
        "parameters": {"available_from": "opens", "available_until": "closes", "status": "on_sale"},
    },
    {"pack": "category", "parameters": {"max_per_category": 2}},
    {"pack": "frequency", "parameters": {"max_a_day": 3}},
    {"pack": "importance"},
    {"pack": "lists", "parameters": {"max_length": 5, "min_length": 2}},
    {"pack": "order"},
    {"pack": "scores"},
    {"pack": "time"},
]
METRICS = ("coverage", "novelty", "serendipity")
OWN = {
    "name": "own",
    "expectations": [
        {
            "type": kind,
            "kwargs": kwargs,
            "meta": {"rule": f"own-{number}", "kind": "hard", "table": table},
        }
        for number, (kind, kwargs, table) in enumerate(
            [
                ("expect_column_values_to_match_regex",
                    {"column": "item_id", "regex": "^i[0-9]+$"}, "exposures"),
                ("expect_column_values_to_not_match_regex",
                    {"column": "item_id", "regex": "7$"}, "exposures"),
                ("expect_compound_columns_to_be_unique",
                    {"column_list": ["request_id", "item_id"]}, "exposures"),
                ("expect_column_values_to_be_unique", {"column": "item_id"}, "catalog"),
                ("expect_column_max_to_be_between", {"column": "position", "max_value": 3}, "exposures"),
                ("expect_table_row_count_to_be_between", {"min_value": 1000}, "exposures"),
                ("expect_column_values_to_be_in_set",
                    {"column": "event", "value_set": ["click"]}, "feedback"),
                ("expect_column_values_to_not_be_in_list_file",
                    {"column": "seller", "list_path": "sellers.txt"}, "exposures"),
                ("expect_column_values_to_be_on_shelf",
                    {"column": "item_id", "status_column": "live"}, "exposures"),
                ("expect_column_values_to_be_on_shelf",
                    {"column": "item_id", "status_column": "state", "on_shelf_values": [1.0]}, "exposures"),
                ("expect_column_values_to_be_on_shelf",
                    {"column": "item_id", "status_column": "on_sale", "on_shelf_values": ["0"]}, "exposures"),
                (
                    "unexpected_rows_expectation",
                    {"unexpected_rows_query": "SELECT * FROM {batch} WHERE position = 4"},
                    "exposures",
                ),
            ]
        )
    ],
}  # fmt: skip


def exposures() -> list[dict]:
    rows = []
    for n in range(60):
        for place in range(n % 7):
            item = (n * 5 + place * place) % 12
            rows.append(
                {
                    "request_id": f"r{n}",
                    "user_id": f"u{n % 5}",
                    "ts": START + timedelta(minutes=2 * n, seconds=place),
                    "item_id": HOSTILE if item == 11 else f"i{item}",
                    "position": place + 1 + (n % 9 == 0),
                    "score": [0.9 - place / 10, None, math.nan, 1.5, 1.0, 1e-310][n % 6],
                    "propensity": [0.5, 0.0001, None][n % 3],
                    "scene": ["home", "feed"][n % 2],
                    "seen": n % 4,
                    "boost": [1.0, 0.0, None][n % 3],
                    "p": [0.1, 1e-320, 0.0][n % 3],
                }
            )
    late = rows[-1]
    return [*rows, {**late, "request_id": "r-late", "ts": SECOND + timedelta(days=400)}]


def catalog() -> list[dict]:
    return [
        {
            "item_id": f"i{n}",
            "category": ["x", "y"][n % 2],
            "opens": START + timedelta(minutes=70) if n == 1 else None,
            "closes": START + timedelta(minutes=80) if n == 2 else None,
            "on_sale": n != 3,
            "live": float(n != 5),
            "state": ["TRUE", "1", "1.0", "0", None, "false"][n % 6],
        }
        for n in range(10)
    ]


def feedback(shown: list[dict]) -> list[dict]:
    return [
        {**{name: row[name] for name in ("user_id", "item_id", "request_id")},
         "ts": row["ts"] + timedelta(seconds=30), "event": ["click", "buy"][n % 2], "value": float(n)}
        for n, row in enumerate(shown[:-1]) if n % 3 == 0
    ]  # fmt: skip


def write(folder: Path) -> None:
    """The log, and a config for each engine: duckdb.yaml and spark.yaml."""
    shown = exposures()
    for name, rows in (("exposures", shown), ("catalog", catalog()), ("feedback", feedback(shown))):
        table = pa.Table.from_pylist(rows)
        if name == "exposures":
            sellers = [BANNED_SELLER if n % 5 == 0 else n for n in range(len(rows))]
            table = table.append_column("seller", pa.array(sellers, pa.uint64()))
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "blacklist.txt").write_text(f"i4\nnobody's\n{HOSTILE[:-1]}\n", encoding="utf-8")
    (folder / "sellers.txt").write_text(f"{BANNED_SELLER}\n3\n", encoding="utf-8")
    (folder / "own.yaml").write_text(yaml.safe_dump(OWN), encoding="utf-8")
    spark = {"kind": "spark", "url": "local[2]", "spark_from": 0}  # all else is Spark's default
    engines = {"duckdb": {"threads": 1}, "spark": spark}
    for kind, engine in engines.items():
        config = {
            "state": f"./{kind}",
            "engine": engine,
            "recommenders": [
                {
                    "name": "shop",
                    "logs": {log: {"path": f"{log}.parquet"} for log in ("exposures", "catalog", "feedback")},
                    "window": "1h",
                    "rules": [*PACKS, {"suite": "own.yaml"}],
                    # Every metric is compared in test_metrics_on_spark.py; here a few show the way.
                    "metrics": {"disable": [name for name in SPECS if name not in METRICS]},
                    "evidence": {"rows": 3, "hash_users": False},
                }
            ],
        }
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def results_of(text: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The results that `check --format json` printed, by their labels."""
    results = json.loads(text)
    found = {
        (one["check"], one["metric"], one["window_start"], *sorted(one["labels"].items())): one
        for one in results
    }
    assert len(found) == len(results) > 0
    return found


def assert_same(
    found: Mapping[tuple[Any, ...], Mapping[str, Any]], wanted: Mapping[tuple[Any, ...], Mapping[str, Any]]
) -> None:
    """All results are equal, their numbers to nine digits."""
    numbers = ("value", "lower", "upper")
    assert found.keys() == wanted.keys()
    for key, want in wanted.items():
        got = found[key]
        for name in numbers:
            close = want[name] is None or math.isclose(
                got[name] or 0.0, want[name], rel_tol=1e-9, abs_tol=1e-9
            )
            assert (got[name] is None) == (want[name] is None), (key, name)
            assert close, (key, name, got[name], want[name])
        for name in want.keys() - {*numbers, "evidence"}:
            assert got[name] == want[name], (key, name, got)
