"""Many small windows through `backfill`: `python -m benchmarks.span --windows 720`.

Each hourly window has its own files of exposures and of feedback, as most services write them. All default
metrics and four packs of rules judge both parts of each window. The command runs as a user runs it, in a
process of its own; what is printed is its wall time and the processor time of it and of its children.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from benchmarks import data

START = datetime(2026, 1, 1, tzinfo=UTC)
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
        moved = f"ts + to_seconds({later:.0f}) AS ts, request_id + {number} * 1000000 AS request_id"
        for name in ("exposures", "feedback"):
            query = (
                f"SELECT * REPLACE ({moved}, {users.format(number=number)}, {items}) "
                f"FROM '{source}/{name}_{rows}.parquet'"
            )
            place = folder / name / f"{START + number * HOUR:%Y%m%d%H}.parquet"
            connection.execute(f"COPY ({query}) TO '{place}' (FORMAT parquet)")
            written = (START + (number + 1) * HOUR).timestamp()
            os.utime(place, (written, written))


def judge(folder: Path, windows: int) -> dict[str, float]:
    """Seconds and processor seconds of `backfill`, and its peak memory in MiB."""
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(folder=folder))
    edges = [f"{edge:%Y-%m-%dT%H:%MZ}" for edge in (START, START + windows * HOUR)]
    command = [sys.executable, "-m", "monitor", "backfill", "--config", str(config)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([*command, "--from", edges[0], "--to", edges[1]], check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.perf_counter() - began, "cpu": cpu, "peak_mib": after.ru_maxrss / 1024}


def main() -> None:
    """Write the windows, judge them, print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=720)
    parser.add_argument("--rows", type=int, default=4_000, help="exposures a window")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="span-") as scratch:
        folder = Path(scratch)
        write(folder, asked.windows, asked.rows)
        found = judge(folder, asked.windows)
    found["cpu_a_window"] = found["cpu"] / asked.windows
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
