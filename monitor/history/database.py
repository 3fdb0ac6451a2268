"""Opening the database and its two kinds of transactions: one consistent reading, one writer at a time."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, select

from monitor.history.errors import Fault, StoreError, shown, translated
from monitor.history.migrate import migrate

log = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 30.0
"""A writer that sends no statement for so long is ended by PostgreSQL. Less than a lease lasts."""
_VACUUM: Final = "VACUUM"
_FREE_PAGES: Final = 1000  # less is not worth the time
_LOCK: Final = 7_305_142_811  # the advisory lock that makes PostgreSQL write one at a time, as SQLite does
_WRITE: Final = "history_write"


class Database:
    """A database with the schema of this version. Raises StoreError if it cannot be opened or upgraded."""

    def __init__(self, url: URL, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            _make_folder(url)
        # hide_parameters: an error's text must not carry what a log held.
        self._engine = create_engine(
            url, hide_parameters=True, connect_args=self._connect_args(wait_seconds), pool_pre_ping=True
        )
        self._writer: Engine = self._engine
        self._reader: Engine = self._engine
        if self.is_sqlite:
            event.listen(self._engine, "connect", _configure_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)
            self._writer = self._engine.execution_options(**{_WRITE: True})
        else:
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ")
        self._file: tuple[int, int] | None = None  # device and inode of the SQLite file in use
        try:
            with self.writing() as connection:
                upgraded = migrate(connection)
            if upgraded and self.is_sqlite:
                self._shrink()
            self._file = _identity(url) if self.is_sqlite else None
        except BaseException:
            self.close()
            raise

    def _shrink(self) -> None:
        """Give back the space of an SQLite file that an upgrade has left free, if it is most of the file.

        A failure is no loss: later windows use the free space.
        """
        try:
            with self._engine.connect() as connection:
                cursor = connection.connection.cursor()  # outside of a transaction, where VACUUM must run
                (free,) = cursor.execute("PRAGMA freelist_count").fetchone()
                (pages,) = cursor.execute("PRAGMA page_count").fetchone()
                if free > _FREE_PAGES and 2 * free > pages:
                    log.warning("giving back the free space of the history")
                    cursor.execute(_VACUUM)
                    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                cursor.close()
        except sqlite3.Error as error:
            log.warning("the file of the history keeps its size after the upgrade: %s", error)

    def _connect_args(self, wait_seconds: float) -> dict[str, Any]:
        if self.is_sqlite:
            return {"timeout": wait_seconds}
        wait = int(wait_seconds * 1000)
        return {
            "connect_timeout": int(max(wait_seconds, 1)),
            "options": f"-c lock_timeout={wait} -c timezone=UTC",
        }

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, alone among writers; committed at the end, rolled back on any exception."""
        self._check_file()
        with translated(self.url), self._writer.begin() as connection:
            if not self.is_sqlite:
                # A writer that is frozen, or cut off from the server, must not keep the lock from all others.
                idle = str(int(IDLE_SECONDS * 1000))
                connection.execute(select(func.set_config("idle_in_transaction_session_timeout", idle, True)))
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One transaction that sees one state of the store throughout."""
        self._check_file()
        with translated(self.url), self._reader.begin() as connection:
            yield connection

    def _check_file(self) -> None:
        """Raise StoreError if the SQLite file is gone; reconnect if another file has taken its place.

        Open connections would keep writing to the moved or deleted file, and SQLite would create a new one.
        """
        if self._file is None:
            return
        try:
            current = _identity(self.url)
        except OSError as error:
            message = f"the history store's file was moved or deleted ({shown(self.url)}): {error.strerror}"
            raise StoreError(message, Fault.UNREACHABLE) from error
        if current != self._file:
            self._engine.dispose()
            self._file = current

    def close(self) -> None:
        self._engine.dispose()

    def __repr__(self) -> str:
        return f"Database({shown(self.url)!r})"


def _identity(url: URL) -> tuple[int, int]:
    status = os.stat(str(url.database))
    return status.st_dev, status.st_ino


def _make_folder(url: URL) -> None:
    try:
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the folder of the history store cannot be made: {error}", Fault.UNREACHABLE
        ) from error


def _configure_sqlite(connection: Any, _: Any) -> None:
    # The driver itself would begin a transaction only at the first write: too late for a consistent read.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE: a reader that becomes a writer later would fail with "locked" at once and not wait.
    write = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
