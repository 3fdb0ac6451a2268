"""What a small window costs: `python -m benchmarks.small_window`; 1 where it got worse.

A window of 4,000 exposures with its feedback, three packs of rules and all default metrics: most of its cost
does not depend on its rows. Beside each window, the same process runs a dozen statements that were written by
hand for DuckDB, on the same files. Both are measured in processor time, one after the other, so that their
ratio means the same on another machine and beside other work.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

import duckdb

from benchmarks import fleet, page
from monitor.cli.one_off import OneOff, one_off
from monitor.config.load import load_checked

KEPT: Final = Path(__file__).parent / "small_window.json"
WORSE: Final = 1.5
"""A ratio that is so many times the kept one is too much."""
ROWS: Final = 4000
WINDOWS: Final = 12
WARM: Final = 3
"""Windows before the first that counts: they prepare statements and fill the history."""

# What the default metrics and the rules need at least: no intervals, no reasons, no evidence.
BY_HAND: Final = (
    "SELECT count(*), count(DISTINCT request_id), count(DISTINCT user_id), count(DISTINCT item_id) FROM e",
    "SELECT count(*), sum(n), sum(rank * n) FROM (SELECT n, row_number() OVER (ORDER BY n) AS rank "
    "FROM (SELECT count(*) AS n FROM e GROUP BY item_id))",
    "SELECT avg(n * (n - 1)) FROM (SELECT count(DISTINCT user_id) AS n FROM e GROUP BY item_id)",
    "SELECT avg(h) FROM (SELECT request_id, -sum(n / total * log2(n / total)) AS h FROM "
    "(SELECT request_id, n, sum(n) OVER (PARTITION BY request_id) AS total FROM (SELECT request_id, "
    "category, count(*) AS n FROM e JOIN catalog USING (item_id) GROUP BY ALL)) GROUP BY request_id)",
    "SELECT avg(-log2(n / (SELECT count(DISTINCT user_id) FROM e))) FROM "
    "(SELECT count(DISTINCT user_id) AS n FROM e GROUP BY item_id)",
    "SELECT count(*), count(score), min(score), max(score), count(DISTINCT score) FROM e",
    "SELECT event, count(*), count(DISTINCT f.user_id), sum(value) FROM f JOIN "
    "(SELECT DISTINCT user_id, item_id FROM e) AS shown USING (user_id, item_id) GROUP BY event",
    "WITH l AS (SELECT e.*, f.item_id IS NOT NULL AS hit FROM e LEFT JOIN (SELECT DISTINCT user_id, item_id "
    "FROM f) AS f USING (user_id, item_id)) SELECT sum(r), count(*) FROM (SELECT hit, rank() OVER "
    "(ORDER BY score) AS r FROM l) WHERE hit",
    "WITH l AS (SELECT e.*, f.item_id IS NOT NULL AS hit FROM e LEFT JOIN (SELECT DISTINCT user_id, item_id "
    "FROM f) AS f USING (user_id, item_id)) SELECT avg(gain) FROM (SELECT request_id, sum(CASE WHEN hit THEN "
    "1 / log2(position + 1) ELSE 0 END) AS gain FROM l GROUP BY request_id)",
    "SELECT count(*) FROM e JOIN blacklist USING (item_id)",
    "SELECT count(*) FROM (SELECT request_id, count(*) AS n, count(DISTINCT item_id) AS items FROM e "
    "GROUP BY request_id) WHERE n > 20 OR items < n",
    "SELECT count(*) FROM e WHERE score IS NULL OR isnan(score) OR isinf(score) OR position < 1",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds of a window, in the middle of all windows, and the ratio in the middle."""

    own: float
    by_hand: float
    ratio: float
    windows: int


def measure(folder: Path, windows: int = WINDOWS) -> Cost:
    """Write the log of so many windows, judge them, and run the statements beside each."""
    fleet.write(folder, 1, windows + WARM + 1, ROWS)  # it leaves the newest one out
    config, (checked,) = load_checked(fleet.config(folder, 1, 1, "127.0.0.1:0"))
    with one_off(config, checked, "salt") as judging:
        now = datetime.now(UTC)
        judging.look(now)
        own, by_hand = [], []
        for number, seconds in enumerate(_judged(judging, now)):
            own.append(seconds)
            files = {"e": f"exposures-{number}", "f": f"feedback-{number}"}
            files |= {"catalog": "source/catalog", "blacklist": "source/blacklist"}
            by_hand.append(run_by_hand({name: folder / f"{file}.parquet" for name, file in files.items()}))
    own, by_hand = own[WARM:], by_hand[WARM:]
    ratios = [one / other for one, other in zip(own, by_hand, strict=True)]
    return Cost(median(own), median(by_hand), median(ratios), len(own))


def _judged(judging: OneOff, now: datetime) -> Iterator[float]:
    """The processor seconds of both parts of each window, the oldest first."""
    windows, _ = judging.windows(None, None, now)
    for window in windows:
        began = time.process_time()
        parts = sum(1 for _ in judging.judge([window], now))
        yield time.process_time() - began
        if parts != 2:
            raise ValueError(f"{window} has {parts} parts, and not exposures and feedback")


def run_by_hand(files: Mapping[str, Path]) -> float:
    """The processor seconds of BY_HAND on the files of a window; e and f are its exposures and feedback."""
    began = time.process_time()
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, file in files.items():
            connection.execute(f"CREATE VIEW {name} AS FROM '{file}'")
        for statement in BY_HAND:
            connection.execute(statement).fetchall()
    return time.process_time() - began


def table(cost: Cost) -> str:
    """The figures of one run."""
    return "\n".join(
        [
            "| window | processor time | by hand | ratio |",
            "|---|---:|---:|---:|",
            f"| {ROWS:,} exposures, both parts | {cost.own:.2f} s | {cost.by_hand:.3f} s "
            f"| {cost.ratio:.1f} |",
        ]
    )


def kept() -> float:
    """The ratio of the run that was kept."""
    found: float = json.loads(KEPT.read_text("utf-8"))["ratio"]
    return found


def complaint(cost: Cost, before: float) -> str:
    """What is wrong with the ratio, beside the one that was kept; empty if nothing is.

    >>> complaint(Cost(0.3, 0.03, 10.0, 12), 9.0)
    ''
    >>> complaint(Cost(0.6, 0.03, 20.0, 12), 9.0)
    'a window costs 20.0 times the statements by hand, more than 1.5 times the kept ratio of 9.0'
    """
    if cost.ratio <= WORSE * before:
        return ""
    return (
        f"a window costs {cost.ratio:.1f} times the statements by hand, more than {WORSE} times the kept "
        f"ratio of {before:.1f}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and compare with the run that was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=WINDOWS)
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="recsys-monitor-") as folder:
        cost = measure(Path(folder), chosen.windows)
    text = table(cost)
    print(text)
    if chosen.keep:
        page.keep("bench-small", f"{page.machine()}\n\n{text}")
        KEPT.write_text(json.dumps({"ratio": round(cost.ratio, 2)}) + "\n", "utf-8")
        return 0
    if wrong := complaint(cost, kept()):
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
