"""The tables of the history, as SQLAlchemy sees them. The migrations beside this file make them.

Times are whole microseconds since 1970-01-01 UTC: exact, sortable and the same on every database, with no
session time zone to go wrong. To read one by hand: `to_timestamp(window_end / 1e6)` on PostgreSQL,
`datetime(window_end / 1000000, 'unixepoch')` on SQLite. What comes from a log is kept as JSON in ASCII, since
a database's text holds neither every byte nor a NUL. The results of a window are one compressed value, which
`history export` reads.
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from monitor.core.digest import digest
from monitor.core.text import encodable
from monitor.history.errors import Fault, StoreError

HEAD: Final = "0009"  # the newest migration; a test compares it with the scripts
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BIG_ID: Final = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER counts up by itself there


class UTCTime(TypeDecorator[datetime]):
    """An aware time as microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else from_microseconds(value)


class JsonText(TypeDecorator[Any]):
    """Plain JSON as canonical ASCII text: keys sorted, no spaces, so equal values are equal texts."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        return canonical(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else _loaded(value)


class CompressedJson(TypeDecorator[Any]):
    """Plain JSON as canonical ASCII text, compressed by zlib."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes:  # noqa: ARG002
        return zlib.compress(canonical(value).encode("ascii"))

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:  # noqa: ARG002
        try:
            return None if value is None else _loaded(zlib.decompress(value))
        except zlib.error as error:
            raise _damaged(error) from error


class SafeText(TypeDecorator[str]):
    """A sentence for people: what a database's text cannot hold is shown as the replacement character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else safe_text(value)


def microseconds(moment: datetime) -> int:
    """An aware time as it is stored."""
    return (moment - EPOCH) // _MICROSECOND


def from_microseconds(stored: int) -> datetime:
    """A stored time as an aware one."""
    return EPOCH + timedelta(microseconds=stored)


def canonical(value: Any) -> str:
    """One text for equal values.

    >>> canonical({"b": "\u00fc", "a": 1})
    '{"a":1,"b":"\\\\u00fc"}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _loaded(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> StoreError:
    message = f"the history store is damaged: a value that it holds cannot be read ({error})"
    return StoreError(message, Fault.CORRUPT)


def value_digest(value: Any) -> str:
    """A short fixed-length key for a value of any length."""
    return digest(canonical(value), 32)


def safe_text(value: str) -> str:
    """A text that every database takes."""
    return encodable(value.replace("\0", "\ufffd"))


metadata: Final = MetaData()

series: Final = Table(
    "series",
    metadata,
    Column("id", _BIG_ID, primary_key=True),
    Column("recommender", Text, nullable=False),
    Column("check_name", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("labels", JsonText, nullable=False),
    Column("digest", Text, nullable=False),  # of metric and labels: those may be too long for an index
    Column("kind", Text, nullable=False, server_default="metric"),
    UniqueConstraint("recommender", "check_name", "digest", name="series_key"),
)

windows: Final = Table(
    "windows",
    metadata,
    Column("id", _BIG_ID, primary_key=True),
    Column("recommender", Text, nullable=False),
    Column("check_name", Text, nullable=False),
    Column("window_start", UTCTime, nullable=False),
    Column("window_end", UTCTime, nullable=False),
    Column("definition", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("evaluated_at", UTCTime, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("current", Boolean(create_constraint=False), nullable=False),
    UniqueConstraint(
        "recommender", "check_name", "window_start", "window_end", "definition", name="windows_key"
    ),
    Index("windows_newest", "recommender", "check_name", "window_end"),
    Index("windows_age", "window_end"),
    sqlite_autoincrement=True,
)

results: Final = Table(
    "results",
    metadata,
    Column("window_id", _BIG_ID, ForeignKey("windows.id", ondelete="CASCADE"), primary_key=True),
    Column("content", CompressedJson, nullable=False),  # see packing.py
)

signals: Final = Table(
    "signals",
    metadata,
    Column("series_id", _BIG_ID, ForeignKey("series.id"), primary_key=True),
    Column("signal", SmallInteger, primary_key=True),
    Column("window_end", UTCTime, primary_key=True),
    Column("window_id", _BIG_ID, ForeignKey("windows.id", ondelete="CASCADE"), primary_key=True),
    Index("signals_by_window", "window_id"),
    sqlite_with_rowid=False,
)

evidence: Final = Table(
    "evidence",
    metadata,
    Column("window_id", _BIG_ID, ForeignKey("windows.id", ondelete="CASCADE"), primary_key=True),
    Column("series_id", _BIG_ID, primary_key=True),
    Column("place", SmallInteger, primary_key=True),
    Column("content", JsonText, nullable=False),
    sqlite_with_rowid=False,
)

watermarks: Final = Table(
    "watermarks",
    metadata,
    Column("recommender", Text, primary_key=True),
    Column("log", Text, primary_key=True),
    Column("reached", UTCTime, nullable=False),
)

log_files: Final = Table(
    "log_files",
    metadata,
    Column("recommender", Text, primary_key=True),
    Column("log", Text, primary_key=True),
    Column("digest", Text, primary_key=True),  # of the path, which may be too long for an index
    Column("path", JsonText, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("modified", SafeText, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("max_ts", UTCTime),
    Column("buckets", JsonText, nullable=False),
)

counters: Final = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("labels", JsonText, primary_key=True),
    Column("value", Float(53), nullable=False),
)

gate_runs: Final = Table(
    "gate_runs",
    metadata,
    Column("id", _BIG_ID, primary_key=True),
    Column("recommender", Text, nullable=False),
    Column("judged_at", UTCTime, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("content", JsonText, nullable=False),
    Index("gate_runs_newest", "recommender", "judged_at"),
)

forecasts: Final = Table(
    "forecasts",
    metadata,
    Column("id", _BIG_ID, primary_key=True),
    Column("recommender", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of candidate, target and series
    Column("candidate", SafeText, nullable=False),
    Column("target", Text, nullable=False),
    Column("series", JsonText, nullable=False),
    Column("made_at", UTCTime, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("content", JsonText, nullable=False),
    UniqueConstraint("recommender", "digest", name="forecasts_key"),
)

monitors: Final = Table(
    "monitors",
    metadata,
    Column("id", Text, primary_key=True),
    Column("address", SafeText, nullable=False),
    Column("salt", Text, nullable=False),  # a digest
    Column("seen_at", UTCTime, nullable=False),
)

leases: Final = Table(
    "leases",
    metadata,
    Column("recommender", Text, primary_key=True),
    Column("holder", Text),
    Column("ends_at", UTCTime, nullable=False),
    Column("wanted_by", Text),
    Column("last_holder", Text),
)

identity: Final = Table(
    "identity",
    metadata,
    Column("id", Text, primary_key=True),  # one random row: which database this is, under any address
)
