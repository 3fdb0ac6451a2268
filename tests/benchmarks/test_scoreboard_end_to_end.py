"""A tiny world and one incident through the whole scoreboard: daemon, promtool, Prometheus, Alertmanager."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scoreboard.__main__ import main
from monitor.simulate.world import Scene, World
from tests.conftest import need

TINY = World(
    users=200, items=96, new_users_per_hour=2, scenes=(Scene("home", 60.0), Scene("search", 15.0)),
    oddities=False,
)  # fmt: skip
ASKED = ["--days", "0.125", "--seeds", "1", "--sizes", "small", "--only", "blacklist", "--processes", "1"]


def tiny(seed: int) -> World:
    return replace(TINY, seed=seed)


@pytest.mark.timeout(1800)
def test_one_blacklisted_row_pages_and_finished_runs_are_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.scoreboard.__main__.digest", lambda *_: "code")  # as if nobody edits it
    for program in ("prometheus", "promtool", "prometheus-alertmanager"):
        need(program, "prometheus")
    assert main(ASKED, tiny, tmp_path) == 0
    text = capsys.readouterr().out
    assert "**The bar is met.**" in text
    assert (
        "#blacklist) | 1: 1 of 1, 76 min (1) | 5: not run | 100: not run | small | 1 of 1 (21 to 100 %) |"
        in text
    )
    assert "RecsysHardRuleViolated (rule=blacklist): 1 | 1 | 1 | 0 |" in text
    assert "| tuned on | 0.0 | 0 (0 to" in text

    (work,) = (path for path in tmp_path.iterdir() if path.is_dir())
    before = {path.name: path.stat().st_mtime for path in work.iterdir()}
    assert main(ASKED, tiny, tmp_path) == 0
    assert capsys.readouterr().out == text
    assert "runs, about" not in capsys.readouterr().err
    after = {path.name: path.stat().st_mtime for path in work.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {"scoreboard.md"}
