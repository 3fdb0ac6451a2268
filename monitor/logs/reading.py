"""Reads files into one canonical table: detects a file's shape, and opens files of one shape together."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import duckdb
import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
from ibis.backends.sql.datatypes import DuckDBType

from monitor.core import columns as c
from monitor.core.record_path import Path
from monitor.core.text import EVIDENCE_LENGTH, quoted
from monitor.engines.duckdb import Engine, Same
from monitor.engines.folders import folder_kind, folder_values
from monitor.logs.canonical import IdType, canonical, only, to_text
from monitor.logs.files import ONE_OBJECT, LogFile, filesystem, first_line, format_of
from monitor.logs.lake.columns import check_table_columns
from monitor.logs.limits import MAX_LINE_BYTES, check_columns, check_json, check_parquet
from monitor.logs.mapping import (
    ColumnSource,
    PathMismatchError,
    PathNotFoundError,
    flat_types,
    is_flat,
    locate,
    value_at,
)
from monitor.settings.logs import LogSettings

FRAME = "frame"
"""The kind of a shape whose "file" is a table of the engine; see `frames`."""
_JSON_KINDS = {"OBJECT": "a record", "ARRAY": "a list"}
_DELIMITERS = (",", "\t", ";", "|")
_ISO: dict[str, Any] = {"dateformat": "iso"}  # 13/01/2026 is a text: no date is read from it


def _json_type_of(value: object) -> object: ...


_json_type = ibis.udf.scalar.builtin(_json_type_of, name="json_type", signature=((dt.json,), dt.string))


@dataclass(frozen=True, slots=True)
class Shape:
    """The format and columns of a file. Files of one shape are opened in one scan.

    `columns` are (name, type) in the file's order, with types as `type_name` writes them. Text formats are
    read as text first; then the type is the one to try. `folders` are those that the folders of the path
    hold, as in `scene=home`, and not the file.
    """

    kind: str
    columns: tuple[tuple[str, str], ...] = ()
    delimiter: str = ""
    folders: tuple[str, ...] = ()

    @property
    def is_typed(self) -> bool:
        """Whether its values have types, as in Parquet and in a frame; the others are texts."""
        return self.kind in ("parquet", FRAME)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def types(self) -> dict[str, ibis.DataType]:
        """The types of the columns, including records."""
        return {name: type_of(dtype) for name, dtype in self.columns}

    @property
    def own(self) -> tuple[str, ...]:
        """The names of the columns that the files hold, without those of folders."""
        return tuple(name for name in self.names if name not in self.folders)

    @property
    def scans_fast(self) -> bool:
        """Whether reading the files again is cheaper than copying them: flat Parquet, and flat frames."""
        return self.is_typed and not any(dtype.is_nested() for dtype in self.types.values())


def id_types(log: str, settings: LogSettings, shape: Shape) -> dict[str, IdType]:
    """Our id columns that a file has: whole numbers if they are whole numbers in Parquet, else text.

    >>> shape = Shape("parquet", (("sku", "int32"), ("price", "float64")))
    >>> id_types("catalog", LogSettings(path="x", columns={"item_id": "sku"}), shape)
    {'item_id': 'int64'}
    """
    kinds = flat_types(shape.types, settings.columns.values())
    found: dict[str, IdType] = {}
    for ours, kind in c.TYPES[log].items():
        theirs = settings.columns.get(ours, ours)
        if kind == "id" and theirs in kinds:
            found[ours] = "int64" if shape.is_typed and _whole(kinds[theirs]) else "string"
    return found


def type_name(kind: ibis.DataType) -> str:
    """A type as text in a shape; records in SQL, which quotes the names of their fields.

    >>> type_name(dt.int64), type_name(dt.Struct({"a b": dt.int64}))
    ('int64', 'STRUCT("a b" BIGINT)')
    """
    return str(kind) if is_flat(kind) else str(DuckDBType.to_string(kind))


@lru_cache(maxsize=4096)
def type_of(name: str) -> ibis.DataType:
    """The type that `type_name` wrote; a text that cannot be parsed counts as string.

    >>> type_of("array<int64>").is_array(), type_of('STRUCT("a b" BIGINT)').names
    (True, ('a b',))
    """
    for parse in (ibis.dtype, DuckDBType.from_string):
        try:
            return parse(name)
        except Exception:  # noqa: S112 - the parsers' own, which have no public names
            continue
    return dt.string


def _whole(kind: ibis.DataType) -> bool:
    kind = kind.value_type if kind.is_array() else kind
    # pandas writes whole numbers with gaps as floating ones
    return (kind.is_integer() and str(kind) != "uint64") or kind.is_floating()


def open_filesystems(engine: Engine, settings: LogSettings, files: Iterable[str] = ()) -> None:
    """Let the engine reach the URLs of a log; `files` are those of its tables, which may lie elsewhere."""
    for path in {
        path.partition("://")[0]: path for path in (*files, *settings.paths) if "://" in path
    }.values():
        engine.register(filesystem(settings, path)[0])


def sniff(engine: Engine, view: str, settings: LogSettings, file: LogFile) -> Shape:
    """The shape of a file.

    Raises:
        BeyondLimit: the file is too large.
        Exception: the engine cannot read it.
    """
    shape = _sniff_file(engine, view, settings, file)
    if not shape.columns and not shape.is_typed:
        return shape
    own = {name.lower() for name in shape.names}
    if file.columns is not None:
        folders = {name: type_of(kind) for name, kind in file.columns.folders.items()}
    else:
        values = folder_values(file.path)
        folders = {name: folder_kind(text) for name, text in values.items() if name.lower() not in own}
    taken = {name.lower() for name in folders}
    columns = tuple((name, kind) for name, kind in shape.columns if name.lower() not in taken)
    more = tuple((name, type_name(kind)) for name, kind in folders.items())
    return replace(shape, columns=columns + more, folders=tuple(folders))


def _sniff_file(engine: Engine, view: str, settings: LogSettings, file: LogFile) -> Shape:
    """The shape of a file without the columns of its folders."""
    kind = format_of(file.path, settings)
    if file.size == 0 and kind != "parquet":
        return Shape(kind)
    if kind == "csv":
        return _sniff_csv(engine, view, settings, file)
    if kind == "json":
        # Scan the whole file: a key that only its last lines have would be missing from the table.
        options: dict[str, Any] = {
            "format": "newline_delimited",
            "sample_size": -1,
            "map_inference_threshold": -1,
        } | _ISO
        options["maximum_object_size"] = MAX_LINE_BYTES
        check_json(engine, settings, file.path)
    else:
        check_parquet(engine, settings, file.path)
        check_table_columns(settings, file)
        options = {}
    table = engine.reader(view, f"read_{kind}", [file.path], **options)
    if kind == "json":
        _check_json(table, settings)
    columns = (
        (name, dt.string if _is_parquet_json(kind, dtype) else dtype)
        for name, dtype in table.schema().items()
    )
    return Shape(kind, tuple((name, type_name(dtype)) for name, dtype in columns))


def _is_parquet_json(kind: str, dtype: ibis.DataType) -> bool:
    """Whether it is Parquet text marked as JSON; no record is read from it."""
    return kind == "parquet" and dtype.is_json()


def _check_json(table: ir.Table, settings: LogSettings) -> None:
    """Raise ValueError if the lines are no rows; the engine would give odd columns or texts."""
    types = dict(table.schema().items())
    if tuple(types) == ("json",):
        raise ValueError(f"its lines are not JSON objects with keys; {ONE_OBJECT}")
    names = {ours: ours for kinds in c.TYPES.values() for ours in kinds} | settings.columns
    for text in dict.fromkeys(names.values()):
        try:
            untyped = locate(text, types).untyped
        except (PathNotFoundError, PathMismatchError):
            continue
        if untyped is not None:
            _check_untyped(table, *untyped)


def _check_untyped(table: ir.Table, path: Path, wanted: str) -> None:
    """Raise ValueError if values without a type, such as a mix of forms, are not of the wanted form."""
    values = value_at(table, path)
    values = values.unnest() if values.type().is_array() else values
    kinds = table.select(kind=_json_type(values)).distinct().limit(20).to_pyarrow()["kind"].to_pylist()
    found = {_JSON_KINDS.get(kind, "a single value") for kind in kinds if kind not in (None, "NULL")}
    if found - {wanted}:
        several = f"{' in some lines and '.join(sorted(found))} in others" if len(found) > 1 else found.pop()
        raise ValueError(f"{quoted(path)} is {several}; every line must have the same form")


def _sniff_csv(engine: Engine, view: str, settings: LogSettings, file: LogFile) -> Shape:
    """The header is read here, because the engine would skip lines that it does not understand."""
    line = first_line(settings, file)
    if "\r" in line:
        raise ValueError("its lines end in CR alone; write LF, such as with `mac2unix`")
    delimiter = max(_DELIMITERS, key=line.count)
    check_columns(settings, line.count(delimiter) + 1)
    header = next(csv.reader([line], delimiter=delimiter), [])
    if not header:
        raise ValueError("line 1 is blank; a CSV file starts with the names of its columns")
    # pandas writes its row numbers without a name, and reads them back under this one.
    header = [name or f"Unnamed: {place}" for place, name in enumerate(header)]
    if len({name.lower() for name in header}) < len(header):  # engines do not tell `Score` from `score`
        raise ValueError(f"the header names a column twice: {quoted(line, EVIDENCE_LENGTH)}")
    try:
        guessed = engine.reader(view, "read_csv", [file.path], header=True, delim=delimiter, **_ISO).schema()
    except duckdb.InterruptException:
        raise
    except Exception:  # only types are guessed here; reading the file reports what is wrong
        guessed = ibis.schema({})
    return Shape("csv", tuple((name, str(guessed.get(name, "string"))) for name in header), delimiter)


def open_shape(
    engine: Engine,
    view: str,
    shape: Shape,
    paths: Sequence[str],
    *,
    fields: Iterable[str] = (),
    path_column: str | None = None,
) -> ir.Table:
    """One table over all files of one shape, with the columns that hold values or lists of values.

    Args:
        engine: where the table lives.
        view: the name of the view over the files.
        shape: what the files look like.
        paths: the files.
        fields: paths into records, such as `recs[].iid`; each that leads to values becomes a column.
        path_column: the name of a column for each row's file.
    """
    places = _places(shape, tuple(fields))
    return _flat(_open_files(engine, view, shape, paths, places.values(), path_column), places, path_column)


@functools.lru_cache(maxsize=256)
def _places(shape: Shape, fields: tuple[str, ...]) -> Mapping[str, ColumnSource]:
    """Where the columns of files of a shape come from, paths into records included."""
    types = shape.types
    return {name: locate(name, types) for name in flat_types(types, fields)}


def _flat(table: ir.Table, places: Mapping[str, ColumnSource], path_column: str | None) -> ir.Table:
    columns = {name: value_at(table, place.path) for name, place in places.items()}
    return table.select(**columns, **({} if path_column is None else {path_column: table[path_column]}))


def _open_files(
    engine: Engine,
    view: str,
    shape: Shape,
    paths: Sequence[str],
    places: Iterable[ColumnSource],
    path_column: str | None,
) -> ir.Table:
    if shape.kind == FRAME:
        (table,) = paths
        return engine.named(view, table, **({} if path_column is None else {path_column: table}))
    folders = {name: shape.types[name] if shape.is_typed else dt.string for name in shape.folders}
    more: dict[str, Any] = {} if path_column is None else {"filename": path_column}
    more |= {"like": shape, "folders": folders}
    if shape.kind == "parquet":
        table = engine.reader(view, "read_parquet", list(paths), union_by_name=True, **more)
    elif shape.kind == "csv":
        texts = dict.fromkeys(shape.own, dt.string)
        table = engine.reader(
            view, "read_csv", list(paths), auto_detect=False, header=True, columns=texts,
            delim=shape.delimiter, quote='"', escape='"', max_line_size=MAX_LINE_BYTES, **more,
        )  # fmt: skip
    else:
        own = (place for place in places if place.path.fields[0] not in shape.folders)
        table = engine.reader(
            view, "read_json", list(paths), format="newline_delimited", columns=_as_text(own),
            maximum_object_size=MAX_LINE_BYTES, **more,
        )  # fmt: skip
    blank = [name for name, kind in folders.items() if kind.is_string()]
    # An empty text is null in a partition column of Delta.
    return table.mutate(**{name: table[name].nullif("") for name in blank}) if blank else table


def _as_text(places: Iterable[ColumnSource]) -> dict[str, ibis.DataType]:
    """The JSON columns that these places need, every value as text, without other fields."""
    columns: dict[str, ibis.DataType] = {}
    for place in places:
        path = place.path
        kind = dt.Array(dt.string) if path.list_at is None and place.kind.is_array() else dt.string
        for number in range(len(path.fields) - 1, 0, -1):
            kind = dt.Struct({path.fields[number]: kind})
            kind = dt.Array(kind) if number == path.list_at else kind
        name = path.fields[0]
        columns[name] = _merged(columns[name], kind) if name in columns else kind
    return columns


def _merged(one: ibis.DataType, other: ibis.DataType) -> ibis.DataType:
    """A type with the fields of both."""
    if one.is_array() and other.is_array():
        return dt.Array(_merged(one.value_type, other.value_type))
    if one.is_struct() and other.is_struct():
        fields = dict(one.items())
        for name, kind in other.items():
            fields[name] = _merged(fields[name], kind) if name in fields else kind
        return dt.Struct(fields)
    return other if other.is_nested() else one


def read(
    engine: Engine,
    view: str,
    log: str,
    settings: LogSettings,
    shape: Shape,
    paths: Sequence[str],
    id_types: Mapping[str, IdType],
    *,
    keep_raw: bool = False,
    path_column: str | None = None,
) -> ir.Table:
    """The canonical table of files of one shape; `path_column` adds which file a row is from."""
    fields = tuple(settings.columns.values())
    places = _places(shape, fields)
    table = _open_files(engine, view, shape, paths, places.values(), path_column)

    def rows() -> ir.Table:
        flat = _flat(table, places, path_column)
        further = None if shape.is_typed else flat_types(shape.types, fields)
        return only(canonical(flat, log, settings, id_types, keep_raw=keep_raw, further=further), settings)

    types = tuple(sorted(id_types.items()))
    return engine.once((table.op(), log, Same(settings), shape, types, keep_raw, path_column), rows)


def schema_of(
    log: str, settings: LogSettings, shape: Shape, id_types: Mapping[str, IdType]
) -> dict[str, ibis.DataType]:
    """The canonical columns of files of this shape, without opening one."""
    table = ibis.table(flat_types(shape.types, settings.columns.values()), name="shape")
    return dict(canonical(table, log, settings, id_types).schema().items())


def union(tables: Sequence[ir.Table]) -> ir.Table:
    """All rows of tables whose columns may differ: missing ones are null, clashing types become text.

    Where one table has a list, a single value of another is a list of one.
    """
    if len(tables) == 1:
        return tables[0]
    kinds: dict[str, list[ibis.DataType]] = {}
    for table in tables:
        for name, dtype in table.schema().items():
            kinds.setdefault(name, []).append(dtype)
    common = {name: _common(name, found) for name, found in kinds.items()}
    aligned = [
        table.select(
            **{
                name: _cast(table[name], dtype) if name in table.columns else ibis.null(dtype)
                for name, dtype in common.items()
            }
        )
        for table in tables
    ]
    return ibis.union(*aligned, distinct=False)


def _cast(column: ir.Value, kind: ibis.DataType) -> ir.Value:
    if column.type() == kind:
        return column
    if kind.is_array():
        if column.type().is_array():
            return column.map(lambda one: _cast(one, kind.value_type))
        one = _cast(column, kind.value_type)
        return ibis.ifelse(one.isnull(), ibis.null(kind), ibis.array([one]))
    return to_text(column) if kind.is_string() else column.try_cast(kind)


def _common(name: str, kinds: Sequence[ibis.DataType]) -> ibis.DataType:
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if any(kind.is_array() for kind in kinds):
        if name == c.VECTOR and all(kind.value_type.is_numeric() for kind in kinds if kind.is_array()):
            return dt.Array(dt.float64)  # a text is no list of numbers
        return dt.Array(_common(name, [kind.value_type if kind.is_array() else kind for kind in kinds]))
    return dt.float64 if all(kind.is_numeric() for kind in kinds) else dt.string
