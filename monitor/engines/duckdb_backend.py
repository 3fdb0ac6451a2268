"""Ibis' DuckDB backend with caches of compiled SQL and of parsed types."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final

import duckdb
import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import sqlglot.expressions as sge
from ibis.backends import BaseBackend
from ibis.backends.duckdb import Backend
from ibis.backends.sql.datatypes import DuckDBType
from ibis.common.exceptions import TableNotFound

_MOST: Final = 512  # expressions: a window repeats about a hundred of another window

_known: OrderedDict[Hashable, str] = OrderedDict()
_lock = threading.Lock()


class DuckDBBackend(Backend):  # type: ignore[misc]
    """Caches the SQL of recent expressions and the types of columns, for all backends of the process.

    To compile an expression takes longer than to run it on an hour of a log, and the next window asks the
    same: its tables have the same names, and the SQL names no database.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._keys: OrderedDict[ops.Node, Hashable] = OrderedDict()

    def compile(self, expr: ir.Expr, /, **options: Any) -> str:
        """The SQL of an expression."""
        if any(value is not None for value in options.values()):
            return str(super().compile(expr, **options))
        key = self._key_of(expr.op())
        if key is None:
            return str(super().compile(expr))
        with _lock:
            if (sql := _known.get(key)) is not None:
                _known.move_to_end(key)
                return sql
        sql = str(super().compile(expr))
        with _lock:
            _known[key] = sql
            if len(_known) > _MOST:
                _known.popitem(last=False)
        return sql

    def _key_of(self, op: ops.Node) -> Hashable | None:
        """The key of an expression; that of the very same one is looked up."""
        key = self._keys.get(op) or _key(op)
        if key is not None:  # else its rows would be kept alive
            self._keys[op] = key
            if len(self._keys) > _MOST:
                self._keys.popitem(last=False)
        return key

    def get_schema(
        self, table_name: str, *, catalog: str | None = None, database: str | None = None
    ) -> ibis.Schema:
        """The columns of a table. To parse the name of a type takes as long as a small query.

        Raises:
            TableNotFound: there is no such table.
        """
        place = sge.table_(table_name, db=database, catalog=catalog, quoted=True)
        try:
            columns = self.con.execute(sge.Describe(this=place).sql("duckdb")).fetchall()
        except duckdb.CatalogException as error:
            raise TableNotFound(table_name) from error
        return ibis.schema({name: _type(kind, null == "YES") for name, kind, null, *_ in columns})


@functools.lru_cache(maxsize=4096)
def _type(text: str, nullable: bool) -> ibis.DataType:
    return DuckDBType.from_string(text, nullable=nullable)


def _key(op: ops.Node) -> Hashable | None:
    """Everything that the SQL of an expression depends on; None if its rows are part of it.

    These are its operations with their arguments, each after those that it needs. Backends are left out: the
    cache would keep them and their databases alive.
    """
    numbers: dict[ops.Node, tuple[str, int]] = {}
    parts: list[Hashable] = []

    def part(value: Any) -> Hashable:
        if isinstance(value, ops.Node):
            return numbers[value]
        if isinstance(value, tuple):
            return tuple(map(part, value))
        if isinstance(value, Mapping):
            return tuple((name, part(item)) for name, item in value.items())
        if isinstance(value, BaseBackend):
            return None
        return value  # type: ignore[no-any-return]

    waiting = [op]
    while waiting:
        node = waiting[-1]
        if isinstance(node, ops.InMemoryTable):
            return None
        if node not in numbers and (needed := [child for child in node.__children__ if child not in numbers]):
            waiting += needed
            continue
        waiting.pop()
        if node not in numbers:
            parts.append((type(node), *map(part, node.__args__)))
            numbers[node] = ("node", len(numbers))
    return tuple(parts)
