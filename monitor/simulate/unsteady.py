"""What makes real traffic unsteady: level steps, holiday seasons and weather. A world has none by default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Step:
    """A lasting change of the level: all requests are multiplied by 1 + `change`.

    It begins with the first hour that starts at `at` or later.

    >>> Step(datetime.fromisoformat("2026-02-03T10:00:00Z"), -0.1).change
    -0.1

    Raises ValueError unless the time has a zone and the change lies in (-1, 1].
    """

    at: datetime
    change: float

    def __post_init__(self) -> None:
        if self.at.utcoffset() is None:
            raise ValueError(f"the time of a step has a zone, got {self.at}")
        if not -1 < self.change <= 1:
            raise ValueError(f"the change of a step lies in (-1, 1], got {self.change}")


@dataclass(frozen=True, slots=True)
class Season:
    """Days with another level and another shape of the day, such as school holidays.

    Args:
        first: its first day, UTC.
        days: how many days it lasts.
        level: requests in the season / on the same days without it.
        like_weekend: how far its weekdays have the shape of a day of the weekend, from 0 to 1.

    >>> Season(date(2026, 2, 2), days=7, level=0.9, like_weekend=0.5).has(date(2026, 2, 8))
    True

    Raises ValueError if a number is out of its range.
    """

    first: date
    days: int
    level: float
    like_weekend: float = 0.0

    def __post_init__(self) -> None:
        if self.days < 1:
            raise ValueError(f"a season lasts a day or more, got {self.days}")
        if not (math.isfinite(self.level) and self.level > 0):
            raise ValueError(f"the level of a season is finite and above 0, got {self.level}")
        if not 0 <= self.like_weekend <= 1:
            raise ValueError(f"like_weekend lies in 0 to 1, got {self.like_weekend}")

    @property
    def last(self) -> date:
        """Its last day."""
        return self.first + timedelta(days=self.days - 1)

    def has(self, day: date) -> bool:
        """Whether a day belongs to the season."""
        return self.first <= day <= self.last


@dataclass(frozen=True, slots=True)
class Weather:
    """Noise with memory that all scenes share: the logarithm of the level is an AR(1) process.

        level[t] = memory x level[t - 1] + chance[t],   with standard deviation `sd`

    The defaults are those of the residuals of taxi rides in New York, 14,000 an hour.

    Args:
        sd: standard deviation of the logarithm of the level.
        memory: its correlation from one hour to the next.

    >>> Weather().memory
    0.95

    Raises ValueError if a number is out of its range.
    """

    sd: float = 0.067
    memory: float = 0.95

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sd) and self.sd >= 0):
            raise ValueError(f"the sd of the weather is finite and not negative, got {self.sd}")
        if not 0 <= self.memory < 0.999:
            raise ValueError(f"the memory of the weather lies in [0, 0.999), got {self.memory}")
