"""Spark's Java process ends or hangs: the check fails with a reason, and the next window is judged.

In a process of its own: the other tests share one Spark.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = '''
import os, signal, sys, threading, time
from pathlib import Path

from monitor.core.results import Status
from monitor.engines import spark
from monitor.judging import spark_runtime
from monitor.judging.spark_runtime import SparkRuntime
from monitor.settings.engine import EngineSettings
from tests.shop import Shop, hour, rows
from tests.spark.conftest import OPTIONS

folder = Path(sys.argv[1])
spark.HANG_SECONDS = 2.0
settings = EngineSettings(kind="spark", url="local[2]", options=OPTIONS, spark_from=0)
runtime = SparkRuntime(settings, folder / "spill")
shop = Shop(folder, runtime)
shop.config["metrics"] = {"disable": ["personalization", "gini", "novelty", "popularity"]}
shop.config["deadline"] = "60s"
shop.rule("known", "hard", "expect_column_values_to_not_be_null", column="item_id")
for number in range(6):
    shop.write(f"logs/{number}.parquet", rows(number))


def java():
    return spark._java().pid


def judged(number):
    found = shop.judge(hour(number))
    outcomes = {run.check: run.outcome for run in found.runs}
    print(number, outcomes, {one.detail for one in found.results if one.status is Status.ERROR}, flush=True)
    return found


def during(action):
    """Do it while a job of the next window runs."""
    engine, _ = runtime._cluster
    tracker = engine.session.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(engine.group))

    def wait():
        while len(tracker.getJobIdsForGroup(engine.group)) <= before:
            time.sleep(0.05)
        action()

    threading.Thread(target=wait, daemon=True).start()


first = java()
assert judged(0).is_without_error
os.kill(first, signal.SIGKILL)
while spark.is_alive():
    time.sleep(0.05)
assert judged(1).is_without_error, "it ended between two windows"
second = java()
assert second != first

os.kill(second, signal.SIGKILL)
while spark.is_alive():
    time.sleep(0.05)
start = spark_runtime.start_session


def no_master(*settings):
    raise ConnectionError("no master")


spark_runtime.start_session = no_master
try:
    judged(1)
except ConnectionError:
    print("no master, as expected", flush=True)
else:
    raise AssertionError("judged without a master")
runtime._from = 1000
assert judged(1).is_without_error, "a small window needs no Spark"
runtime._from = 0
spark_runtime.start_session = start
assert judged(1).is_without_error, "the master is back"
second = java()

during(lambda: os.kill(second, signal.SIGKILL))
killed = judged(2)
failed = [run for run in killed.runs if run.outcome == "error"]
assert failed
assert all(run.status is Status.ERROR for run in failed)
details = {one.detail for run in failed for one in run.results if one.status is Status.ERROR}
assert any("Spark has ended" in detail and "spark.driver.memory" in detail for detail in details), details
third = java()
assert third not in (first, second)
assert judged(3).is_without_error

shop._evaluator = None
shop.config["deadline"] = "6s"
during(lambda: os.kill(third, signal.SIGSTOP))
began = time.monotonic()
hung = judged(4)
assert "interrupted" in {run.outcome for run in hung.runs}
assert time.monotonic() - began < 120
shop._evaluator = None
shop.config["deadline"] = "60s"
assert judged(5).is_without_error
assert java() != third
print("all is well")
'''


@pytest.mark.usefixtures("spark_is_here")
def test_spark_that_ends_or_hangs_fails_a_check_and_is_started_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    root = Path(__file__).parents[2]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=500, check=False)
    assert ran.stdout.endswith("all is well\n"), ran.stdout + ran.stderr[-3000:]
