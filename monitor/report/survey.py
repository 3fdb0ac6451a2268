"""The output of `survey`: a report for people, and JSON for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from monitor.core.json_value import iso
from monitor.core.results import Result, Status
from monitor.core.text import plural, visible
from monitor.report.numbers import count, number, share, window
from monitor.report.result_json import result_as_json
from monitor.statistics.intervals import Interval
from monitor.survey.findings import GroupDifference, QuestionFound, SurveyFound, Tracked, Verdict
from monitor.survey.user_metrics import SeriesKey

CHECK: Final = "survey"
MARKS: Final[Mapping[Verdict, tuple[str, str]]] = {
    Verdict.TRACKS: ("✓", "green"),
    Verdict.AGAINST: ("✗", "bold red"),
    Verdict.DOES_NOT_TRACK: ("=", ""),
    Verdict.UNKNOWN: ("?", "yellow"),
    Verdict.NOT_MEASURED: ("-", "dim"),
}
_NAME, _LEAST_NAME, _WIDEST = 34, 20, 110
_OF_MEANS: Final = (8, 18, 9, 9, 7)
_OF_BIAS: Final = (11, 9, 10, 19)
_OF_METRICS: Final = (9, 7, 11, 16, 7, 7, 7)


def said(verdict: Verdict) -> str:
    """A verdict in words."""
    return str(verdict).replace("_", " ")


def series_text(series: SeriesKey) -> str:
    """A metric with its labels, as in `novelty by=item`."""
    return " ".join([series[0], *(f"{name}={value}" for name, value in series[1])])


def interval_text(interval: Interval | None) -> str:
    """Both ends of an interval; empty without one."""
    return "" if interval is None else f"{number(interval.lower)} to {number(interval.upper)}"


def interval_of(result: Result) -> Interval | None:
    """The interval of a result."""
    return None if result.lower is None or result.upper is None else Interval(result.lower, result.upper)


def value_text(result: Result) -> str:
    """The value, or the status if there is none."""
    return str(result.status) if result.value is None else number(result.value)


def correlation_interval(interval: Interval) -> str:
    """Both ends of a correlation's interval.

    >>> correlation_interval(Interval(-0.12345, 0.5))
    '-0.123 to 0.500'
    """
    return f"{interval.lower:.3f} to {interval.upper:.3f}"


def p_text(p: float | None) -> str:
    """A p for people; empty without one.

    >>> p_text(0.01234), p_text(1e-9), p_text(None)
    ('0.0123', '<0.0001', '')
    """
    return "" if p is None else "<0.0001" if p < 1e-4 else f"{p:.4f}"


def headline(found: SurveyFound) -> str:
    """What a survey says of its answers, in one sentence."""
    of = "answer counts" if found.counted == 1 else "answers count"
    return f"{found.recommender}: {count(found.counted)} of {count(found.rows)} {of}"


def about_lines(found: SurveyFound) -> Iterator[str]:
    """Where the answers are from, which were left out, and who was asked."""
    yield f"answers from {window(found.span)}, lists from {window(found.shown)}"
    if found.faults:
        left = ", ".join(f"{count(n)} {name}" for name, n in found.faults.items())
        yield f"left out of the answers: {left}"
    yield (
        f"{plural(found.respondents, 'respondent')}, {plural(found.asked, 'user')} asked, "
        f"{count(found.served)} served; asked: {visible(found.asked_by)}"
    )
    yield from map(visible, found.notes)


def bias_line(found: SurveyFound) -> str:
    """The verdict on non-response bias in one sentence."""
    names = ", ".join(series_text(one.series) for one in found.warnings)
    if names:
        return f"respondents clearly differ from the others in {names}: a mean may not hold for all users"
    if all(one.difference.value is None for one in found.bias):
        return "nobody knows whether respondents differ from the others: no metric has enough values of both"
    return "no clear and large difference between respondents and the others was found"


def tracked_line(one: QuestionFound) -> str:
    """The metrics that track the answers, in one sentence."""
    names = {
        verdict: [series_text(found.series) for found in one.tracked if found.verdict is verdict]
        for verdict in MARKS
    }
    parts = [
        f"{said(verdict)}: {', '.join(names[verdict])}"
        for verdict in (Verdict.TRACKS, Verdict.AGAINST, Verdict.DOES_NOT_TRACK)
        if names[verdict]
    ]
    return "; ".join(parts) or "no metric surely tracks these answers, and none surely does not"


def not_measured(one: QuestionFound) -> Iterator[str]:
    """The metrics without a correlation, a line for each reason."""
    without: dict[str, list[str]] = {}
    for pair in one.tracked:
        if pair.correlation is None:
            without.setdefault(pair.why, []).append(series_text(pair.series))
    for why, names in without.items():
        yield f"not measured: {', '.join(names)}: {why}"


def question_text(one: QuestionFound) -> str:
    """A question with its scale and what it asks for."""
    low, high = (number(end) for end in one.scale)
    asks = "" if one.asks == "satisfaction" else f", on {one.asks}"
    return f"{visible(one.name)} ({low} to {high}{asks})"


def splits_of(one: QuestionFound) -> Iterator[tuple[str, Result]]:
    """The further means of a question, each with its name; none if the question has no mean at all."""
    if one.answer.value is None:
        return
    if one.weighted is not None:
        yield "weighted", one.weighted
    for arm in one.arms:
        name = f"{visible(arm.experiment)}: {visible(arm.arm)}"
        yield name, arm.answer
        if arm.difference is not None:
            yield f"{name} less {visible(arm.baseline)}", arm.difference
    for result in one.splits:
        yield f"{visible(result.labels['dimension'])}: {visible(result.labels['value'])}", result


def print_survey(found: SurveyFound, console: Console) -> None:
    """Print the answers, who gave them, and which metrics track them."""
    _print(console, Text(headline(found), style="bold"))
    for line in about_lines(found):
        _wrapped(console, line, "dim")
    _print(console, Text())
    _line(console, "question", ("mean", "interval of 95 %", "top", "rate", "users"), _OF_MEANS, "dim")
    for one in found.questions:
        _wrapped(console, question_text(one), "bold")
        top = "" if one.top.value is None else share(one.top.value)
        rate = str(one.rate.status) if one.rate.value is None else share(one.rate.value)
        _mean(console, "all respondents", one.answer, top, rate)
        for name, result in splits_of(one):
            _mean(console, name, result)
        if one.answer.value is None or one.weighted is not None:
            _wrapped(console, f"    {visible((one.weighted or one.answer).detail)}", "dim")
    _print(console, Text())
    _wrapped(console, bias_line(found), "bold yellow" if found.warnings else "bold")
    if any(one.difference.value is not None for one in found.bias):
        _line(console, "metric", ("respondents", "others", "difference", "interval"), _OF_BIAS, "dim")
    without: dict[str, list[str]] = {}
    for pair in found.bias:
        if pair.difference.value is None:
            without.setdefault(pair.difference.detail, []).append(series_text(pair.series))
        else:
            _compared(console, pair)
    for why, names in without.items():
        _wrapped(console, f"- not compared: {', '.join(names)}: {visible(why)}", "dim")
    for one in found.questions:
        if one.tracked:
            _print(console, Text())
            _wrapped(console, f"metrics against {question_text(one)}", "bold")
            _wrapped(console, tracked_line(one), "")
            _tracked(console, one)


def as_json(found: SurveyFound) -> str:
    """One object; results as in `check --format json`, null for what is not known."""

    def shown(result: Result | None) -> dict[str, Any] | None:
        return None if result is None else result_as_json(found.recommender, CHECK, found.span, result)

    content = {
        "recommender": found.recommender,
        "from": iso(found.span.start),
        "to": iso(found.span.end),
        "lists_from": iso(found.shown.start),
        "rows": found.rows,
        "counted": found.counted,
        "left_out": dict(found.faults),
        "served": found.served,
        "asked": found.asked,
        "asked_by": found.asked_by,
        "respondents": found.respondents,
        "notes": list(found.notes),
        "questions": [
            {
                "question": one.name,
                "asks": one.asks,
                "scale": list(one.scale),
                "answer": shown(one.answer),
                "top": shown(one.top),
                "response_rate": shown(one.rate),
                "weighted": shown(one.weighted),
                "slices": [shown(result) for result in one.splits],
                "arms": [
                    {"answer": shown(arm.answer), "difference": shown(arm.difference)} for arm in one.arms
                ],
                "metrics": [_tracked_json(pair) for pair in one.tracked],
            }
            for one in found.questions
        ],
        "respondents_against_others": [
            {"respondents": pair.respondents, "others": pair.others, "difference": shown(pair.difference)}
            for pair in found.bias
        ],
        "warning": bias_line(found) if found.warnings else None,
    }
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)


def _tracked_json(one: Tracked) -> dict[str, Any]:
    known, mean = one.correlation, one.mean
    ends = None if mean is None else mean[1]
    return {
        "metric": one.series[0],
        "labels": dict(one.series[1]),
        "verdict": one.verdict.value,
        "correlation": None if known is None else known.rho,
        "lower": None if known is None else known.interval.lower,
        "upper": None if known is None else known.interval.upper,
        "lower_together": None if one.together is None else one.together.lower,
        "upper_together": None if one.together is None else one.together.upper,
        "p_adjusted": one.p,
        "partial": None if one.partial is None else one.partial.rho,
        "partial_lower": None if one.partial is None else one.partial.interval.lower,
        "partial_upper": None if one.partial is None else one.partial.interval.upper,
        "respondents": None if known is None else known.n,
        "needed": one.needed,
        "mean": None if mean is None else mean[0],
        "mean_lower": None if ends is None else ends.lower,
        "mean_upper": None if ends is None else ends.upper,
        "why": one.why,
    }


def _mean(console: Console, name: str, result: Result, top: str = "", rate: str = "") -> None:
    users = count(result.samples or 0)
    cells = (value_text(result), interval_text(interval_of(result)), top, rate, users)
    _line(console, f"  {name}", cells, _OF_MEANS)


def _compared(console: Console, one: GroupDifference) -> None:
    sides = ("" if value is None else number(value) for value in (one.respondents, one.others))
    cells = (*sides, value_text(one.difference), interval_text(interval_of(one.difference)))
    is_warning = one.difference.status is Status.VIOLATED
    _line(console, series_text(one.series), cells, _OF_BIAS, "yellow" if is_warning else "")


def _tracked(console: Console, question: QuestionFound) -> None:
    heads = ("mean", "p", "correlation", "interval of 95 %", "partial", "users", "needs")
    if any(one.correlation is not None for one in question.tracked):
        _line(console, "verdict and metric", heads, _OF_METRICS, "dim")
    for one in question.tracked:
        mark, style = MARKS[one.verdict]
        known = one.correlation
        if known is None:
            continue
        cells = (
            "" if one.mean is None else number(one.mean[0]),
            p_text(one.p),
            f"{known.rho:.3f}",
            correlation_interval(known.interval),
            "" if one.partial is None else f"{one.partial.rho:.3f}",
            count(known.n),
            "" if one.needed is None else count(one.needed),
        )
        _line(console, f"{mark} {series_text(one.series)}", cells, _OF_METRICS, style)
    for line in not_measured(question):
        _wrapped(console, f"- {visible(line)}", "dim")


def _line(console: Console, name: str, cells: Sequence[str], widths: Sequence[int], style: str = "") -> None:
    """A row; on a narrow terminal the first of many columns give way to the name."""
    while (room := min(console.width, _WIDEST) - sum(widths) - len(widths)) < _LEAST_NAME and len(widths) > 5:
        cells, widths = cells[1:], widths[1:]
    size = min(_NAME, max(_LEAST_NAME, room))
    name = set_cell_size(name, size) if cell_len(name) <= size else set_cell_size(name, size - 1) + "…"
    text = name + "".join(f" {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    _print(console, Text(text, style=style))


def _wrapped(console: Console, line: str, style: str) -> None:
    width = max(40, min(_WIDEST, console.width))
    indent = " " * (len(line) - len(line.lstrip()))
    for part in textwrap.wrap(line.strip(), width - len(indent), break_on_hyphens=False):
        _print(console, Text(indent + part, style=style))


def _print(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, soft_wrap=True)
