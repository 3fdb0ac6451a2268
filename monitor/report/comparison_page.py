"""A comparison as one HTML file, with a picture of each difference and nothing to load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, Template

from monitor.comparison.compare import Compared, Verdict
from monitor.core.text import visible
from monitor.report.compared_lists import lists_text
from monitor.report.comparison import (
    MARKS,
    Comparison,
    all_notes,
    difference_text,
    interval_text,
    said,
    slices_text,
    summary,
    value_text,
    worst_first,
)
from monitor.report.judged import title
from monitor.report.numbers import share, window

_WIDTH, _INSET = 190, 6
_REACH: Final = 0.5
"""The picture shows changes of up to half of A; what lies beyond is drawn at its edge."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The places of an interval, its value and the margin (begin and width), in pixels."""

    lower: float
    upper: float
    at: float
    margin: tuple[float, float]
    label: str


@dataclass(frozen=True, slots=True)
class _Row:
    verdict: Verdict
    mark: str
    said: str
    name: str
    one: str
    other: str
    difference: str
    interval: str
    needed: str
    why: str
    drawn: _Drawn | None


def as_html(found: Comparison) -> str:
    """The page: a line for each rule and metric, those that matter most first."""
    rows = [_row(one) for one in worst_first(found.compared)]
    about = [
        {"letter": letter, "name": visible(name), "span": window(span)}
        for letter, name, span in zip("AB", found.sides, found.spans, strict=True)
    ]
    page = {
        "sides": [visible(name) for name in found.sides], "about": about, "summary": summary(found),
        "notes": [visible(note) for note in all_notes(found)], "slices": list(slices_text(found)),
        "lists": list(lists_text(found.lists)),
        "rows": rows, "width": _WIDTH,
        "reach": f"+{share(_REACH)}", "reach_low": f"-{share(_REACH)}",
    }  # fmt: skip
    return _template().render(page=page)


@cache
def _template() -> Template:
    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True).get_template("comparison.html")


def _row(one: Compared) -> _Row:
    return _Row(
        one.verdict, MARKS[one.verdict][0], said(one.verdict), visible(title(one.result)),
        value_text(one.one), value_text(one.other), difference_text(one), interval_text(one),
        "" if one.needed is None else f"{one.needed:,}", visible(one.why) if one.interval is None else "",
        _drawn(one),
    )  # fmt: skip


def _drawn(one: Compared) -> _Drawn | None:
    """The picture of a difference that has an interval and a value of A to compare it with."""
    if one.interval is None or one.difference is None or one.one is None or not one.one.value:
        return None
    base = abs(one.one.value)
    places = [_place(number / base) for number in (*one.interval, one.difference)]
    edge = _place((one.margin or 0.0) / base)
    lower, upper, at = places
    between = " to ".join(share(number / base) for number in one.interval)
    label = f"{share(one.difference / base)}, {between}"
    return _Drawn(lower, upper, at, (_WIDTH - edge, round(2 * edge - _WIDTH, 1)), label)


def _place(change: float) -> float:
    """Where a change lies, in pixels from the left."""
    half = _WIDTH / 2 - _INSET
    return round(_WIDTH / 2 + half * max(-1.0, min(1.0, change / _REACH)), 1)
