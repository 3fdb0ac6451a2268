"""Maps our columns to columns and record paths of a file, and checks that their types fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.record_path import LIST, Path, is_path, parse
from monitor.core.text import NAME_LENGTH, cut, quoted
from monitor.settings.logs import LogSettings

Types = Mapping[str, dt.DataType]

_SHOWN = 8
# These belong to an item. They may be lists if the items are a list.
_OF_AN_ITEM = (c.ITEM_ID, c.POSITION, c.SCORE, c.PROPENSITY, c.SCENE, c.MODEL, c.ARM)
_WANTED: Mapping[str, str] = {
    "id": "an id",
    "time": "a time",
    "integer": "a whole number",
    "number": "a number",
    "text": "a text",
    "split": "the name of a split",
    "texts": "a text or a list of texts",
    "numbers": "a list of numbers",
}
_ROW_OF = {
    c.EXPOSURES: "request",
    c.FEEDBACK: "action",
    c.CATALOG: "item",
    c.USERS: "user",
    c.SAMPLES: "sample",
    c.SURVEY: "answer",
}


class PathNotFoundError(LookupError):
    """The file has no such column or field."""


class PathMismatchError(ValueError):
    """The file has this column or field in another form; the message says what to write."""


def is_flat(kind: dt.DataType) -> bool:
    """Whether values of this type can be a column: single ones, and lists of single ones.

    >>> [is_flat(dt.dtype(one)) for one in ("int64", "array<string>", "struct<a: int64>")]
    [True, True, False]
    """
    return not (kind.value_type if kind.is_array() else kind).is_nested()


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """The place of a column in a file.

    Attributes:
        path: the path to it.
        kind: its type; a list if the path walks a list.
        untyped: the part of the path whose form the schema leaves open, with the form that it must have:
            `a list`, `a record` or `a single value`.
    """

    path: Path
    kind: dt.DataType
    untyped: tuple[Path, str] | None = None


def locate(text: str, types: Types) -> ColumnSource:
    """Find a column or path in a file; a column with exactly this name wins over the path.

    Args:
        text: a column's name or a path, as in `recs[].iid`.
        types: the file's columns.

    Raises:
        PathNotFoundError: there is no such column or field.
        PathMismatchError: a list is walked without `[]`, a single value is walked, and the like.

    >>> types = {"recs": dt.dtype("array<struct<iid: int64, rank: int8>>")}
    >>> str(locate("recs[].iid", types).kind)
    'array<int64>'
    """
    path = Path((text,)) if text in types else parse(text)
    if path.fields[0] not in types:
        raise PathNotFoundError(f"the file has {_names(types)}")
    kind, way = types[path.fields[0]], Path(path.fields[:1])
    for number, field in enumerate(path.fields[1:], start=1):
        if number == path.list_at:
            if kind.is_json():
                return ColumnSource(path, dt.Array(dt.string), (way, "a list"))
            if not kind.is_array():
                raise PathMismatchError(f"{quoted(way)} is {describe(kind)}, not a list: write it without []")
            kind, way = kind.value_type, Path(way.fields, number)
        if kind.is_json():
            unknown = dt.string if path.list_at is None else dt.Array(dt.string)
            return ColumnSource(path, unknown, (way, "a record"))
        if kind.is_array():
            raise PathMismatchError(_list_on_the_way(path, way, number, kind))
        if not kind.is_struct():
            raise PathMismatchError(f"{quoted(way)} is {describe(kind)} and has no fields")
        if field not in kind.names:
            raise PathNotFoundError(f"the fields of {quoted(way)} are {_names(kind.names)}")
        kind, way = kind[field], Path((*way.fields, field), way.list_at)
    single = kind.value_type if kind.is_array() else kind
    return ColumnSource(
        path,
        dt.Array(kind) if path.list_at is not None else kind,
        (path, "a single value") if single.is_json() else None,
    )


def _list_on_the_way(path: Path, way: Path, number: int, kind: dt.DataType) -> str:
    found = f"{quoted(way)} is {describe(kind)}"
    if path.list_at is not None:
        return f"{found}; a path may go through one list: write one row for each record of {path.list_name!r}"
    return f"{found}: write {way}{LIST}.{'.'.join(path.fields[number:])}"


def value_at(table: ir.Table, path: Path) -> ir.Value:
    """The values of a path: a list in each row if the path walks a list.

    >>> import ibis
    >>> schema = {"recs": "array<struct<iid: int64>>"}
    >>> rows = ibis.memtable({"recs": [[{"iid": 7}, {"iid": 8}]]}, schema=schema)
    >>> [list(one) for one in value_at(rows, parse("recs[].iid")).execute()]
    [[7, 8]]
    """
    edge = len(path.fields) if path.list_at is None else path.list_at
    value = reduce(_field, path.fields[1:edge], table[path.fields[0]])
    if path.list_at is None:
        return value
    return value.map(lambda one: reduce(_field, path.fields[edge:], one))


def _field(value: ir.Value, name: str) -> ir.Value:
    return value[name]


def readable_paths(types: Types) -> dict[str, dt.DataType]:
    """Every name and path in a file of these types that `columns` can name, with its type.

    Maps, lists of lists, and fields with a dot or `[]` in their names cannot be named.

    >>> recs = dt.dtype("array<struct<iid: int64, tags: array<string>>>")
    >>> list(readable_paths({"uid": dt.int64, "recs": recs, "ab": dt.dtype("struct<exp: string>")}))
    ['uid', 'recs[].iid', 'ab.exp']
    """
    found: dict[str, dt.DataType] = {}
    for name, kind in types.items():
        if is_flat(kind):
            found[name] = kind
        else:
            inner = {str(path): one for path, one in _inside(Path((name,)), kind) if _addresses(path)}
            found |= {text: one for text, one in inner.items() if text not in types}
    return found


def _addresses(path: Path) -> bool:
    return is_path(str(path)) and parse(str(path)) == path


def _inside(path: Path, kind: dt.DataType) -> Iterator[tuple[Path, dt.DataType]]:
    if kind.is_struct():
        for name, inner in kind.items():
            yield from _inside(Path((*path.fields, name), path.list_at), inner)
    elif kind.is_array() and kind.value_type.is_struct() and path.list_at is None:
        yield from _inside(Path(path.fields, len(path.fields)), kind.value_type)
    elif path.list_at is None and is_flat(kind):
        yield path, kind
    elif not kind.is_nested():
        yield path, dt.Array(kind)


def flat_types(types: Types, paths: Iterable[str] = ()) -> dict[str, dt.DataType]:
    """The columns of a table over such files: the flat ones, and the paths that lead to values."""
    found = {name: kind for name, kind in types.items() if is_flat(kind)}
    for text in paths:
        try:
            kind = locate(text, types).kind
        except (PathNotFoundError, PathMismatchError):
            continue
        if is_flat(kind):
            found.setdefault(text, kind)
    return found


def source_names(log: str, settings: LogSettings, present: Iterable[str]) -> dict[str, str]:
    """Our column -> the file's column, for all columns of the file; further ones keep their names.

    A column that the settings name otherwise is never the file's own column of that name.

    >>> source_names("catalog", LogSettings(path="x", columns={"item_id": "sku"}), ["sku", "price"])
    {'item_id': 'sku', 'price': 'price'}
    """
    available = list(present)
    names = {ours: theirs for ours, theirs in settings.columns.items() if theirs in available}
    names |= {one: one for one in c.TYPES[log] if one in available and one not in settings.columns}
    taken = {name.lower() for name in (*names.values(), *names, *settings.columns)}
    return names | {one: one for one in available if one.lower() not in taken}


def column_problems(log: str, settings: LogSettings, types: Types) -> list[str]:
    """A sentence for each column that a file lacks, or whose name or form cannot be read.

    >>> types = {"recs": dt.dtype("array<struct<iid: int64, rank: int8>>")}
    >>> column_problems("catalog", LogSettings(path="x", columns={"item_id": "recs[].rank"}), types)
    ["column item_id: 'recs[].rank' is a list, not an id; each row of the catalog must be one item"]
    """
    needed = dict.fromkeys((*c.REQUIRED[log], *settings.only))
    named = dict.fromkeys((*needed, *c.TYPES[log], *settings.columns))
    found: dict[str, dt.DataType] = {}
    reserved = (name for name in types if name.lower().startswith(c.RESERVED))
    problems = [
        f"column {quoted(name)}: names that begin with {c.RESERVED} are the monitor's own; rename it"
        for name in reserved
    ]
    for ours in named:
        theirs = settings.columns.get(ours, ours)
        try:
            found[ours] = locate(theirs, types).kind
        except PathNotFoundError as exc:
            if ours in needed:
                problems.append(f"column {ours} (looked for as {quoted(theirs)}) is missing; {exc}")
        except PathMismatchError as exc:
            problems.append(f"column {ours}: {exc}")
    nested = log == c.EXPOSURES and c.ITEM_ID in found and found[c.ITEM_ID].is_array()
    for ours, kind in found.items():
        if why := _misfit(log, settings, ours, kind, types, nested=nested):
            problems.append(f"column {ours}: {quoted(settings.columns.get(ours, ours))} is {why}")
    return problems


def _misfit(
    log: str, settings: LogSettings, ours: str, kind: dt.DataType, types: Types, *, nested: bool
) -> str | None:
    """What is wrong with the type of a column; None if it can be read."""
    role = c.TYPES[log].get(ours)
    wanted = "a single value" if role is None else _WANTED[role]
    if not is_flat(kind):
        return f"{describe(kind)}, not {wanted}; {_instead(ours, role, settings, types)}"
    if not kind.is_array():
        return None
    if ours in settings.only and not nested:
        return f"{describe(kind)}; `only` compares single values"
    if role in ("texts", "numbers") or (role is None and not nested):
        return None
    if nested and (role is None or ours in _OF_AN_ITEM):
        return None
    if log == c.EXPOSURES and ours in _OF_AN_ITEM:
        return (
            f"{describe(kind)}, not {wanted}: it may be a list only if item_id is a list of the same length"
        )
    return f"{describe(kind)}, not {wanted}; each row of the {log} must be one {_ROW_OF[log]}"


def describe(kind: dt.DataType) -> str:
    """A type in words.

    >>> describe(dt.dtype("array<struct<iid: int64, rank: int8>>"))
    "a list of records {'iid', 'rank'}"
    """
    if kind.is_struct():
        return f"a record {{{_names(kind.names)}}}"
    if kind.is_map():
        return "a map"
    if kind.is_array():
        inner = kind.value_type
        if inner.is_struct():
            return f"a list of records {{{_names(inner.names)}}}"
        return "a list of lists" if inner.is_array() else "a list of maps" if inner.is_map() else "a list"
    return f"a single value ({cut(str(kind), NAME_LENGTH)})"


def _instead(ours: str, role: str | None, settings: LogSettings, types: Types) -> str:
    """Advice on which paths into a record to write for a column, the best match first."""
    theirs = settings.columns.get(ours, ours)
    below = [
        one
        for one in readable_paths(types)
        if one.startswith((f"{theirs}.", f"{theirs}{LIST}.")) and one.isprintable() and len(one) <= 80
    ]

    def unlike(text: str) -> tuple[bool, ...]:
        name = parse(text).fields[-1].lower()
        kind = locate(text, types).kind
        inner = kind.value_type if kind.is_array() else kind
        return (name != ours, role == "id" and not name.endswith("id"), _unfit(role, inner))

    best = sorted(below, key=unlike)
    if not best:
        return "no path can read single values from it: write them as separate columns"
    others = f" (or {', '.join(best[1:4])})" if len(best) > 1 else ""
    return f"write {ours}: {best[0]}{others}"


def _unfit(role: str | None, kind: dt.DataType) -> bool:
    numeric = role in ("integer", "number", "numbers")
    return (numeric and not kind.is_numeric()) or (role == "time" and kind.is_boolean())


def _names(names: Iterable[str]) -> str:
    every = list(names)
    more = f", ... ({len(every)} in all)" if len(every) > 2 * _SHOWN else ""
    return ", ".join(quoted(one, NAME_LENGTH) for one in every[: 2 * _SHOWN if more else None]) + more
