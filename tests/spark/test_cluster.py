"""A standalone cluster of two workers judges a window at Spark's defaults; one worker dies in the middle."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import yaml

from benchmarks.cluster import standalone
from tests.cli.conftest import clean_environment, run_monitor
from tests.spark.faulty import SECOND, assert_same, results_of, write

FIRST_TABLES = 8


def tables(folder: Path) -> int:
    """The tables that Spark has begun to store so far."""
    return max(
        (int(path.name) for path in folder.glob("spill/*/spill/tables-*/*") if path.name.isdigit()), default=0
    )


def logged(folder: Path) -> str:
    """The events that Spark has logged so far."""
    return "".join(path.read_text("utf-8") for path in (folder / "events").rglob("events_*"))


def check(kind: str) -> list[str]:
    return ["check", "-c", f"{kind}.yaml", "--from", SECOND.isoformat(), "--format", "json"]


def test_a_window_is_judged_although_a_worker_dies(spark_is_here: None, tmp_path: Path) -> None:
    write(tmp_path)
    wanted = results_of(run_monitor(*check("duckdb"), cwd=tmp_path).out)
    (tmp_path / "events").mkdir()
    with standalone(tmp_path) as cluster:
        config = yaml.safe_load((tmp_path / "spark.yaml").read_text("utf-8"))
        options = {
            "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
            "spark.eventLog.dir": f"file://{tmp_path}/events",
        }  # fmt: skip
        config["engine"] |= {"url": cluster.url, "options": options}
        config["state"] = "./cluster"
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        with (tmp_path / "out.json").open("w") as out, (tmp_path / "err.txt").open("w") as err:
            run = subprocess.Popen(
                [sys.executable, "-m", "monitor", *check("cluster")],
                cwd=tmp_path,
                env=clean_environment(),
                stdout=out,
                stderr=err,
            )
            try:
                while run.poll() is None and not (
                    tables(tmp_path / "cluster") >= FIRST_TABLES
                    and logged(tmp_path).count("SparkListenerExecutorAdded") == 2
                ):
                    time.sleep(0.05)
                assert run.poll() is None, (tmp_path / "err.txt").read_text()
                cluster.workers[0].kill()
                run.wait(600)
            finally:
                run.kill()
    found = results_of((tmp_path / "out.json").read_text("utf-8"))
    assert_same(found, wanted)
    assert "SparkListenerExecutorRemoved" in logged(tmp_path), "the worker was not used"
    assert list((tmp_path / "cluster" / "spill").iterdir()) == [], "no table is left behind"
