"""The launch report of a gate: for people, for programs, and for a change request."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, Template
from rich.console import Console
from rich.text import Text

from monitor.core.json_value import iso
from monitor.core.results import Result
from monitor.core.text import plural, visible
from monitor.gate.conditions import Judgement, Outcome
from monitor.report.judged import NOT_TEXT
from monitor.report.numbers import number

MARKS: Final[Mapping[Outcome, tuple[str, str]]] = {
    Outcome.FAILED: ("✗", "bold red"),
    Outcome.NOT_KNOWN: ("?", "yellow"),
    Outcome.PASSED: ("✓", "green"),
}
_OUTCOME_AT: Final = 17
_WIDEST: Final = 110


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """The candidate and the other side as they were named, and what came of each condition."""

    candidate: str
    against: str | None
    judged_at: datetime
    outcome: Outcome
    judgements: Sequence[Judgement]


def said(outcome: Outcome) -> str:
    """An outcome in words."""
    return "not yet known" if outcome is Outcome.NOT_KNOWN else str(outcome)


def headline(report: LaunchReport) -> str:
    """The outcome in one sentence."""
    overridden = sum(one.override is not None for one in report.judgements)
    counts = Counter(one.outcome for one in report.judgements)
    parts = ", ".join(f"{counts[outcome]} {said(outcome)}" for outcome in MARKS if counts[outcome])
    more = f", {overridden} overridden" if overridden else ""
    return f"{visible(report.candidate)}: {said(report.outcome)} ({parts}{more})"


def print_report(report: LaunchReport, console: Console) -> None:
    """Print the outcome, then each condition with its evidence, in the order of the config."""
    _print(console, Text(headline(report), style=MARKS[report.outcome][1]))
    against = f", against {visible(report.against)}" if report.against else ""
    _print(console, Text(f"judged at {iso(report.judged_at)}{against}", style="dim"))
    for one in report.judgements:
        mark, style = MARKS[one.outcome]
        _print(
            console,
            Text.assemble((f"{mark} {said(one.outcome)}".ljust(_OUTCOME_AT), style), one.condition.name),
        )
        width = min(console.width, _WIDEST) if console.is_terminal else _WIDEST
        for line in _details(one):
            for part in textwrap.wrap(line, width - _OUTCOME_AT, break_on_hyphens=False):
                _print(console, Text(" " * _OUTCOME_AT + part, style="dim"))


def _details(one: Judgement) -> Iterator[str]:
    yield f"asked: {visible(one.asks)}"
    yield f"found: {visible(one.detail)}"
    if values := values_text(one):
        yield values
    for row in one.rows:
        yield f"row: {_row(row)}"
    yield f"owner: {visible(one.condition.owner)}; {visible(one.condition.reason)}"
    if one.override is not None:
        yield f"overridden by {visible(one.override.name)}: {visible(one.override.reason)}"


def _row(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{visible(name)}={visible(value)}" for name, value in row.items())


def values_text(one: Judgement) -> str:
    """The values and the interval in words; empty without a value."""
    parts = [
        f"{name} {number(side.value)}"
        for name, side in (("candidate", one.candidate), ("other side", one.other))
        if side is not None and side.value is not None
    ]
    if one.interval is not None:
        of = "difference" if one.other is not None else "interval"
        parts.append(f"{of} {number(one.interval.lower)} to {number(one.interval.upper)}")
    if one.bound is not None:
        parts.append(f"bound {number(one.bound)}")
    if one.candidate is not None and one.candidate.samples is not None:
        parts.append(plural(one.candidate.samples, "sample"))
    return ", ".join(parts)


def as_content(report: LaunchReport) -> dict[str, Any]:
    """The report as plain data; null for what is not known."""
    return {
        "candidate": report.candidate,
        "against": report.against,
        "judged_at": iso(report.judged_at),
        "outcome": report.outcome.value,
        "conditions": [
            {
                "name": one.condition.name,
                "owner": one.condition.owner,
                "reason": one.condition.reason,
                "asks": one.asks,
                "outcome": one.outcome.value,
                "detail": one.detail,
                "candidate": _value(one.candidate),
                "other": _value(one.other),
                "lower": None if one.interval is None else one.interval.lower,
                "upper": None if one.interval is None else one.interval.upper,
                "bound": one.bound,
                "rows": [dict(row) for row in one.rows],
                "override": None
                if one.override is None
                else {"name": one.override.name, "reason": one.override.reason},
            }
            for one in report.judgements
        ],
    }


def _value(result: Result | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "metric": result.metric, "labels": dict(result.labels), "status": result.status.value,
        "value": result.value, "samples": result.samples, "lower": result.lower, "upper": result.upper,
        "detail": result.detail,
    }  # fmt: skip


def as_json(report: LaunchReport) -> str:
    """The report for programs."""
    return json.dumps(as_content(report), indent=1, ensure_ascii=True, allow_nan=False)


def as_junit(report: LaunchReport) -> str:
    """A test case for each condition. What fails is a failure, and what is not known is an error.

    A CI server must not pass a gate that is not known. What somebody overrides is skipped.
    """
    name = f"gate of {report.candidate}".translate(NOT_TEXT)
    suite = ElementTree.Element("testsuite", name=name)
    kinds: Counter[str] = Counter()
    for one in report.judgements:
        case = ElementTree.SubElement(suite, "testcase", classname="gate", name=one.condition.name)
        kind = {Outcome.FAILED: "failure", Outcome.NOT_KNOWN: "error"}.get(one.outcome)
        if kind is None:
            continue
        kind = "skipped" if one.override is not None else kind
        kinds[kind] += 1
        message = "; ".join(_details(one)).translate(NOT_TEXT)
        ElementTree.SubElement(case, kind, message=message, type=one.outcome.value).text = message
    for key, count in (
        ("tests", len(report.judgements)), ("failures", kinds["failure"]), ("errors", kinds["error"]),
        ("skipped", kinds["skipped"]),
    ):  # fmt: skip
        suite.set(key, str(count))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def as_html(report: LaunchReport) -> str:
    """The report as one file, to attach to a change request."""
    rows = [
        {
            "outcome": one.outcome, "mark": MARKS[one.outcome][0], "said": said(one.outcome),
            "name": one.condition.name, "asks": visible(one.asks), "detail": visible(one.detail),
            "numbers": values_text(one), "owner": visible(one.condition.owner),
            "reason": visible(one.condition.reason),
            "rows": [_row(row) for row in one.rows],
            "override": None if one.override is None
            else {"name": visible(one.override.name), "reason": visible(one.override.reason)},
        }
        for one in report.judgements
    ]  # fmt: skip
    page = {
        "headline": headline(report), "outcome": report.outcome, "judged_at": iso(report.judged_at),
        "candidate": visible(report.candidate), "against": visible(report.against), "rows": rows,
    }  # fmt: skip
    return _template().render(page=page)


@cache
def _template() -> Template:
    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True).get_template("gate.html")


def _print(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, soft_wrap=True)
