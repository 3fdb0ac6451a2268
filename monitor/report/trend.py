"""A series over a span of time, in the pixels of an SVG: its values, its band, its bound, what broke them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeVar

from monitor.anomalies.specs import DEVIATION, EXPECTED
from monitor.catalogue import ALL_SPECS
from monitor.core.results import Result, Status, Window
from monitor.core.text import plural, visible
from monitor.report.bands import Key, key_named, key_of
from monitor.report.judged import title
from monitor.report.numbers import moment
from monitor.report.rows import between_text, is_rule, shower_of, verdict
from monitor.report.scale import part

WIDTH, HEIGHT = 520, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 4, 4, 14, 14  # above and below is room for the ends of the vertical axis
_ABOVE, _BELOW = -3, 11  # from a height to the line of its text
_MOST_TICKS: Final = 8
_STEPS: Final = (
    *(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 672, 1344, 2688, 5376)),
)
_Placed = TypeVar("_Placed")


class Timed(Protocol):
    """A stored result and its window."""

    @property
    def window(self) -> Window: ...

    @property
    def result(self) -> Result: ...


@dataclass(slots=True)
class TimeSeries:
    """The results of one series, the oldest first, and what its band says of their windows."""

    results: list[Timed] = field(default_factory=list)
    expected: dict[Window, Result] = field(default_factory=dict)
    broken: set[Window] = field(default_factory=set)

    @property
    def newest(self) -> Result:
        return self.results[-1].result

    @property
    def values(self) -> list[float]:
        """The finite values."""
        values = (one.result.value for one in self.results)
        return [value for value in values if value is not None and math.isfinite(value)]

    def status(self, one: Timed) -> Status:
        """The verdict on a window: that of the result, or violated if the value left its band."""
        return Status.VIOLATED if one.window in self.broken else one.result.status


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot in pixels, and what is said of it."""

    x: float
    y: float
    said: str


@dataclass(frozen=True, slots=True)
class Column:
    """The room of one window in pixels, and what is said when a reader points at it."""

    x: float
    width: float
    said: str


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Height:
    """A value on the vertical axis: its height in pixels, and the line on which its text stands."""

    y: float
    line: float
    text: str


@dataclass(frozen=True, slots=True)
class Trend:
    """One series as a picture.

    Attributes:
        name: of the series.
        lines: the values; a window without a value ends a line.
        bands: the areas in which the values were expected.
        bound: the height of the objective, if it has one.
        violated: the windows that broke the objective or left the band.
        heights: the ends of the vertical axis; one, if nothing in the picture differs.
        label: the picture in words.
        before: the values of an earlier span, moved onto this one.
        columns, ticks: of a large picture.
    """

    name: str
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    bound: float | None
    violated: tuple[Mark, ...]
    heights: tuple[Height, ...]
    label: str
    before: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    ticks: tuple[Tick, ...] = ()


def gather(results: Iterable[Timed]) -> dict[Key, TimeSeries]:
    """The series among these results, each with its band."""
    series: dict[Key, TimeSeries] = {}
    for one in results:
        result = one.result
        if result.metric in (EXPECTED.name, DEVIATION.name):
            known = series.setdefault(key_named(result.labels), TimeSeries())
            if result.metric == EXPECTED.name:
                known.expected[one.window] = result
            elif result.status is Status.VIOLATED:
                known.broken.add(one.window)
        elif not result.kind.is_of_the_past:
            series.setdefault(key_of(result), TimeSeries()).results.append(one)
    return {key: one for key, one in series.items() if one.results}


