"""The database in which a rule's SQL runs: it holds copies of the window's tables and reaches nothing else.

No file, no network, no extension, no other table, no environment; its configuration is locked. The engine's
own database cannot be locked like this: its tables are views over the files of the logs, and the setting
applies to a whole database.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import duckdb

from monitor.rules.queries import UnsafeQuery, over

_MOST_SPILLED: Final = "16GiB"  # of one recursive query: the disk is for the others too


class SealedDatabase:
    """Runs one SELECT at a time on copies of tables. It belongs to one thread; any thread may interrupt it.

    Args:
        memory, threads: as the engine's own database has them.
        spill: a folder of its own for what does not fit into the memory.

    >>> sealed = SealedDatabase("100MiB", 1, Path("/nowhere"))
    >>> sealed.fill("t", {"n": "BIGINT"}, duckdb.sql("SELECT range AS n FROM range(5)").to_arrow_reader())
    >>> sealed.rows("SELECT n FROM {batch} WHERE n > 2", "t", 1)
    [{'n': 3}]
    >>> sealed.rows("SELECT * FROM read_text('/etc/passwd'), {batch}", "t", 1)
    Traceback (most recent call last):
    _duckdb.PermissionException: ...
    """

    def __init__(self, memory: str, threads: int, spill: Path) -> None:
        self._connection = duckdb.connect(":memory:")
        settings: dict[str, Any] = {
            "TimeZone": "UTC",
            "memory_limit": memory,
            "threads": threads,
            "temp_directory": str(spill),
            "max_temp_directory_size": _MOST_SPILLED,
            "enable_progress_bar": False,
            "preserve_insertion_order": False,
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_access": False,
            "lock_configuration": True,
        }
        for name, value in settings.items():
            self._connection.execute(f"SET {name} = ?", [value])
        self._tables: set[str] = set()

    def holds(self, table: str) -> bool:
        """Whether a copy under this name is here."""
        return table in self._tables

    def fill(self, table: str, columns: Mapping[str, str], rows: Any) -> None:
        """Copy rows, as an Arrow reader gives them, into a table with columns of these DuckDB types."""
        types = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        self._connection.execute(f"CREATE OR REPLACE TABLE {quoted(table)} ({types})")
        self._tables.add(table)
        self._connection.register("rows_to_copy", rows)
        try:
            self._connection.execute(f"INSERT INTO {quoted(table)} SELECT * FROM rows_to_copy")  # noqa: S608
        finally:
            self._connection.unregister("rows_to_copy")

    def count_rows(self, table: str) -> int:
        """How many rows a copy has."""
        return self._count(f"SELECT * FROM {quoted(table)}")  # noqa: S608 - quoted

    def count(self, query: str, table: str) -> int:
        """How many rows a query over a copy gives.

        Raises:
            UnsafeQuery: it is not one SELECT.
        """
        return self._count(self._select(query, table))

    def rows(self, query: str, table: str, limit: int) -> list[dict[str, Any]]:
        """At most `limit` rows of a query over a copy; raises what `count` raises."""
        select = self._select(query, table)
        found = self._connection.execute(f"SELECT * FROM (\n{select}\n) AS found LIMIT {limit:d}")  # noqa: S608
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def release(self) -> None:
        """Drop every copy."""
        while self._tables:
            self._connection.execute(f"DROP TABLE IF EXISTS {quoted(self._tables.pop())}")

    def interrupt(self) -> None:
        """Stop what runs; from any thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the database, which frees it."""
        with suppress(duckdb.Error):
            self._connection.close()

    def _count(self, select: str) -> int:
        found = self._connection.execute(f"SELECT count(*) FROM (\n{select}\n) AS found").fetchone()  # noqa: S608
        return int(found[0]) if found else 0

    def _select(self, query: str, table: str) -> str:
        """The query with its table put in. DuckDB's own parser says that it is one SELECT, which no bracket
        or comment of it can then leave."""
        text = over(query, quoted(table)).rstrip("; \t\r\n\v\f")
        statements = self._connection.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UnsafeQuery("the query is not one SELECT")
        return text


def quoted(name: str) -> str:
    """A name as DuckDB quotes it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
