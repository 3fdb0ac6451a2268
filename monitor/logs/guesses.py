"""The types of further columns of a text file: guessed from its first rows, corrected by all rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.logs.canonical import RAW, is_readable
from monitor.logs.mapping import flat_types, source_names
from monitor.logs.reading import Shape
from monitor.settings.logs import LogSettings

_UNLIKE = "__monitor_unlike_"
_FRACTION, _TEXT = 1, 2


def unlike(rows: ir.Table, log: str, settings: LogSettings, shape: Shape) -> dict[str, ir.IntegerScalar]:
    """For each guessed column, how far its values, read with `keep_raw`, are from the guess: an aggregate.

    0 if every value is of the guessed type, 1 if a column of whole numbers has a fraction or a number beyond
    64 bits, 2 if a value is a text.
    """
    return {
        f"{_UNLIKE}{ours}": _distance(rows[RAW + ours], kind).max()
        for ours, (_, kind) in _guessed(log, settings, shape).items()
        if RAW + ours in rows.columns and rows[RAW + ours].type().is_string()
    }


def corrected(shape: Shape, log: str, settings: LogSettings, found: Iterable[Mapping[str, Any]]) -> Shape:
    """The shape with the types that hold every value, by what `unlike` found in each group of rows."""
    kinds: dict[str, str] = {}
    rows = list(found)
    for ours, (theirs, _) in _guessed(log, settings, shape).items():
        distance = max((row.get(f"{_UNLIKE}{ours}") or 0 for row in rows), default=0)
        if distance:
            kinds[theirs] = str(dt.float64 if distance == _FRACTION else dt.string)
    return replace(shape, columns=tuple((name, kinds.get(name, kind)) for name, kind in shape.columns))


def _guessed(log: str, settings: LogSettings, shape: Shape) -> dict[str, tuple[str, dt.DataType]]:
    """Our name of each column whose texts have a guessed type -> its name in the file, and the type."""
    if shape.is_typed:
        return {}
    kinds, own = flat_types(shape.types, settings.columns.values()), set(shape.names)
    names = source_names(log, settings, kinds)
    return {
        ours: (theirs, kinds[theirs])
        for ours, theirs in names.items()
        if ours not in c.TYPES[log] and theirs in own and is_readable(kinds[theirs])
    }


def _distance(text: ir.StringValue, kind: dt.DataType) -> ir.IntegerValue:
    read, number = text.try_cast(kind), text.try_cast("float64")
    if not kind.is_integer():
        return (text.isnull() | read.notnull()).ifelse(0, _TEXT)
    fits = (read == number).fill_null(False)  # an engine rounds 3.5 to a whole number
    return ibis.cases((text.isnull() | fits, 0), (number.notnull(), _FRACTION), else_=_TEXT)
