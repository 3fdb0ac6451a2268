"""The embedded engine: one DuckDB cursor behind Ibis, with deadlines and interrupts."""

from __future__ import annotations

import functools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import duckdb
import fsspec
import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.backends.duckdb.converter import DuckDBPyArrowData
from ibis.backends.sql.datatypes import DuckDBType

from monitor.core.results import Window
from monitor.engines.duckdb_backend import DuckDBBackend
from monitor.engines.folders import NO_FOLDERS, NO_VALUE, Folders, folder_values

if TYPE_CHECKING:
    import ibis.expr.types as ir

_POKE_SECONDS = 0.2
_MOST: Final = 256  # expressions and schemas: a window asks for about forty
_PATTERN = re.compile(r"([*?\[])")
_HIVE = re.compile(r"[/\\]([^/?\\=]+)=[^/?\\=\n]*(?=[/\\])")
_TIME = dt.Timestamp(scale=6)
_ADOPTED: Final = "adopted_rows"
_PATH: Final = "__monitor_path"


def _moment() -> object: ...


@functools.cache  # each call makes another function, equal to no other
def _remembered(name: str) -> ir.Value:
    return ibis.udf.scalar.builtin(_moment, name=name, signature=((), _TIME))()


@dataclass(frozen=True, slots=True)
class Spread:
    """A way to share work with other processes or machines.

    Attributes:
        apply: gives the results of a function for each of many items, in any order; close it to stop.
        fewest: with fewer items, to send the work away takes longer.
    """

    apply: Callable[[Callable[[Any], Any], Sequence[Any]], Generator[Any]]
    fewest: int


class DeadlineExceeded(Exception):
    """A run was interrupted because it took longer than it may."""


class Same:
    """A part of a key that stands for this very object, whatever it holds.

    >>> one = [1]
    >>> Same(one) == Same(one), Same(one) == Same([1])
    (True, False)
    """

    __slots__ = ("_of",)

    def __init__(self, of: object) -> None:
        self._of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._of is other._of

    def __hash__(self) -> int:
        return id(self._of)


