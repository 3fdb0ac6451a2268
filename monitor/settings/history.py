"""Where the history is kept, and for how long."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from sqlalchemy import URL

from monitor.core.settings import Duration, Settings
from monitor.settings.database import database_url

FILE_NAME = "history.sqlite"
_SALT_LENGTH = 16
_HINT = "write it as sqlite:///path/to/history.sqlite or postgresql://user:password@host:5432/database"


def parse_url(text: str) -> URL:
    """The URL with the driver that is shipped. The message of an error never repeats the URL.

    >>> parse_url("postgresql://me@db/history").drivername
    'postgresql+psycopg'
    """
    return database_url(text, hint=_HINT, in_memory="the history must survive a restart, so it needs a file")


def _checked_url(value: SecretStr) -> SecretStr:
    parse_url(value.get_secret_value())
    return value


def _checked_salt(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < _SALT_LENGTH:
        raise ValueError(f"write at least {_SALT_LENGTH} characters, such as `openssl rand -hex 16` gives")
    return value


def _checked_retention(value: timedelta) -> timedelta:
    if value < timedelta(days=1):
        raise ValueError("keep at least one day of history (1d)")
    return value


def sqlite_url(file: Path) -> str:
    """The URL of an SQLite file; its folders may hold a character that means something in a URL.

    >>> parse_url(sqlite_url(Path("/data/a?b/history.sqlite"))).database
    '/data/a?b/history.sqlite'
    """
    return URL.create("sqlite", database=str(file.absolute())).render_as_string()


class HistorySettings(Settings):
    """The history store: measurements, verdicts, evidence, counters."""

    url: Annotated[SecretStr, AfterValidator(_checked_url)] | None = Field(
        None, description="database URL, sqlite or postgresql; by default history.sqlite in the state folder"
    )
    retention: Annotated[Duration, AfterValidator(_checked_retention)] = Field(
        timedelta(days=90),
        description="how long windows, results and evidence are kept; those within `catch_up` are always "
        "kept",
    )

    salt: Annotated[SecretStr, AfterValidator(_checked_salt)] | None = Field(
        None,
        description="the secret with which user ids in evidence are hashed, at least 16 characters; by "
        "default a random one in the state folder. Monitors that share a history need the same",
    )

    def location(self, state: Path) -> str:
        """What `Store.open` takes: the URL, password included, or the default file's URL."""
        if self.url is not None:
            return self.url.get_secret_value()
        return sqlite_url(state / FILE_NAME)

    @property
    def is_shared(self) -> bool:
        """Whether several monitors can use it: a PostgreSQL database."""
        return self.url is not None and parse_url(self.url.get_secret_value()).get_backend_name() != "sqlite"
