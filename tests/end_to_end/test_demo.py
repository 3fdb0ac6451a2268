"""The demo as a process: its log is judged, and its recommender answers."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from tests.processes import RunningMonitor, free_port, get, wait_for


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunningMonitor:
    monkeypatch.setenv("RECSYS_LISTEN", f"127.0.0.1:{free_port()}")
    return RunningMonitor(
        ["demo", "--folder", tmp_path / "demo", "--endpoint", "127.0.0.1:0"], tmp_path, "demo"
    )


def said(demo: RunningMonitor, pattern: str) -> str:
    """What the demo printed for the group of the pattern."""
    found = re.search(pattern, demo.out.read_text())
    return found[1] if found else ""


def test_the_demo_judges_its_log_and_answers_for_three_models(demo: RunningMonitor) -> None:
    try:
        page = wait_for("the address of the page", lambda: said(demo, r"status page  (\S+)"))
        recommender = said(demo, r"recommender  (\S+)/recommend/current")
        for variant, model in (("current", "m1"), ("good", "m2"), ("bad", "m3")):
            status, body = get(f"{recommender}/recommend/{variant}", data=b'{"user_id": "u000001"}')
            assert status == 200
            assert json.loads(body)["model"] == model
        wait_for("a judged window", lambda: "judged exposures" in demo.output)
        assert get(f"{page}-/healthy")[0] == 200
        demo.send(signal.SIGTERM)
        assert demo.ended(30) == 0
        assert "Traceback" not in demo.output
    finally:
        demo.stop()
