"""From files to one canonical table: learn a file's shape, open files of one shape together."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import duckdb
import ibis
import ibis.expr.types as ir
import sqlglot.expressions as sge

from monitor.logs import columns as c
from monitor.logs.canonical import IdType, canonical, only, source_names
from monitor.logs.engine import Engine
from monitor.logs.files import LogFile, filesystem, first_line, format_of
from monitor.logs.settings import LogSettings

MAX_LINE_BYTES = 16 << 20
_DELIMITERS = (",", "\t", ";", "|")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a file looks like: files of one shape are opened in one scan.

    `columns` are (name, type) in the file's order; for text formats the type is the one to try,
    since their values are read as text first.
    """

    kind: str
    columns: tuple[tuple[str, str], ...] = ()
    delimiter: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def scans_fast(self) -> bool:
        """Whether reading the files again costs less than a copy: flat Parquet."""
        return self.kind == "parquet" and not any(dtype.startswith("array") for _, dtype in self.columns)


def id_types(log: str, settings: LogSettings, shape: Shape) -> dict[str, IdType]:
    """Our id columns that a file has: whole numbers where it is Parquet and has them so, else text.

    >>> shape = Shape("parquet", (("sku", "int32"), ("price", "float64")))
    >>> id_types("catalog", LogSettings(path="x", columns={"item_id": "sku"}), shape)
    {'item_id': 'int64'}
    """
    kinds = dict(shape.columns)
    found: dict[str, IdType] = {}
    for ours, kind in c.TYPES[log].items():
        theirs = settings.columns.get(ours, ours)
        if kind == "id" and theirs in kinds:
            found[ours] = "int64" if shape.kind == "parquet" and _whole(kinds[theirs]) else "string"
    return found


@lru_cache(maxsize=4096)
def type_of(name: str) -> ibis.DataType:
    """The type that a shape names; what Ibis cannot read back, such as a record with odd keys, is text.

    >>> type_of("array<int64>").is_array(), type_of("struct<a b>: int64>")
    (True, String(length=None, nullable=True))
    """
    try:
        return ibis.dtype(name)
    except Exception:  # the parser's own, which has no public name
        return ibis.dtype("string")


def _whole(dtype: str) -> bool:
    kind = type_of(dtype)
    kind = kind.value_type if kind.is_array() else kind
    # pandas writes whole numbers with gaps as floating ones
    return (kind.is_integer() and str(kind) != "uint64") or kind.is_floating()


def open_filesystems(engine: Engine, settings: LogSettings) -> None:
    """Let the engine reach the URLs of a log."""
    for path in settings.paths:
        if "://" in path:
            engine.register(filesystem(settings, path)[0])


def sniff(engine: Engine, view: str, settings: LogSettings, file: LogFile) -> Shape:
    """The shape of a file; raises what the engine raises where it cannot be read."""
    kind = format_of(file.path, settings)
    if file.size == 0 and kind != "parquet":
        return Shape(kind)
    if kind == "csv":
        return _sniff_csv(engine, view, settings, file)
    if kind == "json":
        # All of the file: a key that only its last lines have would be missing from the table.
        options = {"format": "newline_delimited", "sample_size": -1, "map_inference_threshold": -1}
        options["maximum_object_size"] = MAX_LINE_BYTES
    else:
        options = {}
    schema = engine.reader(view, f"read_{kind}", [file.path], **options).schema()
    if kind == "json":
        _check_json(engine, view, settings, schema)
    return Shape(kind, tuple((name, str(dtype)) for name, dtype in schema.items()))


def _check_json(engine: Engine, view: str, settings: LogSettings, schema: ibis.Schema) -> None:
    """Raise where the lines cannot be made rows; the engine would give odd columns or texts instead."""
    if tuple(schema) == ("json",):
        raise ValueError("its lines are no JSON objects with keys")
    items = settings.columns.get(c.ITEM_ID, c.ITEM_ID)
    if items in schema and schema[items].is_json():  # values of several kinds, or none at all
        column = sge.to_identifier(items, quoted=True).sql("duckdb")
        query = f"SELECT bool_or(json_type({column}) = 'ARRAY') FROM {view}"  # noqa: S608 - quoted
        if engine.cursor.execute(query).fetchall()[0][0]:
            raise ValueError(f"{items!r} is a list in some lines and a single item in others")