class Engine:
    """Owned by one thread. Every connection of the same database sees the tables that it makes.

    `keeps_statements`: whether a query can be kept as text and run again. `distributed`: whether its rows are
    spread over tasks, so that it should sort groups of rows and not all of them. `spread`: how to share the
    work of many files; None if there is nobody to share it with.

    >>> engine = Engine(duckdb.connect())
    >>> int(engine.create("numbers", ibis.memtable({"n": [1, 2]})).count().execute())
    2
    """

    keeps_statements: ClassVar[bool] = True
    distributed: ClassVar[bool] = False
    spread: Spread | None = None

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.cursor = cursor
        self._tables: set[str] = set()  # that it made, and not yet dropped
        self._views: set[str] = set()
        self._built: OrderedDict[Hashable, ir.Table] = OrderedDict()
        self._schemas: OrderedDict[Hashable, ibis.Schema] = OrderedDict()
        self._kept: dict[str, tuple[Hashable, ir.Table]] = {}
        self.cursor.execute("SET TimeZone = 'UTC'")
        self.cursor.execute("SET preserve_insertion_order = false")
        self.backend = DuckDBBackend.from_connection(self.cursor)

    def once(self, key: Hashable, build: Callable[[], ir.Table]) -> ir.Table:
        """An expression that was built before under the same key, else built now.

        To build one takes longer than to run it on an hour of a log. The key holds everything that it depends
        on, such as the operation (`table.op()`) of the table that it reads: that names its columns.

        >>> engine = Engine(duckdb.connect())
        >>> first = engine.once("two", lambda: ibis.memtable({"n": [1, 2]}))
        >>> engine.once("two", lambda: ibis.memtable({"n": [3]})) is first
        True
        """
        return _remembered_in(self._built, key, build)

    def kept(self, name: str, key: Hashable, make: Callable[[], ir.Table]) -> ir.Table:
        """A table that stays from window to window: made anew where it is not there, or of another key."""
        held = self._kept.get(name)
        if held is None or held[0] != key:
            held = self._kept[name] = key, make()
        return held[1]

    def key_of(self, name: str) -> Hashable:
        """The key of a table of `kept`; None if there is none of that name."""
        held = self._kept.get(name)
        return None if held is None else held[0]

    def create(self, name: str, expression: ir.Table) -> ir.Table:
        """Store an expression as a table. It replaces a table or view of that name."""
        if expression.op().find(ops.InMemoryTable):  # its rows must be registered first
            self._forget(name)
            self.backend.create_table(name, expression)
            self._tables.add(name)
            return self.backend.table(name)
        return self.fill(name, self.filling(name, expression))

    def view(self, name: str, expression: ir.Table) -> ir.Table:
        """Give an expression a name without computing it."""
        return self._view(name, self.select(expression), expression.op())

    def view_of_group(self, name: str, table: str, column: str, value: int) -> None:
        """Make a view of the rows of a stored table with this number in a column, without the column.

        >>> engine = Engine(duckdb.connect())
        >>> _ = engine.create("numbers", ibis.memtable({"n": [1, 2], "group": [0, 1]}))
        >>> engine.view_of_group("second", "numbers", "group", 1)
        >>> engine.cursor.table("second").fetchall()
        [(2,)]
        """
        place = _quoted(column)
        rows = f"SELECT * EXCLUDE ({place}) FROM {_quoted(table)} WHERE {place} = {value:d}"  # noqa: S608
        self._make(name, f"CREATE VIEW {_quoted(name)} AS {rows}")
        self._views.add(name)

    def view_of_span(self, name: str, expression: ir.Table, column: str, span: Window) -> ir.Table:
        """A view of the rows whose time (without a zone) is in a span; only the edges vary by span."""
        return self._view(name, self._of_span(expression, column, span), expression.op())

    def table_of_span(self, name: str, expression: ir.Table, column: str, span: Window) -> ir.Table:
        """As `view_of_span`, with the rows stored."""
        self._make(name, f"CREATE TABLE {_quoted(name)} AS {self._of_span(expression, column, span)}")
        self._tables.add(name)
        return self._like(name, expression.op())

    def _of_span(self, expression: ir.Table, column: str, span: Window) -> str:
        start, end = (
            f"TIMESTAMP '{edge.replace(tzinfo=None).isoformat(' ')}'" for edge in (span.start, span.end)
        )
        rows, time = f"FROM ({self.select(expression)}) AS log", f"log.{_quoted(column)}"
        return f"{rows} WHERE {time} >= {start} AND {time} < {end}"

    def _view(self, name: str, query: str, like: Hashable = None) -> ir.Table:
        self._make(name, f"CREATE VIEW {_quoted(name)} AS {query}")
        self._views.add(name)
        return self._like(name, like)

    def _like(self, name: str, like: Hashable) -> ir.Table:
        """A stored table; its columns are those of an earlier one of its name on the operation `like`."""
        if like is None:
            return self.backend.table(name)
        schema = _remembered_in(self._schemas, (name, like), lambda: self.backend.table(name).schema())
        return ops.DatabaseTable(name, schema=schema, source=self.backend).to_expr()

    def select(self, expression: ir.Table) -> str:
        """The SQL of an expression."""
        return str(self.backend.compile(expression))

    def filling(self, name: str, expression: ir.Table) -> str:
        """The statements that store an expression as a table. There must be no table of that name."""
        schema = expression.schema()
        place = sge.to_identifier(name, quoted=True)
        columns = schema.to_sqlglot_column_defs("duckdb")
        make = sge.Create(kind="TABLE", this=sge.Schema(this=sge.Table(this=place), expressions=columns))
        names = ", ".join(map(_quoted, schema.names))
        insert = f"INSERT INTO {place.sql('duckdb')} ({names}) {self.select(expression)}"
        return f"{make.sql('duckdb')}; {insert}"

    def fill(self, name: str, statement: str, schema: ibis.Schema | None = None) -> ir.Table:
        """Run the statements of `filling`. The columns are looked up unless `schema` is given."""
        self._make(name, statement)
        self._tables.add(name)
        if schema is None:
            return self.backend.table(name)
        return ops.DatabaseTable(name, schema=schema, source=self.backend).to_expr()

    def rows(self, statement: str, schema: ibis.Schema) -> list[dict[str, Any]]:
        """The rows of a query from `select`, with values of the expression's types."""
        table = self.cursor.execute(statement).to_arrow_table()
        rows: list[dict[str, Any]] = DuckDBPyArrowData.convert_table(table, schema).to_pylist()
        return rows

    def remember(self, name: str, moment: datetime) -> None:
        """Set a time (without a zone) that statements of this cursor alone read by `remembered`."""
        text = moment.isoformat(" ")
        self.cursor.execute(f"CREATE OR REPLACE TEMP MACRO {_quoted(name)}() AS TIMESTAMP '{text}'")

    def remembered(self, name: str) -> ir.Value:
        """The last time set under a name, as an expression; it is read when the statement runs."""
        return _remembered(name)

    def reader(
        self,
        name: str,
        function: str,
        paths: list[str],
        *,
        like: Hashable = None,
        folders: Folders = NO_FOLDERS,
        **options: Any,
    ) -> ir.Table:
        """A view over files: `read_parquet`, `read_csv` or `read_json`. sqlglot quotes all values.

        Types among the options are those of Ibis. A path names one file: `a[1].csv` is not a pattern. Files
        that are equally `like` have the same columns; these are looked up once. `folders` are the columns to
        take from folders named `key=value`; no other folder gives a column.
        """
        rows, options = _with_folders(paths, folders, options)
        key = None if like is None else (function, like, rows, repr(options))
        return self._view(name, f"{rows} {self.call(function, paths, **options)}", key)

    def call(self, function: str, paths: list[str], **options: Any) -> str:
        """The SQL of a table function on files; see `reader`."""
        call = sge.Anonymous(
            this=function,
            expressions=[_literal([_PATTERN.sub(r"[\1]", path) for path in paths])]
            + [sge.EQ(this=sge.to_identifier(k), expression=_literal(v)) for k, v in options.items()],
        )
        return str(call.sql("duckdb"))

    def adopt(self, name: str, rows: pa.Table) -> ir.Table:
        """Store an Arrow table as a table of this database. DuckDB copies the columns; Python sees no row.

        >>> engine = Engine(duckdb.connect())
        >>> int(engine.adopt("numbers", pa.table({"n": [1, 2]})).count().execute())
        2
        """
        self._forget(name)
        self.cursor.register(_ADOPTED, rows)  # seen by this cursor alone; rules read on another one
        try:
            self.cursor.execute(f"CREATE TABLE {_quoted(name)} AS FROM {_ADOPTED}")
        finally:
            self.cursor.unregister(_ADOPTED)
        self._tables.add(name)
        return self.backend.table(name)

    def named(self, name: str, table: str, **texts: str) -> ir.Table:
        """A view of a table under another name, with further columns that hold one text each."""
        more = "".join(f", {_literal(text).sql('duckdb')} AS {_quoted(key)}" for key, text in texts.items())
        return self._view(name, f"SELECT *{more} FROM {_quoted(table)}")  # noqa: S608 - quoted

    def empty(self, name: str, schema: ibis.Schema) -> ir.Table:
        """A table without rows. It replaces a table or view of that name."""
        self._forget(name)
        made = self.backend.create_table(name, schema=schema)
        self._tables.add(name)
        return made

    def relation(self, table: ir.Table) -> duckdb.DuckDBPyRelation:
        """A table or view of this engine, for code that writes rows to local files."""
        return self.cursor.table(table.get_name())

    def drop(self, *names: str) -> None:
        """Remove tables or views if they exist."""
        for name in names:
            self._forget(name)

    def _make(self, name: str, statement: str) -> None:
        """Run the statement that makes a table or view, in place of that of the same name.

        A name that this engine has not made is free, nearly always; to drop it first would cost as much as a
        small query.
        """
        self._kept.pop(name, None)
        if name in self._tables or name in self._views:
            self._forget(name)
        try:
            self.cursor.execute(statement)
        except duckdb.CatalogException as error:
            if "already exists" not in str(error):
                raise
            self._forget(name)  # another cursor made it
            self.cursor.execute(statement)

    def _forget(self, name: str) -> None:
        """Drop a table or view, if there is one."""
        self._kept.pop(name, None)
        kinds = ("TABLE", "VIEW") if name in self._tables else ("VIEW", "TABLE")
        try:
            self.cursor.execute(f"DROP {kinds[0]} IF EXISTS {_quoted(name)}")
        except duckdb.CatalogException:  # it is of the other kind
            self.cursor.execute(f"DROP {kinds[1]} IF EXISTS {_quoted(name)}")
        self._tables.discard(name)
        self._views.discard(name)

    def register(self, filesystem: fsspec.AbstractFileSystem) -> None:
        """Let the engine open URLs of this filesystem's protocol."""
        protocols = filesystem.protocol
        wanted = {protocols} if isinstance(protocols, str) else set(protocols)
        if present := wanted & set(self.cursor.list_filesystems()):
            for protocol in present:
                self.cursor.unregister_filesystem(protocol)
        self.cursor.register_filesystem(filesystem)

    def interrupt(self) -> None:
        """Stop the running statement; callable from any thread."""
        self.cursor.interrupt()


