"""What a query gave for each day, as a reading. Text from outside is cut and made safe."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

import numpy as np

from monitor.core.results import Status
from monitor.metrics.family import round12
from monitor.platform.days import Reading

MOST_DAYS: Final = 1000
NO_ROW: Final = "the query gave no row of this day"


class QueryError(Exception):
    """A query failed, with a sentence for people. It never holds a secret."""


@dataclass(frozen=True)
class Answer:
    """The values of each day by total, as they came. `error` says why there is none."""

    values: Mapping[date, Mapping[str, Any]] = field(default_factory=dict)
    error: str = ""

    def reading(self, totals: Sequence[str], days: Sequence[date]) -> Reading:
        """The totals of these days.

        What lacks after the last value of a total may still come, be it a row or a null. What lacks before it
        never will.
        """
        if self.error:
            return Reading.without(totals, len(days), Status.ERROR, self.error)
        values = {total: np.full(len(days), np.nan) for total in totals}
        why: dict[str, list[str]] = {total: [] for total in totals}
        newest = self._newest(totals)
        status = []
        for place, day in enumerate(days):
            row, still = self.values.get(day), False
            for total in totals:
                number, wrong = as_number((row or {}).get(total))
                values[total][place] = number
                why[total].append(NO_ROW if not row else f"{total} {wrong}" if wrong else "")
                last = newest[total]
                still = still or ((row or {}).get(total) is None and (last is None or day > last))
            empty = all(math.isnan(values[total][place]) for total in totals)
            status.append(Status.LATE if still else Status.NO_DATA if empty else Status.OK)
        return Reading(values, tuple(status), {total: tuple(texts) for total, texts in why.items()})

    def of(self, days: Collection[date]) -> Answer:
        """The answer without other days: a query may also give the day that is not over yet."""
        return replace(self, values={day: row for day, row in self.values.items() if day in days})

    def _newest(self, totals: Sequence[str]) -> dict[str, date | None]:
        """The last day of each total that is not null; of a total that always is, the last day of any."""
        given = {
            total: max((day for day, row in self.values.items() if row.get(total) is not None), default=None)
            for total in totals
        }
        last = max((day for day in given.values() if day is not None), default=None)
        return {total: day or last for total, day in given.items()}


def as_number(value: Any) -> tuple[float, str]:
    """A finite number, or NaN and what is wrong.

    >>> as_number("12.5"), as_number(None)
    ((12.5, ''), (nan, 'is null'))
    """
    if value is None:
        return math.nan, "is null"
    if isinstance(value, bool):
        return math.nan, "is no number"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan, "is no number"
    return (round12(number), "") if math.isfinite(number) else (math.nan, "is not finite")
