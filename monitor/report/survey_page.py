"""A survey as one HTML file, with a picture of each interval and nothing to load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, Template

from monitor.core.results import Result, Status
from monitor.core.text import visible
from monitor.report.numbers import count, number, share
from monitor.report.survey import (
    MARKS,
    about_lines,
    bias_line,
    correlation_interval,
    headline,
    interval_of,
    interval_text,
    not_measured,
    question_text,
    said,
    series_text,
    splits_of,
    tracked_line,
    value_text,
)
from monitor.statistics.intervals import Interval
from monitor.survey.findings import GroupDifference, QuestionFound, SurveyFound, Tracked, Verdict
from monitor.survey.numbers import DIFFERENCE_METRIC

_WIDTH, _INSET = 180, 6
_REACH: Final = 1.0
"""The pictures of differences and correlations reach from -1 to 1; what lies beyond is at the edge."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The places of an interval and its value, in pixels."""

    lower: float
    upper: float
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class _Mean:
    name: str
    value: str
    interval: str
    top: str
    rate: str
    users: str
    detail: str
    drawn: _Drawn | None


@dataclass(frozen=True, slots=True)
class _Bias:
    name: str
    respondents: str
    others: str
    difference: str
    interval: str
    detail: str
    is_warning: bool
    drawn: _Drawn | None


@dataclass(frozen=True, slots=True)
class _Metric:
    verdict: Verdict
    mark: str
    said: str
    name: str
    mean: str
    correlation: str
    interval: str
    partial: str
    users: str
    needed: str
    drawn: _Drawn | None


@dataclass(frozen=True, slots=True)
class _Question:
    name: str
    low: str
    high: str
    means: list[_Mean]
    tracked: str
    metrics: list[_Metric]
    without: list[str]


def as_html(found: SurveyFound) -> str:
    """The page: each question, respondents against the others, and each metric against the answers."""
    page = {
        "headline": visible(headline(found)), "about": list(about_lines(found)),
        "questions": [_question(one) for one in found.questions],
        "bias_line": bias_line(found), "is_warning": bool(found.warnings),
        "bias": [_bias(one) for one in found.bias],
        "width": _WIDTH, "middle": _WIDTH / 2,
        "negligible": _area(found.negligible), "negligible_text": number(found.negligible),
        "large": _area(found.large), "large_text": number(found.large),
    }  # fmt: skip
    return _template().render(page=page)


@cache
def _template() -> Template:
    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True).get_template("survey.html")


def _question(one: QuestionFound) -> _Question:
    top = "" if one.top.value is None else share(one.top.value)
    rate = "" if one.rate.value is None else share(one.rate.value)
    means = [_mean("all respondents", one.answer, one.scale, top, rate)]
    means += [
        _mean(name, result, None if result.metric == DIFFERENCE_METRIC else one.scale)
        for name, result in splits_of(one)
    ]
    low, high = (number(end) for end in one.scale)
    metrics = [_metric(pair) for pair in one.tracked if pair.correlation is not None]
    without = [visible(line) for line in not_measured(one)]
    tracked = tracked_line(one) if one.tracked else ""
    return _Question(question_text(one), low, high, means, tracked, metrics, without)


def _mean(
    name: str, result: Result, scale: tuple[float, float] | None, top: str = "", rate: str = ""
) -> _Mean:
    drawn = None if scale is None else _on_scale(result, scale)
    return _Mean(
        name, value_text(result), interval_text(interval_of(result)), top, rate,
        count(result.samples or 0), visible(result.detail), drawn,
    )  # fmt: skip


def _bias(one: GroupDifference) -> _Bias:
    mine, others = ("" if value is None else number(value) for value in (one.respondents, one.others))
    interval = interval_of(one.difference)
    return _Bias(
        visible(series_text(one.series)), mine, others, value_text(one.difference), interval_text(interval),
        visible(one.difference.detail), one.difference.status is Status.VIOLATED,
        _around_zero(one.difference.value, interval),
    )  # fmt: skip


def _metric(one: Tracked) -> _Metric:
    known = one.correlation
    return _Metric(
        one.verdict, MARKS[one.verdict][0], said(one.verdict), visible(series_text(one.series)),
        "" if one.mean is None else number(one.mean[0]),
        "" if known is None else f"{known.rho:.3f}",
        "" if known is None else correlation_interval(known.interval),
        "" if one.partial is None else f"{one.partial.rho:.3f}",
        "" if known is None else count(known.n),
        "" if one.needed is None else count(one.needed),
        None if known is None else _around_zero(known.rho, known.interval),
    )  # fmt: skip


def _on_scale(result: Result, scale: tuple[float, float]) -> _Drawn | None:
    interval = interval_of(result)
    if result.value is None or interval is None:
        return None
    low, high = scale
    lower, upper, at = (_place(2 * (one - low) / (high - low) - 1) for one in (*interval, result.value))
    return _Drawn(lower, upper, at, f"{number(result.value)}, {interval_text(interval)}")


def _around_zero(value: float | None, interval: Interval | None) -> _Drawn | None:
    if value is None or interval is None:
        return None
    lower, upper, at = (_place(one / _REACH) for one in (*interval, value))
    return _Drawn(lower, upper, at, f"{number(value)}, {interval_text(interval)}")


def _area(edge: float) -> tuple[float, float]:
    """Begin and width, in pixels, of the area from -edge to edge."""
    begin, end = _place(-edge / _REACH), _place(edge / _REACH)
    return begin, round(end - begin, 1)


def _place(part: float) -> float:
    """Where a number from -1 to 1 lies, in pixels from the left."""
    half = _WIDTH / 2 - _INSET
    return round(_WIDTH / 2 + half * max(-1.0, min(1.0, part)), 1)
