"""The output of `compare`: a table for people, JSON for programs, JUnit for a CI server."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from monitor.comparison.compare import Compared, Verdict
from monitor.comparison.lists import Lists
from monitor.core.json_value import iso
from monitor.core.results import Result, ResultKind, Window
from monitor.core.text import visible
from monitor.report.compared_lists import lists_json, lists_text
from monitor.report.judged import NOT_TEXT, title
from monitor.report.numbers import number, window

MARKS: Final[Mapping[Verdict, tuple[str, str]]] = {
    Verdict.WORSE: ("✗", "bold red"),
    Verdict.BETTER: ("✓", "green"),
    Verdict.DIFFERENT: ("≠", "bold yellow"),
    Verdict.UNKNOWN: ("?", "yellow"),
    Verdict.SAME: ("=", ""),
    Verdict.NOT_JUDGED: ("-", "dim"),
}
"""Each verdict's mark and style, those that matter most first."""
_NAME_AT: Final = 13
_NUMBERS: Final = (("A", 10), ("B", 10), ("B - A", 11), ("interval", 24), ("needs", 11))
_NARROWEST, _WIDEST = 100, 160
_SLICES, _SLICE = 5, 60


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides as they were named, the span of each, and what came of them.

    `lists` is None where the sides are parts of the rows.
    """

    sides: tuple[str, str]
    spans: tuple[Window, Window]
    compared: Sequence[Compared]
    notes: Sequence[str] = ()
    lists: Lists | None = None

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of each verdict, those that matter most first."""
        found = Counter(one.verdict for one in self.compared)
        return {verdict: found[verdict] for verdict in MARKS if found[verdict]}


def as_json(found: Comparison) -> str:
    """One object with both sides and a list of what was compared; null for what is not known."""
    content = {
        "sides": [
            {"name": name, "from": iso(span.start), "to": iso(span.end)}
            for name, span in zip(found.sides, found.spans, strict=True)
        ],
        "verdicts": {str(verdict): count for verdict, count in found.counts.items()},
        "notes": list(found.notes),
        "slices": {name: {str(one): of[one] for one in MARKS} for name, of in by_slice(found).items()},
        "compared": [_as_json(one) for one in found.compared],
        "lists": None if found.lists is None else lists_json(found.lists),
    }
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)


def _as_json(one: Compared) -> dict[str, Any]:
    return {
        "metric": one.result.metric,
        "labels": dict(one.result.labels),
        "a": _value(one.one),
        "b": _value(one.other),
        "difference": one.difference,
        "lower": None if one.interval is None else one.interval.lower,
        "upper": None if one.interval is None else one.interval.upper,
        "margin": one.margin,
        "correlation": one.users.correlation,
        "wider": {"a": one.users.wider, "b": one.users.wider_other},
        "verdict": str(one.verdict),
        "samples_needed": one.needed,
        "detail": one.why,
    }


def _value(result: Result | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "value": result.value, "samples": result.samples, "lower": result.lower, "upper": result.upper,
        "status": result.status.value,
    } | ({"violations": result.violations} if result.kind is ResultKind.RULE else {})  # fmt: skip


def as_junit(found: Comparison) -> str:
    """A test case for each rule and metric. What is worse is a failure, what is unknown is skipped."""
    a, b = found.sides
    suite = ElementTree.Element("testsuite", name=f"{b} against {a}".translate(NOT_TEXT))
    kinds: Counter[str] = Counter()
    for one in found.compared:
        case = ElementTree.SubElement(
            suite, "testcase", classname="compare", name=title(one.result).translate(NOT_TEXT)
        )
        kind = {Verdict.WORSE: "failure", Verdict.UNKNOWN: "skipped", Verdict.NOT_JUDGED: "skipped"}.get(
            one.verdict
        )
        if kind is not None:
            kinds[kind] += 1
            message = "; ".join(filter(None, [_in_words(one), one.why])).translate(NOT_TEXT)
            ElementTree.SubElement(case, kind, message=message, type=str(one.verdict)).text = message
    for key, value in (
        ("tests", len(found.compared)), ("failures", kinds["failure"]), ("errors", 0),
        ("skipped", kinds["skipped"]),
    ):  # fmt: skip
        suite.set(key, str(value))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _in_words(one: Compared) -> str:
    if one.one is None or one.other is None or one.difference is None:
        return str(one.verdict)
    values = f"{number(one.one.value or 0.0)} to {number(one.other.value or 0.0)}"
    if one.interval is None:
        return values
    return f"{values}, difference {number(one.difference)} ({interval_text(one)})"


def print_comparison(found: Comparison, console: Console, *, everything: bool = False) -> None:
    """Print both sides, and a line for each rule and metric, those that matter most first.

    `needs` is the number of samples a side that would decide. Without `everything`, what is not judged is
    only counted. The width is that of the terminal; a narrow one gets the numbers on a line of their own. If
    there is none, it is that of the longest name.
    """
    shown = [one for one in found.compared if everything or one.verdict is not Verdict.NOT_JUDGED]
    numbers = "".join(name.rjust(size) for name, size in _NUMBERS)
    is_narrow = console.is_terminal and console.width < _NARROWEST
    width = console.width if is_narrow else max(_NARROWEST, min(console.width, _WIDEST))
    if not console.is_terminal:
        longest = max((cell_len(visible(title(one.result))) for one in shown), default=0)
        width = max(width, _NAME_AT + longest + len(numbers))
    for letter, side, span in zip("AB", found.sides, found.spans, strict=True):
        _print(console, Text(f"{letter}  {visible(side)}  {window(span)}", style="bold"))
    _print(console, Text(" " * (width - len(numbers)) + numbers, style="dim"))
    for one in worst_first(shown):
        for line in _lines(one, width, is_narrow=is_narrow):
            _print(console, line)
    notes = all_notes(found)
    if hidden := len(found.compared) - len(shown):
        notes.append(f"{hidden} not judged: they have no interval, or a side lacks them; --all shows them")
    for note in notes:
        for part in textwrap.wrap(visible(note), width, break_on_hyphens=False):
            _print(console, Text(part, style="dim"))
    for sentence in [*slices_text(found), *lists_text(found.lists)]:
        for part in textwrap.wrap(sentence, width, subsequent_indent="    ", break_on_hyphens=False):
            _print(console, Text(part))
    _print(console, Text(summary(found), style="bold"))


