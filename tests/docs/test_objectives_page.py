"""What docs/objectives.md says holds: its log and config give its output, its table and its numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from monitor.cli.judge import judge
from monitor.cli.terminal import VIOLATED
from monitor.core.results import Status
from monitor.history.standing import fold, signal_of
from monitor.metrics.catalogue import SPECS
from monitor.service.prometheus.families import all_families
from monitor.settings.recommender import Objective
from monitor.statistics.intervals import wilson
from tests.cli.conftest import run_monitor
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "objectives.md").read_text("utf-8")
SPAN = ("--from", "2026-01-05", "--to", "2026-01-06")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config of the page, beside the log that its script writes."""
    (script,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (example,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    path = tmp_path / "shop.yaml"
    path.write_text(example)
    return path


def quoted(first: str) -> list[str]:
    """The lines of the indented block that begins with this text, without their margins."""
    (block,) = re.findall(r"\n\n((?:    .*\n)+)\n", TEXT[TEXT.index(first) - 6 :])[:1]
    return [line.strip() for line in block.splitlines()]


def test_check_prints_what_the_page_quotes(config: Path) -> None:
    ran = run_monitor("check", "--config", config, cwd=config.parent)
    assert ran.code == VIOLATED
    (window,) = (one for one in ran.out.split("\n\n") if one.startswith("shop  2026-01-05 12:00 to 13:00"))
    lines = quoted("✓ ok        volume")
    assert len(lines) == 3
    assert [line.strip() for line in window.splitlines()][2:5] == lines


def test_the_table_has_the_verdicts_and_the_standing(config: Path) -> None:
    judged, code = judge(config, None, None, None)
    assert code == VIOLATED
    mine = [one for one in judged if one.result.metric == "failure" and one.result.labels == {"by": "pv"}]
    verdicts = [(one.window, signal_of(one.result)) for one in mine]
    rows = [line.strip("| ").split(" | ") for line in re.findall(r"^\| 1\d:00 .*", TEXT, re.MULTILINE)]
    assert len(rows) == len(mine) == 5
    for number, (row, one) in enumerate(zip(rows, mine, strict=True)):
        window, value, interval, verdict, standing = row
        assert f"{one.window.start:%H:%M}" == window
        assert float(value) == one.result.value
        assert interval == f"{one.result.lower:.4f} to {one.result.upper:.4f}"
        assert Status(verdict.partition(":")[0]) is one.result.status
        assert Status(standing.partition(":")[0]) is fold(verdicts[: number + 1]).status


def test_a_report_shows_the_violation_that_the_page_quotes(config: Path) -> None:
    for command in (("backfill",), ("report", "--format", "text")):
        ran = run_monitor(*command, "--config", config, *SPAN, cwd=config.parent)
        assert ran.code == 0, ran
    (line,) = quoted("✗ failure by=pv: since")
    assert line in ran.out.splitlines()


def test_so_many_empty_lists_violate_as_the_page_says() -> None:
    (said,) = re.findall(r"`max: 0\.02` is violated from (.*?)\. ", TEXT, re.DOTALL)
    numbers = re.findall(r"(\d+)(?: empty lists)? in\s+([\d,]+)(?: requests)? \(([\d.]+) %\)", said)
    assert len(numbers) == 3
    for empty, requests, share in numbers:
        hits, n = int(empty), int(requests.replace(",", ""))
        assert wilson(hits - 1, n).lower <= 0.02 < wilson(hits, n).lower
        assert hits / n == pytest.approx(float(share) / 100)
    assert "one empty list in five requests violates\n  `max: 0.02`" in TEXT
    assert wilson(1, 5).lower > 0.02


def test_the_table_of_keys_has_every_key() -> None:
    table = TEXT.split("| key | meaning |")[1].split("\n\n")[0]
    keys = [
        name
        for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", cell)
    ]
    assert keys == list(Objective.model_fields)


def test_names_of_the_page_exist() -> None:
    assert set(re.findall(r"`(recsys_\w+)`", TEXT)) <= all_families().keys()
    inline = [yaml.safe_load(one) for one in re.findall(r"`(\{metric: .*?\})`", TEXT)]
    assert inline
    assert all(Objective.model_validate(one).metric in SPECS for one in inline)
    assert not any(SPECS[name].interval for name in ("volume", "gini"))
    assert "p99 368" in SPECS["latency"].undefined
