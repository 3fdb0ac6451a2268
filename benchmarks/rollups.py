"""What days cost when they are added up from windows: `python -m benchmarks.rollups`.

The windows of some days are judged in this process, both parts, with all default metrics and four packs of
rules. Then each day is added up from what its windows kept, and judged once more as one window of the log.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import page, span
from monitor.cli.one_off import OneOff, one_off
from monitor.config.load import load_checked
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.windows import Part
from monitor.metrics.shared import Shared
from monitor.rollups.kept import KeptRollups
from monitor.rollups.measure import RollUp, Span

DAY = timedelta(days=1)
NOW = datetime(2026, 12, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processor: of all windows, of keeping within them, of adding up, of whole days."""

    days: int
    rows: int
    windows: float
    keeping: float
    adding_up: float
    from_log: float


class _Timed(KeptRollups):
    """Keeps as ever, and knows what that took."""

    seconds = 0.0

    def keep(self, engine: Engine, part: Part, window: Window, shared: Shared) -> None:
        began = time.process_time()
        super().keep(engine, part, window, shared)
        self.seconds += time.process_time() - began


def measure(folder: Path, days: int, rows: int) -> Cost:
    """Judge the windows of the days, add them up, and judge each day as one window."""
    span.write(folder, days * 24, rows)
    whole = [Window(span.START + number * DAY, span.START + (number + 1) * DAY) for number in range(days)]
    with _judging(folder, "hours", rollups=["1d"]) as judging:
        evaluator = judging.evaluator
        evaluator.rollups = kept = _Timed(evaluator.kept, evaluator.settings.metrics)
        windows = _judge(judging, Window(whole[0].start, whole[-1].end))
        began = time.process_time()
        for day in whole:
            of = RollUp(
                judging.runtime.engine, evaluator.source, kept, evaluator.kept, evaluator.settings.metrics
            )
            of.measure(Span(day, DAY, 24))
        adding_up = time.process_time() - began
    with _judging(folder, "days", window="1d") as judging:
        from_log = _judge(judging, Window(whole[0].start, whole[-1].end))
    return Cost(days, rows, windows, kept.seconds, adding_up, from_log)


@contextmanager
def _judging(folder: Path, state: str, **more: Any) -> Iterator[OneOff]:
    own = "".join(f"    {name}: {value}\n" for name, value in more.items())
    text = span.CONFIG.format(folder=folder)
    text = text.replace("    window: 1h\n", "") if "window" in more else text
    path = folder / f"{state}.yaml"
    path.write_text(text + own)
    config, (checked,) = load_checked(path)
    config = config.model_copy(update={"engine": config.engine.model_copy(update={"threads": 1})})
    with one_off(config, checked, "salt", folder / state) as judging:
        judging.look(NOW)
        yield judging


def _judge(judging: OneOff, whole: Window) -> float:
    windows, _ = judging.windows(whole.start, whole.end, NOW)
    began = time.process_time()
    for _ in judging.judge(windows, NOW):
        pass
    return time.process_time() - began


def table(cost: Cost) -> str:
    """The figures of one run, as shares of the windows' processor time."""
    shares = (f"{one / cost.windows:.1%}" for one in (cost.keeping, cost.adding_up, cost.from_log))
    return "\n".join(
        [
            "| days of 24 windows | processor time of the windows | of it, keeping | adding up the days "
            "| the days from the log |",
            "|---|---:|---:|---:|---:|",
            f"| {cost.days} with {cost.rows:,} exposures a window | {cost.windows:.1f} s | "
            f"{' | '.join(shares)} |",
        ]
    )


def main() -> None:
    """Write the windows, judge them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--rows", type=int, default=4_000, help="exposures a window")
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollups-") as scratch:
        cost = measure(Path(scratch), asked.days, asked.rows)
    text = table(cost)
    print(text)
    if asked.keep:
        page.keep("bench-rollups", f"{page.machine()}\n\n{text}")


if __name__ == "__main__":
    main()
