"""Many small windows through `backfill`: `python -m benchmarks.span --windows 720`.

Each hourly window has its own files of exposures and of feedback, as most services write them. All default
metrics and four packs of rules judge both parts of each window. The command runs as a user runs it, in
processes of its own, and their processor time counts. After it, a dozen statements by hand read each window.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from benchmarks import data, page
from benchmarks.small_window import run_by_hand

START = datetime(2025, 1, 1, tzinfo=UTC)
_JUDGED = (0, 1)  # exit codes of `backfill` that has judged all windows; 1: a rule is violated
HOUR = timedelta(hours=1)
USERS, ITEMS = 5_000, 2_000
CONFIG = """\
state: {folder}/state
recommenders:
  - name: small
    logs:
      exposures: {{path: {folder}/exposures/*.parquet}}
      feedback: {{path: {folder}/feedback/*.parquet}}
      catalog: {{path: {folder}/catalog.parquet}}
    window: 1h
    metrics: {{events: {{click: {{}}, order: {{grade: 2}}}}}}
    rules:
      - {{pack: blacklist, parameters: {{blacklist: {folder}/blacklist.parquet}}}}
      - {{pack: catalog, parameters: {{available_from: available_from, available_until: available_until}}}}
      - {{pack: lists, parameters: {{max_length: 20}}}}
      - {{pack: scores}}
"""


def write(folder: Path, windows: int, rows: int) -> None:
    """The files of all windows, a catalog and a blacklist."""
    source = folder / "source"
    data.write(source, rows)
    for name in ("exposures", "feedback"):
        (folder / name).mkdir()
    connection = duckdb.connect()
    for name in ("catalog", "blacklist"):
        (source / f"{name}.parquet").rename(folder / f"{name}.parquet")
    users = f"CAST(hash(user_id, {{number}}) % {USERS} AS BIGINT) AS user_id"
    items = f"item_id % {ITEMS} AS item_id"
    for number in range(windows):
        later = (START + number * HOUR - datetime.fromisoformat(f"{data.HOUR}+00:00")).total_seconds()
        moved = f"ts + to_seconds({later:.0f}) AS ts, request_id + {number * 1_000_000} AS request_id"
        for name in ("exposures", "feedback"):
            query = (
                f"SELECT * REPLACE ({moved}, {users.format(number=number)}, {items}) "
                f"FROM '{source}/{name}_{rows}.parquet'"
            )
            place = folder / name / f"{START + number * HOUR:%Y%m%d%H}.parquet"
            connection.execute(f"COPY ({query}) TO '{place}' (FORMAT parquet)")
            written = (START + (number + 1) * HOUR).timestamp()
            os.utime(place, (written, written))


@dataclass(frozen=True, slots=True)
class Cost:
    """What all windows cost: seconds on the clock, of the processor and by hand, and MiB at the peak."""

    windows: int
    rows: int
    seconds: float
    processor: float
    by_hand: float
    mebibytes: float


def judge(folder: Path, windows: int, rows: int) -> Cost:
    """Run `backfill`, and then the statements by hand."""
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(folder=folder))
    edges = [f"{edge:%Y-%m-%dT%H:%MZ}" for edge in (START, START + windows * HOUR)]
    command = [sys.executable, "-m", "monitor", "backfill", "--config", str(config)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run([*command, "--from", edges[0], "--to", edges[1]], check=False)
    seconds = time.perf_counter() - began
    if done.returncode not in _JUDGED:
        raise RuntimeError(f"backfill ended with {done.returncode}, so it has not judged every window")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(
        windows,
        rows,
        seconds,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        sum(run_by_hand(_files(folder, number)) for number in range(windows)),
        after.ru_maxrss / 1024,
    )


def _files(folder: Path, number: int) -> dict[str, Path]:
    name = f"{START + number * HOUR:%Y%m%d%H}.parquet"
    own = {"e": folder / "exposures" / name, "f": folder / "feedback" / name}
    return own | {one: folder / f"{one}.parquet" for one in ("catalog", "blacklist")}


def table(cost: Cost) -> str:
    """The figures of one run."""
    own, by_hand = cost.processor / cost.windows, cost.by_hand / cost.windows
    return "\n".join(
        [
            "| windows | together | processor time a window | by hand | ratio | peak of a process |",
            "|---|---:|---:|---:|---:|---:|",
            f"| {cost.windows:,} of {cost.rows:,} exposures | {cost.seconds:.0f} s | {own:.2f} s "
            f"| {by_hand:.3f} s | {own / by_hand:.1f} | {cost.mebibytes:.0f} MiB |",
        ]
    )


def main() -> None:
    """Write the windows, judge them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=720)
    parser.add_argument("--rows", type=int, default=4_000, help="exposures a window")
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="span-") as scratch:
        folder = Path(scratch)
        write(folder, asked.windows, asked.rows)
        cost = judge(folder, asked.windows, asked.rows)
    text = table(cost)
    print(text)
    if asked.keep:
        page.keep("bench-span", f"{page.machine()}\n\n{text}")


if __name__ == "__main__":
    main()
