"""The recent past of one number as a small drawing. The template turns the coordinates into SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from monitor.core.results import Status, Window
from monitor.history.snapshot import Point
from monitor.report.scale import part

WIDTH, HEIGHT = 120, 28
_MARGIN = 4
_POINTS = 48
_ALONE = 7  # the width of the band of a window without neighbours
_SEEN = 2  # the minimum height of a band


_Placed = TypeVar("_Placed")


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    status: str


@dataclass(frozen=True, slots=True)
class Around:
    """The expected values and the bands of the windows. `text` describes the newest band.

    `broken` are the windows whose value was out of its band.
    """

    expected: Mapping[Window, float] = field(default_factory=dict)
    between: Mapping[Window, tuple[float, float]] = field(default_factory=dict)
    text: str = ""
    broken: frozenset[Window] = frozenset()


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Runs of values as polylines, violated and single points as dots, missing values as ticks.

    `expected` are the runs of expected values, `bands` the areas around them. `label` describes the drawing
    in words. As in SVG, y grows downwards.
    """

    label: str
    lines: tuple[str, ...]
    dots: tuple[Dot, ...]
    gaps: tuple[Dot, ...]
    threshold: float | None
    expected: tuple[str, ...] = ()
    bands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SmallLine:
    """The recent values alone, in whole pixels: a page with hundreds of them stays small."""

    label: str
    path: str  # of SVG: each run of values is one line


def small_line(past: Sequence[Point], show: Callable[[float], str], name: str) -> SmallLine | None:
    """The line of these windows, None if fewer than two have a value.

    >>> from datetime import UTC, datetime, timedelta
    >>> hours = [Window.of(datetime(2026, 1, 1, hour, tzinfo=UTC), timedelta(hours=1)) for hour in range(3)]
    >>> small_line([Point(one, 1.0 * place, Status.OK) for place, one in enumerate(hours)], str, "health")
    SmallLine(label='health: 0.0 to 2.0', path='M4 24l56 -10l56 -10')
    """
    known = _finite(point.value for point in past)
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    step = (WIDTH - 2 * _MARGIN) / (len(past) - 1)
    path, before = "", None
    for place, point in enumerate(past):
        if point.value is None or not math.isfinite(point.value):
            before = None
            continue
        up = (HEIGHT - 2 * _MARGIN) * part(point.value, low, high)
        here = round(_MARGIN + place * step), round(HEIGHT - _MARGIN - up)
        if before is None:
            path += f"M{here[0]} {here[1]}"
        else:
            path += f"l{here[0] - before[0]} {here[1] - before[1]}"
        before = here
    return SmallLine(f"{name}: {show(low)} to {show(high)}", path)


def sparkline(
    past: Sequence[Point],
    show: Callable[[float], str],
    threshold: float | None = None,
    around: Around | None = None,
) -> Sparkline | None:
    """The drawing of the last windows, None if there are fewer than two, or no values."""
    points = past[-_POINTS:]
    if len(points) < 2:
        return None
    known = _finite(p.value for p in points)
    if not known:
        return None
    around = around or Around()
    foreseen = [around.expected.get(point.window) for point in points]
    between = [_both(around.between.get(point.window)) for point in points]
    scale = _finite([*known, threshold, *foreseen, *(end for ends in between for end in ends or ())])
    low, high = min(scale), max(scale)
    step = (WIDTH - 2 * _MARGIN) / (len(points) - 1)

    def y(value: float) -> float:
        return round(HEIGHT - _MARGIN - part(value, low, high) * (HEIGHT - 2 * _MARGIN), 1)

    def x(index: int) -> float:
        return round(_MARGIN + index * step, 1)

    def place(index: int, value: float | None, status: Status) -> Dot | None:
        """None if there is nothing to draw."""
        if value is None or not math.isfinite(value):
            return None
        return Dot(x(index), y(value), status.value)

    shown = [Status.VIOLATED if point.window in around.broken else point.status for point in points]
    placed = [place(index, point.value, shown[index]) for index, point in enumerate(points)]
    dots = [
        dot
        for index, dot in enumerate(placed)
        if dot and (shown[index] is Status.VIOLATED or index == len(points) - 1)
    ]
    runs = _runs(placed)
    dots.extend(run[0] for run in runs if len(run) == 1 and run[0] not in dots)
    missing = [index for index, dot in enumerate(placed) if dot is None]
    violated = shown.count(Status.VIOLATED)
    label = f"last {len(points)} windows: lowest {show(min(known))}, highest {show(max(known))}"
    label += f", {violated} violated" if violated else ""
    label += f", {len(missing)} without a value" if missing else ""
    label += f"; {around.text}" if around.text else ""
    return Sparkline(
        label=label,
        lines=_lines(runs),
        dots=tuple(dots),
        gaps=tuple(Dot(x(index), HEIGHT - _MARGIN, shown[index].value) for index in missing),
        threshold=None if threshold is None else y(threshold),
        expected=_lines(_runs([place(index, value, Status.OK) for index, value in enumerate(foreseen)])),
        bands=_areas([ends and (x(index), y(ends[1]), y(ends[0])) for index, ends in enumerate(between)]),
    )


def _finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def _both(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    """The ends of a band, the lower one first. None if one is missing."""
    found = sorted(_finite(ends or ()))
    return (found[0], found[1]) if len(found) == 2 else None


def _runs(placed: Iterable[_Placed | None]) -> list[list[_Placed]]:
    """The runs of values between missing ones."""
    runs: list[list[_Placed]] = [[]]
    for one in placed:
        if one is None:
            runs.append([])
        else:
            runs[-1].append(one)
    return [run for run in runs if run]


def _lines(runs: Iterable[Sequence[Dot]]) -> tuple[str, ...]:
    return tuple(" ".join(f"{dot.x:g},{dot.y:g}" for dot in run) for run in runs if len(run) > 1)


def _areas(placed: Iterable[tuple[float, float, float] | None]) -> tuple[str, ...]:
    """Each run of x, top and bottom as a polygon with a minimum height and width."""
    areas = []
    for found in _runs(placed):
        x, top, bottom = found[0]
        alone = [(x - _ALONE / 2, top, bottom), (x + _ALONE / 2, top, bottom)]
        run = found if len(found) > 1 else alone
        more = [max(0.0, _SEEN - (bottom - top)) / 2 for _, top, bottom in run]
        upper = [(x, top - by) for (x, top, _), by in zip(run, more, strict=True)]
        lower = [(x, bottom + by) for (x, _, bottom), by in zip(run, more, strict=True)]
        areas.append(" ".join(f"{x:g},{round(y, 1):g}" for x, y in [*upper, *reversed(lower)]))
    return tuple(areas)
