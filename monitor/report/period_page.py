"""Reports on a period as one HTML file that loads nothing, and as a text for a chat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from monitor import __version__
from monitor.core.results import VERDICTS, Status
from monitor.core.text import plural, visible
from monitor.report.judged_page import style_hash
from monitor.report.numbers import moment, window
from monitor.report.period import PastIncident, PeriodReport
from monitor.report.period_changes import KINDS
from monitor.report.table import MARKS
from monitor.report.trend import HEIGHT, WIDTH

POLICY: Final = "default-src 'none'; style-src '{style}'; base-uri 'none'; form-action 'none'"
_STRIP = 22
_MOST_COMPARED: Final = 60
_IN_TEXT: Final = 8


def as_html(reports: Sequence[PeriodReport], made_at: datetime) -> str:
    """The reports as one page."""
    style = _style()
    return _template().render(
        reports=[_shown(one) for one in reports],
        span=window(reports[0].span) if reports else "",
        made_at=moment(made_at),
        version=__version__,
        style=style,
        policy=page_policy(),
        width=WIDTH,
        height=HEIGHT,
        strip=_STRIP,
        kinds=KINDS,
    )


def page_policy() -> str:
    """The content security policy of the page: nothing but its own style."""
    return POLICY.format(style=style_hash(_style()))


def as_text(reports: Sequence[PeriodReport]) -> str:
    """A summary for a chat: a few lines for each recommender."""
    return "\n\n".join("\n".join(_lines(one)) for one in reports)


def headline(report: PeriodReport) -> str:
    """The period in one sentence."""
    if report.is_empty:
        return "No window of this period was judged: nothing is known about it."
    found = _counted(len(report.incidents), "incident")
    if not report.incidents and _is_blind(report.judged):
        found = "No incident is known, because nothing was judged"
    return (
        f"{found}; {_incidents_before(report)}. Windows: {verdicts_text(report.judged, report.not_judged)}."
    )


def _incidents_before(report: PeriodReport) -> str:
    """How many incidents the period before had, as far as it was judged."""
    if not report.incidents_before and _is_blind(report.judged_before):
        return "nothing is known about the period before"
    judged, before = (one.total() for one in (report.judged, report.judged_before))
    known = f" ({plural(before, 'judged window')})" if before < judged else ""
    return f"{report.incidents_before:,} in the period before{known}"


def _is_blind(judged: Counter[Status]) -> bool:
    """Whether no window has a verdict on the recommender."""
    return not (judged[Status.OK] or judged[Status.VIOLATED])


def verdicts_text(judged: Counter[Status], not_judged: int = 0) -> str:
    """How many windows have which verdict.

    >>> verdicts_text(Counter({Status.OK: 3, Status.VIOLATED: 1}), 2)
    '3 ok, 1 violated, 2 not judged'
    """
    parts = [f"{judged[one]:,} {one.value.replace('_', ' ')}" for one in VERDICTS if judged[one]]
    parts += [f"{not_judged:,} not judged"] if not_judged else []
    return ", ".join(parts) or "none"


def _counted(count: int, noun: str) -> str:
    return (plural(count, noun) if count else f"no {noun}s").capitalize()


def _lines(report: PeriodReport) -> Iterator[str]:
    yield f"{visible(report.recommender)}, {window(report.span)}"
    yield headline(report)
    for one in report.incidents[:_IN_TEXT]:
        yield f"{MARKS[Status.VIOLATED][0]} {_incident_line(one)}"
    if (left := len(report.incidents) - _IN_TEXT) > 0:
        yield f"  and {_counted(left, 'more incident').lower()}"
    for change in report.changes[:_IN_TEXT]:
        yield f"{KINDS[change.kind].lower()}: {moment(change.at)}: {change.text}"
    if (left := len(report.changes) - _IN_TEXT) > 0:
        yield f"  and {_counted(left, 'more change').lower()}"
    for row in [one for one in report.compared if one.size][:3]:
        by = f" ({row.change})" if row.change else ""
        windows = f"{plural(row.windows, 'window')}, before {row.windows_before:,}"
        yield f"{row.name}: {row.now}, before {row.before}{by}; {windows}".replace("\xa0", " ")


def _incident_line(one: PastIncident) -> str:
    until = f"until {one.until}" if one.until else "still violated at the end"
    why = f" - {', '.join(one.causes)}" if one.causes else ""
    return f"{one.what}: since {one.since}, {until}{why}"


def _shown(report: PeriodReport) -> dict[str, object]:
    step = WIDTH / max(1, len(report.cells))
    cells = [
        {
            "x": round(place * step, 2),
            "width": round(max(step - 0.4, 0.6), 2),
            "status": "none" if cell.status is None else cell.status.value,
            "said": f"{window(cell.span)}: "
            + ("not judged" if cell.status is None else cell.status.value.replace("_", " ")),
        }
        for place, cell in enumerate(report.cells)
    ]
    compared = report.compared[:_MOST_COMPARED]
    return {
        "name": visible(report.recommender),
        "headline": headline(report),
        "is_blind": _is_blind(report.judged),
        "before": window(report.before),
        "judged_before": verdicts_text(report.judged_before),
        "cells": cells,
        "first": moment(report.span.start),
        "last": moment(report.span.end),
        "incidents": report.incidents,
        "changes": [
            {"at": moment(one.at), "kind": KINDS[one.kind], "text": one.text} for one in report.changes
        ],
        "trends": report.trends,
        "left_out": report.left_out,
        "compared": compared,
        "compared_left": len(report.compared) - len(compared),
    }


@cache
def _style() -> str:
    folder = Path(__file__).parent / "templates"
    return "".join((folder / name).read_text("utf-8") for name in ("shared.css", "period.css"))


@cache
def _template() -> Template:
    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("period.html")
