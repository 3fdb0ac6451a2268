"""A log's rows of a span with every column, also where there are none: so a rule finds its column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import TIMESTAMP
from monitor.logs.source import Source

_TYPES: Final[dict[str, str | ibis.DataType]] = {
    "id": "string",
    "time": TIMESTAMP,
    "integer": "int64",
    "number": "float64",
    "text": "string",
}


def empty_exposures(
    engine: Engine, name: str, further: Sequence[str] = (), known: Mapping[str, ibis.DataType] | None = None
) -> ir.Table:
    """An empty log with every column, so that a rule finds its column and gives `no_data`.

    `known` are the log's own columns: ids must have their types to be compared with other tables.
    """
    schema: dict[str, str | ibis.DataType] = dict.fromkeys(further, "string")
    schema |= {column: _TYPES[kind] for column, kind in c.TYPES[c.EXPOSURES].items()}
    schema |= known or {}
    return engine.empty(name, ibis.schema(schema))


def feedback_of(engine: Engine, source: Source, span: Window, table: str) -> ir.Table | None:
    """The feedback of a span; an empty table if the log has no rows of the span."""
    if c.FEEDBACK not in source.logs:
        return None
    loaded = source.load(engine, c.FEEDBACK, span, table=table)
    if loaded is not None:
        return loaded
    types = source.id_types()
    schema: dict[str, str | ibis.DataType] = {
        name: types.get(name, "string") if kind == "id" else _TYPES[kind]
        for name, kind in c.TYPES[c.FEEDBACK].items()
        if name in c.REQUIRED[c.FEEDBACK]
    }
    # With all columns of the log: if orders stop, their sum is 0 and not missing.
    return engine.empty(table, ibis.schema(schema | source.schema(c.FEEDBACK)))
