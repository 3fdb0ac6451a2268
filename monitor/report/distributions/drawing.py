"""A plot in the pixels of an SVG. As in SVG, y grows downwards."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from monitor.core.text import visible
from monitor.report.distributions.figure import MOST_SERIES, Axis, Line, Plot, Point
from monitor.report.numbers import number
from monitor.report.scale import part

WIDTH, HEIGHT = 340, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 22, 38
_HOVERS: Final = 40  # places of a line that say their values
_TICKS: Final = 4
_SHORTEST: Final = 1.0  # a bar of few rows can still be seen


@dataclass(frozen=True, slots=True)
class Rect:
    series: int
    x: float
    y: float
    width: float
    height: float
    said: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot, with the ends of its interval if it has one. A `quiet` one is seen on hover alone."""

    series: int
    x: float
    y: float
    said: str
    quiet: bool
    top: float | None = None
    bottom: float | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The parts of one plot, each in pixels or as text."""

    title: str
    across: str
    up: str
    rects: tuple[Rect, ...]
    lines: tuple[tuple[int, str], ...]
    marks: tuple[Mark, ...]
    reference: str
    across_ticks: tuple[Tick, ...]
    up_ticks: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


def drawn(plot: Plot) -> Drawn:
    """The plot in pixels."""
    x, y = _Scale(plot.across, _LEFT, WIDTH - _RIGHT), _Scale(plot.up, HEIGHT - _BOTTOM, _TOP)

    def place(point: tuple[float, float]) -> str:
        return f"{x(point[0]):g},{y(point[1]):g}"

    rects = []
    for bar in plot.bars:
        left, right, top, bottom = x(bar.left), x(bar.right), y(bar.top), y(bar.bottom)
        height = max(bottom - top, _SHORTEST)
        width = max(round(right - left - (1 if right - left > 3 else 0), 1), 0.5)
        rects.append(
            Rect(
                _series(bar.series),
                left,
                round(bottom - height, 1),
                width,
                round(height, 1),
                visible(bar.said),
            )
        )
    return Drawn(
        title=visible(plot.title),
        across=visible(plot.across.label),
        up=visible(plot.up.label),
        rects=tuple(rects),
        lines=tuple(
            (_series(line.series), " ".join(place((p.x, p.y)) for p in line.points))
            for line in plot.lines
            if line.joined and len(line.points) > 1
        ),
        marks=tuple(mark for line in plot.lines for mark in _marks(line, x, y)),
        reference="" if plot.reference is None else " ".join(map(place, plot.reference)),
        across_ticks=tuple(_across(plot.across, x)),
        up_ticks=tuple(Tick(y(value), text) for value, text in _ticks(plot.up)),
    )


def _series(number: int) -> int:
    return number % MOST_SERIES


def _marks(line: Line, x: _Scale, y: _Scale) -> Iterable[Mark]:
    """The dots of a line; of a long one that only says its values, some."""
    saying = [point for point in line.points if point.said]
    step = 1 if line.marked else max(1, math.ceil(len(saying) / _HOVERS))
    chosen: list[Point] = saying[::step]
    if saying and chosen[-1] is not saying[-1]:
        chosen.append(saying[-1])
    for one in chosen:
        ends = (None if end is None else y(end) for end in (one.upper, one.lower))
        yield Mark(_series(line.series), x(one.x), y(one.y), visible(one.said), not line.marked, *ends)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From the values of an axis to pixels."""

    axis: Axis
    first: int
    last: int

    def __call__(self, value: float) -> float:
        return round(self.first + part(value, self.axis.low, self.axis.high) * (self.last - self.first), 1)


def _across(axis: Axis, x: _Scale) -> Iterable[Tick]:
    ticks = [(x(value), text) for value, text in _ticks(axis)]
    for at, text in ticks:
        # A long text at the edge of the picture would be cut.
        half = 3.2 * len(text)
        anchor = "end" if at + half > WIDTH else "start" if at - half < 0 else "middle"
        yield Tick(at, text, anchor)


def _ticks(axis: Axis) -> Iterable[tuple[float, str]]:
    """Round values of the axis, a few of them.

    >>> [text for _, text in _ticks(Axis("", 0.0, 1.0))]
    ['0', '0.25', '0.5', '0.75', '1']
    """
    if axis.ticks:
        return axis.ticks
    span = axis.high - axis.low
    if not (sys.float_info.min < span / _TICKS < math.inf):
        ends = dict.fromkeys((axis.low, axis.high))
        return [(end, number(end)) for end in ends]
    step = _round_up(span / _TICKS)
    if axis.whole:
        step = max(1.0, float(math.ceil(step)))
    first = math.ceil(axis.low / step)
    if not math.isfinite(step) or abs(first) > 2**52:  # the values are equal to many digits
        return [(axis.low, number(axis.low)), (axis.high, number(axis.high))]
    values = [
        (first + at) * step for at in range(2 * _TICKS) if (first + at) * step <= axis.high + step * 1e-9
    ]
    return [(value, number(value)) for value in values]


def _round_up(step: float) -> float:
    """The next of 1, 2, 2.5, 5 or 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((one * power for one in (1, 2, 2.5, 5) if one * power >= step * (1 - 1e-9)), 10 * power)
