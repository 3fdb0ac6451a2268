"""The recent past of one number as a small drawing: coordinates here, the SVG in the template."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from monitor.history.snapshot import Point
from monitor.results import Status, Window

WIDTH, HEIGHT = 120, 28
_MARGIN = 4
_POINTS = 48
_BAND = 7


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    status: str


@dataclass(frozen=True, slots=True)
class Box:
    """The band of the newest window."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Around:
    """What was expected of the values drawn, and the band of the newest window; `text` says that in words.

    `broken` are the windows whose value was out of its band.
    """

    expected: Mapping[Window, float] = field(default_factory=dict)
    lower: float | None = None
    upper: float | None = None
    text: str = ""
    broken: frozenset[Window] = frozenset()


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Unbroken runs of values as polylines, violated and lone points as dots, missing values as ticks.

    `expected` are the runs of what was expected. `label` says the same in words. y grows downwards, as SVG
    has it.
    """

    label: str
    lines: tuple[str, ...]
    dots: tuple[Dot, ...]
    gaps: tuple[Dot, ...]
    threshold: float | None
    expected: tuple[str, ...] = ()
    band: Box | None = None


def sparkline(
    past: Sequence[Point],
    show: Callable[[float], str],
    threshold: float | None = None,
    around: Around | None = None,
) -> Sparkline | None:
    """The drawing of the last windows, None where fewer than two of them are known."""
    points = past[-_POINTS:]
    if len(points) < 2:
        return None
    known = _finite(p.value for p in points)
    if not known:
        return None
    around = around or Around()
    foreseen = [around.expected.get(point.window) for point in points]
    scale = _finite([*known, threshold, around.lower, around.upper, *foreseen])
    low, high = min(scale), max(scale)
    step = (WIDTH - 2 * _MARGIN) / (len(points) - 1)

    def y(value: float) -> float:
        part = 0.5 if high == low else (value - low) / (high - low)
        return round(HEIGHT - _MARGIN - part * (HEIGHT - 2 * _MARGIN), 1)

    def place(index: int, value: float | None, status: Status) -> Dot | None:
        """None where there is nothing to draw."""
        if value is None or not math.isfinite(value):
            return None
        return Dot(round(_MARGIN + index * step, 1), y(value), status.value)

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
        gaps=tuple(
            Dot(round(_MARGIN + index * step, 1), HEIGHT - _MARGIN, shown[index].value) for index in missing
        ),
        threshold=None if threshold is None else y(threshold),
        expected=_lines(_runs([place(index, value, Status.OK) for index, value in enumerate(foreseen)])),
        band=_box(around, y),
    )


def _finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def _runs(placed: Iterable[Dot | None]) -> list[list[Dot]]:
    """The dots between those that are missing."""
    runs: list[list[Dot]] = [[]]
    for dot in placed:
        if dot is None:
            runs.append([])
        else:
            runs[-1].append(dot)
    return [run for run in runs if run]


def _lines(runs: Iterable[Sequence[Dot]]) -> tuple[str, ...]:
    return tuple(" ".join(f"{dot.x},{dot.y}" for dot in run) for run in runs if len(run) > 1)


def _box(around: Around, y: Callable[[float], float]) -> Box | None:
    """The band as a bar at the newest value, seen even where it is very narrow."""
    ends = _finite((around.lower, around.upper))
    if len(ends) < 2:
        return None
    top, bottom = y(max(ends)), y(min(ends))
    height = max(bottom - top, 3)
    middle = (top + bottom) / 2
    x = WIDTH - _MARGIN - _BAND / 2
    return Box(x, round(middle - height / 2, 1), _BAND, round(height, 1))
