"""Errors of the history store, in words for the person on call and without passwords."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from monitor.core.errors import ExpectedError
from monitor.core.text import MESSAGE_LENGTH, one_line


class Fault(StrEnum):
    """Why the store failed; few values, so that errors can be counted by this label."""

    FULL = "full"
    LOCKED = "locked"
    UNREACHABLE = "unreachable"
    CORRUPT = "corrupt"
    NEWER_SCHEMA = "newer_schema"
    NOT_HELD = "not_held"  # another monitor judges this recommender now
    OTHER = "other"


_SENTENCES: Final = {
    Fault.FULL: "the disk of the history store is full; nothing was written",
    Fault.LOCKED: "the history store is locked by another process; nothing was written",
    Fault.UNREACHABLE: "the history store cannot be opened or reached",
    Fault.CORRUPT: "the history store's file is damaged, or is not a database",
    Fault.OTHER: "the history store refused",
}
_SQLITE: Final = {
    "SQLITE_FULL": Fault.FULL,
    "SQLITE_BUSY": Fault.LOCKED,
    "SQLITE_LOCKED": Fault.LOCKED,
    "SQLITE_CANTOPEN": Fault.UNREACHABLE,
    "SQLITE_READONLY": Fault.UNREACHABLE,
    "SQLITE_PERM": Fault.UNREACHABLE,
    "SQLITE_IOERR": Fault.UNREACHABLE,
    "SQLITE_CORRUPT": Fault.CORRUPT,
    "SQLITE_NOTADB": Fault.CORRUPT,
}
_POSTGRES: Final = {
    "53100": Fault.FULL,
    "53": Fault.UNREACHABLE,
    "55P03": Fault.LOCKED,
    "40": Fault.LOCKED,
    "08": Fault.UNREACHABLE,
    "28": Fault.UNREACHABLE,
    "3D": Fault.UNREACHABLE,
    "57": Fault.UNREACHABLE,
    "25006": Fault.UNREACHABLE,
    "25P03": Fault.UNREACHABLE,  # this process stood still in a transaction, and the server ended it
    "42501": Fault.UNREACHABLE,
    "XX": Fault.CORRUPT,
}


class StoreError(ExpectedError):
    """The store could not read or write. The transaction was rolled back as a whole."""

    def __init__(self, message: str, fault: Fault = Fault.OTHER) -> None:
        super().__init__(message)
        self.fault = fault


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Turn every database error of the block into a StoreError that names the store, never its password."""
    try:
        yield
    except SQLAlchemyError as error:
        fault = _fault(error)
        # Without the chain: a driver may repeat the whole connection string in its own message.
        raise StoreError(f"{_SENTENCES[fault]} ({shown(url)}): {_detail(error, url)}", fault) from None


def shown(url: URL) -> str:
    """The URL without the password and without the query, which may hold secrets too.

    >>> shown(URL.create("postgresql", "me", "secret", "db", database="history", query={"password": "x"}))
    'postgresql://me:***@db/history'
    """
    return url.set(query={}).render_as_string(hide_password=True)


def _fault(error: SQLAlchemyError) -> Fault:
    if not isinstance(error, DBAPIError):
        return Fault.OTHER
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:
        return next((fault for known, fault in _SQLITE.items() if str(name).startswith(known)), Fault.OTHER)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:  # the server never answered, or went away in the middle
        return Fault.UNREACHABLE if type(error.orig).__name__ == "OperationalError" else Fault.OTHER
    return _POSTGRES.get(state) or _POSTGRES.get(state[:2], Fault.OTHER)


def _detail(error: SQLAlchemyError, url: URL) -> str:
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    secrets = [url.password, *(value for value in url.query.values() if isinstance(value, str))]
    for secret in secrets:
        if secret:
            text = text.replace(str(secret), "***")
    return one_line(text)[:MESSAGE_LENGTH]
