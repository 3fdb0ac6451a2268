"""The wheel in a fresh environment: its commands run, and its rules, runbooks and dashboards are there."""

from __future__ import annotations

import email
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from monitor.core.shipped import SHIPPED
from tests.processes import Running, get, wait_for

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, as from a fresh checkout: without files that only this folder has."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    for name in ("monitor", "rules", "docs", "grafana", "deploy"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        folder / "dist",
    ]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    (built,) = (folder / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment with the wheel.

    Its dependencies are those of this environment: the monitor of this checkout is not among them, because
    Python follows no .pth file of a folder that a .pth file names.
    """
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    install = [programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return programs


def run(program: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RECSYS"))}
    return subprocess.run([program, *words], cwd=cwd, env=own, capture_output=True, text=True, check=False)


def test_the_program_of_the_wheel_starts_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    said = run(installed / "recsys-monitor", "--help", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "demo" in said.stdout
    where = run(installed / "python", "-c", "import monitor; print(monitor.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(installed.parent)), where
    assert run(installed / "recsys-monitor", "--version", cwd=tmp_path).stdout == f"{PROJECT['version']}\n"


def test_the_dependencies_that_the_wheel_names_are_those_that_the_tests_use(
    installed: Path, tmp_path: Path
) -> None:
    def complaints() -> list[str]:
        checked = run(installed / "python", "-m", "pip", "check", cwd=tmp_path).stdout
        return [line for line in checked.splitlines() if line.startswith("recsys-monitor ")]

    assert complaints() == []
    (metadata,) = (installed.parent / "lib").glob("python*/site-packages/recsys_monitor-*.dist-info/METADATA")
    text = metadata.read_text("utf-8")
    metadata.write_text(text.replace("Requires-Dist: duckdb==", "Requires-Dist: duckdb==0."), "utf-8")
    assert len(complaints()) == 1
    metadata.write_text(text, "utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_file_that_comes_with_the_monitor_is_in_the_wheel_unchanged(
    name: str, installed: Path, tmp_path: Path
) -> None:
    folder = Path(run(installed / "recsys-monitor", "files", name, cwd=tmp_path).stdout.strip())
    assert folder.is_relative_to(installed.parent)
    source = ROOT / SHIPPED[name]
    expected = {path.relative_to(source): path.read_bytes() for path in source.rglob("*") if path.is_file()}
    assert expected
    assert {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == (
        expected
    )


def test_files_without_a_name_lists_every_folder(installed: Path, tmp_path: Path) -> None:
    listed = run(installed / "recsys-monitor", "files", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(SHIPPED)
    assert all(Path(line.split(maxsplit=1)[1]).is_dir() for line in listed)


def test_the_demo_of_the_wheel_judges_with_its_packs(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RECSYS_LISTEN", "RECSYS_EXTERNAL_URL", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    anywhere = "127.0.0.1:0"
    words = ("--folder", tmp_path / "demo", "--listen", anywhere, "--endpoint", anywhere)
    demo = Running([installed / "recsys-monitor", "demo", *words], tmp_path, "demo")
    try:
        wait_for("a judged window", lambda: "judged exposures" in demo.output)
        page = re.search(r"status page  (\S+)", demo.output)
        assert page, demo.output
        status, text = get(f"{page[1]}metrics")
        assert status == 200
        assert 'rule="blacklist' in text
        demo.send(signal.SIGTERM)
        assert demo.ended(30) == 0
    finally:
        demo.stop()


def test_the_wheel_names_its_licence_and_carries_its_text(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (metadata,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        said = email.message_from_bytes(opened.read(metadata))
        text = opened.read(metadata.replace("METADATA", "licenses/LICENSE"))
    assert said["License-Expression"] == "Apache-2.0"
    assert text == (ROOT / "LICENSE").read_bytes()
    assert b"Apache License" in text


def test_the_wheel_stays_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 3_000_000
