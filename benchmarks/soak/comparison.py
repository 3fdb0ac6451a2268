"""Everything that two histories must have in common, and what they need not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from sqlalchemy import select

from benchmarks.soak.traffic import RECOMMENDERS
from monitor.core.columns import LOGS
from monitor.history import schema
from monitor.history.counters import SCHEDULED, STORE_ERRORS
from monitor.history.store import Store
from monitor.report.result_json import result_as_json

_DIGITS: Final = 12
_SHOWN: Final = 20

EXCLUDED: Final[Mapping[str, str]] = {
    SCHEDULED: "counts the turns of the daemon: a daemon that starts again has other turns",
    STORE_ERRORS: "counts failures of the history, which only the disturbed run has",
    "evaluated_at": "the time on the clock when a window was judged",
    "seconds": "how long the check took",
    "watching_since and judged:*": "times on the clock, stored beside the watermarks of the logs",
    "samples of log_skipped_files": "how many files had landed when the window was judged",
    "tries and again": "how often an unreadable file was tried, and when it is tried again",
    "lost and rotated files": "forgotten once no window needs them, at a time on the clock",
    "ids": "numbers of rows, in the order in which they were written",
    f"digits after the {_DIGITS}th": "no engine promises the order in which it adds up",
}
"""What is not compared, each with its reason."""

_PROCESS_COUNTERS: Final = (SCHEDULED, STORE_ERRORS)
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Everything:
    """What a history holds: for each kind of row, its key and its content."""

    windows: Mapping[Key, Any]
    results: Mapping[Key, Any]
    evidence: Mapping[Key, Any]
    signals: Mapping[Key, Any]
    watermarks: Mapping[Key, Any]
    counters: Mapping[Key, Any]
    files: Mapping[Key, Any]
    pairs: Mapping[Key, Any]

    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in self.__dataclass_fields__}


def everything(history: str | Path, state: Path) -> Everything:
    """Read all that is compared. No daemon may run."""
    results: dict[Key, Any] = {}
    evidence: dict[Key, Any] = {}
    with Store.open(history) as store:
        for stored in store.results():
            line = result_as_json(stored.recommender, stored.check, stored.window, stored.result)
            rows = line.pop("evidence", None)
            key = (
                stored.recommender, stored.check, stored.window.start.isoformat(), stored.result.metric,
                json.dumps(dict(stored.result.labels), sort_keys=True),
            )  # fmt: skip
            results[key] = compared(line)
            if rows:
                evidence[key] = json.dumps(rows, sort_keys=True, default=str)
        counters = {key: value for key, value in store.counters().items() if key[0] not in _PROCESS_COUNTERS}
        watermarks = {
            (name, log): at
            for name in RECOMMENDERS
            for log, at in store.watermarks(name).items()
            if log in LOGS
        }
        with store.reading() as connection:
            windows = {
                (one.recommender, one.check_name, one.window_start.isoformat(), one.definition): (
                    one.window_end, one.status, one.fingerprint, one.rows, one.revision, one.current,
                )
                for one in connection.execute(select(schema.windows))
            }  # fmt: skip
            named, marked = schema.series.c, schema.signals.c
            query = select(
                named.recommender, named.check_name, named.metric, named.digest, marked.window_end,
                marked.signal,
            ).join_from(schema.signals, schema.series, marked.series_id == named.id)  # fmt: skip
            signals = {tuple(row): True for row in connection.execute(query)}
            files = {
                (one.recommender, one.log, one.path): (
                    one.size, one.modified, one.status, one.reason, one.rows, one.max_ts,
                    {name: value for name, value in one.buckets.items() if name not in ("tries", "again")},
                )
                for one in connection.execute(select(schema.log_files))
                if one.status not in ("lost", "rotated")
            }  # fmt: skip
    return Everything(windows, results, evidence, signals, watermarks, counters, files, dict(_pairs(state)))


def compared(line: Mapping[str, Any]) -> dict[str, Any]:
    """A result without the last digits of its numbers, and without what depends on the moment."""
    found = {
        name: float(f"{value:.{_DIGITS}g}") if isinstance(value, float) and math.isfinite(value) else value
        for name, value in line.items()
    }
    if found.get("metric") == "log_skipped_files":
        found.pop("samples", None)
    return found


def _pairs(state: Path) -> Iterator[tuple[Key, Any]]:
    """The kept user-item pairs of each window."""
    for recommender in RECOMMENDERS:
        for path in sorted((state / "kept" / recommender).glob("*.parquet")):
            rows = pq.read_table(path).to_pylist()
            yield (recommender, path.name), sorted(json.dumps(row, sort_keys=True) for row in rows)


def differences(expected: Everything, found: Everything) -> list[str]:
    """What differs, one line each; empty if nothing does."""
    lines = []
    for what in expected.counts():
        before, after = getattr(expected, what), getattr(found, what)
        lines += [f"{what}: missing: {key}" for key in before if key not in after]
        lines += [f"{what}: only in the disturbed run: {key}" for key in after if key not in before]
        lines += [
            f"{what}: {key}: {_difference(value, after[key])}"
            for key, value in before.items()
            if key in after and after[key] != value
        ]
    return lines


def shown(lines: list[str]) -> str:
    """The first differences, and how many more there are."""
    more = len(lines) - _SHOWN
    return "\n".join(lines[:_SHOWN] + ([f"... and {more:,} more"] if more > 0 else []))


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in before | after if before.get(name) != after.get(name)]
        return "; ".join(f"{name}: {before.get(name)!r}, not {after.get(name)!r}" for name in names)
    return f"{before!r}, not {after!r}"[:500]
