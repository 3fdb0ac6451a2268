"""How many requests a log holds in a time: `init` chooses the window by it, and `validate` shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitor.logs.files import LogFile

_WANTED_REQUESTS = 1000
_WINDOWS = tuple(timedelta(minutes=one) for one in (5, 15, 60, 360, 720, 1440))


@dataclass(frozen=True, slots=True)
class Pace:
    """Requests and the time that they span; `basis` says what was counted, `exact`: the whole log was.

    `hours` are the rows of each hour of the day in UTC, if the whole log was counted.
    """

    requests: float
    span: timedelta
    basis: str
    exact: bool = False
    first: datetime | None = None
    last: datetime | None = None
    hours: tuple[int, ...] = ()

    @property
    def an_hour(self) -> float:
        """Requests an hour; 0 if the log spans no time."""
        return self.requests / (self.span / timedelta(hours=1)) if self.span else 0.0

    def in_window(self, window: timedelta) -> float:
        """How many requests a window holds; no more than the log has.

        >>> round(Pace(100, timedelta(hours=2), "").in_window(timedelta(minutes=30)))
        25
        """
        return min(self.an_hour * (window / timedelta(hours=1)), self.requests)

    @property
    def window(self) -> timedelta:
        """The shortest usual window that holds about a thousand requests; a day if none does.

        >>> Pace(24_000, timedelta(hours=6), "all 3 files").window == timedelta(minutes=15)
        True
        """
        if not self.an_hour:
            return timedelta(hours=1)
        fitting = (one for one in _WINDOWS if self.an_hour * (one / timedelta(hours=1)) >= _WANTED_REQUESTS)
        return next(fitting, timedelta(days=1))


def part_of(files: Iterable[LogFile], every: Iterable[LogFile]) -> float:
    """The part of a log that some of its files are, by their sizes."""
    whole = sum(file.size for file in every)
    return sum(file.size for file in files) / whole if whole else 1.0