@contextmanager
def deadline(seconds: float, *interrupts: Callable[[], None]) -> Iterator[threading.Event]:
    """Once the time is over, call the interrupts repeatedly until the block ends.

    Once is not enough: an interrupt between two statements is lost. Any exception of the block then becomes
    DeadlineExceeded. A block that ends too late raises it as well: the interrupts may have hit any statement,
    so its engine must not be used again.
    """
    done, over = threading.Event(), threading.Event()
    why = f"took longer than its deadline of {seconds:g} s"

    def watch() -> None:
        if done.wait(seconds):
            return
        over.set()
        while True:
            for interrupt in interrupts:
                interrupt()
            if done.wait(_POKE_SECONDS):
                return

    watcher = threading.Thread(target=watch, name="deadline", daemon=True)
    watcher.start()
    try:
        yield over
    except Exception as exc:
        if over.is_set():
            raise DeadlineExceeded(why) from exc
        raise
    finally:
        done.set()
        watcher.join()
    if over.is_set():
        raise DeadlineExceeded(why)


_Value = TypeVar("_Value")


def _remembered_in(held: OrderedDict[Hashable, _Value], key: Hashable, make: Callable[[], _Value]) -> _Value:
    if key in held:
        held.move_to_end(key)
        return held[key]
    held[key] = made = make()
    if len(held) > _MOST:
        held.popitem(last=False)
    return made


