"""docs/statistics.md runs, and what it costs to import is what it says."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path.stem for path in (ROOT / "monitor" / "statistics").glob("[a-z]*.py"))


def test_every_example_of_the_page_runs():
    found = doctest.testfile(str(ROOT / "docs" / "statistics.md"), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 20


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_statistics_imports_neither_scipy_nor_anything_above_it(module):
    code = (
        f"import sys, monitor.statistics.{module}\n"
        "own = {n for n in sys.modules if n.startswith('monitor.') and 'statistics' not in n}\n"
        "heavy = own | ({'scipy', 'pandas', 'duckdb'} & set(sys.modules))\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
