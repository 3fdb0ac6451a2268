"""Many recommenders in one daemon: `python -m benchmarks.fleet --recommenders 200`.

Each has its own files of exposures and of feedback, a file a window, all default metrics and three packs of
rules. The daemon runs as a user runs it. Measured are the time until it answers and until each recommender
has a verdict, and the processor time and memory of all its processes. From these follows the load: the share
of the machine's cores that windows of five minutes take.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import yaml

from benchmarks import data, page
from benchmarks.processes import descendants, mebibytes, processor_seconds

WINDOW = timedelta(minutes=5)
PATIENCE = 3600.0
USERS, ITEMS = 5_000, 2_000


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds, processor seconds and MiB.

    Attributes:
        parts: of windows, each of exposures or of feedback.
        a_part: processor seconds of a part in one more window of each recommender, which arrives when all
            others are judged: what a daemon that runs for days takes.
        mebibytes: of the daemon, then of each other process; memory that several share is divided.
    """

    ready: float
    first_verdicts: float
    caught_up: float
    processor_seconds: float
    parts: int
    a_part: float
    mebibytes: tuple[float, ...]


def write(folder: Path, recommenders: int, windows: int, rows: int) -> None:
    """The files of all recommenders, which differ in nothing but their folder; without the newest window."""
    source = folder / "source"
    data.write(source, rows)
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    end -= timedelta(minutes=end.minute % 5)
    connection = duckdb.connect()
    made: list[tuple[str, Path]] = []
    late = folder / "late"
    late.mkdir()
    for number in range(windows):
        start = end - (windows - number) * WINDOW
        for name in ("exposures", "feedback"):
            place = (late if number == windows - 1 else folder) / f"{name}-{number}.parquet"
            within = f"TIMESTAMP '{start.replace(tzinfo=None)}' + (ts - TIMESTAMP '{data.HOUR}') / 12"
            query = (
                f"SELECT * REPLACE ({within} AS ts, "
                f"request_id + {number} * 1000000 AS request_id, "
                f"CAST(hash(user_id, {number}) % {USERS} AS BIGINT) AS user_id, "
                f"item_id % {ITEMS} AS item_id) "
                f"FROM '{source}/{name}_{rows}.parquet'"
            )
            connection.execute(f"COPY ({query}) TO '{place}' (FORMAT parquet)")
            made.append((name, place))
    _deliver(folder, recommenders, [one for one in made if one[1].parent != late])


def _deliver(folder: Path, recommenders: int, files: Iterable[tuple[str, Path]]) -> None:
    """Put these files of a log into the folder of every recommender."""
    for one in range(recommenders):
        for name, place in files:
            (folder / f"r{one:03}" / name).mkdir(parents=True, exist_ok=True)
            os.link(place, folder / f"r{one:03}" / name / place.name)


def deliver_late(folder: Path, recommenders: int) -> None:
    """The files of the newest window, which `write` has left out."""
    late = sorted((folder / "late").iterdir())
    _deliver(folder, recommenders, [(place.stem.rpartition("-")[0], place) for place in late])


def config(folder: Path, recommenders: int, workers: int | None, listen: str) -> Path:
    """The config of all recommenders."""
    common = {
        "window": "5m",
        "every": "1m",
        "lateness": "1m",
        "metrics": {"attribution": "5m", "events": {"click": {}, "order": {"grade": 2}}},
        "rules": [
            {"pack": "blacklist", "parameters": {"blacklist": str(folder / "source/blacklist.parquet")}},
            {"pack": "lists", "parameters": {"max_length": 20}},
            {"pack": "scores"},
        ],
    }
    names = [f"r{one:03}" for one in range(recommenders)]
    logs = {
        name: {
            "exposures": {"path": str(folder / name / "exposures/*.parquet")},
            "feedback": {"path": str(folder / name / "feedback/*.parquet")},
            "catalog": {"path": str(folder / "source/catalog.parquet")},
        }
        for name in names
    }
    whole = {
        "state": str(folder / "state"),
        "server": {"listen": listen},
        "log": {"level": "warning"},
        "engine": {"workers": workers} if workers else {},
        "recommenders": [{"name": name, "logs": logs[name], **common} for name in names],
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(whole), "utf-8")
    return path