def _sniff_csv(engine: Engine, view: str, settings: LogSettings, file: LogFile) -> Shape:
    """The header is read here: the engine's own guess would skip lines that it does not understand."""
    line = first_line(settings, file)
    delimiter = max(_DELIMITERS, key=line.count)
    header = next(csv.reader([line], delimiter=delimiter), [])
    if not header:
        raise ValueError("line 1 is blank; a CSV file starts with the names of its columns")
    if len(set(header)) < len(header):
        raise ValueError(f"the header names a column twice: {line[:200]!r}")
    try:
        guessed = engine.reader(view, "read_csv", [file.path], header=True, delim=delimiter).schema()
    except duckdb.InterruptException:
        raise
    except Exception:  # the reading itself will say what is wrong; here only types are guessed
        guessed = ibis.schema({})
    return Shape("csv", tuple((name, str(guessed.get(name, "string"))) for name in header), delimiter)


def open_shape(
    engine: Engine, view: str, shape: Shape, paths: Sequence[str], *, path_column: str | None = None
) -> ir.Table:
    """One table over all files of one shape, with the files' own columns, and one for the file's path."""
    more: dict[str, str] = {} if path_column is None else {"filename": path_column}
    if shape.kind == "parquet":
        return engine.reader(view, "read_parquet", list(paths), union_by_name=True, **more)
    types = {name: type_of(dtype) for name, dtype in shape.columns}
    as_text = {name: "VARCHAR[]" if one.is_array() else "VARCHAR" for name, one in types.items()}
    if shape.kind == "csv":
        return engine.reader(
            view, "read_csv", list(paths), auto_detect=False, header=True, columns=as_text,
            delim=shape.delimiter, quote='"', escape='"', max_line_size=MAX_LINE_BYTES, **more,
        )  # fmt: skip
    return engine.reader(
        view, "read_json", list(paths), format="newline_delimited", columns=as_text,
        maximum_object_size=MAX_LINE_BYTES, **more,
    )  # fmt: skip


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
    table = open_shape(engine, view, shape, paths, path_column=path_column)
    if shape.kind != "parquet":
        table = _further_types(table, log, settings, shape)
    return only(canonical(table, log, settings, id_types, keep_raw=keep_raw), settings)


def schema_of(
    log: str, settings: LogSettings, shape: Shape, id_types: Mapping[str, IdType]
) -> dict[str, ibis.DataType]:
    """The columns that files of this shape give, without opening one."""
    table = ibis.table({name: type_of(dtype) for name, dtype in shape.columns}, name="shape")
    return dict(canonical(table, log, settings, id_types).schema().items())


def _further_types(table: ir.Table, log: str, settings: LogSettings, shape: Shape) -> ir.Table:
    """Give columns that are not ours the type that their values look like; what does not fit is null."""
    known = set(c.TYPES[log])
    ours = {theirs for name, theirs in source_names(log, settings, shape.names).items() if name in known}
    casts = {
        name: table[name].try_cast(dtype)
        for name, dtype in ((n, type_of(t)) for n, t in shape.columns)
        if name not in ours and not dtype.is_array() and not dtype.is_string() and not dtype.is_nested()
        if dtype.is_numeric() or dtype.is_boolean() or dtype.is_timestamp() or dtype.is_date()
    }
    return table.mutate(**casts) if casts else table


def union(tables: Sequence[ir.Table]) -> ir.Table:
    """All rows of tables whose columns may differ: a missing one is null, clashing types become text."""
    if len(tables) == 1:
        return tables[0]
    kinds: dict[str, list[ibis.DataType]] = {}
    for table in tables:
        for name, dtype in table.schema().items():
            kinds.setdefault(name, []).append(dtype)
    common = {name: _common(found) for name, found in kinds.items()}
    aligned = [
        table.select(
            **{
                name: table[name].cast(dtype) if name in table.columns else ibis.null(dtype)
                for name, dtype in common.items()
            }
        )
        for table in tables
    ]
    return ibis.union(*aligned, distinct=False)


def _common(kinds: Sequence[ibis.DataType]) -> ibis.DataType:
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(kind.is_numeric() for kind in kinds):
        return ibis.dtype("float64")
    return ibis.dtype("array<string>" if all(kind.is_array() for kind in kinds) else "string")
