"""The output of `forecast`: the pairs of metrics, the forecasts of a candidate, and their record."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from monitor.core.json_value import iso
from monitor.core.text import visible
from monitor.forecast.candidate import Forecast, as_content
from monitor.forecast.outcomes import calibration
from monitor.forecast.study import Pair, Study
from monitor.history.forecasts import Outcome, StoredForecast
from monitor.report.numbers import number, share
from monitor.report.table import MARKS

OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.PENDING: "not yet known", Outcome.CAME_TRUE: "came true", Outcome.MISSED: "missed",
}  # fmt: skip
_NAME_AT, _WIDEST = 12, 110


@dataclass(frozen=True, slots=True)
class ForecastReport:
    """What the past days of a recommender say, the forecasts of a candidate, and all stored forecasts."""

    study: Study
    forecasts: Sequence[Forecast] = ()
    stored: Sequence[StoredForecast] = ()


def days_text(found: Study) -> str:
    """Which days the study rests on, in a sentence."""
    if found.table is None:
        return found.why
    days = found.table.days
    left_out = found.left_out_text()
    more = f"; {left_out}" if left_out else ""
    return f"{found.used_days} of the {len(days)} days from {days[0]} to {days[-1]} are used{more}"


def record_text(stored: Sequence[StoredForecast]) -> str:
    """How many forecasts came true, in a sentence."""
    record = calibration(stored)
    pending = f"{record.pending} not yet known"
    if record.share is None or record.interval is None:
        return f"forecasts: none could be compared with the truth yet, {pending}"
    lower, upper = record.interval
    return (
        f"forecasts: {record.came_true} of {record.decided} came true "
        f"({share(record.share)}, {share(lower)} to {share(upper)}), {pending}"
    )


def shown(found: Study, target: str) -> tuple[list[Pair], int]:
    """The pairs of a target that are looked at closely, and how many others there are."""
    pairs = found.of(target)
    chosen = [one for one in pairs if one.is_used or one.relation is not None]
    return chosen, len(pairs) - len(chosen)


def correlation_text(pair: Pair) -> str:
    """The correlation with its interval, or the status without one."""
    if pair.correlation is None or pair.interval is None:
        return str(pair.status)
    lower, upper = pair.interval
    return f"{pair.correlation.value:.2f} ({lower:.2f} to {upper:.2f})"


def fit_text(pair: Pair) -> str:
    """The error of the line and what it rests on; empty without a line."""
    if pair.relation is None:
        return ""
    return (
        f"error of a left-out point {number(pair.relation.error)}, of the median "
        f"{number(pair.relation.naive_error)}; {pair.points} points of {pair.days} days"
    )


def stored_text(one: StoredForecast) -> str:
    """A stored forecast and its outcome, in a sentence."""
    content = one.content
    said = (
        f"{visible(one.candidate)}: {one.target} {number(content['value'])} "
        f"({number(content['lower'])} to {number(content['upper'])}) from {visible(one.series['metric'])} "
        f"{number(content['x'])}, made {one.made_at:%Y-%m-%d}: {OUTCOMES[one.outcome]}"
    )
    return f"{said}, it was {number(content['truth'])}" if "truth" in content else said


def print_forecasts(reports: Sequence[ForecastReport], console: Console) -> None:
    """Print a block for each recommender: its days, the pairs of each target, and the forecasts."""
    for report in reports:
        found = report.study
        _print(console, found.settings.name, "bold")
        for line in _wrapped(days_text(found), 0):
            _print(console, line)
        for target in found.forecast.targets:
            pairs, others = shown(found, target.name)
            if not pairs and not others:
                continue
            _print(console, "")
            _print(console, f"{target.name}: rank correlation by day, with its interval", "bold")
            for pair in pairs:
                _print_pair(pair, console)
            if others:
                _print(console, f"further pairs, weaker or without data: {others} (--format json)", "dim")
        if report.forecasts:
            name = report.forecasts[0].candidate
            _print(console, "")
            _print(console, f"forecast of {visible(name) if name else 'the given values'}", "bold")
            for one in report.forecasts:
                mark, style = MARKS[one.status]
                first, *rest = _wrapped(visible(f"{one.target}: {one.detail}"), _NAME_AT)
                head = f"{mark} {one.status}".ljust(_NAME_AT)
                console.print(Text.assemble((head, style), first.strip()), soft_wrap=True)
                for line in rest:
                    _print(console, line)
        _print(console, "")
        _print(console, record_text(report.stored))
        for kept in report.stored:
            for line in _wrapped(stored_text(kept), 2):
                _print(console, line)


def _print_pair(pair: Pair, console: Console) -> None:
    mark, style = MARKS[pair.status]
    role = "used" if pair.is_used else "tried"
    head = f"{mark} {pair.status}".ljust(_NAME_AT)
    name = f"{visible(pair.series.title())} ({role})  {correlation_text(pair)}"
    console.print(Text.assemble((head, style), name), soft_wrap=True)
    for text in (visible(pair.detail()), fit_text(pair)):
        for line in _wrapped(text, _NAME_AT):
            _print(console, line, "dim")


def _wrapped(text: str, at: int) -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDEST - 30, initial_indent=" " * at, subsequent_indent=" " * at, break_on_hyphens=False
    )


def _print(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line, style=style), soft_wrap=True)


def as_json(reports: Sequence[ForecastReport]) -> str:
    """All pairs, forecasts and outcomes for programs; null for what is not known."""
    return json.dumps([_content(one) for one in reports], indent=1, ensure_ascii=True, allow_nan=False)


def _content(report: ForecastReport) -> dict[str, Any]:
    found, record = report.study, calibration(report.stored)
    table = found.table
    return {
        "recommender": found.settings.name,
        "days": None
        if table is None
        else {
            "from": table.days[0].isoformat(), "to": table.days[-1].isoformat(), "used": found.used_days,
            "left_out": table.left_out(),
        },
        "detail": found.why,
        "pairs": [_pair(one) for one in found.pairs],
        "forecasts": [as_content(one) for one in report.forecasts],
        "record": {
            "came_true": record.came_true, "decided": record.decided, "not_yet_known": record.pending,
        },
        "stored": [
            {
                "candidate": one.candidate, "target": one.target, "series": dict(one.series),
                "made_at": iso(one.made_at), "outcome": one.outcome.value, **one.content,
            }
            for one in report.stored
        ],
    }  # fmt: skip


def _pair(one: Pair) -> dict[str, Any]:
    line = one.relation
    return {
        "target": one.target.name, "metric": one.series.metric, "labels": dict(one.series.labels),
        "used": one.is_used, "status": one.status.value, "predicts": one.predicts, "days": one.days,
        "points": one.points, "confidence": one.confidence,
        "correlation": None if one.correlation is None else one.correlation.value,
        "lower": None if one.interval is None else one.interval.lower,
        "upper": None if one.interval is None else one.interval.upper,
        "slope": None if line is None else line.line.slope,
        "intercept": None if line is None else line.line.intercept,
        "error": None if line is None else line.error,
        "skill": None if line is None else line.skill,
        "detail": one.detail(),
    }  # fmt: skip
