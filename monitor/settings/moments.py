"""Moments that a config names: in UTC, and far enough from the ends of the calendar to be reckoned with."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime

_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_RANGE: Final = "must lie between 1970 and 9000"


def _in_utc(moment: datetime) -> datetime:
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if not _FIRST <= moment <= _LAST:
        raise ValueError(_RANGE)
    return moment.astimezone(UTC)


def within_range(day: date) -> date:
    """The day itself.

    >>> within_range(date(2026, 12, 25)).isoformat()
    '2026-12-25'

    Raises:
        ValueError: it lies before 1970 or after 8999, so that a zone or a day more could leave the calendar.
    """
    if not _FIRST.date() <= day < _LAST.date():
        raise ValueError(_RANGE)
    return day


UtcMoment = Annotated[datetime, AfterValidator(_in_utc)]
"""A time that is UTC if it has no zone."""
ZonedMoment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time that must have a zone."""
