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
_COLOURS: Final = ("#1a66c2", "#b3541e", "#2e7d4f", "#7a3e9d")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 220, 130, 46, 40, 40
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
    methods = dict(zip(dict.fromkeys(one.method for one in compared), _COLOURS, strict=False))
    width = _LEFT + len(incidents) * (_WIDTH + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_TOP + _HEIGHT + 60}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, incident in enumerate(incidents):
        parts += _diagram(compared, incident, methods, _LEFT + number * (_WIDTH + _GAP))
    for number, (method, colour) in enumerate(methods.items()):
        x, y = _LEFT + 110 * number, _TOP + _HEIGHT + 50
        parts.append(f'<path d="M{x} {y - 4}h18" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{x + 24}" y="{y}">{escape(method)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _diagram(
    compared: Sequence[Compared], incident: str, methods: Mapping[str, str], left: float
) -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    yield f'<text x="{left}" y="{_TOP - 16}" font-weight="bold">{escape(incident)}</text>'
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * _HEIGHT
        yield f'<path d="M{left} {y:g}h{_WIDTH}" stroke="#d5d5d5"/>'
        yield f'<text x="{left - 6}" y="{y + 4:g}" text-anchor="end">{100 * share:.0f} %</text>'
    for false in (0.0, 0.5, 1.0, 1.5, 2.0):
        yield f'<text x="{_x(left, false):g}" y="{bottom + 18}" text-anchor="middle">{false:g}</text>'
    for method, colour in methods.items():
        found = [
            (one.false, share)
            for one in sorted(compared, key=lambda each: each.false)
            if one.method == method and (share := (one.caught or {}).get(incident)) and share.n
        ]
        points = [(_x(left, false), bottom - share.hits / share.n * _HEIGHT) for false, share in found]
        if points:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>'


def _x(left: float, false: float) -> float:
    return left + false / _MOST * _WIDTH
