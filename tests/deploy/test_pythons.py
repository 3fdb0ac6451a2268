"""The versions of Python that the monitor may run on are the same wherever they are written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RANGE = SpecifierSet(PROJECT["requires-python"])
ALLOWED = [f"3.{minor}" for minor in range(30) if f"3.{minor}.0" in RANGE]


def test_the_range_is_what_the_classifiers_and_the_readme_name() -> None:
    assert ALLOWED == ["3.11", "3.12", "3.13"]
    assert [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: 3." in one] == ALLOWED
    assert "Python 3.11, 3.12 or 3.13" in (ROOT / "README.md").read_text("utf-8")


def test_the_scripts_take_the_same_versions() -> None:
    (accepted,) = re.findall(r"^([\d. |]+)\) ;;$", (ROOT / "deploy" / "make-venv").read_text("utf-8"), re.M)
    assert accepted.split(" | ") == ALLOWED
    (tested,) = re.findall(
        r"^for version in (.+); do$", (ROOT / "deploy/test-pythons").read_text("utf-8"), re.M
    )
    assert tested.split() == ALLOWED


def test_the_linter_writes_for_the_oldest() -> None:
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]
    assert ruff["target-version"] == "py" + ALLOWED[0].replace(".", "")
