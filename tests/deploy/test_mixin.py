"""The mixin, rendered by Jsonnet: the alerts and boards of the repository, and what its settings change."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana import mixin
from tests.deploy.test_prometheus_config import tool

ROOT = Path(__file__).resolve().parents[2]
MIXIN = ROOT / "deploy" / "mixin"
BOARDS = {
    f"recsys-{path.name}": json.loads(path.read_text(encoding="utf-8"))
    for path in (ROOT / "grafana" / "dashboards").glob("*.json")
}


def rendered(expression: str) -> Any:
    """What Jsonnet makes of an expression, in which `mixin` is the mixin."""
    try:
        import _jsonnet
    except ImportError:
        if os.environ.get("CI") == "true":
            pytest.fail("jsonnet is missing; make setup installs it")
        pytest.skip("jsonnet is missing; make setup installs it")
    snippet = f"local mixin = import {str(MIXIN / 'mixin.libsonnet')!r}; {expression}"
    return json.loads(_jsonnet.evaluate_snippet("snippet", snippet))


def test_the_alerts_of_the_mixin_are_generated_from_the_files_of_rules() -> None:
    kept = (MIXIN / "alerts.json").read_text(encoding="utf-8")
    assert kept == mixin.text(), "run: python -m grafana.mixin"


def test_without_settings_it_has_the_alerts_and_boards_of_the_repository() -> None:
    files = sorted((ROOT / "rules" / "alerts").glob("*.yaml"))
    groups = [group for path in files for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]]
    assert rendered("mixin.prometheusAlerts") == {"groups": groups}
    assert rendered("mixin.grafanaDashboards") == BOARDS
    assert rendered("mixin.prometheusRules") == {"groups": []}


def test_the_two_files_for_the_command_line_give_the_same() -> None:
    for name, of in (("alerts", "prometheusAlerts"), ("dashboards", "grafanaDashboards")):
        assert rendered(f"import {str(MIXIN / f'{name}.jsonnet')!r}") == rendered(f"mixin.{of}")


def test_prometheus_accepts_the_rendered_alerts(tmp_path: Path) -> None:
    alerts = rendered("mixin.prometheusAlerts")
    (tmp_path / "alerts.json").write_text(json.dumps(alerts), encoding="utf-8")
    answer = tool("promtool", "check", "rules", tmp_path / "alerts.json")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    count = sum(len(group["rules"]) for group in alerts["groups"])
    assert f"{count} rules found" in answer.stdout


def test_the_name_of_the_job_is_set_in_every_alert_that_reads_it() -> None:
    alerts = rendered("(mixin { _config+:: { jobName: 'recsys' } }).prometheusAlerts")
    jobs = {
        job
        for group in alerts["groups"]
        for rule in group["rules"]
        for job in re.findall(r'job=~?"([^"]*)"', rule["expr"])
    }
    assert jobs == {"recsys"}


def test_an_address_of_the_docs_makes_every_link_to_a_runbook_absolute() -> None:
    docs = "https://git.example.org/team/recsys-monitor/blob/main"
    alerts = rendered(f"(mixin {{ _config+:: {{ docsUrl: '{docs}' }} }}).prometheusAlerts")
    for group in alerts["groups"]:
        for rule in group["rules"]:
            page = rule["annotations"]["runbook_url"].removeprefix(f"{docs}/")
            assert page == f"docs/runbooks/{rule['alert']}.md"
            assert (ROOT / page).is_file()


def test_the_boards_find_each_other_by_the_tag_that_is_set() -> None:
    settings = "dashboardTag: 'ours', dashboardRefresh: '5m', dashboardTimezone: 'utc'"
    boards = rendered(f"(mixin {{ _config+:: {{ {settings} }} }}).grafanaDashboards")
    assert set(boards) == set(BOARDS)
    for board in boards.values():
        assert (board["tags"], board["refresh"], board["timezone"]) == (["ours"], "5m", "utc")
        assert board["links"][0]["tags"] == ["ours"]


def test_every_setting_is_in_its_readme_with_its_default() -> None:
    readme = (MIXIN / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", readme, re.MULTILINE))
    settings = rendered("mixin._config")
    assert listed == {name: value or "empty" for name, value in settings.items()}