def all_notes(found: Comparison) -> list[str]:
    """The notes of a comparison, and those on its intervals."""
    tested = [one for one in found.compared if one.interval is not None]
    narrowed = sum(one.users.correlation > 0 for one in tested)
    widened = sum(one.users.is_wider for one in tested)
    alone = [
        f"slices of {side} alone: {', '.join(names[:_SLICES])}"
        + (f", and {len(names) - _SLICES} more" if len(names) > _SLICES else "")
        for side, names in slices_of_one_side(found).items()
        if names
    ]
    return [
        *found.notes,
        *alone,
        *([f"{_intervals(narrowed)} narrower because both sides served the same users"] if narrowed else []),
        *([f"{_intervals(widened)} wider because the rows of a user are alike"] if widened else []),
    ]


def _intervals(count: int) -> str:
    return "1 interval is" if count == 1 else f"{count:,} intervals are"


def slices_of_one_side(found: Comparison) -> dict[str, list[str]]:
    """The slices that the other side does not have."""
    a = {_slice(one) for one in found.compared if one.one is not None}
    b = {_slice(one) for one in found.compared if one.other is not None}
    return {"A": sorted(a - b - {""}), "B": sorted(b - a - {""})}


def _slice(one: Compared) -> str:
    labels = one.result.labels
    return f"{labels['dimension']}={labels['value']}" if "dimension" in labels else ""


def by_slice(found: Comparison) -> dict[str, Counter[Verdict]]:
    """The number of each verdict in each slice: `dimension=value` -> verdict -> number."""
    counts: dict[str, Counter[Verdict]] = {}
    for one in found.compared:
        if name := _slice(one):
            counts.setdefault(name, Counter())[one.verdict] += 1
    return counts


def slices_text(found: Comparison) -> Iterator[str]:
    """The slices that win and that lose, with the number of their metrics that do; those with most first."""
    counts = by_slice(found)
    for words, verdict in (("lose", Verdict.WORSE), ("win", Verdict.BETTER)):
        moved = sorted((-of[verdict], name) for name, of in counts.items() if of[verdict])
        names = [f"{visible(name, _SLICE)} ({-number} {verdict})" for number, name in moved[:_SLICES]]
        more = f", and {len(moved) - _SLICES} more" if len(moved) > _SLICES else ""
        if names:
            yield f"slices that {words}: {', '.join(names)}{more}"
    judged = [of for of in counts.values() if of.keys() - {Verdict.NOT_JUDGED}]
    if judged and not any(of[Verdict.WORSE] or of[Verdict.BETTER] for of in judged):
        yield f"no slice of {len(judged):,} wins or loses"


def worst_first(compared: Sequence[Compared]) -> list[Compared]:
    """Those that matter most first, else in their order."""
    order = list(MARKS)
    return sorted(compared, key=lambda one: order.index(one.verdict))


def summary(found: Comparison) -> str:
    """How many rules and metrics have each verdict."""
    parts = ", ".join(f"{count:,} {said(verdict)}" for verdict, count in found.counts.items())
    return f"B against A: {parts or 'nothing to compare'}"


def said(verdict: Verdict) -> str:
    """A verdict in words."""
    return "not judged" if verdict is Verdict.NOT_JUDGED else str(verdict)


def _lines(one: Compared, width: int, *, is_narrow: bool) -> Iterator[Text]:
    mark, style = MARKS[one.verdict]
    right = "".join(
        f" {text}".rjust(size)
        for text, (_, size) in zip(
            (
                value_text(one.one),
                value_text(one.other),
                difference_text(one),
                interval_text(one),
                "" if one.needed is None else f"{one.needed:,}",
            ),
            _NUMBERS,
            strict=True,
        )
    )
    room = width - _NAME_AT - (0 if is_narrow else len(right))
    name = visible(title(one.result))
    verdict = (f"{mark} {said(one.verdict)}".ljust(_NAME_AT), style)
    yield Text.assemble(verdict, set_cell_size(name, room), "" if is_narrow else right)
    if cell_len(name) > room:
        yield from _indented(name, width)
    if is_narrow and right.strip():
        yield Text(right.rjust(width))
    if one.why and one.interval is None:
        yield from _indented(visible(one.why), width)


def value_text(result: Result | None) -> str:
    """The value of a side; empty without one."""
    return "" if result is None or result.value is None else number(result.value)


def difference_text(one: Compared) -> str:
    """B less A with its sign; empty if it is not known."""
    if one.difference is None:
        return ""
    return ("+" if one.difference > 0 else "") + number(one.difference)


def interval_text(one: Compared) -> str:
    """The interval of the difference; empty without one."""
    return "" if one.interval is None else f"{number(one.interval.lower)} to {number(one.interval.upper)}"


def _indented(text: str, width: int) -> Iterator[Text]:
    for line in textwrap.wrap(text, width - _NAME_AT - 2, break_on_hyphens=False):
        yield Text(" " * (_NAME_AT + 2) + line, style="dim")


def _print(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, soft_wrap=True)
