"""The benchmark's one command: `make bench`, or `python -m benchmarks.run --rows 1000000` for a quick look.

Every figure is a ratio to what DuckDB takes to read each column of the same file once, in the same run on
the same cores, so that it means the same on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import data

HERE = Path(__file__).parent
CONFIG = """\
state: {folder}/state
engine: {{threads: {threads}}}
recommenders:
  - name: bench
    logs:
      exposures: {{path: [{folder}/exposures_{rows}.parquet, {folder}/earlier_{rows}.parquet]}}
      feedback: {{path: {folder}/feedback_{rows}.parquet}}
      catalog: {{path: {folder}/catalog.parquet}}
    window: 1h
    metrics: {{score_range: [0, 1]}}
    deadline: 10m
    rules:
{rules}
"""
RULES = [
    "{pack: blacklist, parameters: {blacklist: BLACKLIST}}",
    "{pack: catalog, parameters: {available_from: available_from, available_until: available_until}}",
    "{pack: lists, parameters: {max_length: 20}}",
    "{pack: category, parameters: {max_per_category: 9}}",
    "{pack: scores}",
    "{pack: order}",
    "{pack: arithmetic, parameters: {denominators: [score], factors: [score], underflow: [score]}}",
    "{pack: frequency}",
    "{pack: time}",
]
LIMIT, MEMORY_LIMIT_MIB = 40, 2048


def main() -> int:
    """Write the data, judge it in a fresh process, print the table; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    folder = HERE / "work"
    data.write(folder, chosen.rows)
    rules = "\n".join(
        f"      - {one.replace('BLACKLIST', str(folder / 'blacklist.parquet'))}" for one in RULES
    )
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(folder=folder, rows=chosen.rows, threads=chosen.threads, rules=rules))
    exposures = folder / f"exposures_{chosen.rows}.parquet"
    command = [sys.executable, "-m", "benchmarks.window", str(config), str(exposures), str(chosen.threads)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return report(found, exposures)


def report(found: dict[str, object], exposures: Path) -> int:
    """Print the table of one run."""
    read = float(found["plain_read"])  # type: ignore[arg-type]
    lines: list[tuple[str, Any]] = [
        ("plain read of every column", read),
        ("index the files (once a file)", found["indexing"]),
    ]
    lines += [(f"  {name}", seconds) for name, seconds in found["parts"].items()]  # type: ignore[attr-defined]
    lines += [(f"check {name}", seconds) for name, seconds in found["checks"].items()]  # type: ignore[attr-defined]
    lines += [("the whole window", found["total"])]
    lines += [(f"  {name}", seconds) for name, seconds in found["feedback_parts"].items()]  # type: ignore[attr-defined]
    lines += [("the feedback of the window, later", found["feedback"])]
    lines += [(f"  rule {name} alone", seconds) for name, seconds in found["rules"].items()]  # type: ignore[attr-defined]
    size = exposures.stat().st_size / 1e6
    print(f"{found['rows']:,} exposures, {size:.0f} MB of Parquet\n")
    print(f"| {'part':<34} | seconds | x plain read |\n|{'-' * 36}|--------:|-------------:|")
    for name, seconds in lines:
        print(f"| {name:<34} | {seconds:7.3f} | {seconds / read:12.1f} |")
    ratio = float(found["total"]) / read  # type: ignore[arg-type]
    peak = float(found["peak_mib"])  # type: ignore[arg-type]
    print(f"\nresults by status: {found['statuses']}")
    for line in found["not_ok"]:  # type: ignore[attr-defined]
        print(f"  {line}")
    print(f"\nall rules and metrics: {ratio:.1f} x the plain read (at most {LIMIT})")
    print(f"peak memory: {peak:,.0f} MiB (at most {MEMORY_LIMIT_MIB:,})")
    return int(ratio > LIMIT or peak > MEMORY_LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main())
