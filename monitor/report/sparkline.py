"""The recent past of one number as a small drawing: coordinates here, the SVG in the template."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from monitor.history.snapshot import Point
from monitor.results import Status

WIDTH, HEIGHT = 120, 28
_MARGIN = 4
_POINTS = 48


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    status: str


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Unbroken runs of values as polylines, violated and lone points as dots, missing values as ticks.

    `label` says the same in words. y grows downwards, as SVG has it.
    """

    label: str
    lines: tuple[str, ...]
    dots: tuple[Dot, ...]
    gaps: tuple[Dot, ...]
    threshold: float | None


def sparkline(
    past: Sequence[Point], show: Callable[[float], str], threshold: float | None = None
) -> Sparkline | None:
    """The drawing of the last windows, None where fewer than two of them are known."""
    points = past[-_POINTS:]
    if len(points) < 2:
        return None
    known = [p.value for p in points if p.value is not None and math.isfinite(p.value)]
    if not known:
        return None
    scale = [*known, *([] if threshold is None else [threshold])]
    low, high = min(scale), max(scale)
    step = (WIDTH - 2 * _MARGIN) / (len(points) - 1)

    def y(value: float) -> float:
        part = 0.5 if high == low else (value - low) / (high - low)
        return round(HEIGHT - _MARGIN - part * (HEIGHT - 2 * _MARGIN), 1)

    runs: list[list[Dot]] = [[]]
    dots, gaps = [], []
    for index, point in enumerate(points):
        x = round(_MARGIN + index * step, 1)
        if point.value is None or not math.isfinite(point.value):
            gaps.append(Dot(x, HEIGHT - _MARGIN, point.status.value))
            runs.append([])
            continue
        dot = Dot(x, y(point.value), point.status.value)
        runs[-1].append(dot)
        if point.status is Status.VIOLATED or index == len(points) - 1:
            dots.append(dot)
    dots.extend(run[0] for run in runs if len(run) == 1 and run[0] not in dots)
    violated = sum(point.status is Status.VIOLATED for point in points)
    label = f"last {len(points)} windows: lowest {show(min(known))}, highest {show(max(known))}"
    label += f", {violated} violated" if violated else ""
    label += f", {len(gaps)} without a value" if gaps else ""
    return Sparkline(
        label=label,
        lines=tuple(" ".join(f"{d.x},{d.y}" for d in run) for run in runs if len(run) > 1),
        dots=tuple(dots),
        gaps=tuple(gaps),
        threshold=None if threshold is None else y(threshold),
    )
