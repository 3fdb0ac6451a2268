"""What a row costs as windows grow, in a long day, and with fifty slices: `make bench-growth`.

The windows are those of `make bench`, with all rules and metrics, both parts of each. All times are of the
processor, beside the plain read: the time in which DuckDB reads each column of the same exposures once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import data, page, run
from benchmarks.window import PlainRead
from monitor.cli.one_off import one_off
from monitor.config.checks.check import check_config
from monitor.config.load import load_config

ROWS = (1_000_000, 10_000_000)
DAY_ROWS = 100_000_000
HOURS = 24
MOST_READS = 20  # plain reads a part of a window
MOST_GROWTH = 1.05
MOST_OF_SLICES = 2.0
MOST_MEBIBYTES = 3 * 1024
_START = datetime(2026, 1, 2, tzinfo=UTC)
_SLICED = f"    slices: {{by: [users.segment], budget: {data.SEGMENTS}}}\n"
_LOGS = """\
state: {folder}/state
engine: {{threads: {threads}, memory: 2GiB}}
recommenders:
  - name: day
    logs:
      exposures: {{path: "{folder}/exposures/*.parquet"}}
      feedback: {{path: "{folder}/feedback/*.parquet"}}
      catalog: {{path: {folder}/catalog.parquet}}
    deadline: 60m
"""


def main() -> int:
    """Print the table; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="exposures of each single window")
    parser.add_argument("--day", type=int, default=DAY_ROWS, help="exposures of the day; 0 leaves it out")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument("--one-day", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one_day:
        print(json.dumps(judge_day(asked.one_day)))
        return 0
    windows = {rows: run.measure(rows, asked.threads, cpu=True) for rows in asked.rows}
    sliced = run.measure(asked.rows[-1], asked.threads, cpu=True, more=_SLICED)
    lines = ["| | exposures | feedback | peak |", "|---|---:|---:|---:|"]
    lines += [_line(f"a window of {rows:,}", found) for rows, found in windows.items()]
    lines.append(_line(f"the same with {data.SEGMENTS} slices", sliced))
    bounded = [windows[max(windows)]]
    if asked.day:
        day = _day(asked.day, asked.threads)
        lines.append(_line(f"a day of {asked.day:,} in {HOURS} windows", day))
        bounded.append(day)
    broken = any(map(_too_much, bounded))
    notes = []
    if len(windows) > 1:
        exponent = growth(windows)
        notes.append(
            f"From the smallest to the largest window, the cost grows with exponent {exponent:.2f} "
            f"(at most {MOST_GROWTH})."
        )
        broken |= exponent > MOST_GROWTH
    ratio = _cost(sliced) / _cost(windows[asked.rows[-1]])
    notes.append(
        f"{data.SEGMENTS} slices take {ratio:.1f} times the time of none (at most {MOST_OF_SLICES})."
    )
    broken |= ratio > MOST_OF_SLICES
    text = "\n".join([*lines, "", *notes])
    print(text)
    if asked.keep:
        page.keep("bench-growth", f"{page.machine()}\n\n{text}")
    return int(broken)


def growth(windows: dict[int, dict[str, Any]]) -> float:
    """The exponent of the cost in the rows, from the smallest to the largest window."""
    small, large = min(windows), max(windows)
    return math.log(_cost(windows[large]) / _cost(windows[small])) / math.log(large / small)


def _cost(found: dict[str, Any]) -> float:
    return float(found["window"]["cpu"] + found["feedback"]["cpu"])


def _line(name: str, found: dict[str, Any]) -> str:
    parts = (
        f"{found[part]['cpu'] / found['read']['cpu']:.1f} plain reads" for part in ("window", "feedback")
    )
    return f"| {name} | {' | '.join(parts)} | {found['peak_mib']:,.0f} MiB |"


def _too_much(found: dict[str, Any]) -> bool:
    reads = (found[part]["cpu"] / found["read"]["cpu"] for part in ("window", "feedback"))
    return bool(max(reads) > MOST_READS or found["peak_mib"] > MOST_MEBIBYTES)


def _day(rows: int, threads: int) -> dict[str, Any]:
    folder = Path(__file__).parent / "work" / f"day_{rows}"
    _write_day(folder, rows)
    (folder / "config.yaml").write_text(
        (_LOGS + run.SETTINGS).format(folder=folder, threads=threads, rules=run.rules(folder)), "utf-8"
    )
    command = [sys.executable, "-m", "benchmarks.growth", "--one-day", str(folder)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return found


def _write_day(folder: Path, rows: int) -> None:
    """A file each hour, made of one window with other users, requests and items in front each hour."""
    one = rows // HOURS // data.LIST_LENGTH * data.LIST_LENGTH
    data.write(folder, one)
    connection = duckdb.connect()
    for number in range(HOURS):
        later = (
            _START + timedelta(hours=number) - datetime.fromisoformat(f"{data.HOUR}+00:00")
        ).total_seconds()
        moved = (
            f"ts + to_seconds({later:.0f}) AS ts, request_id + {number * 1_000_000_000} AS request_id, "
            f"(user_id + {number * 40_000}) % {data.USERS} AS user_id, "
            f"(item_id + {number * 997}) % {data.ITEMS} AS item_id"
        )
        for name in ("exposures", "feedback"):
            place = folder / name / f"{number:02}.parquet"
            if place.exists():
                continue
            place.parent.mkdir(exist_ok=True)
            query = f"SELECT * REPLACE ({moved}) FROM '{folder}/{name}_{one}.parquet'"
            connection.execute(f"COPY ({query}) TO '{place}.part' (FORMAT parquet)")
            place.with_name(f"{place.name}.part").rename(place)


def judge_day(folder: Path) -> dict[str, Any]:
    """Judge all windows of the day, both parts of each; the sums over them.

    Raises RuntimeError if a result is an error, as without enough memory: what failed costs nothing.
    """
    config = load_config(folder / "config.yaml")
    read = PlainRead(folder / "exposures" / "*.parquet", config.engine.threads or 1)
    read.again()
    (checked,) = check_config(config, folder)
    now = datetime.now(UTC)
    cost = {"exposures": 0.0, "feedback": 0.0}
    with one_off(config, checked, "salt") as judge:
        judge.look(now)
        windows, _ = judge.windows(None, None, now)
        began = time.process_time()
        for evaluation in judge.judge(windows, now):
            cost[evaluation.due.part] += time.process_time() - began
            failed = {f"{one.metric}: {one.detail}" for one in evaluation.results if one.status == "error"}
            if failed:
                raise RuntimeError("; ".join(sorted(failed)))
            print(evaluation.due.window.start, evaluation.due.part, file=sys.stderr)
            began = time.process_time()
    read.again()
    return {
        "read": {"cpu": read.cpu},
        "window": {"cpu": cost["exposures"]},
        "feedback": {"cpu": cost["feedback"]},
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    sys.exit(main())
