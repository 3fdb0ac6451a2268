"""The URLs of databases, as the history and the systems of a platform have them."""

from __future__ import annotations

from typing import Final

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def database_url(text: str, *, hint: str, in_memory: str) -> URL:
    """The URL with the driver that is shipped. The message of an error never repeats the URL.

    Args:
        text: the URL.
        hint: how to write one, for the message of an error.
        in_memory: why a database in memory does not do.

    >>> database_url("postgresql://me@db/history", hint="", in_memory="").drivername
    'postgresql+psycopg'
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError(f"this is not a database URL; {hint}") from None
    if url.drivername not in _DRIVERS:
        raise ValueError(f"this kind of database is not supported; {hint}")
    if url.drivername.startswith("sqlite") and url.database in (None, "", ":memory:"):
        raise ValueError(f"{in_memory}; {hint}")
    return url.set(drivername=_DRIVERS[url.drivername])
