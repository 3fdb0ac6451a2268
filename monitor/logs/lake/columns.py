"""Whether the columns of a data file are those that its table names so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from monitor.core.text import NAME_LENGTH, quoted
from monitor.logs.files import LogFile, TableColumns, parquet_schema
from monitor.settings.logs import LogSettings

_ID = b"PARQUET:field_id"
_REWRITE = "rewrite the file (CALL system.rewrite_data_files)"


def check_table_columns(settings: LogSettings, file: LogFile) -> None:
    """Raise ValueError if a table gives the file's columns other names, or knows values that it lacks."""
    if file.columns is None or not file.columns.ids:
        return
    for fault in _faults(file.columns, parquet_schema(settings, file)):
        raise ValueError(f"{fault}; {_REWRITE}")


def _faults(columns: TableColumns, schema: pa.Schema) -> Iterator[str]:
    for field in _named(schema):
        number = _id_of(field)
        if number is None and columns.renamed:
            yield f"its column {_shown(field.name)} has no id, and the table has renamed columns"
        elif number is not None and columns.names.get(number, field.name) != field.name:
            yield f"its column {_shown(field.name)} is called {_shown(columns.names[number])} by the table"
    for field in schema:
        number = _id_of(field)
        if number is not None and columns.ids.get(field.name, number) != number:
            yield f"its column {_shown(field.name)} is another one than the table's column of that name"
    for name in columns.needed:
        if name not in schema.names:
            yield f"it lacks the column {_shown(name)}, whose value only the table knows"


def _named(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    """The columns and the fields of records, at any depth; the parts of lists and maps have no name."""
    for field in fields:
        yield field
        kind = field.type
        while pa.types.is_list(kind) or pa.types.is_large_list(kind):
            kind = kind.value_type
        if pa.types.is_map(kind):
            kind = kind.item_type
        if pa.types.is_struct(kind):
            yield from _named(kind)


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return None if text is None else int(text)


def _shown(name: str) -> str:
    return quoted(name, NAME_LENGTH)
