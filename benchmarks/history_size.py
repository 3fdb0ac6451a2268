"""How many bytes the history takes in SQLite, and where: `python -m benchmarks.history_size`.

A recommender's hours are drawn, measured, and judged by bands, drift and causes, and all of it is recorded as
the monitor does. SQLite then counts the bytes of each table and index.
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from sqlalchemy import URL

from benchmarks.real_traffic.draws import draw, settings
from benchmarks.real_traffic.watched import Watched
from monitor.anomalies.specs import EXPECTED
from monitor.core.results import Window
from monitor.history.store import Store

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
WEEK = 168
REQUESTS = 2000.0  # of a mean hour
MOST_MB = 50.0  # of 30 weeks


def main() -> None:
    """Record the hours, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=30)
    parser.add_argument("--into", type=Path, help="a folder that keeps the history")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="history-size-") as scratch:
        folder = asked.into or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(table(record(folder, asked.weeks * WEEK)))


def record(folder: Path, hours: int) -> Path:
    """The file of a history with so many judged hours."""
    asked, rng = settings(folder), np.random.default_rng(1)
    watched = Watched(folder, asked)
    noise = 0.0
    for number in range(hours):
        noise = 0.8 * noise + rng.normal(0, 0.05)
        day = 1 + 0.6 * math.sin((number % 24 - 8) / 24 * 2 * math.pi)
        weekend = 1.2 if number // 24 % 7 > 4 else 1.0
        drawn = draw(REQUESTS * day * weekend * math.exp(noise), REQUESTS, rng)
        window = Window(START + number * HOUR, START + (number + 1) * HOUR)
        watched.judge(window, *drawn.results(asked))
    watched.close()
    return folder / "history.db"


def table(path: Path) -> str:
    """The bytes of each table and index of the file, as a table of Markdown."""
    with Store.open(URL.create("sqlite", database=str(path)).render_as_string()) as store:
        results = [one.result.metric for one in store.results()]
        hours = len(store.evaluated("real", "exposure"))
    banded = results.count(EXPECTED.name) / hours
    whole = path.stat().st_size
    lines = [
        f"{hours:,} hours, {banded:.0f} series with bands, {len(results):,} results, {whole / 1e6:.1f} MB; "
        f"{whole / hours * 30 * WEEK / 1e6:.1f} MB in 30 weeks (at most {MOST_MB:.0f})",
        "",
        "| table or index | MB | free in its pages | bytes a result |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {size / 1e6:.2f} | {unused / size:.0%} | {size / len(results):.2f} |"
        for name, size, unused in sizes(path)
        if size > whole / 1000
    ]
    lines.append(f"| all | {whole / 1e6:.2f} | | {whole / len(results):.2f} |")
    return "\n".join(lines)


def sizes(path: Path) -> list[tuple[str, int, int]]:
    """Each table and index, the largest first: its bytes, and how many of them are free.

    Empty where SQLite was built without `dbstat`.
    """
    query = "SELECT name, SUM(pgsize), SUM(unused) FROM dbstat GROUP BY name ORDER BY 2 DESC"
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []


if __name__ == "__main__":
    main()
