"""The trade-off of each method as a picture: what it catches, by the false alarms that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from benchmarks.real_traffic.incidents import INCIDENTS
from benchmarks.scoreboard.rates import Share

DRAWN: Final = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0)
"""False alarms a week that the picture has a point for."""
_STYLES: Final = (
    'stroke="#1a66c2" stroke-width="5"',
    'stroke="#b3541e" stroke-width="3"',
    'stroke="#2e7d4f" stroke-width="2.5" stroke-dasharray="8 5"',
    'stroke="#a1239a" stroke-width="2.5" stroke-dasharray="2 4"',
)
"""From wide to dotted, so that lines on top of each other can be told apart."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 220, 130, 50, 40, 60
_MOST: Final = 2.0


@dataclass(frozen=True, slots=True)
class Compared:
    """What a method catches at a number of false alarms: incident -> share; None: no bound has so few."""

    method: str
    false: float
    caught: Mapping[str, Share] | None


def picture_name(series: str) -> str:
    """The file of a series' picture, beside the page."""
    return f"real-traffic-{series.replace(' ', '-')}.svg"


def picture(compared: Sequence[Compared]) -> str:
    """An SVG: a diagram for each incident, with a line for each method. Empty if there is nothing to draw."""
    incidents = [name for name in INCIDENTS if any(name in (one.caught or {}) for one in compared)]
    if not incidents:
        return ""
    methods = dict(zip(dict.fromkeys(one.method for one in compared), _STYLES, strict=False))
    width = len(incidents) * (_WIDTH + _GAP) + _LEFT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_TOP + _HEIGHT + 80}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, incident in enumerate(incidents):
        parts += _diagram(compared, incident, methods, _LEFT + number * (_WIDTH + _GAP))
    for number, (method, style) in enumerate(methods.items()):
        x, y = _LEFT + 130 * number, _TOP + _HEIGHT + 66
        parts.append(f'<path d="M{x} {y - 4}h26" {style}/>')
        parts.append(f'<text x="{x + 32}" y="{y}">{escape(method)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _diagram(
    compared: Sequence[Compared], incident: str, methods: Mapping[str, str], left: float
) -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    title = escape(INCIDENTS[incident].says)
    yield f'<text x="{left}" y="{_TOP - 16}" font-size="10" font-weight="bold">{title}</text>'
    yield f'<text x="{left}" y="{bottom + 36}" font-size="11">false alarms a week</text>'
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * _HEIGHT
        yield f'<path d="M{left} {y:g}h{_WIDTH}" stroke="#d5d5d5"/>'
        yield f'<text x="{left - 6}" y="{y + 4:g}" text-anchor="end">{100 * share:.0f} %</text>'
    for false in (0.0, 0.5, 1.0, 1.5, 2.0):
        yield f'<text x="{_x(left, false):g}" y="{bottom + 18}" text-anchor="middle">{false:g}</text>'
    for method, style in methods.items():
        found = [
            (one.false, caught)
            for one in sorted(compared, key=lambda each: each.false)
            if one.method == method and (caught := (one.caught or {}).get(incident)) and caught.n
        ]
        points = [(_x(left, false), bottom - caught.hits / caught.n * _HEIGHT) for false, caught in found]
        if points:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            yield f'<polyline points="{line}" fill="none" {style}/>'


def _x(left: float, false: float) -> float:
    return left + false / _MOST * _WIDTH
