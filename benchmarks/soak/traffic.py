"""The rows of the soak: for each window a file of exposures and one of feedback, and rows that come late."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.parquet as pq

from monitor.simulate.traffic import Simulator, Traffic

RECOMMENDERS: Final = ("shop", "news")
EXPOSURES, FEEDBACK = "exposures", "feedback"
LOGS: Final = (EXPOSURES, FEEDBACK)
SEED: Final = 20260301
FIRST: Final = datetime(2026, 2, 28, 23, 55, tzinfo=UTC)  # over a midnight
MINUTE: Final = timedelta(minutes=1)
RATE: Final = 1.0  # requests a second
LATE_RATE: Final = 0.3
_LEAK_EVERY: Final = 5  # windows


def start_of(window: int) -> datetime:
    return FIRST + window * MINUTE


def name_of(window: int, *, late: bool = False) -> str:
    return f"w{window:05}{'-late' if late else ''}.parquet"


def write(source: Path, windows: int) -> None:
    """Write every file that a run may land, and the catalog and blacklist of each recommender."""
    shutil.rmtree(source, ignore_errors=True)
    for number, recommender in enumerate(RECOMMENDERS):
        folder = source / recommender
        for log in LOGS:
            (folder / log).mkdir(parents=True)
        simulator = Simulator(Traffic(users=200, items=80, length=5), SEED + number)
        pq.write_table(simulator.catalog(), folder / "catalog.parquet")
        (folder / "blacklist.csv").write_text("\n".join(["item_id", *simulator.blacklist, ""]))
        for window in range(windows):
            _write(folder, simulator, number, window, late=False)
            _write(folder, simulator, number, window, late=True)


def _write(folder: Path, simulator: Simulator, number: int, window: int, *, late: bool) -> None:
    start, end = start_of(window), start_of(window + 1)
    if late:
        start = start + MINUTE / 3
        end = start + MINUTE / 3
    rng = np.random.default_rng([SEED, number, window, late])
    leak = window % _LEAK_EVERY == 1 or (late and window % _LEAK_EVERY == 3)
    batch = simulator.batch(start, end, LATE_RATE if late else RATE, rng, blacklisted=leak)
    name = name_of(window, late=late)
    pq.write_table(batch.exposures, folder / EXPOSURES / name)
    pq.write_table(batch.feedback, folder / FEEDBACK / name)
