"""What a window costs on Spark, beside the embedded engine: `make bench-spark`.

The window is that of `make bench`, with all its rules and metrics, both parts. Each engine judges it in a
process of its own, at the settings that a config has when nobody changes them, on all cores. The figures
come from Spark's own event log: jobs, and bytes that executors write for each other.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import data, page
from benchmarks.cluster import standalone
from benchmarks.run import CONFIG, RULES
from monitor.cli.one_off import one_off
from monitor.config.checks.check import check_config
from monitor.config.load import load_config

ROWS = (1_000_000, 10_000_000, 50_000_000)
DEADLINE = "60m"
_INTO_FEEDBACK = 5.0  # seconds
ENGINES = page.PAGE.with_name("engines.md")


@dataclass(frozen=True)
class Cost:
    """What one engine took for one window; only Spark has jobs and shuffled bytes."""

    rows: int
    engine: str
    seconds: float
    results: dict[str, tuple[str, float | None]]
    jobs: int = 0
    shuffled: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where the engines do not agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--url", help="Spark's master; default: local, on all cores")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "work" / "spark")
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="start a standalone cluster of two workers with a core each, and kill one in the middle",
    )
    parser.add_argument("--keep", action="store_true", help="write the table into docs/engines.md")
    parser.add_argument("--one", choices=("duckdb", "spark"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    if given.one:
        print(json.dumps(judge(folder, given.rows[0], given.one, given.url)))
        return 0
    found = []
    for rows in given.rows:
        data.write(folder, rows)
        for engine in ("duckdb", "spark"):
            print(f"{rows:,} exposures on {engine}", file=sys.stderr)
            if given.cluster and engine == "spark":
                found.append(on_a_cluster(folder, rows))
            else:
                found.append(in_a_process(folder, rows, engine, given.url))
    text, agree = table(found)
    print(text)
    if given.keep:
        section = "bench-spark-cluster" if given.cluster else "bench-spark"
        page.keep(section, f"{page.machine()}\n\n{text}", ENGINES)
    return 0 if agree else 1


def on_a_cluster(folder: Path, rows: int) -> Cost:
    """Spark on one window, on two workers, of which one dies while the feedback is judged."""
    with TemporaryDirectory() as place, standalone(Path(place)) as cluster:

        def told(line: str) -> None:
            if line.startswith("  exposures"):
                threading.Timer(_INTO_FEEDBACK, cluster.workers[0].kill).start()

        cost = in_a_process(folder, rows, "spark", cluster.url, told)
        if cluster.workers[0].poll() is None:
            raise RuntimeError("the window was judged before the worker was killed")
    if not any(event["Event"] == "SparkListenerExecutorRemoved" for event in _events(folder / "events")):
        raise RuntimeError("the worker that was killed had not been used")
    return cost


def in_a_process(
    folder: Path, rows: int, engine: str, url: str | None, told: Callable[[str], None] = lambda _: None
) -> Cost:
    """One engine on one window, in a fresh process; `told` gets each line that it writes on its way."""
    command = [sys.executable, "-m", "benchmarks.spark", "--one", engine]
    command += ["--rows", str(rows), "--folder", str(folder), *(["--url", url] if url else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        for line in running.stderr:
            print(line, end="", file=sys.stderr)
            told(line)
        out = running.stdout.read()
    if running.returncode:
        raise RuntimeError(f"{engine} did not judge the window")
    answer = json.loads(out.splitlines()[-1])
    jobs, shuffled = events(folder / "events") if engine == "spark" else (0, 0)
    results = {name: (status, value) for name, status, value in answer["results"]}
    return Cost(rows, engine, answer["seconds"], results, jobs, shuffled)


def config(folder: Path, rows: int, kind: str, url: str | None) -> Path:
    """A config for the window; that of Spark sends every window there."""
    rules = "\n".join(f"      - {rule}" for rule in RULES)
    rules = rules.replace("BLACKLIST", str(folder / "blacklist.parquet"))
    text = CONFIG.format(folder=folder, threads=os.cpu_count(), rows=rows, rules=rules)
    text = text.replace("deadline: 10m", f"deadline: {DEADLINE}")
    text = text.replace(f"{folder}/state", f"{folder}/state-{kind}-{rows}")
    if kind == "spark":
        (folder / "events").mkdir(exist_ok=True)
        for old in (folder / "events").iterdir():
            old.unlink()
        options = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{folder}/events",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
        place = url or f"local[{os.cpu_count()}]"
        asked = json.dumps({"kind": "spark", "url": place, "spark_from": 0, "options": options})
        text = text.replace(f"engine: {{threads: {os.cpu_count()}}}", f"engine: {asked}")
    path = folder / f"{kind}-{rows}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def judge(folder: Path, rows: int, kind: str, url: str | None) -> dict[str, Any]:
    """Judge both parts of the last window once. The window before it loads what every process loads."""
    path = config(folder, rows, kind, url)
    loaded = load_config(path)
    (checked,) = check_config(loaded, folder)
    if checked.problems:
        raise SystemExit("\n".join(map(str, checked.problems)))
    now = datetime.now(UTC)
    with one_off(loaded, checked, "salt") as judging:
        judging.look(now)
        windows, _ = judging.windows(None, None, now)
        began = time.perf_counter()
        for one in judging.judge(windows[:-1], now):
            print(f"  before: {one.due.part} {time.perf_counter() - began:.1f} s", file=sys.stderr)
        began = time.perf_counter()
        results = []
        for one in judging.judge(windows[-1:], now):
            print(f"  {one.due.part} {time.perf_counter() - began:.1f} s", file=sys.stderr)
            for each in one.results:
                name = f"{each.metric} {sorted(each.labels.items())}"
                results.append((name, str(each.status), each.value))
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "results": results}


def events(folder: Path) -> tuple[int, int]:
    """The jobs of an application, and the bytes that its tasks wrote for other tasks."""
    jobs = shuffled = 0
    for event in _events(folder):
        jobs += event["Event"] == "SparkListenerJobStart"
        if event["Event"] == "SparkListenerTaskEnd":
            metrics = event.get("Task Metrics") or {}
            shuffled += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return jobs, shuffled


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in folder.iterdir():
        if path.is_file() and not path.name.startswith("."):
            with path.open(encoding="utf-8") as lines:
                yield from map(json.loads, lines)


def differences(one: Cost, other: Cost) -> list[str]:
    """The results of which the status or a value to nine digits differs."""

    def same(left: float | None, right: float | None) -> bool:
        if left is None or right is None:
            return left is right
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)

    return [
        name
        for name in sorted(one.results.keys() | other.results.keys())
        if name not in one.results
        or name not in other.results
        or one.results[name][0] != other.results[name][0]
        or not same(one.results[name][1], other.results[name][1])
    ]


def table(found: Sequence[Cost]) -> tuple[str, bool]:
    """The figures, and whether the engines agree in every result."""
    lines = [
        "| exposures | DuckDB | Spark | ratio | jobs | shuffled | results that differ |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    wrong = []
    for embedded, cluster in zip(found[::2], found[1::2], strict=True):
        differ = differences(embedded, cluster)
        wrong += [f"{embedded.rows:,}: {name}" for name in differ]
        lines.append(
            f"| {embedded.rows:,} | {embedded.seconds:.1f} s | {cluster.seconds:.1f} s "
            f"| {cluster.seconds / embedded.seconds:.1f} | {cluster.jobs:,} "
            f"| {cluster.shuffled / 2**20:,.0f} MiB | {len(differ)} of {len(embedded.results)} |"
        )
    return "\n".join([*lines, *(["", "They differ in:", *wrong] if wrong else [])]), not wrong


if __name__ == "__main__":
    raise SystemExit(main())
