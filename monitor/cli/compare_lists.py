"""The lists of both sides of `compare`: from the file of each side into one engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from monitor.cli.judge import monitor_salt
from monitor.cli.sides import JudgedSide
from monitor.cli.terminal import progress
from monitor.comparison.lists import Lists, compare_lists
from monitor.judging.runtime import Runtime
from monitor.settings.config import Config
from monitor.settings.recommender import RecommenderSettings


def compared_lists(
    config: Config, sides: Sequence[JudgedSide], settings: Sequence[RecommenderSettings], scratch: Path
) -> Lists | None:
    """What the lists of two sides have in common; None if a side has no row, or is a part of a log.

    Two parts of one log answer no request in common.

    Args:
        config: of all recommenders.
        sides: both, judged with `WantedLists`.
        settings: of their recommenders.
        scratch: a folder for what does not fit into memory.
    """
    one, other = (side.lists for side in sides)
    if one is None or other is None:
        return None
    hashed = any(of.evidence.hash_users for of in settings)
    runtime = Runtime(scratch / "spill", memory=config.engine.memory, threads=config.engine.threads)
    try:
        with progress(0, "comparing the lists"):
            a, b = (
                runtime.index.reader(f"items_{letter}", "read_parquet", [str(path)])
                for letter, path in (("a", one), ("b", other))
            )
            salt = monitor_salt(config) if hashed else None
            return compare_lists(a, b, counted_event(settings), salt)
    finally:
        runtime.close()


def counted_event(settings: Sequence[RecommenderSettings]) -> str | None:
    """The first event that both sides count; None if a side has no feedback."""
    one, other = settings
    if one.logs.feedback is None or other.logs.feedback is None:
        return None
    return next((event for event in one.metrics.events if event in other.metrics.events), None)
