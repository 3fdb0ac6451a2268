"""`make test-fast` starts no server, no Spark, no browser, no program; `make test` starts one Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import LONG

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
import sys
sys.path.insert(0, {root!r})
from tests.conftest import *
"""
SNEAKS = """
import os, pytest

def test_that_starts_nothing():
    assert True

def test_that_hides_the_start_of_a_program():
    from subprocess import run
    run(["true"], check=True)
"""


def run_pytest(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    plugins = ("-p", "no:cacheprovider", "-p", "no:cloudcoil")  # the latter as in pyproject.toml
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *arguments]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        command, cwd=cwd, env=own | environment, capture_output=True, text=True, check=False, timeout=180
    )


def test_none_is_chosen_of_what_needs_a_server_spark_or_a_browser() -> None:
    needing = (
        "tests/spark/test_spark_engine.py", "tests/end_to_end", "tests/service/web/test_browser.py",
        "tests/service/test_daemon.py", "tests/cli/test_check.py", "tests/alerts/test_model_incident.py",
    )  # fmt: skip
    found = run_pytest("--collect-only", "-m", "not slow", *needing)
    assert found.returncode == 5, found.stdout  # pytest's code for: no test was chosen
    assert "no tests collected" in found.stdout


def test_without_spark_installed_its_files_are_collected_all_the_same(tmp_path: Path) -> None:
    """`make test-fast` does not install it."""
    (tmp_path / "pyspark.py").write_text("raise ModuleNotFoundError('No module named pyspark')")
    found = run_pytest("--collect-only", "-m", "not slow", "tests/spark", PYTHONPATH=str(tmp_path))
    assert found.returncode == 5, found.stdout


def test_the_files_excluded_as_long_exist() -> None:
    assert [one for one in LONG if not (ROOT / "tests" / one).exists()] == []


def test_postgresql_is_left_out_and_sqlite_is_not() -> None:
    found = run_pytest("--collect-only", "-m", "not slow", "tests/history/test_upgrade.py").stdout
    assert "[sqlite]" in found
    assert "[postgresql" not in found


def test_a_fast_test_that_starts_a_program_fails_and_a_slow_run_lets_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(root=str(ROOT)))
    (tmp_path / "test_sneaks.py").write_text(SNEAKS)
    for workers in ("0", "2"):
        refused = run_pytest("-m", "not slow", "-n", workers, ".", cwd=tmp_path).stdout
        assert "1 failed, 1 passed" in refused
        assert "a test that is not slow starts true: name it in tests/conftest.py" in refused
    assert "2 passed" in run_pytest(".", cwd=tmp_path).stdout


def test_the_files_of_spark_go_to_one_worker_and_others_to_the_next() -> None:
    files = (
        "tests/spark/test_the_extra.py",
        "tests/spark/test_metrics_on_spark.py",
        "tests/deploy/test_makefile.py",
    )
    spread = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-vv")
    said = run_pytest(*spread, "-k", "extra or every_family or readme", *files).stdout
    workers = {
        file: {
            worker for worker, named in re.findall(r"\[(gw\d)\].* (tests/\S+\.py)::", said) if named == file
        }
        for file in files
    }
    assert [len(one) for one in workers.values()] == [1, 1, 1], said
    assert workers[files[0]] == workers[files[1]] != workers[files[2]]
