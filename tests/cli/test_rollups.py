"""`backfill` adds up the days of its span: those that `check` finds in the log with windows of a day."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from tests.cli.conftest import run_monitor

DAYS = 3
CONFIG = """\
state: state
recommenders:
  - name: shop
    logs:
      exposures: {{path: exposures.parquet}}
      feedback: {{path: feedback.parquet}}
      catalog: {{path: catalog.parquet}}
    window: {window}
    metrics: {{attribution: 10m}}
    {more}
"""
SPAN = ("--from", "2026-03-01T00:00", "--to", "2026-03-04T00:00")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = duckdb.connect()
    connection.execute(
        f"""CREATE TABLE shown AS
        SELECT 'r' || i // 4 AS request_id, 'u' || hash(i // 4) % 37 AS user_id,
               'i' || (hash(i, 2) % 40) * (hash(i, 3) % 40) // 40 AS item_id, 1 + i % 4 AS position,
               (hash(i, 1) % 1000) / 1000 AS score,
               TIMESTAMP '2026-03-01' + to_seconds(i // 4 * 600 + 60) AS ts
        FROM range({DAYS} * 144 * 4) AS numbers(i)"""
    )
    actions = "SELECT request_id, user_id, item_id, ts + INTERVAL 5 SECOND AS ts, 'click' AS event FROM shown"
    for name, query in {
        "exposures": "FROM shown",
        "feedback": f"{actions} WHERE hash(request_id, item_id) % 5 = 0",
        "catalog": "SELECT 'i' || i AS item_id, 'c' || i % 5 AS category FROM range(36) AS numbers(i)",
    }.items():
        connection.execute(f"COPY ({query}) TO '{tmp_path}/{name}.parquet'")
    (tmp_path / "hours.yaml").write_text(CONFIG.format(window="6h", more="rollups: [1d, 2d]"))
    (tmp_path / "days.yaml").write_text(CONFIG.format(window="1d", more=""))
    return tmp_path


def test_the_days_of_a_backfill_are_those_of_the_log(folder: Path) -> None:
    done = run_monitor("backfill", "-c", "hours.yaml", *SPAN, cwd=folder)
    assert done.code == 0
    assert f"shop: added up {DAYS} new days\n" in done.out
    exported = run_monitor("history", "export", "-c", "hours.yaml", cwd=folder)
    found = [one for one in map(json.loads, exported.out.splitlines()) if one["check"] == "rollups"]
    spans = [(one["window_start"][:10], one["labels"]["value"]) for one in found if one["metric"] == "gini"]
    assert sorted(spans) == [
        ("2026-03-01", "1d"),
        ("2026-03-02", "1d"),
        ("2026-03-02", "2d"),
        ("2026-03-03", "1d"),
        ("2026-03-03", "2d"),
    ]
    checked = run_monitor("check", "-c", "days.yaml", *SPAN, "--format", "json", cwd=folder)
    of_log = {
        (one["window_start"], one["metric"], json.dumps(one["labels"], sort_keys=True)): one["value"]
        for one in json.loads(checked.out)
    }
    compared = 0
    for one in found:
        labels = {name: text for name, text in one["labels"].items() if name not in ("dimension", "value")}
        if one["labels"]["value"] == "1d":
            day = of_log[one["window_start"], one["metric"], json.dumps(labels, sort_keys=True)]
            assert one["value"] == (None if day is None else pytest.approx(day, rel=1e-9)), one
            compared += 1
    assert compared > 150
    again = run_monitor("backfill", "-c", "hours.yaml", *SPAN, cwd=folder)
    assert "0 of them new or changed" in again.out


def test_a_backfill_counts_the_days_that_violate_an_objective(folder: Path) -> None:
    day = "{metric: gini, labels: {dimension: rollup, value: 1d}, max: 0.01}"
    (folder / "days.yaml").write_text(
        CONFIG.format(window="6h", more=f"rollups: [1d]\n    objectives: [{day}]")
    )
    done = run_monitor("backfill", "-c", "days.yaml", *SPAN, cwd=folder)
    assert done.code == 0
    assert done.out.startswith(
        f"shop: added up {DAYS} new days\n"
        f"  days: {DAYS} violated\n"
        f"  violated: gini dimension=rollup value=1d in {DAYS} days\n"
    )
    again = run_monitor("backfill", "-c", "days.yaml", *SPAN, cwd=folder)
    assert again.out.startswith("shop: added up 0 new days\nshop: judged")


def test_a_check_of_objectives_on_days_alone_says_what_judges_them(folder: Path) -> None:
    day = "{metric: coverage, labels: {by: uv, dimension: rollup, value: 1d}, min: 0.5}"
    text = CONFIG.format(window="6h", more=f"rollups: [1d]\n    objectives: [{day}]")
    (folder / "judged.yaml").write_text(text.replace("10m}", "10m, max_unattributed: null}"))
    checked = run_monitor("check", "-c", "judged.yaml", *SPAN, cwd=folder)
    assert checked.code == 3
    assert checked.err == (
        "shop: nothing is judged: every objective is on days or weeks, and no rule or other bound applies to "
        "a window; `recsys-monitor backfill` and the daemon judge days and weeks\n"
    )


def test_a_check_keeps_nothing_for_days(folder: Path) -> None:
    checked = run_monitor("check", "-c", "hours.yaml", *SPAN, "--format", "json", cwd=folder)
    assert checked.out
    assert not (folder / "state").exists()
