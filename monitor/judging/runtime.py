"""The engines that one worker thread owns: the rules' GX context and the metrics' Ibis, on one database."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from monitor.engines.duckdb import Engine
from monitor.rules.engines.base import RuleEngine
from monitor.rules.engines.duckdb import DuckDBRuleEngine

_numbers = itertools.count(1)
_ONE_THREAD: Final = 250_000
"""Rows up to which one thread is faster than several: to wake the others takes longer than they save."""


class Runtime:
    """Both engines see the same tables. After an interrupt, `renew` opens new ones.

    `index` is the embedded engine that reads the index of the files; on DuckDB it is also the `engine`.

    Args:
        spill: a folder for what does not fit into `memory`.
        memory: the engine's own limit, such as `1GiB`.
        threads: default: one per core.
    """

    rules: RuleEngine
    engine: Engine
    index: Engine

    def __init__(self, spill: Path, *, memory: str = "1GiB", threads: int | None = None) -> None:
        self._most_threads = threads or os.cpu_count() or 1
        self._settings = {
            "memory_limit": memory,
            "threads": self._most_threads,
            "temp_directory": str(spill),
            # A window's files are read once; remembering their content would only grow.
            "enable_external_file_cache": False,
        }
        spill.mkdir(parents=True, exist_ok=True)
        self.judged = 0  # windows, since the engines were made
        self._open()

    def _open(self) -> None:
        self._open_embedded()

    def _open_embedded(self) -> DuckDBRuleEngine:
        pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own pool keeps what it once had
        rules = DuckDBRuleEngine(f"monitor_{os.getpid()}_{next(_numbers)}")
        self._limit(rules.connection)
        self.rules = rules
        self.engine = self.index = Engine(rules.cursor())
        self.judged = 0
        return rules

    def _limit(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._threads = self._most_threads
        for name, value in self._settings.items():
            connection.execute(f"SET {name} = ?", [value])
        # A bar would write over the monitor's own output. In a notebook without ipywidgets there is none, and
        # DuckDB refuses to set this.
        if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0][0]:
            connection.execute("SET enable_progress_bar = false")

    def fit(self, rows: int, *, anywhere: bool = True) -> None:  # noqa: ARG002
        """Choose what pays for a window of so many rows: the engine, and its threads.

        Unless `anywhere`, the engine of the config must judge it: another one could give another result.
        """
        threads = 1 if rows <= _ONE_THREAD else self._most_threads
        if threads != self._threads:
            self.index.cursor.execute("SET threads = ?", [threads])
            self._threads = threads

    def revived(self) -> str:
        """After an error: open what has ended, and say so; empty if nothing has."""
        return ""

    def give_back(self) -> None:
        """Return to the operating system the memory that the embedded engine has freed but still holds.

        After windows that is some 25 MiB. DuckDB has no statement for this, but it flushes its allocator, in
        3 ms, when the memory limit is set again.
        """
        self.index.cursor.execute("SET memory_limit = ?", [self._settings["memory_limit"]])

    def interrupt(self) -> None:
        """Stop what runs; from any thread. The running call ends with an exception."""
        self.rules.interrupt()

    def renew(self) -> None:
        """Close both engines, with every table, and open new ones."""
        self.close()
        self._open()

    def close(self) -> None:
        self.rules.close()
