"""What a small window costs with everything switched on: `python -m benchmarks.everything`; 1 where it is too
much.

The real monitor watches a simulated shop of some 4,000 exposures an hour: seven packs of rules, all metrics
that its logs allow, two slices, an experiment, models and bands. What counts are the turns of the daemon in
the last day of a few weeks, in processor time: from the look at the files to the published state. Bands have
a past by then. Beside each window, the same process runs the statements of bench-small on it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Final

import duckdb
import yaml

from benchmarks import page
from benchmarks.scoreboard.config import BLACKLIST, NAME, write_config
from benchmarks.scoreboard.play import play
from benchmarks.scoreboard.watched import Watched
from benchmarks.small_window import BY_HAND
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World

DAYS: Final = 15
COUNTED: Final = 24
"""The last windows, which count."""
MOST: Final = 1.0
"""Seconds of the processor that a window may take."""
SHOP: Final = World(
    scenes=(Scene("home", 330.0), Scene("detail", 65.0), Scene("search", 20.0)),
    users=5_000,
    new_users_per_hour=6,
    file_minutes=30,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds, exposures, and the ratio to the statements by hand, in the middle of all windows."""

    seconds: float
    by_hand: float
    ratio: float
    exposures: float
    windows: int


class _Timed(Watched):
    """A monitor that counts the processor seconds of its turns. Nothing scrapes it."""

    spent = 0.0

    def turn(self, now: datetime, *, scraped: bool = True) -> None:  # noqa: ARG002
        began = time.process_time()
        super().turn(now, scraped=False)
        self.spent += time.process_time() - began


def measure(folder: Path, days: int = DAYS) -> Cost:
    """Watch the shop for so many days, and give the cost of the last windows.

    Each hour one window ends and the one before it may get its feedback, so an hour holds both parts.
    """
    _write_config(folder)
    simulation, ends = Simulation(SHOP), SHOP.start + timedelta(days=days)
    own, by_hand, shown = [], [], []
    with _Timed(folder, NAME, SHOP.start + HOUR) as watched:
        before = 0.0
        for hour in play(watched, simulation, SHOP.start + HOUR, ends):
            own.append(watched.spent - before)
            before = watched.spent
            if ends - hour < COUNTED * HOUR:
                rows, seconds = run_by_hand(folder, hour - 2 * HOUR)
                shown.append(rows)
                by_hand.append(seconds)
            if hour.hour == 0:
                watched.housekeeping()
                print(f"{hour:%d %B}: {own[-1]:.2f} s", file=sys.stderr)
    own = own[-len(by_hand) :]
    ratios = [one / other for one, other in zip(own, by_hand, strict=True)]
    return Cost(median(own), median(by_hand), median(ratios), median(shown), len(own))


def _write_config(folder: Path) -> None:
    """The scoreboard's config, with two slices and without other systems of the platform."""
    path = write_config(folder, SHOP)
    whole = yaml.safe_load(path.read_text("utf-8"))
    (shop,) = whole["recommenders"]
    del shop["platform"]
    shop["slices"]["by"] = ["scene", "user_activity"]
    path.write_text(yaml.safe_dump(whole, sort_keys=False), "utf-8")


def run_by_hand(folder: Path, start: datetime) -> tuple[int, float]:
    """The exposures of the hour from `start` on, and the processor seconds of BY_HAND on it."""
    began = time.process_time()
    hour = f"ts >= '{start:%F %T}' AND ts < '{start + HOUR:%F %T}'"
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, log, more in (("e", "exposures", ""), ("f", "feedback", ", 1.0 AS value")):
            files = f"'{folder}/logs/{log}/*.parquet'"
            connection.execute(f"CREATE VIEW {name} AS SELECT *{more} FROM {files} WHERE {hour}")
        connection.execute(f"CREATE VIEW catalog AS FROM '{folder}/logs/catalog/*.parquet'")
        connection.execute(f"CREATE VIEW blacklist AS FROM '{folder}/{BLACKLIST}'")
        for statement in BY_HAND:
            connection.execute(statement).fetchall()
        seconds = time.process_time() - began
        (rows,) = connection.execute("SELECT count(item_id) FROM e").fetchall()[0]
    return int(rows), seconds


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 where a window takes more than MOST."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="recsys-monitor-") as folder:
        cost = measure(Path(folder), chosen.days)
    text = "\n".join(
        [
            f"| {cost.windows} windows after {chosen.days} days | processor time | by hand | ratio |",
            "|---|---:|---:|---:|",
            f"| {cost.exposures:,.0f} exposures, both parts, everything switched on | {cost.seconds:.2f} s "
            f"(at most {MOST:.0f}) | {cost.by_hand:.3f} s | {cost.ratio:.1f} |",
        ]
    )
    print(text)
    if chosen.keep:
        page.keep("bench-everything", f"{page.machine()}\n\n{text}")
    return int(cost.seconds > MOST)


if __name__ == "__main__":
    sys.exit(main())