def run(folder: Path, recommenders: int, workers: int | None) -> Measured:
    """Start the daemon, and wait until it has judged every window that is due."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    path = config(folder, recommenders, workers, listen)
    began = time.monotonic()
    daemon = subprocess.Popen([sys.executable, "-m", "monitor", "run", "--config", str(path)])
    try:
        ready = _until(lambda: _answers(f"http://{listen}/-/ready"), began)
        first = _until(lambda: _judged(folder)[0] == recommenders, began)
        parts = _until_quiet(folder)
        caught_up = time.monotonic() - began
        family = [daemon.pid, *descendants(daemon.pid)]
        seconds = sum(map(processor_seconds, family))
        deliver_late(folder, recommenders)
        more = _until_quiet(folder, more_than=parts)
        warm = sum(map(processor_seconds, family)) - seconds
        return Measured(
            ready=ready,
            first_verdicts=first,
            caught_up=caught_up,
            processor_seconds=seconds,
            parts=parts,
            a_part=warm / (more - parts),
            mebibytes=tuple(round(mebibytes(one), 1) for one in family),
        )
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(30)


def _until_quiet(folder: Path, more_than: int = 0) -> int:
    """Wait until nothing more is judged; how many parts are."""
    parts, still, began = 0, 0, time.monotonic()
    while still < 6 or parts <= more_than:
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"{parts} parts were judged within an hour")
        time.sleep(5)
        now = _judged(folder)[1]
        still, parts = (still + 1, parts) if now == parts else (0, now)
    return parts


def _until(look: Callable[[], bool], began: float) -> float:
    while not look():
        time.sleep(0.5)
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError("the daemon has not got there within an hour")
    return time.monotonic() - began


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _judged(folder: Path) -> tuple[int, int]:
    """Recommenders with a verdict, and parts of windows with one."""
    with closing(sqlite3.connect(f"file:{folder}/state/history.sqlite?mode=ro", uri=True)) as history:
        parts = "check_name IN ('exposure', 'feedback')"
        query = f"SELECT count(DISTINCT recommender), count(*) FROM windows WHERE {parts}"
        found: tuple[int, int] = history.execute(query).fetchone()
        return found


def table(found: Measured, recommenders: int, rows: int) -> str:
    """The figures of one run."""
    load = 2 * found.a_part * recommenders / WINDOW.total_seconds() / (os.cpu_count() or 1)
    daemon, *others = found.mebibytes
    each = ", ".join(f"{one:.0f}" for one in others)
    return "\n".join(
        [
            "| recommenders | ready | a verdict of each | a part of a window | load | memory |",
            "|---|---:|---:|---:|---:|---:|",
            f"| {recommenders} with {rows:,} exposures in five minutes | {found.ready:.0f} s "
            f"| {found.first_verdicts:.0f} s | {found.a_part:.2f} s | {load:.0%} "
            f"| {sum(found.mebibytes):.0f} MiB: daemon {daemon:.0f}, others {each} |",
        ]
    )


def main() -> None:
    """Write the logs, run the daemon, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recommenders", type=int, default=200)
    parser.add_argument("--windows", type=int, default=6, help="windows of each recommender in its log")
    parser.add_argument("--rows", type=int, default=2_000, help="exposures a window")
    parser.add_argument("--workers", type=int, help="default: one a core")
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    asked = parser.parse_args()
    if asked.windows < 3:
        parser.error("--windows: 3 at least; the newest arrives late, and closes the one before")
    with tempfile.TemporaryDirectory(prefix="fleet-") as scratch:
        folder = Path(scratch)
        write(folder, asked.recommenders, asked.windows, asked.rows)
        found = run(folder, asked.recommenders, asked.workers)
    text = table(found, asked.recommenders, asked.rows)
    print(text)
    if asked.keep:
        page.keep("bench-fleet", f"{page.machine()}\n\n{text}")


if __name__ == "__main__":
    main()
