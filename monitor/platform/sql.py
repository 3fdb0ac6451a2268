"""Totals from a SQL query: read only, with a timeout in the database, and a bounded number of rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import URL, Engine, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from monitor.core.http_access import sentence
from monitor.core.text import NAME_LENGTH, quoted
from monitor.platform.answers import MOST_DAYS, Answer, QueryError
from monitor.platform.days import day_of
from monitor.settings.platform import SqlSystem, parse_sql_url

DAY_COLUMN: Final = "day"
_STEPS: Final = 10_000  # of SQLite's machine between two looks at the clock


def fetch_sql(
    system: SqlSystem, totals: Sequence[str], days: Sequence[date], zone: ZoneInfo, timeout: timedelta
) -> Answer:
    """The totals of these days of a zone. A failure is an answer with an error, never a 0."""
    url = parse_sql_url(system.url.get_secret_value())
    try:
        return Answer(_rows(url, system, totals, days, zone, timeout.total_seconds()))
    except QueryError as error:
        return Answer(error=str(error))
    except SQLAlchemyError as error:
        return Answer(error=f"the query failed: {sentence(getattr(error, 'orig', None) or error)}")


def _rows(
    url: URL, system: SqlSystem, totals: Sequence[str], days: Sequence[date], zone: ZoneInfo, seconds: float
) -> dict[date, dict[str, Any]]:
    engine = _engine(url, seconds)
    try:
        with engine.connect() as connection:
            statement = text(system.query)
            known = statement.compile().params
            bounds = {"first": days[0], "last": days[-1] + timedelta(days=1)}
            given = {name: _bound(url, value) for name, value in bounds.items() if name in known}
            if unknown := [name for name in known if name not in bounds]:
                raise QueryError(
                    f"the query has a parameter :{unknown[0]}; only :first and :last are known. Write "
                    "\\: for a plain colon"
                )
            result = connection.execute(statement, given)
            if not result.returns_rows:
                raise QueryError("the query gives no rows; it must be a SELECT")
            names = list(result.keys())
            lacking = [name for name in (DAY_COLUMN, *totals) if name not in names]
            if lacking:
                shown = ", ".join(quoted(name, NAME_LENGTH) for name in names[:10])
                raise QueryError(f"the query gives no column {lacking[0]}; it gives {shown}")
            rows = result.fetchmany(MOST_DAYS + 1)
    finally:
        engine.dispose()
    if len(rows) > MOST_DAYS:
        raise QueryError(
            f"the query gives more than {MOST_DAYS:,} rows; group by day, and use :first and :last"
        )
    found: dict[date, dict[str, Any]] = {}
    for row in rows:
        values = dict(zip(names, row, strict=True))
        day = _day(values[DAY_COLUMN], zone)
        if day in found:
            raise QueryError(f"the query gives two rows of {day}; group by day")
        found[day] = {total: values[total] for total in totals}
    return found


def _bound(url: URL, day: date) -> object:
    """A day as the database compares it: SQLite has no type for it and compares texts."""
    return day.isoformat() if url.get_backend_name() == "sqlite" else day


def _day(value: Any, zone: ZoneInfo) -> date:
    """The day of a row: a date, a time, or a text that begins with one.

    A time with an offset is a moment, and must be the midnight of a day of the zone. At another one, nobody
    knows which day was added up: a midnight of UTC may be a date of the zone, or a day of UTC.
    """
    if not isinstance(value, date):
        text = str(value)
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            value = _date(text)
    if not isinstance(value, datetime):
        day: date = value
        return day
    if value.tzinfo is None:
        return value.date()
    found = value.astimezone(zone).date()
    if day_of(found, zone).start != value:
        raise QueryError(
            f"the day {value.isoformat()} is no midnight of {zone}, whose days are compared; give `day` as a "
            "date, such as 2026-01-31"
        )
    return found


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise QueryError(f"the day {quoted(text, NAME_LENGTH)} is not a day; give it as 2026-01-31") from None


def _engine(url: URL, seconds: float) -> Engine:
    if url.get_backend_name() == "sqlite":
        plain = str(url.database)
        location = plain if plain.startswith("file:") else f"file:{_escaped(plain)}?mode=ro"
        url = url.set(database=location, query={**url.query, "uri": "true"})
        engine = create_engine(
            url, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": seconds}
        )
        event.listen(engine, "connect", _limited(seconds))
        return engine
    milliseconds = max(1, int(seconds * 1000))
    options = f"-c default_transaction_read_only=on -c statement_timeout={milliseconds} -c timezone=UTC"
    return create_engine(
        url,
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"connect_timeout": max(2, int(seconds)), "options": options},
    )


def _escaped(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _limited(seconds: float) -> Callable[[Any, Any], None]:
    """Make each new connection of SQLite read only and end what it does after so many seconds."""

    def configure(connection: Any, _: Any) -> None:
        end = time.monotonic() + seconds
        connection.execute("PRAGMA query_only = ON")
        connection.set_progress_handler(lambda: int(time.monotonic() > end), _STEPS)

    return configure
