"""Where a value lies on an axis."""

from __future__ import annotations


def part(value: float, low: float, high: float) -> float:
    """The place of a value from 0 at `low` to 1 at `high`; what lies beyond is at that end.

    >>> part(3.0, 2.0, 4.0), part(9.0, 2.0, 4.0), part(2.0, 2.0, 2.0), part(0.0, -1.7e308, 1.7e308)
    (0.5, 1.0, 0.5, 0.5)
    """
    # Halved first: the difference of two values may exceed float64.
    half = high / 2 - low / 2
    return min(1.0, max(0.0, (value / 2 - low / 2) / half)) if half > 0 else 0.5
