"""The trends of a period: values with their bands and bounds, in the pixels of an SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

from monitor.anomalies.series import DIMENSION
from monitor.anomalies.specs import DEVIATION, EXPECTED
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.core.text import visible
from monitor.history.reads import StoredResult
from monitor.report.bands import Key, key_named, key_of
from monitor.report.judged import title
from monitor.report.numbers import moment
from monitor.report.rows import shower_of

WIDTH, HEIGHT = 520, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 4, 4, 8, 8
MOST: Final = 24
_KINDS: Final = (ResultKind.METRIC, ResultKind.MODEL, ResultKind.HEALTH)
_Placed = TypeVar("_Placed")


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot in pixels, and what is said of it."""

    x: float
    y: float
    said: str


@dataclass(frozen=True, slots=True)
class Trend:
    """One series as a picture.

    Attributes:
        name: of the series.
        lines: the values; a window without a value ends a line.
        bands: the areas in which the values were expected.
        bound: the height of the objective, if it has one.
        violated: the windows that broke the objective or left the band.
        axis: the ends of the vertical axis in words, if they are not the lowest and the highest value.
        label: the picture in words.
    """

    name: str
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    bound: float | None
    violated: tuple[Mark, ...]
    axis: str
    label: str


@dataclass(slots=True)
class _Series:
    results: list[StoredResult] = field(default_factory=list)
    expected: dict[Window, Result] = field(default_factory=dict)
    broken: set[Window] = field(default_factory=set)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Violated ones first, then those with an objective, then those with a band."""
        results = [one.result for one in self.results]
        violated = any(one.status is Status.VIOLATED for one in results) or bool(self.broken)
        judged = any(one.threshold is not None for one in results)
        return (-violated, -judged, -bool(self.expected))


def trends_of(results: Iterable[StoredResult], span: Window) -> tuple[tuple[Trend, ...], int]:
    """The trends that matter most, and how many further series have values.

    Args:
        results: of the period.
        span: the period, which is the horizontal axis.
    """
    series: dict[Key, _Series] = {}
    for one in results:
        result = one.result
        if result.metric in (EXPECTED.name, DEVIATION.name):
            known = series.setdefault(key_named(result.labels), _Series())
            if result.metric == EXPECTED.name:
                known.expected[one.window] = result
            elif result.status is Status.VIOLATED:
                known.broken.add(one.window)
        elif result.kind in _KINDS:
            series.setdefault(key_of(result), _Series()).results.append(one)
    drawable = [
        one
        for one in series.values()
        if one.results and DIMENSION not in one.results[0].result.labels and _values(one)
    ]
    first = sorted(drawable, key=lambda one: one.rank)  # a stable sort: the order of the catalogue stays
    return tuple(_trend(one, span) for one in first[:MOST]), max(0, len(first) - MOST)


def _values(series: _Series) -> list[float]:
    values = (one.result.value for one in series.results)
    return [value for value in values if value is not None and math.isfinite(value)]


def _trend(series: _Series, span: Window) -> Trend:
    newest = series.results[-1].result
    show = shower_of(newest)
    values = _values(series)
    ends = [
        edge
        for one in series.expected.values()
        for edge in (one.lower, one.upper)
        if edge is not None and math.isfinite(edge)
    ]
    bound = newest.threshold
    scale = [*values, *ends, *([] if bound is None else [bound])]
    low, high = min(scale), max(scale)

    def y(value: float) -> float:
        part = 0.5 if high == low else (value - low) / (high - low)
        return round(HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM), 1)

    def x(at: datetime) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * ((at - span.start) / span.length), 1)

    def middle(window: Window) -> float:
        return x(window.start + window.length / 2)

    points = [
        (one.window, None if one.result.value is None else (middle(one.window), y(one.result.value)))
        for one in series.results
    ]
    violated = [
        Mark(middle(one.window), y(one.result.value), f"{moment(one.window.start)}: {show(one.result.value)}")
        for one in series.results
        if one.result.value is not None
        and (one.result.status is Status.VIOLATED or one.window in series.broken)
    ]
    between = [
        (window, (middle(window), y(one.upper), y(one.lower)))
        for window, one in sorted(series.expected.items())
        if one.lower is not None and one.upper is not None
    ]
    words = f"{len(values)} windows: lowest {show(min(values))}, highest {show(max(values))}"
    words += f", {len(violated)} violated or out of the band" if violated else ""
    return Trend(
        name=visible(title(newest)),
        lines=tuple(" ".join(f"{a},{b}" for a, b in run) for run in _runs(points) if len(run) > 1)
        + tuple(f"{a - 1},{b} {a + 1},{b}" for run in _runs(points) if len(run) == 1 for a, b in run),
        bands=tuple(_area(run) for run in _runs(between)),
        bound=None if bound is None else y(bound),
        violated=tuple(violated),
        axis="" if (low, high) == (min(values), max(values)) else f"Axis: {show(low)} to {show(high)}.",
        label=words,
    )


def _runs(points: Sequence[tuple[Window, _Placed | None]]) -> list[list[_Placed]]:
    """The runs of windows that follow each other and have a place."""
    runs: list[list[_Placed]] = [[]]
    before: datetime | None = None
    for window, place in points:
        if place is None or (before is not None and window.start > before + timedelta(seconds=1)):
            runs.append([])
        if place is not None:
            runs[-1].append(place)
        before = window.end
    return [run for run in runs if run]


def _area(run: Sequence[tuple[float, float, float]]) -> str:
    if len(run) == 1:
        (x, top, bottom) = run[0]
        run = [(x - 1, top, bottom), (x + 1, top, bottom)]
    upper = [(x, top) for x, top, _ in run]
    lower = [(x, bottom) for x, _, bottom in reversed(run)]
    return " ".join(f"{x},{y}" for x, y in [*upper, *lower])
