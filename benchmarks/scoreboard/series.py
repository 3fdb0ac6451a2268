"""What every exported series was at each minute, kept as its changes: most stand still for an hour."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Key = tuple[str, tuple[tuple[str, str], ...]]  # name, (label, value) pairs

SLOPES: Final[Mapping[str, float]] = {
    "recsys_last_run_timestamp_seconds": 60.0,
    "recsys_scheduler_runs_total": 1.0,  # of the outcome `ok`
}
"""What rises by itself, a minute, while the daemon looks every minute and finds nothing to do."""


@dataclass(frozen=True, slots=True)
class Segment:
    """From a minute on (since 1970) the series has this value, plus `slope` each minute; None: it is gone."""

    minute: int
    value: float | None
    slope: float = 0.0

    def at(self, minute: int) -> float | None:
        """The value at a later minute of the segment."""
        return None if self.value is None else self.value + self.slope * (minute - self.minute)


@dataclass(slots=True)
class Recorded:
    """The segments of each series, oldest first; `take` appends what has changed.

    >>> found = Recorded()
    >>> key = ("up", ())
    >>> for minute in (5, 6, 7):
    ...     found.take(minute, {key: 1.0})
    >>> found.take(8, {})
    >>> found.segments[key]
    [Segment(minute=5, value=1.0, slope=0.0), Segment(minute=8, value=None, slope=0.0)]
    """

    segments: dict[Key, list[Segment]] = field(default_factory=dict)

    def take(self, minute: int, values: Mapping[Key, float], idle: bool = False) -> None:
        """What was scraped at a minute; `idle`: until the next one, turns go on that find nothing to do."""
        for key in self.segments.keys() - values.keys():
            if self.segments[key][-1].value is not None:
                self._append(key, Segment(minute, None))
        for key, value in values.items():
            self._append(key, Segment(minute, value, _slope(key) if idle else 0.0))

    def _append(self, key: Key, new: Segment) -> None:
        known = self.segments.setdefault(key, [])
        if known:
            last = known[-1]
            if last.minute > new.minute:
                raise ValueError(f"{key}: minute {new.minute} comes after {last.minute}")
            if last.slope == new.slope and last.at(new.minute) == new.value:
                return
            if last.minute == new.minute:
                known.pop()
        known.append(new)

    def between(self, first: int, last: int) -> Recorded:
        """What was known from one minute to another, both included."""
        found: dict[Key, list[Segment]] = {}
        for key, known in self.segments.items():
            upto = [one for one in known if one.minute <= last]
            begin = max((place for place, one in enumerate(upto) if one.minute <= first), default=0)
            if upto[begin:] and (len(upto) > begin + 1 or upto[begin].value is not None):
                found[key] = upto[begin:]
        return Recorded(found)

    def write(self, path: Path) -> None:
        """Keep them in a Parquet file."""
        keys = list(self.segments)
        rows = [(place, one) for place, key in enumerate(keys) for one in self.segments[key]]
        table = pa.table(
            {
                "series": pa.DictionaryArray.from_arrays(
                    pa.array([place for place, _ in rows], pa.int32()),
                    pa.array([json.dumps([name, labels]) for name, labels in keys], pa.string()),
                ),
                "minute": pa.array([one.minute for _, one in rows], pa.int64()),
                "value": pa.array([one.value for _, one in rows], pa.float64()),
                "slope": pa.array([one.slope for _, one in rows], pa.float64()),
            }
        )
        partial = path.with_name(f".{path.name}.part")
        pq.write_table(table, partial, compression="zstd")
        partial.replace(path)

    @classmethod
    def read(
        cls, path: Path, wanted: Callable[[Key], bool] = lambda _: True, *, newest: bool = False
    ) -> Recorded:
        """What `write` kept, of the series that are wanted; or of each of them the newest alone."""
        table = pq.read_table(path).unify_dictionaries().combine_chunks()
        (series,) = table["series"].chunks or [pa.array([], table["series"].type)]
        keys = [_key(text) for text in series.dictionary.to_pylist()]
        places = pa.array([place for place, key in enumerate(keys) if wanted(key)], series.indices.type)
        there = pc.is_in(series.indices, places)
        if newest:  # the rows of a series follow each other
            number = series.indices.to_numpy()
            there = pc.and_(there, pa.array(np.append(number[1:] != number[:-1], True)[: len(number)]))
        rows = [column.filter(there).to_pylist() for column in (series.indices, *table.columns[1:])]
        found: dict[Key, list[Segment]] = {}
        for place, *segment in zip(*rows, strict=True):
            found.setdefault(keys[place], []).append(Segment(*segment))
        return cls(found)

    def after(self, earlier: Recorded) -> Recorded:
        """What an earlier record knew, and then this one, which began with the newest of it."""
        found = dict(earlier.segments)
        for key, known in self.segments.items():
            old = (one for one in earlier.segments.get(key, ()) if one.minute < known[0].minute)
            found[key] = [*old, *known]
        return Recorded(found)

    def spans(self, key: Key, first: int, last: int) -> Iterator[tuple[int, int, Segment]]:
        """The segments of a series with a value: first and last minute of each within the bounds."""
        known = self.segments[key]
        for place, one in enumerate(known):
            begin = max(one.minute, first)
            end = min(known[place + 1].minute - 1 if place + 1 < len(known) else last, last)
            if one.value is not None and begin <= end:
                yield begin, end, one


def _key(text: str) -> Key:
    name, labels = json.loads(text)
    return name, tuple((label, value) for label, value in labels)


def _slope(key: Key) -> float:
    name, labels = key
    slope = SLOPES.get(name, 0.0)
    return slope if dict(labels).get("outcome", "ok") == "ok" else 0.0
