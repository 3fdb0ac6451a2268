"""The lists of both sides of `compare`: from each log into one engine."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from monitor.cli.judge import monitor_salt
from monitor.cli.one_off import one_off
from monitor.cli.terminal import progress
from monitor.comparison.lists import Lists, compare_lists, items_of
from monitor.config.checks.check import Checked
from monitor.core.results import Window
from monitor.judging.runtime import Runtime
from monitor.settings.config import Config
from monitor.settings.recommender import RecommenderSettings


def compared_lists(config: Config, sides: Sequence[Checked], spans: tuple[Window, Window]) -> Lists | None:
    """What the lists of two whole recommenders have in common; None if a span has no row."""
    settings = [side.settings for side in sides]
    event = _event(*settings)
    hashed = any(one.evidence.hash_users for one in settings)
    with tempfile.TemporaryDirectory(prefix="recsys-monitor-") as scratch:
        paths = []
        for side, span, letter in zip(sides, spans, "ab", strict=True):
            path = Path(scratch) / f"{letter}.parquet"
            if not _write(config, side, span, event, path):
                return None
            paths.append(path)
        runtime = Runtime(Path(scratch) / "spill", memory=config.engine.memory, threads=config.engine.threads)
        try:
            with progress(0, "comparing the lists"):
                one, other = (
                    runtime.index.reader(f"items_{letter}", "read_parquet", [str(path)])
                    for letter, path in zip("ab", paths, strict=True)
                )
                return compare_lists(one, other, event, monitor_salt(config.state) if hashed else None)
        finally:
            runtime.close()


def _write(config: Config, side: Checked, span: Window, event: str | None, path: Path) -> bool:
    """Write the items of one side to a file; False if its span has no row."""
    name = side.settings.name
    with (
        one_off(config, Checked(side.settings), salt="") as once,
        progress(0, f"{name}: reading lists") as step,
    ):
        once.look(datetime.now(UTC), step)
        rows = items_of(once.runtime.engine, once.evaluator.source, span, side.settings, event)
        if rows is None:
            return False
        batches = rows.to_pyarrow_batches()
        with pq.ParquetWriter(path, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return True


def _event(one: RecommenderSettings, other: RecommenderSettings) -> str | None:
    """The first event that both sides count; None if a side has no feedback."""
    if one.logs.feedback is None or other.logs.feedback is None:
        return None
    return next((event for event in one.metrics.events if event in other.metrics.events), None)
