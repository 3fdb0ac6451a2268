"""When the daemon writes reports on the past, and where."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from monitor.core.results import Window
from monitor.core.settings import PositiveDuration, Settings

_DAY: Final = timedelta(days=1)
_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)


def _whole_days(length: timedelta) -> timedelta:
    if length % _DAY:
        raise ValueError("must be whole days, such as 1d or 1w")
    return length


class ReportSettings(Settings):
    """A report on each recommender for each whole period."""

    folder: Path = Field(description="the folder of the reports; the web server lists it under /reports/")
    every: Annotated[PositiveDuration, AfterValidator(_whole_days)] = Field(
        timedelta(weeks=1),
        description="the length of a period in whole days; a week begins on Monday, 00:00 UTC",
    )

    def last_period(self, now: datetime) -> Window:
        """The newest period that has ended.

        >>> found = ReportSettings(folder="reports").last_period(datetime(2026, 3, 11, 12, tzinfo=UTC))
        >>> f"{found.start:%A %Y-%m-%d}", f"{found.end:%A %Y-%m-%d}"
        ('Monday 2026-03-02', 'Monday 2026-03-09')
        """
        end = _MONDAY + (now - _MONDAY) // self.every * self.every
        return Window(end - self.every, end)
