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
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import data, page
from monitor.metrics.catalogue import FAMILIES

HERE = Path(__file__).parent
FOLDER = HERE / "work" / "window"
LOGS = """\
state: {folder}/state
engine: {{threads: {threads}}}
recommenders:
  - name: bench
    logs:
      exposures: {{path: [{folder}/exposures_{rows}.parquet, {folder}/earlier_{rows}.parquet]}}
      feedback: {{path: [{folder}/feedback_{rows}.parquet, {folder}/earlier_feedback_{rows}.parquet]}}
      catalog: {{path: {folder}/catalog.parquet}}
      users: {{path: {folder}/users.parquet}}
    deadline: 10m
"""
SETTINGS = """\
    window: 1h
    metrics:
      score_range: [0, 1]
      seed_item: page
      events: {{click: {{}}, play: {{length: length}}, rate: {{grade: 0}}, order: {{grade: 2}}}}
      rating: {{event: rate}}
    rules:
{rules}
"""
CONFIG = LOGS + SETTINGS
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
LIMIT, MEMORY_LIMIT_MIB = 20, 2048
MEASURED = HERE / "measured.json"


def main() -> int:
    """Write the data, judge it in a fresh process, print the table; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--keep",
        action="store_true",
        help="put the tables into docs/benchmarks.md, the ratios into measured.json",
    )
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="count the processor's time: where other work keeps the machine busy",
    )
    chosen = parser.parse_args()
    found = measure(chosen.rows, chosen.threads, cpu=chosen.cpu)
    size = (FOLDER / f"exposures_{chosen.rows}.parquet").stat().st_size / 1e6
    kind = "seconds of the processor" if chosen.cpu else "seconds"
    text = f"{found['rows']:,} exposures, {size:.0f} MB of Parquet; {kind}\n\n{report(found)}"
    print(text)
    for line in (*found["window"]["not_ok"], *found["feedback"]["not_ok"]):
        print(f"  {line}")
    if chosen.keep:
        page.keep("bench", f"{page.machine()}\n\n{text}")
        MEASURED.write_text(json.dumps(measured(found), indent=2) + "\n", "utf-8")
        print("\nkept; `make docs` puts the ratios into the metrics' pages")
    return int(max(ratios(found)) > LIMIT or found["peak_mib"] > MEMORY_LIMIT_MIB)


def measure(rows: int, threads: int, *, cpu: bool, more: str = "") -> dict[str, Any]:
    """Judge a window of so many exposures in a fresh process; `more` is added to the recommender's config."""
    data.write(FOLDER, rows)
    config = FOLDER / "config.yaml"
    config.write_text(CONFIG.format(folder=FOLDER, rows=rows, threads=threads, rules=rules(FOLDER)) + more)
    exposures = FOLDER / f"exposures_{rows}.parquet"
    command = [sys.executable, "-m", "benchmarks.window", str(config), str(exposures), str(threads)]
    command += ["--cpu"] if cpu else []
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return found


def rules(folder: Path) -> str:
    """The rules of the config, with the blacklist of a folder."""
    return "\n".join(
        f"      - {one.replace('BLACKLIST', str(folder / 'blacklist.parquet'))}" for one in RULES
    )


def measured(found: dict[str, Any]) -> dict[str, float]:
    """Each family of metrics and what it took, as a ratio to the plain read."""
    seconds = found["window"]["costs"] | found["feedback"]["costs"]
    names = (family.name for family in FAMILIES)
    return {name: round(seconds[name] / found["read"]["seconds"], 1) for name in names if name in seconds}


def ratios(found: dict[str, Any]) -> tuple[float, float]:
    """The whole window, and its feedback, to the plain read."""
    read = found["read"]["seconds"]
    return found["window"]["seconds"] / read, found["feedback"]["seconds"] / read


def report(found: dict[str, Any]) -> str:
    """The tables of one run."""
    window, feedback, read = found["window"], found["feedback"], found["read"]
    whole = [
        ("plain read of every column", read["seconds"]),
        ("index the files (once a file)", found["indexing"]),
        *((f"  {name}", seconds) for name, seconds in window["costs"].items()),
        *((f"check {name}", seconds) for name, seconds in window["checks"].items()),
        ("the whole window", window["seconds"]),
        *((f"  rule {name} alone", seconds) for name, seconds in found["rules"].items()),
    ]
    later = [
        *((f"  {name}", seconds) for name, seconds in feedback["costs"].items()),
        ("the feedback of the window", feedback["seconds"]),
        *((f"  of it table {name}", seconds) for name, seconds in feedback["tables"].items()),
    ]
    missing = [f"- {name} is not measured here: {why}." for name, why in found["missing"].items()]
    of_window, of_feedback = ratios(found)
    return "\n".join(
        [
            *_table(whole, read["seconds"]),
            "\nThe feedback of the window, later. A family's time includes the tables that it is the first "
            "to need:\n",
            *_table(later, read["seconds"]),
            *(["", *missing] if missing else []),
            f"\nall rules and metrics of exposures: {of_window:.1f} x the plain read (at most {LIMIT}), "
            f"in time of the processor {window['cpu'] / read['cpu']:.1f} x\n",
            f"all metrics of feedback: {of_feedback:.1f} x the plain read (at most {LIMIT}), "
            f"in time of the processor {feedback['cpu'] / read['cpu']:.1f} x\n",
            f"peak memory: {found['peak_mib']:,.0f} MiB (at most {MEMORY_LIMIT_MIB:,})\n",
            f"results by status: {_counted(window['statuses'] + feedback['statuses'])}",
        ]
    )


def _table(lines: list[tuple[str, float]], read: float) -> Iterator[str]:
    yield f"| {'part':<36} | seconds | x plain read |"
    yield f"|{'-' * 38}|--------:|-------------:|"
    for name, seconds in lines:
        yield f"| {name:<36} | {seconds:7.3f} | {seconds / read:12.1f} |"


def _counted(statuses: list[str]) -> str:
    return ", ".join(f"{number} {status}" for status, number in Counter(statuses).most_common())


if __name__ == "__main__":
    sys.exit(main())
