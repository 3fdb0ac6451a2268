"""Limits of one file. A file beyond them is skipped, so that it cannot stop all recommenders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import duckdb

from monitor.core.columns import TYPES
from monitor.core.settings import show_duration
from monitor.core.text import quoted
from monitor.engines.duckdb import DeadlineExceeded, Engine, deadline
from monitor.settings.logs import LogSettings

MAX_LINE_BYTES: Final = 16 << 20
MOST_WINDOWS: Final = 1_000_000  # that the rows of one file may be in
_LONG_LINE: Final = 1 << 16
_LONGEST_TYPE: Final = 60  # letters, for one column of a record
_KEYS_SHARE: Final = 5  # the steps after the search for keys take up to 4 times as long, without interrupt


class BeyondLimit(ValueError):
    """A file is larger than a setting allows."""


def too_slow(settings: LogSettings) -> str:
    """The reason why a slow file is skipped."""
    return f"reading it takes longer than {show_duration(settings.file_deadline)}; {_advice('file_deadline')}"


def check_size(settings: LogSettings, size: int) -> None:
    """Raise BeyondLimit if a file has too many bytes."""
    if size > settings.max_file_size:
        limit = settings.max_file_size.human_readable(decimal=True)
        raise BeyondLimit(f"it holds more than {limit}; {_advice('max_file_size')}")


def check_line(length: int) -> None:
    """Raise BeyondLimit if a line is longer than the engine reads."""
    if length > MAX_LINE_BYTES:
        raise BeyondLimit(f"a line is longer than {MAX_LINE_BYTES >> 20} MiB")


def check_rows(settings: LogSettings, rows: int) -> None:
    """Raise BeyondLimit if a file has too many rows."""
    if rows > settings.max_rows:
        raise BeyondLimit(f"it holds more than {settings.max_rows:,} rows; {_advice('max_rows')}")


def check_columns(settings: LogSettings, count: int) -> None:
    """Raise BeyondLimit if a file has too many columns."""
    if count > settings.max_columns:
        raise BeyondLimit(
            f"it has more than {settings.max_columns:,} columns or keys; {_advice('max_columns')}"
        )


def check_parquet(engine: Engine, settings: LogSettings, path: str) -> None:
    """Raise BeyondLimit if the footer of a Parquet file names too many rows or columns.

    Raises ValueError if it names a column of the monitor twice.
    """
    rows = f"SELECT sum(num_rows) FROM {engine.call('parquet_file_metadata', [path])}"  # noqa: S608 - quoted
    check_rows(settings, int(engine.cursor.execute(rows).fetchall()[0][0] or 0))
    nodes = f"SELECT name, num_children FROM {engine.call('parquet_schema', [path])}"  # noqa: S608 - quoted
    found = engine.cursor.execute(nodes).fetchall()
    check_columns(settings, len(found) - 1)
    _check_names(settings, _at_the_top(found))


def check_json(engine: Engine, settings: LogSettings, path: str) -> None:
    """Raise BeyondLimit if lines of JSON have too many keys, ValueError if a column of the monitor has two.

    This runs before the engine detects the types of JSON, because that cannot be interrupted.
    """
    lines = engine.call("read_ndjson_objects", [path], maximum_object_size=MAX_LINE_BYTES, ignore_errors=True)
    keys = f"SELECT DISTINCT unnest(json_keys(json)) FROM {lines} LIMIT {settings.max_columns + 1}"  # noqa: S608 - quoted
    longest = f"SELECT max(strlen(json)) FROM {lines}"  # noqa: S608 - quoted
    try:
        with deadline(settings.file_deadline.total_seconds() / _KEYS_SHARE, engine.interrupt):
            found = [name for (name,) in engine.cursor.execute(keys).fetchall()]
            check_columns(settings, len(found))
            _check_names(settings, sorted(found))
            has_long_lines = (engine.cursor.execute(longest).fetchall()[0][0] or 0) > _LONG_LINE
    except DeadlineExceeded as exc:
        raise BeyondLimit(too_slow(settings)) from exc
    if has_long_lines:  # a record in one column may have many keys of its own
        length = sum(map(len, _types(engine, path)))
        if length > _LONGEST_TYPE * settings.max_columns:
            check_columns(settings, settings.max_columns + 1)


def _at_the_top(nodes: Iterable[tuple[str, int | None]]) -> list[str]:
    """The names of a schema's columns, without the fields of records; the root and then depth first.

    >>> _at_the_top([("schema", 2), ("items", 1), ("element", None), ("ts", None)])
    ['items', 'ts']
    """
    names, open_nodes = list[str](), list[int]()
    for name, children in nodes:
        if len(open_nodes) == 1:
            names.append(name)
        if open_nodes:
            open_nodes[-1] -= 1
        if children:
            open_nodes.append(children)
        while open_nodes and open_nodes[-1] == 0:
            open_nodes.pop()
    return names


def _check_names(settings: LogSettings, names: Iterable[str]) -> None:
    """Raise ValueError if a column that is read has two names: engines do not tell `Score` from `score`."""
    read = {name.lower() for names in TYPES.values() for name in names}
    read |= {text.lower() for text in settings.columns.values()}
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(name.lower(), name)
        if other is not name and name.lower() in read:
            raise ValueError(f"it names a column twice: {quoted(other)} and {quoted(name)}; rename one")


def _types(engine: Engine, path: str) -> list[str]:
    call = engine.call(
        "read_json", [path], format="newline_delimited", sample_size=-1, map_inference_threshold=-1,
        maximum_object_size=MAX_LINE_BYTES, hive_partitioning=False,
    )  # fmt: skip
    try:
        return [row[1] for row in engine.cursor.execute(f"DESCRIBE FROM {call}").fetchall()]
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # reading the file reports what is wrong
        return []


def _advice(setting: str) -> str:
    return f"if the file is correct, raise {setting} of this log"
