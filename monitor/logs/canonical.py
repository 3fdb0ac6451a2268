"""From a file's own columns to ours: names, types, times in UTC, one row an item.

Nothing fails on a bad value here: what cannot be read as its type becomes null, and
`count_bad_values` counts it, so that it is shown and not lost in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from monitor.logs import columns as c
from monitor.logs.settings import LogSettings, SampleLogSettings

IdType = Literal["int64", "string"]
TIMESTAMP = dt.Timestamp(scale=6)
_UTC = dt.Timestamp("UTC", 6)
_OFFSET = r":\d{2}(\.\d+)?\s*(Z|z|[+-]\d{2}(:?\d{2})?)$"
_NUMBER = r"^\s*-?\d+(\.\d+)?\s*$"
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_LARGEST = 2**53
_INDEX = "__index"
_RAW = "__raw_"


def _timezone(zone: str, ts: object) -> object: ...
def _make_timestamp(microseconds: int) -> object: ...


_in_zone = ibis.udf.scalar.builtin(_timezone, name="timezone", signature=((dt.string, TIMESTAMP), _UTC))
_from_microseconds = ibis.udf.scalar.builtin(
    _make_timestamp, name="make_timestamp", signature=((dt.int64,), TIMESTAMP)
)


def source_names(log: str, settings: LogSettings, present: Iterable[str]) -> dict[str, str]:
    """Our column -> the file's column, for those that the file has, further columns by their own name.

    >>> source_names("catalog", LogSettings(path="x", columns={"item_id": "sku"}), ["sku", "price"])
    {'item_id': 'sku', 'price': 'price'}
    """
    available = list(present)
    names = {ours: theirs for ours, theirs in settings.columns.items() if theirs in available}
    names |= {one: one for one in c.TYPES[log] if one in available and one not in settings.columns}
    taken = {name.lower() for name in (*names.values(), *names)}
    return names | {one: one for one in available if one.lower() not in taken}


def missing_columns(log: str, settings: LogSettings, present: Iterable[str]) -> list[str]:
    """A sentence for each required column that a file lacks."""
    available = list(present)
    names = source_names(log, settings, available)
    shown = ", ".join(repr(one[:40]) for one in available[:20])
    return [
        f"column {ours} (looked for as {settings.columns.get(ours, ours)!r}) is missing; the file has {shown}"
        for ours in dict.fromkeys((*c.REQUIRED[log], *settings.only))
        if ours not in names
    ]


def canonical(
    table: ir.Table,
    log: str,
    settings: LogSettings,
    id_types: Mapping[str, IdType],
    *,
    keep_raw: bool = False,
) -> ir.Table:
    """The table with our columns; nested lists become one row an item.

    With `keep_raw` the unread values stay beside the read ones, for counting bad values.
    """
    names = source_names(log, settings, table.columns)
    table = table.select(**{ours: table[theirs] for ours, theirs in names.items()})
    if log == c.EXPOSURES and settings.list_separator is not None and table[c.ITEM_ID].type().is_string():
        table = table.mutate(**_split(table, settings.list_separator))
    if log == c.EXPOSURES and table[c.ITEM_ID].type().is_array():
        table = _flatten(table)
    read = {name: _read(table[name], name, log, settings, id_types) for name in table.columns}
    if keep_raw:
        read |= {_RAW + name: table[name] for name in c.TYPES[log] if name in table.columns}
    return table.select(**read)


def only(table: ir.Table, settings: LogSettings) -> ir.Table:
    """The rows that belong to the recommender, where several share a log.

    >>> log = LogSettings(path="x", only={"scene": ["home", "men-*"]})
    >>> rows = ibis.memtable({"scene": ["home", "men-1", "women-1", "a.men-2"]})
    >>> int(only(rows, log).count().execute())
    2
    """
    for name, wanted in settings.only.items():
        text = table[name].cast("string")
        values = [wanted] if isinstance(wanted, str) else list(wanted)
        plain = [value for value in values if "*" not in value]
        globs = [".*".join(map(re.escape, value.split("*"))) for value in values if "*" in value]
        matches = [text.re_search(f"^(?:{pattern})$") for pattern in globs]
        table = table.filter(ibis.or_(text.isin(plain), *matches))
    return table


def usable(table: ir.Table, log: str) -> ir.Table:
    """The rows that can be placed: those with a request and a time (exposures), a time, or an item."""
    return table.filter([table[name].notnull() for name in c.INDISPENSABLE[log]])


def bad_values(table: ir.Table, log: str) -> ir.IntegerValue:
    """How many values of a row (read with `keep_raw`) were there and could not be read as their type."""
    flags = [
        (table[_RAW + name].notnull() & table[name].isnull()).ifelse(1, 0)
        for name in c.TYPES[log]
        if _RAW + name in table.columns
    ]
    total: ir.IntegerValue = ibis.literal(0, "int64")
    for flag in flags:
        total = total + flag
    return total


def _split(table: ir.Table, separator: str) -> dict[str, ir.Value]:
    """The columns that hold a list in one field, as lists: what belongs to an item, not to the request."""
    of_an_item = (c.ITEM_ID, c.POSITION, c.SCORE, c.PROPENSITY)
    return {
        name: table[name].split(separator)
        for name in of_an_item
        if name in table.columns and table[name].type().is_string()
    }


def _flatten(table: ir.Table) -> ir.Table:
    """One row an item; an empty or missing list stays as one row without an item."""
    items = table[c.ITEM_ID]
    indexed = table.mutate(**{_INDEX: ibis.range(0, ibis.greatest(items.length().fill_null(0), 1)).unnest()})
    index = indexed[_INDEX]
    flat = {
        name: indexed[name][index] if indexed[name].type().is_array() else indexed[name]
        for name in table.columns
    }
    if c.POSITION not in flat:
        flat[c.POSITION] = index + 1
    return indexed.select(**flat)


def _read(
    column: ir.Value, name: str, log: str, settings: LogSettings, id_types: Mapping[str, IdType]
) -> ir.Value:
    match c.TYPES[log].get(name):
        case "id":
            return _identifier(column, id_types.get(name, "string"))
        case "time":
            return _time(column, settings)
        case "integer":
            whole = _integer(column)  # and small enough for differences and sums of it
            return whole.between(-_LARGEST, _LARGEST).ifelse(whole, ibis.null("int64"))
        case "number":
            return _number(column)
        case "text":
            return column.cast("string")
        case "split":
            return _split_of(column, settings)
        case "texts":
            return _list(column, settings, "string")
        case "numbers":
            return _list(column, settings, "float64")
        case _:
            return _further(column, settings)


def _identifier(column: ir.Value, target: IdType) -> ir.Value:
    kind = column.type()
    if kind.is_nested():  # a list or a record is no id
        return ibis.null(target)
    if kind.is_floating():  # whole numbers with gaps, as pandas writes them; NaN is a gap
        column = _integer(column)
    elif kind.is_string():
        column = column.nullif("").nullif("NaN").nullif("nan")
    if target == "int64":
        return column.try_cast("int64") if kind.is_string() else column.cast("int64")
    return column.cast("string")


def _split_of(column: ir.Value, settings: LogSettings) -> ir.Value:
    """Our name of a split; what stands for none of ours is null."""
    assert isinstance(settings, SampleLogSettings)  # no other log has splits
    text = column.cast("string")
    cases = [(text.isin(values), ours) for ours, values in settings.split_values().items()]
    return ibis.cases(*cases, else_=ibis.null("string"))


def _integer(column: ir.Value) -> ir.Value:
    """A whole number; 1.5, NaN and what is beyond 64 bits are none, where a plain cast rounds or fails."""
    if column.type().is_integer():
        return column.try_cast("int64")
    number = _number(column)
    whole = number.try_cast("int64")
    return (whole.cast("float64") == number).ifelse(whole, ibis.null("int64"))


def _number(column: ir.Value) -> ir.Value:
    return column.cast("float64") if column.type().is_numeric() else column.cast("string").try_cast("float64")


def _time(column: ir.Value, settings: LogSettings) -> ir.Value:
    kind = column.type()
    if kind.is_timestamp():
        if kind.timezone is not None:
            return column.cast(_UTC).cast(TIMESTAMP)
        return _zoned(column.cast(TIMESTAMP), settings)
    if kind.is_date():
        return _zoned(column.cast(TIMESTAMP), settings)
    if kind.is_numeric():
        return _epoch(column.cast("float64"), settings)
    text = column.cast("string")
    return ibis.cases(
        (text.re_search(_NUMBER), _epoch(text.try_cast("float64"), settings)),
        (text.re_search(_OFFSET), text.try_cast(_UTC).cast(TIMESTAMP)),
        else_=_zoned(text.try_cast(TIMESTAMP), settings),
    )


def _zoned(column: ir.Value, settings: LogSettings) -> ir.Value:
    return column if settings.timezone == "UTC" else _in_zone(settings.timezone, column).cast(TIMESTAMP)


def _epoch(column: ir.Value, settings: LogSettings) -> ir.Value:
    """A count since 1970; without a stated unit its size tells (10^11 s is the year 5138)."""
    if settings.timestamp_unit == "auto":
        size = column.abs()
        scale = ibis.cases((size < 1e11, 1e6), (size < 1e14, 1e3), (size < 1e17, 1.0), else_=1e-3)
    else:
        scale = ibis.literal(_MICROSECONDS[settings.timestamp_unit])
    microseconds = column * scale
    # Beyond year 9999 no calendar goes; such a count is a bad value and not an error.
    sound = microseconds.abs() < 2.5e17
    return _from_microseconds(sound.ifelse(microseconds, ibis.null("float64")).cast("int64"))


def _list(column: ir.Value, settings: LogSettings, element: str) -> ir.Value:
    if column.type().is_array():
        return column.try_cast(f"array<{element}>")
    if settings.list_separator is None or not column.type().is_string():
        return column.cast("string") if element == "string" else column
    parts = column.split(settings.list_separator)
    return parts if element == "string" else parts.map(lambda one: one.try_cast("float64"))


def _further(column: ir.Value, settings: LogSettings) -> ir.Value:
    kind = column.type()
    if kind.is_integer():
        return column if kind.is_uint64() else column.cast("int64")  # which cannot hold all of those
    if kind.is_numeric():
        return column.cast("float64")
    if kind.is_timestamp() or kind.is_date():
        return _time(column, settings)
    return column if kind.is_boolean() or kind.is_array() else column.cast("string")
