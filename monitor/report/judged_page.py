"""Judged windows as HTML: a fragment for a notebook, or one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, Template

from monitor.core.results import Result, Status, Window
from monitor.core.text import visible
from monitor.report.causes import cause_name, causes_of, is_cause
from monitor.report.judged import Judged
from monitor.report.numbers import number, window
from monitor.report.table import MARKS, bound_text, by_window, interval_text, name_text, summary, worth_a_line

_MOST_WINDOWS: Final = 50
_DETAIL: Final = 2000


@dataclass(frozen=True, slots=True)
class _Row:
    status: str
    mark: str
    name: str
    value: str
    interval: str
    bound: str
    samples: str
    detail: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    title: str
    rows: tuple[_Row, ...]
    hidden: int


def as_fragment(
    judged: Sequence[Judged], status: Status, notes: Sequence[str] = (), *, everything: bool = False
) -> str:
    """The results as part of a page; its style reaches nothing around it.

    Args:
        judged: the results.
        status: the verdict on all of them.
        notes: sentences on things that no result shows.
        everything: also show what is measured and not judged.
    """
    return _render("judged_parts.html", judged, status, notes, everything=everything)


def as_page(
    judged: Sequence[Judged], status: Status, notes: Sequence[str] = (), *, everything: bool = False
) -> str:
    """The results as one HTML file; see `as_fragment`."""
    return _render("judged.html", judged, status, notes, everything=everything)


def _render(
    template: str, judged: Sequence[Judged], status: Status, notes: Sequence[str], *, everything: bool
) -> str:
    blocks = [_block(name, span, results, everything) for (name, span), results in by_window(judged)]
    style = (Path(__file__).parent / "templates" / "judged.css").read_text("utf-8")
    page = {
        "status": status.value,
        "mark": MARKS[status][0],
        "summary": summary(judged),
        "notes": [visible(note, _DETAIL) for note in notes],
        "blocks": blocks[-_MOST_WINDOWS:],
        "left": max(0, len(blocks) - _MOST_WINDOWS),
        "style": style,
        "style_hash": style_hash(style),
    }
    return _template(template).render(page=page)


def style_hash(style: str) -> str:
    """The source of a content security policy that allows this style and no other.

    >>> style_hash("")
    'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return f"sha256-{base64.b64encode(hashlib.sha256(style.encode('utf-8')).digest()).decode('ascii')}"


@cache
def _template(name: str) -> Template:
    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True).get_template(name)


def _block(name: str, span: Window, results: Sequence[Result], everything: bool) -> _Block:
    alone = [one for one in results if not is_cause(one)]
    shown = [one for one in alone if everything or worth_a_line(one)]
    rows = tuple(_row(one, causes_of(one, results)) for one in shown)
    return _Block(f"{name}, {window(span)}", rows, len(alone) - len(shown))


def _row(result: Result, causes: Sequence[Result]) -> _Row:
    said = [result.detail] if result.detail and result.status is not Status.OK else []
    said += [f"{cause_name(one)}: {one.detail}" for one in causes]
    return _Row(
        status=result.status.value,
        mark=MARKS[result.status][0],
        name=visible(name_text(result)),
        value="" if result.value is None else number(result.value),
        interval=""
        if result.lower is None or result.upper is None
        else interval_text(result.lower, result.upper),
        bound="" if result.threshold is None else bound_text(result),
        samples="" if result.samples is None else f"{result.samples:,}",
        detail=tuple(visible(one, _DETAIL) for one in said),
        evidence=tuple(visible(json.dumps(row, ensure_ascii=False), _DETAIL) for row in result.evidence),
    )
