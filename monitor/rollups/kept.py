"""The files of what windows keep for roll-ups: one folder for each table, one file for each window.

The folder's name has a digest of the settings that the tables depend on: tables of other settings do not add
up. A file can be made again from the log at any time, so none is flushed to the disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs, KeptWindows, write_whole
from monitor.history.sums import Sums
from monitor.logs.windows import Part
from monitor.metrics.family import LARGEST
from monitor.metrics.plans import Records
from monitor.metrics.shared import Shared
from monitor.rollups.addends import (
    ADDENDS,
    COLUMN,
    FAMILY,
    FAMILY_SUMS,
    VALUE,
    Addend,
    families_of,
    wanted,
)
from monitor.settings.metrics import MetricSettings

FOLDER: Final = "rollups"
VERSION: Final = 1
"""Raised when a table of a window changes its meaning."""
_DAY: Final = (timedelta(days=1),)
_ROWS: Final = pa.schema([(FAMILY, pa.string()), (COLUMN, pa.string()), (VALUE, pa.float64())])


class KeptAddend(KeptWindows):
    """The windows of one table."""

    def __init__(self, folder: Path, addend: Addend) -> None:
        super().__init__(folder / addend.name)
        self._addend = addend
        self.what = f"the table {addend.name}"

    def keep(self, window: Window, rows: duckdb.DuckDBPyRelation) -> None:
        """Write the table of a window. Raises StoreError if it cannot be written."""
        write_whole(rows, self.path(window), self.what, flushed=False)

    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        keys = ", ".join(map(_quoted, self._addend.keys))
        columns = [
            f"CAST({self._function(name)}({_quoted(name)}) AS {kind}) AS {_quoted(name)}"
            for name, kind in zip(rows.columns, rows.types, strict=True)
            if name not in self._addend.keys
        ]
        some = rows
        if self._addend.alone:
            no_key = " OR ".join(f"{_quoted(name)} IS NULL" for name in self._addend.keys)
            some = rows.filter(f"NOT ({no_key})")
        summed = some.aggregate(f"{keys}, {', '.join(columns)}", keys)
        if not self._addend.alone:
            return summed
        same_order = ", ".join(map(_quoted, summed.columns))
        return summed.union(rows.filter(no_key).project(same_order))

    def _function(self, column: str) -> str:
        if column in self._addend.smallest:
            return "MIN"
        return "MAX" if column in self._addend.largest else "SUM"


class KeptSums(KeptWindows):
    """The rows of the families of one part: which were measured, and the columns that add up."""

    def __init__(self, folder: Path, part: Part) -> None:
        super().__init__(folder / f"{FAMILY_SUMS}_{part}")
        self.what = f"the sums of the {part}"

    def keep(self, engine: Engine, window: Window, answers: dict[str, Records], part: Part) -> None:
        """Write the rows of the families that were measured. Raises StoreError if they cannot be written."""
        found: list[tuple[str, str, float | None]] = []
        for family in families_of(part):
            for row in answers.get(family.name, []):
                found.append((family.name, "", 1.0))
                found += [
                    (family.name, column, None if value is None else float(value))
                    for column, value in row.items()
                    if family.adds_up is not None and family.adds_up.adds(column)
                ]
        columns = list(zip(*found, strict=True)) or [(), (), ()]
        rows = pa.table([pa.array(c, f.type) for c, f in zip(columns, _ROWS, strict=True)], schema=_ROWS)
        write_whole(engine.cursor.from_arrow(rows), self.path(window), self.what, flushed=False)

    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        largest = f"ends_with({_quoted(COLUMN)}, '{LARGEST}')"
        value = f"CASE WHEN {largest} THEN MAX({VALUE}) ELSE SUM({VALUE}) END AS {VALUE}"
        keys = f"{FAMILY}, {_quoted(COLUMN)}"
        return rows.aggregate(f"{keys}, {value}", keys)


class KeptRollups:
    """All that the windows of one recommender keep for roll-ups, beside its pairs."""

    def __init__(self, pairs: KeptPairs, settings: MetricSettings) -> None:
        self.every = pairs.folder / FOLDER
        self.folder = self.every / digest(f"{VERSION} {settings.model_dump_json()}", 12)
        self.addends = {one.name: KeptAddend(self.folder, one) for one in ADDENDS}
        self.sums = {part: KeptSums(self.folder, part) for part in (EXPOSURES, FEEDBACK)}
        self._settings = settings

    def keep(self, engine: Engine, part: Part, window: Window, shared: Shared) -> None:
        """Keep what a window adds up to, once its families are measured. Raises StoreError."""
        for addend in wanted(part, set(shared.answers)):
            table = addend.build(shared, self._settings)
            self.addends[addend.name].keep(window, engine.relation(table))
        self.sums[part].keep(engine, window, shared.answers, part)  # last: it says that the others are there

    def forget(self, part: Part, window: Window) -> None:
        """Delete what a window keeps: its rows have changed, and it was not measured again."""
        self.sums[part].forget(window)
        for addend in ADDENDS:
            if addend.part == part:
                self.addends[addend.name].forget(window)

    def present(self, part: Part, span: Window, length: timedelta) -> set[Window]:
        """The windows of a span that are kept, with no table that a crash cut short."""
        broken = [
            self.addends[one.name].cut_short(span.start, span.end) for one in ADDENDS if one.part == part
        ]
        return set(self.sums[part].paths(span.start, span.end, length)).difference(*broken)

    def windows_with(self, name: str, span: Window, length: timedelta) -> int:
        """How many windows of a span have a table."""
        return len(self.addends[name].paths(span.start, span.end, length))

    def files(self, name: str, span: Window, length: timedelta, engine: Engine) -> list[Path]:
        """Few files that together hold a table, or the sums of a part, of a span."""
        kept = self.addends.get(name) or self.sums[name]
        return Sums(kept, _DAY).files(span, length, engine.cursor)

    def drop_before(self, moment: datetime) -> None:
        """Delete the windows that ended before this time, and everything of other settings."""
        for other in self.every.iterdir() if self.every.is_dir() else ():
            if other != self.folder:
                shutil.rmtree(other, ignore_errors=True)
        everything: Sequence[KeptWindows] = (*self.addends.values(), *self.sums.values())
        for kept in everything:
            kept.drop_before(moment)
            Sums(kept, _DAY).drop_before(moment)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
