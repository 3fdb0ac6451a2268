"""A forecast as one HTML file: each pair as a scatter with its line, and nothing to load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, Template

from monitor.core.text import visible
from monitor.forecast.days import REASONS
from monitor.forecast.study import Dot, Pair, band_of
from monitor.history.forecasts import Outcome
from monitor.report.forecast import (
    ForecastReport,
    correlation_text,
    days_text,
    fit_text,
    record_text,
    shown,
    stored_text,
)
from monitor.report.numbers import number
from monitor.report.table import MARKS

_WIDTH, _HEIGHT, _MARGIN = 340, 200, 12
_HOLIDAYS: Final = ("holiday", "season")
_OUTCOME_COLOURS: Final = {Outcome.MISSED: "violated", Outcome.CAME_TRUE: "ok", Outcome.PENDING: "no_data"}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A dot: `kind` is `used`, `holiday` or `incident`; `said` is shown on it."""

    x: float
    y: float
    kind: str
    said: str


@dataclass(frozen=True, slots=True)
class _Picture:
    """The dots, the line and the area around it, in pixels; and the ends of both axes."""

    dots: Sequence[_Drawn]
    line: str
    band: str
    ends: tuple[str, str, str, str]


def as_html(reports: Sequence[ForecastReport]) -> str:
    """The page: the days, the pairs of each target with their pictures, and the forecasts."""
    page = {"reports": [_report(one) for one in reports], "width": _WIDTH, "height": _HEIGHT}
    return _template().render(page=page)


@cache
def _template() -> Template:
    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True).get_template("forecast.html")


def _report(report: ForecastReport) -> dict[str, Any]:
    found = report.study
    targets = []
    for target in found.forecast.targets:
        pairs, others = shown(found, target.name)
        rows = [_row(one, found.forecast.confidence) for one in pairs]
        targets.append({"name": target.name, "rows": rows, "others": others})
    return {
        "name": found.settings.name, "days": days_text(found), "targets": targets,
        "candidate": visible(report.forecasts[0].candidate) if report.forecasts else "",
        "forecasts": [
            {
                "mark": MARKS[one.status][0], "status": one.status, "target": one.target,
                "detail": visible(one.detail),
            }
            for one in report.forecasts
        ],
        "record": record_text(report.stored),
        "stored": [
            {"said": stored_text(one), "colour": _OUTCOME_COLOURS[one.outcome]} for one in report.stored
        ],
    }  # fmt: skip


def _row(pair: Pair, confidence: float) -> dict[str, Any]:
    return {
        "name": visible(pair.series.title()), "role": "used" if pair.is_used else "tried",
        "mark": MARKS[pair.status][0], "status": pair.status, "correlation": correlation_text(pair),
        "detail": visible(pair.detail()), "fit": fit_text(pair), "target": pair.target.name,
        "picture": _picture(pair, confidence),
    }  # fmt: skip


def _picture(pair: Pair, confidence: float) -> _Picture | None:
    """None without a line. The line and its area are those without the rhythm of the week."""
    band = band_of(pair, confidence)
    if pair.relation is None or not pair.dots:
        return None
    line = pair.relation.line
    places = [float(pair.relation.points.x.min()), float(pair.relation.points.x.max())]
    ends = [(x, line.intercept + line.slope * x) for x in places]
    xs = [*(one.x for one in pair.dots), *places]
    ys = [one.y for one in pair.dots] + [y for _, y in ends]
    ys += [edge for _, found in band for edge in (found.lower, found.upper)]
    across, up = _Axis(min(xs), max(xs), _WIDTH), _Axis(min(ys), max(ys), _HEIGHT)

    def at(x: float, y: float) -> str:
        return f"{across.place(x)},{round(_HEIGHT - up.place(y), 1)}"

    outline = [at(x, one.upper) for x, one in band] + [at(x, one.lower) for x, one in reversed(band)]
    dots = [
        _Drawn(across.place(one.x), round(_HEIGHT - up.place(one.y), 1), _kind(one), _said(one))
        for one in pair.dots
    ]
    texts = number(across.low), number(across.high), number(up.low), number(up.high)
    return _Picture(dots, " ".join(at(*end) for end in ends), " ".join(outline), texts)


def _kind(dot: Dot) -> str:
    if not dot.reason:
        return "used"
    return "holiday" if dot.reason in _HOLIDAYS else "incident"


def _said(dot: Dot) -> str:
    model = f", {dot.model}" if dot.model else ""
    why = f", left out: {REASONS[dot.reason]}" if dot.reason else ""
    return f"{dot.day}: {number(dot.x)}, {number(dot.y)}{model}{why}"


@dataclass(frozen=True, slots=True)
class _Axis:
    """From the lowest to the highest value, in so many pixels."""

    low: float
    high: float
    pixels: int

    def place(self, value: float) -> float:
        if self.high <= self.low:
            return self.pixels / 2
        inner = self.pixels - 2 * _MARGIN
        return round(_MARGIN + inner * (value - self.low) / (self.high - self.low), 1)
