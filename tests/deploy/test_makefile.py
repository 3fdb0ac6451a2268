"""The tasks that the README names, as make would run them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*arguments: str) -> list[str]:
    """What a make of one's own prints; a child of the one that runs these tests would announce folders."""
    own = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PART")
    }
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def printed(*arguments: str) -> str:
    return make("-n", *arguments)[-1].strip()


def test_make_run_watches_the_demo_and_with_a_config_the_users_own_logs():
    assert printed("run") == ".venv/bin/recsys-monitor demo"
    assert printed("run", "CONFIG=my/config.yaml") == ".venv/bin/recsys-monitor run --config my/config.yaml"


def test_make_alone_prints_every_task():
    text = (ROOT / "Makefile").read_text("utf-8")
    tasks = re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE)
    assert "test" in tasks
    assert [line.split()[0] for line in make()] == tasks


@pytest.mark.parametrize("task", ["run", "test"])
def test_the_readme_names_the_two_commands(task):
    assert f"    make {task} " in (ROOT / "README.md").read_text("utf-8")


def test_the_fast_tests_are_those_without_a_server():
    assert '-m "not slow" -n 3' in printed("test-fast")
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "make test-fast" in (ROOT / page).read_text("utf-8")


def test_ci_runs_the_linters_and_the_readmes_test_command():
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert 'make lint\nmake test PART="$PART"\n' in script


def test_a_part_of_the_long_files_is_run_only_where_it_is_asked_for():
    assert "--part" not in printed("test")
    assert printed("test", "PART=2/3").endswith(" --part 2/3")


def test_ci_takes_the_part_from_the_time_of_the_commit():
    line = next(
        one for one in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if one.startswith("PART=")
    )
    own = {name: value for name, value in os.environ.items() if name != "PART"}
    time = int(
        subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, check=True).stdout
    )
    for given, part in (({}, f"{time // 14400}/3"), ({"PART": "1/1"}, "1/1")):
        shell = subprocess.run(
            ["sh", "-c", f"{line}\necho $PART"],
            cwd=ROOT,
            env=own | given,
            capture_output=True,
            text=True,
            check=True,
        )
        assert shell.stdout.strip() == part