def _with_folders(
    paths: Sequence[str], folders: Folders, options: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The beginning of a query that reads these columns from the folders of files, and the options for it."""
    if not folders:
        return "FROM", {**options, "hive_partitioning": False}
    if all(set(_of_engine(path)) == set(folders) == set(folder_values(path)) for path in paths):
        return "FROM", {**options, "hive_partitioning": True, "hive_types": dict(folders)}
    # The engine would take all folders of these paths as columns, and hide those of the files.
    file = options.get("filename", _PATH)
    columns = [
        f"{_in_folder(file, key)}::{DuckDBType.to_string(folders[key])} AS {_quoted(key)}" for key in folders
    ]
    every = "*" if "filename" in options else f"* EXCLUDE ({_quoted(file)})"
    return (
        f"SELECT {every}, {', '.join(columns)} FROM",
        {**options, "hive_partitioning": False, "filename": file},
    )


def _of_engine(path: str) -> list[str]:
    """The keys of the folders that the engine itself finds in a path."""
    return _HIVE.findall(path)


def _in_folder(file: str, key: str) -> str:
    """SQL for the value of the first folder of a key in the path of a row's file."""
    pattern = _literal(rf"(?:^|/){re.escape(key)}=([^/?]*)/").sql("duckdb")
    text = f"nullif(regexp_extract({_quoted(file)}, {pattern}, 1), {_literal(NO_VALUE).sql('duckdb')})"
    return f"url_decode({text})"


@functools.lru_cache(maxsize=4096)
def _quoted(name: str) -> str:
    return str(sge.to_identifier(name, quoted=True).sql("duckdb"))


def _literal(value: Any) -> sge.Expression:
    if isinstance(value, dt.DataType):
        return sge.Literal.string(DuckDBType.to_string(value))
    if isinstance(value, dict):
        return sge.Struct(
            expressions=[
                sge.PropertyEQ(this=sge.Literal.string(key), expression=_literal(element))
                for key, element in value.items()
            ]
        )
    if isinstance(value, list | tuple):
        return sge.Array(expressions=[_literal(element) for element in value])
    if isinstance(value, bool):
        return sge.Boolean(this=value)
    if isinstance(value, int | float):
        return sge.Literal.number(str(value))
    return sge.Literal.string(str(value))
