"""docs/statistics.md runs, and what it costs to import is what it says."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "monitor" / "statistics"
MODULES = sorted(
    ".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in FOLDER.rglob("[a-z]*.py")
)


def test_every_example_of_the_page_runs():
    found = doctest.testfile(str(ROOT / "docs" / "statistics.md"), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 20


def test_a_module_of_statistics_imports_neither_scipy_nor_anything_above_it():
    assert {"auc", "bands.drift"} <= set(MODULES)
    code = (
        "import importlib, sys\n"
        f"for module in {MODULES}:\n"
        "    importlib.import_module('monitor.statistics.' + module)\n"
        "    own = {n for n in sys.modules if n.startswith('monitor.') and 'statistics' not in n}\n"
        "    heavy = own | ({'scipy', 'pandas', 'duckdb'} & set(sys.modules))\n"
        "    if heavy: sys.exit(f'{module} imports {heavy}')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
