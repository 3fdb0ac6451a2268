"""From a file's columns to ours: names, types, times in UTC, one row an item.

A bad value is no error here: a value that cannot be read as its type becomes null, and `bad_values` counts
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.logs.mapping import source_names
from monitor.settings.logs import LogSettings, SampleLogSettings

IdType = Literal["int64", "string"]
TIMESTAMP = dt.Timestamp(scale=6)
_UTC = dt.Timestamp("UTC", 6)
_ZONE = r"(Z|UTC|GMT|[+-]\d{2}(:?\d{2})?)$"
_OFFSET = rf":\d{{2}}(\.\d+)?\s*{_ZONE}"
_NO_SECONDS = r"[T ]\d{2}:\d{2}$"
_NUMBER = r"^\s*-?\d+(\.\d+)?([eE]\+?\d+)?\s*$"  # Java and R write large numbers with an exponent
_BRACKETED = r"(?s)^\s*\[.*\]\s*$"
_EMPTY_LIST = r"^\s*(\[\s*\]\s*)?$"
_LIST_ENDS = r"""^\s*\[\s*["']?|["']?\s*\]\s*$"""
_JSON_BEGINS = ('{"', "{'", "[{", '["', "['", "[[", *(f"[{digit}" for digit in range(10)))
_MOST_JSON = 0.05  # of the rows; if records are split at their commas, only one part of each begins like this
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
_DATES = (
    (19_000_101, 21_001_231),
    (1900_01_01_0000, 2100_12_31_2359),
    (1900_01_01_000000, 2100_12_31_235959),
)
"""Dates and times written as one number, such as 20260301; none is a likely count of seconds since 1970."""
_LARGEST = 2**53
_BYTES_OF_INT64 = 8
_INDEX, _LENGTH = "__monitor_index", "__monitor_length"
RAW = "__monitor_raw_"
_LOST = "__monitor_lost"


def _timezone(zone: str, ts: object) -> object: ...
def _make_timestamp(microseconds: int) -> object: ...


_in_zone = ibis.udf.scalar.builtin(_timezone, name="timezone", signature=((dt.string, TIMESTAMP), _UTC))
_from_microseconds = ibis.udf.scalar.builtin(
    _make_timestamp, name="make_timestamp", signature=((dt.int64,), TIMESTAMP)
)


def canonical(
    table: ir.Table,
    log: str,
    settings: LogSettings,
    id_types: Mapping[str, IdType],
    *,
    keep_raw: bool = False,
    further: Mapping[str, dt.DataType] | None = None,
) -> ir.Table:
    """The table with our columns; nested lists become one row an item.

    Args:
        table: the file's columns, and the paths that `columns` names as columns of those names.
        log: exposures, feedback, catalog, users, samples or survey.
        settings: what the columns are called, and how they are read.
        id_types: our id columns that are whole numbers; the others become text.
        keep_raw: keep the unread values beside the read ones, for counting bad values; of columns that are
            not ours, only those of a guessed type.
        further: types for the texts of columns that are not ours; a value that does not fit is null.
    """
    names = source_names(log, settings, table.columns)
    table = table.select(**{ours: table[theirs] for ours, theirs in names.items()})
    if log == c.EXPOSURES and settings.list_separator is not None and table[c.ITEM_ID].type().is_string():
        table = table.mutate(**_split(table, settings.list_separator))
    if log == c.EXPOSURES and table[c.ITEM_ID].type().is_array():
        table = _flatten(table, keep_raw=keep_raw)
    types = {ours: (further or {}).get(theirs) for ours, theirs in names.items()}
    read = {
        name: _read(table[name], name, log, settings, id_types, types.get(name))
        for name in table.columns
        if name != _LOST
    }
    if keep_raw:
        guessed = {name for name, kind in types.items() if kind is not None and is_readable(kind)}
        read |= {RAW + name: table[name] for name in table.columns if name in c.TYPES[log] or name in guessed}
        read |= {_LOST: table[_LOST]} if _LOST in table.columns else {}
    return table.select(**read)


def only(table: ir.Table, settings: LogSettings) -> ir.Table:
    """The rows that belong to the recommender, if several share a log.

    >>> log = LogSettings(path="x", only={"scene": ["home", "men-*"]})
    >>> rows = ibis.memtable({"scene": ["home", "men-1", "women-1", "a.men-2"]})
    >>> int(only(rows, log).count().execute())
    2
    """
    for name, wanted in settings.only.items():
        text = to_text(table[name])
        values = [wanted] if isinstance(wanted, str) else list(wanted)
        plain = [value for value in values if "*" not in value]
        globs = [".*".join(map(re.escape, value.split("*"))) for value in values if "*" in value]
        matches = [text.re_search(f"(?s)^(?:{pattern})$") for pattern in globs]
        table = table.filter(ibis.or_(text.isin(plain), *matches))
    return table


def usable(table: ir.Table, log: str) -> ir.Table:
    """The rows with all indispensable columns, such as a request and a time for exposures."""
    return table.filter([table[name].notnull() for name in c.INDISPENSABLE[log]])


def bad_values(table: ir.Table, log: str) -> ir.IntegerValue:
    """How many values of a row (read with `keep_raw`) could not be read as their type."""
    total: ir.IntegerValue = ibis.literal(0, "int64")
    for flag in bad_by_column(table, log).values():
        total = total + flag
    return total + table[_LOST] if _LOST in table.columns else total


def bad_by_column(table: ir.Table, log: str) -> dict[str, ir.IntegerValue]:
    """For each of our columns: 1 if the value of a row (read with `keep_raw`) could not be read, else 0."""
    return {
        name: (table[RAW + name].notnull() & _is_unread(table[name], kind)).ifelse(1, 0)
        for name, kind in c.TYPES[log].items()
        if RAW + name in table.columns
    }


def _is_unread(column: ir.Value, kind: str) -> ir.BooleanValue:
    if kind == "numbers" and not column.type().is_array():
        return ibis.literal(True)  # `_list` leaves it as it is: a text is no list of numbers
    return column.isnull()


def json_ids(table: ir.Table, log: str) -> dict[str, ir.BooleanValue]:
    """For each column of ids: whether the id of a row begins like a record or list written as JSON.

    An id in braces, such as `{3F2504E0-4F89}`, does not.
    """
    return {
        name: table[name].strip().left(2).isin(_JSON_BEGINS).fill_null(False)
        for name, kind in c.TYPES[log].items()
        if kind == "id" and name in table.columns and table[name].type().is_string()
    }


def json_instead_of_ids(counts: Mapping[str, int], rows: int) -> str | None:
    """Why a file is refused if its ids are JSON: no rule could find an item in them.

    Args:
        counts: for each column of ids, how many are JSON by `json_ids`.
        rows: how many rows the file has.
    """
    for name, count in counts.items():
        if count > _MOST_JSON * rows:
            return (
                f"column {name}: its texts are JSON records or lists, not ids; write them as nested JSON "
                "lines or Parquet and name a path such as recs[].iid, or write one row for each item"
            )
    return None


def _split(table: ir.Table, separator: str) -> dict[str, ir.Value]:
    """The columns of items that hold a list in one field, as lists."""
    of_an_item = (c.ITEM_ID, c.POSITION, c.SCORE, c.PROPENSITY)
    return {
        name: split_list(table[name], separator)
        for name in of_an_item
        if name in table.columns and table[name].type().is_string()
    }


def split_list(text: ir.StringValue, separator: str) -> ir.ArrayValue:
    """The entries of a list that is one text: plain or in brackets, with or without quotes.

    Args:
        text: such as `a|b`, `["a", "b"]` (JSON) or `['a' 'b']` (NumPy); a blank one is an empty list.
        separator: the text between two entries; a space matches any number of spaces.

    >>> lists = ibis.memtable({"v": ["1 2", "['a'  'b']", "[]"]})
    >>> lists.select(v=split_list(lists.v, " ")).to_pandas().v.map(list).tolist()
    [['1', '2'], ['a', 'b'], []]
    """
    between = r"\s+" if separator == " " else rf"\s*{re.escape(separator.strip() or separator)}\s*"
    bare = text.re_replace(_LIST_ENDS, "").re_replace(f"[\"']?{between}[\"']?", separator)
    plain = text.strip().re_replace(between, separator) if separator == " " else text
    entries = text.re_search(_BRACKETED).ifelse(bare, plain).split(separator)
    return text.re_search(_EMPTY_LIST).ifelse(ibis.literal([], "array<string>"), entries)


def _flatten(table: ir.Table, *, keep_raw: bool) -> ir.Table:
    """One row an item; an empty or missing list stays as one row without an item.

    Values belong to the items at the same place. The values of a list of another length than the items' are
    null. With `keep_raw`, a column counts such lists, and places without an item.
    """
    items = table[c.ITEM_ID]
    length = items.length().fill_null(0)
    lists = [name for name in table.columns if table[name].type().is_array()]
    aligned = {
        name: (table[name].length() == length).ifelse(table[name], ibis.null(table[name].type()))
        for name in lists
        if name != c.ITEM_ID
    }
    lost = {_LOST: _lost(table, lists, length)} if keep_raw else {}
    indexed = table.mutate(
        **aligned, **lost, **{_INDEX: ibis.range(0, ibis.greatest(length, 1)).unnest(), _LENGTH: length}
    )
    index = indexed[_INDEX]
    flat = {name: indexed[name][index] if name in lists else indexed[name] for name in table.columns}
    if c.POSITION not in flat:
        flat[c.POSITION] = index + 1
    if keep_raw:
        nameless = (indexed[_LENGTH] > 0) & flat[c.ITEM_ID].isnull()
        flat[_LOST] = indexed[_LOST] + nameless.ifelse(1, 0)
    return indexed.select(**flat)


def _lost(table: ir.Table, lists: Sequence[str], length: ir.IntegerValue) -> ir.IntegerValue:
    """How many lists of a request have another length than its items."""
    total: ir.IntegerValue = ibis.literal(0, "int64")
    for name in lists:
        if name in c.TYPES[c.EXPOSURES]:
            values = table[name].length().fill_null(0)
            total = total + ((values > 0) & (values != length)).ifelse(1, 0)
    return total


def _read(
    column: ir.Value,
    name: str,
    log: str,
    settings: LogSettings,
    id_types: Mapping[str, IdType],
    further: dt.DataType | None,
) -> ir.Value:
    match c.TYPES[log].get(name):
        case "id":
            return identifier(column, id_types.get(name, "string"))
        case "time":
            return to_time(column, settings)
        case "integer":
            if column.type().is_integer() and column.type().nbytes < _BYTES_OF_INT64:
                return column.cast("int64")
            whole = _integer(column)  # small enough for exact differences and sums
            return whole.between(-_LARGEST, _LARGEST).ifelse(whole, ibis.null("int64"))
        case "number":
            return _label(column) if name == c.LABEL else _number(column)
        case "text":
            return to_text(column)
        case "split":
            return _split_of(column, settings)
        case "texts":
            return _list(column, settings, "string")
        case "numbers":
            return _list(column, settings, "float64")
        case _:
            return _further(_typed(column, further), settings)


def identifier(column: ir.Value, target: IdType) -> ir.Value:
    kind = column.type()
    if kind.is_floating():  # pandas writes whole numbers with gaps like this; NaN is a gap
        column = _integer(column)
    elif kind.is_string():
        column = column.nullif("").nullif("NaN").nullif("nan")
    if target == "int64":
        return column.try_cast("int64") if kind.is_string() else column.cast("int64")
    return column.cast("string")


def to_text(column: ir.Value) -> ir.Value:
    """A value as text: a whole float is written as an integer, and NaN is null.

    pandas turns whole numbers into floats as soon as one is missing. Without this, a value would be `1` in
    one file and `1.0` in the next.

    >>> rows = ibis.memtable({"v": [1.0, -0.0, 2.5, float("nan")]})
    >>> rows.select(v=to_text(rows.v)).to_pyarrow().column("v").to_pylist()
    ['1', '0', '2.5', None]
    """
    if not column.type().is_floating():
        return column.cast("string")
    number = ibis.ifelse(column.isnan(), ibis.null(column.type()), column)
    return ibis.coalesce(_integer(column).cast("string"), number.cast("string"))


def _split_of(column: ir.Value, settings: LogSettings) -> ir.Value:
    """Our name of a split; null for any other value."""
    assert isinstance(settings, SampleLogSettings)  # no other log has splits
    text = to_text(column)
    cases = [(text.isin(values), ours) for ours, values in settings.split_values().items()]
    return ibis.cases(*cases, else_=ibis.null("string"))


def _integer(column: ir.Value) -> ir.Value:
    """A whole number; null for 1.5, NaN and numbers beyond 64 bits. A plain cast would round or fail."""
    if column.type().is_integer():
        return column.try_cast("int64")
    number = _number(column)
    whole = number.try_cast("int64")
    return (whole.cast("float64") == number).ifelse(whole, ibis.null("int64"))


def _number(column: ir.Value) -> ir.Value:
    return column.cast("float64") if column.type().is_numeric() else column.cast("string").try_cast("float64")


def _label(column: ir.Value) -> ir.Value:
    """A label is often the answer to a question: true is 1, and false is 0."""
    if column.type().is_numeric():
        return _number(column)
    text = column.cast("string").lower()
    truth = ibis.cases((text == "true", 1.0), (text == "false", 0.0), else_=ibis.null("float64"))
    return ibis.coalesce(truth, text.try_cast("float64"))


def to_time(column: ir.Value, settings: LogSettings) -> ir.Value:
    """A time in UTC: a time, a text, or a count since 1970; null if it cannot be read."""
    kind = column.type()
    if kind.is_timestamp():
        if kind.timezone is not None:
            return column.cast(_UTC).cast(TIMESTAMP)
        return _zoned(column.cast(TIMESTAMP), settings)
    if kind.is_date():
        return _zoned(column.cast(TIMESTAMP), settings)
    if kind.is_numeric():
        return _epoch(column.cast("float64"), settings)
    # No engine knows all that the standards allow: RFC 3339 small letters, ISO 8601 a decimal comma.
    text = column.cast("string").upper().replace(",", ".")
    return ibis.cases(
        (text.re_search(_NUMBER), _epoch(text.try_cast("float64"), settings)),
        (text.re_search(_OFFSET), _with_offset(text).cast(TIMESTAMP)),
        else_=_zoned(text.try_cast(TIMESTAMP), settings),
    )


def _with_offset(text: ir.StringValue) -> ir.Value:
    """A time with its offset, also after a blank, as Ruby has it, or after minutes, as Java for 0 s."""
    clock, zone = text.re_replace(rf"\s*{_ZONE}", ""), text.re_extract(_ZONE, 0)
    seconds = clock.re_search(_NO_SECONDS).ifelse(":00", "")
    plain = clock + seconds + zone.isin(("UTC", "GMT")).ifelse("Z", zone)
    return ibis.coalesce(text.try_cast(_UTC), plain.try_cast(_UTC))


def _zoned(column: ir.Value, settings: LogSettings) -> ir.Value:
    return column if settings.timezone == "UTC" else _in_zone(settings.timezone, column).cast(TIMESTAMP)


def _epoch(column: ir.Value, settings: LogSettings) -> ir.Value:
    """A count since 1970; by default its size shows the unit (10^11 s is the year 5138).

    A date that is written as one number is a bad value then: it would be a day of 1970, 1976 or 2611.
    """
    if settings.timestamp_unit == "auto":
        size = column.abs()
        scale = ibis.cases((size < 1e11, 1e6), (size < 1e14, 1e3), (size < 1e17, 1.0), else_=1e-3)
        is_date = ibis.or_(*(column.between(first, last) for first, last in _DATES))
        column = is_date.ifelse(ibis.null("float64"), column)
    else:
        scale = ibis.literal(_MICROSECONDS[settings.timestamp_unit])
    microseconds = column * scale
    # Calendars end at year 9999; a larger count is a bad value, not an error.
    sound = microseconds.abs() < 2.5e17
    return _from_microseconds(sound.ifelse(microseconds, ibis.null("float64")).cast("int64"))


def _list(column: ir.Value, settings: LogSettings, element: str) -> ir.Value:
    if column.type().is_array():
        return column.try_cast(f"array<{element}>")
    if settings.list_separator is None or not column.type().is_string():
        return to_text(column) if element == "string" else column
    parts = split_list(column, settings.list_separator)
    return parts if element == "string" else parts.map(lambda one: one.try_cast("float64"))


def _typed(column: ir.Value, kind: dt.DataType | None) -> ir.Value:
    """A text read as the column's guessed type; other values as they are."""
    if kind is None or not column.type().is_string():
        return column
    kind = kind.value_type if kind.is_array() else kind
    return column.try_cast(kind) if is_readable(kind) else column


def is_readable(kind: dt.DataType) -> bool:
    """Whether the texts of a column that is not ours are read as this guessed type; others stay texts."""
    return bool(kind.is_numeric() or kind.is_boolean() or kind.is_timestamp() or kind.is_date())


def _further(column: ir.Value, settings: LogSettings) -> ir.Value:
    kind = column.type()
    if kind.is_integer():
        return column if kind.is_uint64() else column.cast("int64")  # int64 cannot hold every uint64
    if kind.is_numeric():
        return column.cast("float64")
    if kind.is_timestamp() or kind.is_date():
        return to_time(column, settings)
    return column if kind.is_boolean() or kind.is_array() else column.cast("string")
