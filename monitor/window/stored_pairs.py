"""Reads the pairs that windows stored, with the types that the ids have now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import ibis.expr.types as ir
import pyarrow.parquet as pq

from monitor.core.columns import ITEM_ID, USER_ID
from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.metrics.history import EXPOSURES

PAIR: Final = (USER_ID, ITEM_ID)

FileState = tuple[Path, int, int, int]
"""A file and what changes when it is written again."""


def read_pairs(engine: Engine, source: Source, paths: Sequence[Path], view: str) -> ir.Table:
    """The distinct pairs of these files, their exposures added up."""
    rows = read_rows(engine, source, paths, view)
    return rows if len(paths) < 2 else engine.once(("summed", rows.op()), lambda: summed(rows))


def read_rows(engine: Engine, source: Source, paths: Sequence[Path], view: str) -> ir.Table:
    """The rows of these files; a pair that is in two of them comes twice."""
    table = engine.reader(view, "read_parquet", [str(path) for path in paths], union_by_name=True)
    types = id_types(source)
    return engine.once(("kept", table.op(), types), lambda: typed(table, types))


def id_types(source: Source) -> tuple[str, ...]:
    """The types of the ids; they may have changed since the files were written."""
    types = source.id_types()
    return tuple(types.get(name, "string") for name in PAIR)


def typed(table: ir.Table, types: Sequence[str], further: Sequence[str] = ()) -> ir.Table:
    """The pairs with these types of the ids, and further columns. An id of another type is left out."""
    ids = {name: table[name].try_cast(kind) for name, kind in zip(PAIR, types, strict=True)}
    rows = table.select(*further, **ids, **{EXPOSURES: table[EXPOSURES]})
    return rows.filter([rows[name].notnull() for name in PAIR])


def summed(rows: ir.Table) -> ir.Table:
    """Each pair once, with the sum of its exposures."""
    return rows.group_by(list(PAIR)).aggregate(**{EXPOSURES: rows[EXPOSURES].sum()})


def number_of_rows(paths: Iterable[Path]) -> int:
    """How many rows these files have together."""
    return sum(_rows_of(*state(path)) for path in paths)


def state(path: Path) -> FileState:
    """A file as it is now."""
    found = path.stat()
    return path, found.st_mtime_ns, found.st_size, found.st_ino


@lru_cache(maxsize=10_000)
def _rows_of(path: Path, *_state: int) -> int:
    return int(pq.read_metadata(path).num_rows)
