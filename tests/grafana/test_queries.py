"""The queries of panels, asked of made-up series by promtool: other programs must not change the answers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.generate import flat
from tests.conftest import need
from tests.end_to_end.panel_queries import filled
from tests.grafana.test_dashboards import BOARDS

MONITOR = 'job="recsys-monitor", instance="monitor:9108"'
DATABASE = 'job="database", instance="db:9187"'
VERSION = f'recsys_build_info{{{MONITOR}, version="1"}}'


def queries(title: str) -> set[str]:
    """The first query of every panel with this title, with "All" for each variable."""
    panels = (panel for board in BOARDS.values() for panel in flat(board["panels"]))
    return {filled(panel["targets"][0]["expr"]) for panel in panels if panel["title"] == title}


def wrong(folder: Path, expression: str, held: Mapping[str, str], expected: Mapping[str, float]) -> str:
    """What promtool says of the answer at minute 10; nothing if it is right. `held`: a value a minute."""
    samples: list[dict[str, Any]] = [{"labels": one, "value": value} for one, value in expected.items()]
    test = {
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in held.items()],
        "promql_expr_test": [{"expr": expression, "eval_time": "10m", "exp_samples": samples}],
    }
    path = folder / "test.yaml"
    path.write_text(yaml.safe_dump({"tests": [test]}), "utf-8")
    command = [need("promtool", "prometheus"), "test", "rules", str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout + answer.stderr if answer.returncode else ""


@pytest.mark.parametrize(
    ("title", "family", "value"),
    [
        ("Memory", "process_resident_memory_bytes", 7.0),
        ("Processor", "process_cpu_seconds_total", 0.0),
        ("Open files", "process_open_fds", 7.0),
        ("Time since the start", "process_start_time_seconds", 593.0),
    ],
)
def test_a_panel_of_the_process_shows_monitors_and_no_other_program(
    title: str, family: str, value: float, tmp_path: Path
) -> None:
    held = {f"{family}{{{one}}}": "7x10" for one in (MONITOR, DATABASE)} | {VERSION: "1x10"}
    (expression,) = queries(title)
    name = "" if value != 7.0 else family
    assert wrong(tmp_path, expression, held, {f"{name}{{{MONITOR}}}": value}) == ""


def test_programs_that_are_no_monitors_do_not_count_as_monitors_that_are_up(tmp_path: Path) -> None:
    (expression,) = queries("Monitors up")
    others = {f"up{{{DATABASE}}}": "1x10"}
    up = {f"up{{{MONITOR}}}": "1x10", VERSION: "1x10"}
    down = {f"up{{{MONITOR}}}": "1 1 0x8", VERSION: "1 1 stale"}
    assert wrong(tmp_path, expression, others | up, {"{}": 1.0}) == ""
    assert wrong(tmp_path, expression, others | down, {"{}": 0.0}) == ""
    assert wrong(tmp_path, expression, others, {}) == ""


@pytest.mark.parametrize(
    ("title", "family"),
    [("Objectives violated", "objective_status"), ("Series out of their bands", "deviation_status")],
)
def test_a_number_of_violations_is_zero_only_if_something_was_judged(
    title: str, family: str, tmp_path: Path
) -> None:
    of_slice = f'dimension="scene", value="home", {MONITOR}'
    ok = {f'recsys_{family}{{status="ok", recommender="shop", {MONITOR}}}': "1x10"}
    violated = {
        f'recsys_{family}{{status="violated", recommender="news", {MONITOR}}}': "1x10",
        f'recsys_slice_{family}{{status="violated", recommender="shop", {of_slice}}}': "1x10",
    }
    for expression in queries(title):
        assert wrong(tmp_path, expression, {VERSION: "1x10"}, {}) == "", "0 looks as if all were well"
        assert wrong(tmp_path, expression, ok, {"{}": 0.0}) == ""
        assert wrong(tmp_path, expression, ok | violated, {"{}": 2.0}) == ""
