"""A forecast as one HTML file: each pair as a scatter with its line, and nothing to load."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, Template

from monitor.core.text import visible
from monitor.forecast.study import Pair, band_of
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
from monitor.report.scatter import Scatter
from monitor.report.table import MARKS

_OUTCOME_COLOURS: Final = {Outcome.MISSED: "violated", Outcome.CAME_TRUE: "ok", Outcome.PENDING: "no_data"}


def as_html(reports: Sequence[ForecastReport]) -> str:
    """The page: the days, the pairs of each target with their pictures, and the forecasts."""
    return _template().render(reports=[_report(one) for one in reports])


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


def _picture(pair: Pair, confidence: float) -> Scatter | None:
    """None without a line. The line and its area are those without the rhythm of the week."""
    if pair.relation is None:
        return None
    line = pair.relation.line
    x = pair.relation.points.x
    ends = [(at, line.intercept + line.slope * at) for at in (float(x.min()), float(x.max()))]
    band = [(at, found.lower, found.upper) for at, found in band_of(pair, confidence)]
    return Scatter.of(pair.dots, ends, band)
