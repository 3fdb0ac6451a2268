"""The unit for systemd: systemd accepts it, and the service may do little."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import need

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "systemd" / "recsys-monitor.service"
PROGRAM = "/opt/recsys-monitor/bin/recsys-monitor"


@pytest.fixture
def analyze(tmp_path: Path):
    """Runs `systemd-analyze` on the unit, changed by `edit`, with a program that exists on this machine."""
    program = need("systemd-analyze", "systemd")

    def run(*words: str, edit=lambda text: text) -> subprocess.CompletedProcess[str]:
        unit = tmp_path / UNIT.name
        unit.write_text(edit(UNIT.read_text("utf-8").replace(PROGRAM, sys.executable)), "utf-8")
        return subprocess.run([program, *words, unit], capture_output=True, text=True, check=False)

    return run


def test_systemd_accepts_the_unit_without_a_warning(analyze) -> None:
    done = analyze("verify")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    misspelt = analyze("verify", edit=lambda text: text.replace("ProtectHome=yes", "ProtectHom=yes"))
    assert "ProtectHom" in misspelt.stderr


def test_systemd_counts_the_service_among_the_least_exposed(analyze) -> None:
    """The scale is 0 to 10; a service without any protection has 9.6. The threshold is in tenths."""
    done = analyze("security", "--offline=yes", "--threshold=15", "--no-pager")
    assert done.returncode == 0, done.stdout[-300:]
    exposed = analyze(
        "security", "--offline=yes", "--threshold=15", "--no-pager",
        edit=lambda text: text.replace("SystemCallFilter", "#"),
    )  # fmt: skip
    assert exposed.returncode != 0


def test_the_unit_tries_again_for_ever_and_reads_the_config_again_on_reload() -> None:
    text = UNIT.read_text("utf-8")
    assert re.search(r"^Restart=on-failure$", text, re.M)
    assert re.search(r"^StartLimitIntervalSec=0$", text, re.M)
    assert re.search(r"^ExecReload=/bin/kill -HUP \$MAINPID$", text, re.M)


def test_the_start_command_is_one_that_the_program_has(monitor_help: str) -> None:
    words = re.findall(rf"^ExecStart={PROGRAM} (\S+) --config \S+$", UNIT.read_text("utf-8"), re.M)
    assert words == ["run"]
    assert re.search(r"\brun\b", monitor_help)


@pytest.fixture
def monitor_help() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "monitor", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout
