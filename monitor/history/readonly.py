"""Reads a history without changing it: for notebooks and reports, beside a daemon that writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, select, text

from monitor.history import gates, reads, schema
from monitor.history.errors import Fault, StoreError, shown, translated
from monitor.history.reads import Evaluated, StoredResult
from monitor.settings.history import parse_url

_WAIT_SECONDS: Final = 5
_VERSION: Final = "alembic_version"


def read_only_engine(url: URL) -> Engine | None:
    """Connections that the database itself keeps from writing; None if there is no such SQLite file.

    Nothing is created or upgraded: the caller may be of another version than the daemon.

    Raises:
        StoreError: the file lies in a folder that this user may not enter.
    """
    if url.get_backend_name() != "sqlite":
        options = "-c default_transaction_read_only=on -c timezone=UTC"
        arguments = {"connect_timeout": _WAIT_SECONDS, "options": options}
        return create_engine(
            url, hide_parameters=True, connect_args=arguments, isolation_level="REPEATABLE READ"
        )
    try:
        if not url.database or not Path(url.database).is_file():
            return None
    except PermissionError:
        why = "another user owns its folder"
        raise StoreError(f"the history at {url.database} cannot be read: {why}", Fault.UNREACHABLE) from None
    given = url.set(database=f"file:{quote(url.database)}", query={"mode": "ro", "uri": "true"})
    engine = create_engine(given, hide_parameters=True, connect_args={"timeout": _WAIT_SECONDS})
    event.listen(engine, "connect", _leave_transactions)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


def _leave_transactions(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver would begin none for reads: each would see another state


class ReadOnlyHistory:
    """The stored windows and results; every call reads one state, or page by page if it can be long."""

    def __init__(self, url: URL, engine: Engine) -> None:
        self._url = url
        self._engine = engine

    @classmethod
    def open(cls, location: str) -> Self:
        """Open the history at a URL. Raises StoreError if there is none, or one of another version."""
        url = parse_url(location)
        engine = read_only_engine(url)
        if engine is None:
            why = "`recsys-monitor run` and `backfill` write one"
            raise StoreError(f"there is no history at {url.database}; {why}", Fault.UNREACHABLE)
        opened = cls(url, engine)
        try:
            opened._check_version()
        except BaseException:
            opened.close()
            raise
        return opened

    def _check_version(self) -> None:
        with self.reading() as connection:
            there = inspect(connection).has_table(_VERSION)
            found = connection.scalars(text("SELECT version_num FROM alembic_version")).all() if there else []
        if list(found) == [schema.HEAD]:
            return
        if not found:
            raise StoreError(f"{shown(self._url)} is no history of recsys-monitor", Fault.CORRUPT)
        has = f"the history at {shown(self._url)} has schema {', '.join(found)}"
        if max(found) > schema.HEAD:
            raise StoreError(
                f"{has}, written by a newer version of recsys-monitor; this one reads {schema.HEAD}: "
                "upgrade it",
                Fault.NEWER_SCHEMA,
            )
        raise StoreError(
            f"{has}, and this version of recsys-monitor reads {schema.HEAD}: start `recsys-monitor run` of "
            "this version, which upgrades the history, or read it with the version that wrote it"
        )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state and cannot write."""
        with translated(self._url), self._engine.begin() as connection:
            yield connection

    def recommenders(self) -> list[str]:
        """The names of all recommenders with a judged window."""
        name = schema.windows.c.recommender
        with self.reading() as connection:
            return list(connection.scalars(select(name).distinct().order_by(name)))

    def evaluated(
        self,
        recommender: str,
        check: str | None = None,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> list[Evaluated]:
        """The judged windows that lie in [start, end), oldest first, one for each check or of one alone."""
        with self.reading() as connection:
            return reads.evaluated(connection, recommender, check, start, end)

    def results(
        self,
        recommenders: Sequence[str] | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Iterator[StoredResult]:
        """Every result of the windows that lie in [start, end), by recommender and time."""
        after = None
        while True:
            with self.reading() as connection:
                page, after = reads.kept_page(connection, recommenders, start, end, after)
            yield from page
            if after is None:
                return

    def gate_runs(
        self,
        *,
        recommenders: Sequence[str] | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> list[gates.GateRun]:
        """The runs of gates in [start, end), oldest first."""
        with self.reading() as connection:
            return gates.read(connection, recommenders, start, end)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ReadOnlyHistory({shown(self._url)!r})"
