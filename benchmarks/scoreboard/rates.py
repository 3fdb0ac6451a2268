"""Counts with their confidence intervals, as the pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.statistics.intervals import CONFIDENCE, Interval, wilson


@dataclass(frozen=True, slots=True)
class Share:
    """So many of n, with Wilson's interval."""

    hits: int
    n: int

    @property
    def interval(self) -> Interval | None:
        return wilson(self.hits, self.n)

    def __str__(self) -> str:
        """As the page shows it.

        >>> str(Share(9, 10)), str(Share(0, 0))
        ('9 of 10 (60 to 98 %)', '-')
        """
        found = self.interval
        if found is None:
            return "-"
        return f"{self.hits} of {self.n} ({100 * found.lower:.0f} to {100 * found.upper:.0f} %)"

    @classmethod
    def of(cls, outcomes: Iterable[bool]) -> Share:
        """How many of these are true."""
        found = list(outcomes)
        return cls(sum(found), len(found))


@dataclass(frozen=True, slots=True)
class Weekly:
    """So many in so many weeks, with the exact interval of a Poisson count."""

    count: int
    weeks: float

    @property
    def interval(self) -> Interval | None:
        """Both ends, a week; None without a week."""
        return poisson(self.count, self.weeks) if self.weeks > 0 else None

    def __str__(self) -> str:
        """As the page shows it.

        >>> str(Weekly(0, 10.0)), str(Weekly(3, 10.0)), str(Weekly(0, 0.0))
        ('0 (0 to 0.37 a week)', '3 (0.06 to 0.88 a week)', '-')
        """
        found = self.interval
        if found is None:
            return "-"
        return f"{self.count} ({_rounded(found.lower)} to {_rounded(found.upper)} a week)"


def poisson(count: int, time: float, confidence: float = CONFIDENCE) -> Interval:
    """The exact interval of the rate of a Poisson process, from its count in some time.

    With the quantiles q of chi-square, a = 1 - confidence and k events in the time T:

        q(a / 2, 2 k) / 2 T   to   q(1 - a / 2, 2 k + 2) / 2 T

    Source: F. Garwood, Fiducial limits for the Poisson distribution, Biometrika 28 (1936).

    >>> [round(end, 4) for end in poisson(5, 1.0)]
    [1.6235, 11.6683]

    Raises ValueError if the count is negative or the time is not above 0.
    """
    from scipy import stats

    if count < 0 or not time > 0:
        raise ValueError(f"a rate needs a count from 0 on and a time above 0, got {count} in {time}")
    rest = (1 - confidence) / 2
    lower = float(stats.chi2.ppf(rest, 2 * count)) / 2 if count else 0.0
    return Interval(lower / time, float(stats.chi2.ppf(1 - rest, 2 * count + 2)) / 2 / time)


def _rounded(rate: float) -> str:
    return f"{rate:.2f}".rstrip("0").rstrip(".") if rate < 10 else f"{rate:.0f}"
