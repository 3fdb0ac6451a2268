"""Two metrics by day as a scatter: the days, the line and the band around it, in the pixels of an SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from monitor.forecast.days import REASONS
from monitor.forecast.study import Dot
from monitor.report.numbers import number
from monitor.report.scale import part

TEMPLATES: Final = Path(__file__).parent / "templates"
"""The folder of `scatter.html`, which lays out the picture."""
WIDTH, HEIGHT = 340, 200
_MARGIN: Final = 12
_HOLIDAYS: Final = ("holiday", "season")

Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A dot in pixels: `kind` is `used`, `holiday` or `incident`; `said` is shown on it."""

    x: float
    y: float
    kind: str
    said: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """The dots, the line and the area around it, in pixels.

    `across` and `up` are the ends of both axes, as texts. As in SVG, y grows downwards.
    """

    dots: tuple[Drawn, ...]
    line: str
    band: str
    across: tuple[str, str]
    up: tuple[str, str]

    @classmethod
    def of(
        cls, days: Iterable[Dot], line: Sequence[Place], band: Sequence[tuple[float, float, float]]
    ) -> Self | None:
        """The picture of a pair; None without a line or a day.

        Args:
            days: the days with both numbers, the left-out ones too.
            line: the ends of the line.
            band: places of x with the lower and the upper end of the interval there; may be empty.
        """
        dots = list(days)
        if not dots or not line:
            return None
        x = _Axis.of([*(one.x for one in dots), *(at for at, _ in line)], WIDTH)
        ends = [end for _, lower, upper in band for end in (lower, upper)]
        y = _Axis.of([*(one.y for one in dots), *(at for _, at in line), *ends], HEIGHT)

        def point(place: Place) -> str:
            return f"{x.pixel(place[0])},{y.pixel_down(place[1])}"

        outline = [(at, upper) for at, _, upper in band] + [(at, lower) for at, lower, _ in reversed(band)]
        return cls(
            dots=tuple(Drawn(x.pixel(one.x), y.pixel_down(one.y), _kind(one), _said(one)) for one in dots),
            line=" ".join(point(end) for end in line),
            band=" ".join(point(end) for end in outline),
            across=(number(x.low), number(x.high)),
            up=(number(y.low), number(y.high)),
        )


def _kind(day: Dot) -> str:
    if not day.reason:
        return "used"
    return "holiday" if day.reason in _HOLIDAYS else "incident"


def _said(day: Dot) -> str:
    model = f", {day.model}" if day.model else ""
    why = f", left out: {REASONS.get(day.reason, day.reason)}" if day.reason else ""
    return f"{day.day}: {number(day.x)}, {number(day.y)}{model}{why}"


@dataclass(frozen=True, slots=True)
class _Axis:
    """From the lowest to the highest value, in so many pixels."""

    low: float
    high: float
    pixels: int

    @classmethod
    def of(cls, values: Sequence[float], pixels: int) -> Self:
        return cls(min(values), max(values), pixels)

    def pixel(self, value: float) -> float:
        return round(_MARGIN + (self.pixels - 2 * _MARGIN) * part(value, self.low, self.high), 1)

    def pixel_down(self, value: float) -> float:
        return round(self.pixels - self.pixel(value), 1)
