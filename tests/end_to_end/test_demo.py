"""The demo as a process: its log is judged, and docs/launch.md works against its recommender."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, run_monitor
from tests.processes import ROOT, RunningMonitor, get, wait_for


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMonitor]:
    folder = tmp_path_factory.mktemp("demo")
    anywhere = "127.0.0.1:0"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECSYS_LISTEN", "127.0.0.1:1")  # the option counts, not the environment
        patch.delenv("RECSYS_EXTERNAL_URL", raising=False)
        running = RunningMonitor(
            ["demo", "--folder", folder / "demo", "--endpoint", anywhere, "--listen", anywhere],
            folder,
            "demo",
        )
    yield running
    assert running.stop() == 0
    assert "Traceback" not in running.output


def said(demo: RunningMonitor, pattern: str) -> str:
    """What the demo printed for the group of the pattern."""
    found = re.search(pattern, demo.out.read_text())
    return found[1] if found else ""


def test_the_demo_judges_its_log_and_answers_for_three_models(demo: RunningMonitor) -> None:
    page = wait_for("the address of the page", lambda: said(demo, r"status page  (\S+)"))
    recommender = said(demo, r"recommender  (\S+)/recommend/current")
    for variant, model in (("current", "m1"), ("good", "m2"), ("bad", "m3")):
        status, body = get(f"{recommender}/recommend/{variant}", data=b'{"user_id": "u000001"}')
        assert status == 200
        assert json.loads(body)["model"] == model
    wait_for("a judged window", lambda: "judged exposures" in demo.output)
    assert get(f"{page}-/healthy")[0] == 200
    assert f'recsys_web_info{{url="{page.rstrip("/")}"}} 1.0' in get(f"{page}metrics")[1]


def test_the_tour_of_a_launch_passes_the_good_candidate_and_stops_the_bad_one(demo: RunningMonitor) -> None:
    config = wait_for("the config of the tour", lambda: said(demo, r"launch       (\S+)"))
    text = (ROOT / "docs/launch.md").read_text("utf-8")
    commands = re.findall(r"^    recsys-monitor (.*?)(?: +[#>].*)?$", text, re.M)
    replays = [one for one in commands if one.startswith("replay") and "--dry-run" not in one]

    def run(command: str, *more: str) -> Ran:
        return run_monitor(*shlex.split(command), *more, cwd=Path(config).parent)

    (dry,) = [run(one) for one in commands if "--dry-run" in one]
    assert dry.code == 0, dry
    assert "/recommend/good" in dry.out
    assert not (Path(config).parent / "replays").exists()
    with ThreadPoolExecutor() as pool:
        for ran in pool.map(run, replays):
            assert ran.code == 0, ran
            assert "1,765 of 1,765 requests" in ran.out

    judged = {}
    for command in (one for one in commands if one.startswith("gate") and "--format" not in one):
        ran = run(command, "--format", "json")
        found = json.loads(ran.out)
        judged[found["candidate"]] = {one["name"]: one["outcome"] for one in found["conditions"]}
    # The latency is that of this machine, which may be busy.
    assert {name: judged["good"][name] for name in ("rules", "empty-lists", "clicked-items")} == {
        "rules": "passed", "empty-lists": "passed", "clicked-items": "passed",
    }  # fmt: skip
    # A busy machine times out more of its requests, and the clicks of fewer answers may decide nothing.
    assert judged["bad"].pop("clicked-items") in ("failed", "not_known")
    assert judged["bad"] == {"rules": "failed", "empty-lists": "failed", "latency": "failed"}
    (compare,) = [run(one, "--metric", "ndcg") for one in commands if one.startswith("compare")]
    assert re.search(r"✓ better +ndcg k=10", compare.out), compare
    assert "1,765 requests are on both sides" in compare.out
