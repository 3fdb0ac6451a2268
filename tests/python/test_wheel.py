"""The wheel holds the package, its types, and all that it shows results with."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

RUN = """
import pandas as pd, recsys_monitor
rows = pd.DataFrame({"request_id": ["r"], "user_id": ["u"], "ts": [pd.Timestamp(0)], "item_id": ["i"]})
results = recsys_monitor.check(rows, config={"rules": [{"pack": "lists"}]})
assert "recsys-monitor" in results.to_html() and results.status == "ok", results
print(recsys_monitor.__file__)
"""
TYPED = """
import pandas as pd
import polars as pl
import recsys_monitor as rm
results = rm.check(pd.DataFrame(), pl.DataFrame(), columns={"ts": "time"})
value: float | None = rm.metric("gini", pl.DataFrame(), k=3).value
frame: pd.DataFrame = rm.open_history("state").violations()
rm.check([1, 2])
results.nothing
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the wheel, as pip puts it into a folder of packages."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder / "packages")
    return folder / "packages"


def test_it_works_where_only_the_wheel_is(installed: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == str(installed / "recsys_monitor" / "__init__.py")


def test_a_type_checker_sees_its_types(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "used.py").write_text(TYPED)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "used.py"],
        cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    wrong = [line for line in ran.stdout.splitlines() if ": error:" in line and line.startswith("used.py")]
    assert [line.split(":")[1] for line in wrong] == ["8", "9"], ran.stdout + ran.stderr
    assert "Frame" in wrong[0]
    assert "nothing" in wrong[1]