def trend(
    series: TimeSeries,
    span: Window,
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
    before: Mapping[datetime, float] | None = None,
    is_large: bool = False,
) -> Trend | None:
    """The picture of a series, None if no window of it has a value.

    Args:
        series: what to draw.
        span: the horizontal axis.
        width, height: in pixels.
        before: values of an earlier span by the time in this one at which they are drawn.
        is_large: with ticks, and with a column for each window that says its numbers.
    """
    values = series.values
    if not values:
        return None
    show, bound, earlier = shower_of(series.newest), series.newest.threshold, before or {}
    ends = [
        edge
        for one in series.expected.values()
        for edge in (one.lower, one.upper)
        if edge is not None and math.isfinite(edge)
    ]
    scale = [*values, *earlier.values(), *([] if bound is None else [bound])]
    low, high = _ends(scale, ends, _possible(series.newest))

    def y(value: float) -> float:
        return round(height - _BOTTOM - part(value, low, high) * (height - _TOP - _BOTTOM), 1)

    def x(at: datetime) -> float:
        return round(_LEFT + (width - _LEFT - _RIGHT) * ((at - span.start) / span.length), 1)

    def middle(window: Window) -> float:
        return x(window.start + window.length / 2)

    def height_of(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else y(value)

    points = [
        (one.window, None if (at := height_of(one.result.value)) is None else (middle(one.window), at))
        for one in series.results
    ]
    violated = [
        Mark(middle(one.window), at, f"{moment(one.window.start)}: {show(one.result.value or 0.0)}")
        for one in series.results
        if (at := height_of(one.result.value)) is not None and series.status(one) is Status.VIOLATED
    ]
    between = [
        (window, (middle(window), y(one.upper), y(one.lower)))
        for window, one in sorted(series.expected.items())
        if one.lower is not None and one.upper is not None
    ]
    past = [
        (Window.of(at, series.results[0].window.length), (x(at), y(earlier[at]))) for at in sorted(earlier)
    ]
    words = f"{plural(len(values), 'window')}: lowest {show(min(values))}, highest {show(max(values))}"
    words += f", {len(violated)} violated or out of the band" if violated else ""
    return Trend(
        name=visible(title(series.newest)),
        lines=_lines(points),
        bands=tuple(_area(run) for run in _runs(between)),
        bound=None if bound is None else y(bound),
        violated=tuple(violated),
        heights=(
            Height(y(high), y(high) + _ABOVE, show(high)),
            *([Height(y(low), y(low) + _BELOW, show(low))] if low < high else []),
        ),
        label=words,
        before=_lines(past),
        columns=tuple(
            Column(
                x(one.window.start),
                max(1.0, round(x(one.window.end) - x(one.window.start), 1)),
                said(series, one),
            )
            for one in series.results
        )
        if is_large
        else (),
        ticks=tuple(Tick(x(at), _named(at)) for at in _moments(span)) if is_large else (),
    )


def _possible(result: Result) -> tuple[float, float]:
    """The smallest and the largest value that a series like that of the result can have."""
    spec = ALL_SPECS.get(result.metric)
    if is_rule(result):
        return 0.0, 1.0
    if spec is None:
        return -math.inf, math.inf
    return (0.0, math.inf) if spec.is_count else spec.bounds


def _ends(
    values: Sequence[float], bands: Sequence[float], possible: tuple[float, float]
) -> tuple[float, float]:
    """The ends of the axis. A band may take it to three times the range of the values, and not beyond what is
    possible; the rest is cut off.

    >>> _ends([1.0, 2.0], [0.5, 2.5], (0.0, math.inf)), _ends([1.0, 2.0], [-50.0, 100.0], (0.0, math.inf))
    ((0.5, 2.5), (0.0, 4.0))
    """
    low, high = min(values), max(values)
    most = 2 * ((high - low) or abs(high) or 1.0)
    lowest, highest = max(low - most, possible[0]), min(high + most, possible[1])
    return min(low, max(min([low, *bands]), lowest)), max(high, min(max([high, *bands]), highest))


def said(series: TimeSeries, one: Timed) -> str:
    """What a reader is told of a window: its value, what was expected, its verdict."""
    show = shower_of(one.result)
    parts = [
        f"{moment(one.window.start)}: " + ("no value" if one.result.value is None else show(one.result.value))
    ]
    expected = series.expected.get(one.window)
    if expected is not None and (between := between_text(show, expected.lower, expected.upper)):
        parts.append(f"expected {between}")
    status = series.status(one)
    parts += [verdict(status).word] if status is not Status.OK else []
    return ", ".join(parts)


def _moments(span: Window) -> Iterator[datetime]:
    """Some round times of a span: whole minutes, hours, days or weeks."""
    step = next((one for one in _STEPS if span.length / one <= _MOST_TICKS), _STEPS[-1])
    midnight = span.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + step * math.ceil((span.start - midnight) / step)
    while at < span.end:
        yield at
        at += step


def _named(at: datetime) -> str:
    return f"{at:%d %b}" if at.hour == at.minute == 0 else f"{at:%H:%M}"


def _lines(points: Sequence[tuple[Window, tuple[float, float] | None]]) -> tuple[str, ...]:
    return tuple(
        " ".join(f"{a},{b}" for a, b in run)
        if len(run) > 1
        else " ".join(f"{a - 1},{b} {a + 1},{b}" for a, b in run)
        for run in _runs(points)
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
