"""The work of `compare`: judge the span of each side as one window, then compare."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import typer

from monitor.cli.compare_lists import compared_lists
from monitor.cli.judge import load, why_empty
from monitor.cli.one_off import one_off
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED, progress
from monitor.cli.terminal import span as time_span
from monitor.comparison.compare import Verdict
from monitor.comparison.compare import compare as compared
from monitor.comparison.sides import Side, SideError, correlations
from monitor.config.checks.check import Checked
from monitor.config.problems import nearest
from monitor.core.results import Result, ResultKind, Window
from monitor.core.text import quoted
from monitor.report.comparison import Comparison
from monitor.settings.config import Config

Times = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The only metrics and rules that are compared (none: all), the margin, and whether slices are."""

    metrics: Collection[str]
    margin: float
    slices: bool


def compare(path: Path, texts: tuple[str, str], times: Times, chosen: Chosen) -> tuple[Comparison, int]:
    """Both sides of the config and what came of them, and the exit code."""
    config, checked = load(path)
    known = {one.settings.name: one for one in checked}
    sides = [Side.parse(text) for text in texts]
    for side in sides:
        if side.recommender not in known:
            meant = nearest(side.recommender, known)
            guess = f"; did you mean {quoted(meant)}?" if meant else f"; there are: {', '.join(known)}"
            raise SideError(f"no recommender is called {quoted(side.recommender)}{guess}")
        if known[side.recommender].settings.logs.exposures is None:
            raise SideError(f"{quoted(side.recommender)} has no exposures, so there is nothing to compare")
    if chosen.slices and any(side.column for side in sides):
        raise typer.BadParameter("a side of some rows has no slices of its own", param_hint="--slices")
    judged = [_judged(config, known[side.recommender], side, times, chosen) for side in sides]
    (a, measured), (b, measured_b) = judged
    one, other = (side.own(results) for side, (_, results) in zip(sides, judged, strict=True))
    if (
        replace(sides[0], text="", start="", end="") == replace(sides[1], text="", start="", end="")
        and a == b
    ):
        raise SideError(f"{quoted(texts[0])} and {quoted(texts[1])} are the same rows")
    _check_names(chosen.metrics, [*one, *other])
    found = compared(
        one,
        other,
        margin=chosen.margin,
        metrics=chosen.metrics,
        correlations=correlations(measured, measured_b),
    )
    notes = []
    if a.length != b.length:
        notes.append("the spans differ in length, and so do all counts")
    verdicts = {one.verdict for one in found}
    if Verdict.WORSE in verdicts:
        code = VIOLATED
    else:
        code = NOT_JUDGED if Verdict.UNKNOWN in verdicts or not found else OK
    lists = None
    if not any(side.column for side in sides):  # the lists of two models or arms have no request in common
        lists = compared_lists(config, [known[side.recommender] for side in sides], (a, b))
    return Comparison(texts, (a, b), found, notes, lists), code


def _judged(
    config: Config, checked: Checked, side: Side, times: Times, chosen: Chosen
) -> tuple[Window, list[Result]]:
    """The span of a side, and its rules and metrics over the whole of it."""
    start, end = time_span(side.start, side.end, side.text) if side.start else times
    settings = side.for_metrics(checked.settings, slices=chosen.slices, metrics=chosen.metrics)
    span, measured = _over(config, Checked(settings), side, start, end)
    results = [one for one in measured if one.kind is ResultKind.METRIC]
    by_rows = side.for_rules(checked.settings) if checked.rules else None
    if by_rows is not None:
        _, found = _over(config, Checked(by_rows, checked.rules), side, span.start, span.end)
        results = [one for one in found if one.kind is ResultKind.RULE] + results
    return span, results


def _over(
    config: Config, checked: Checked, side: Side, start: datetime | None, end: datetime | None
) -> tuple[Window, list[Result]]:
    """The span, from the first row to the last if none is given, and what was found in it."""
    now = datetime.now(UTC)
    with one_off(config, checked, secrets.token_hex(16)) as judging:
        with progress(0, f"{side.text}: reading the logs") as step:
            judging.look(now, step)
        log = judging.evaluator.source.main
        if log.watermark is None:
            raise SideError(f"the log of {quoted(side.text)} has no row{why_empty(log)}")
        windows, gaps = judging.windows(start, end, now)
        if not windows:
            raise SideError(f"{quoted(side.text)} has no row in this span")
        if gaps:
            raise SideError(
                f"{quoted(side.text)} has no row from {gaps[0].start:%Y-%m-%d} to {gaps[0].end:%Y-%m-%d}; "
                "say with --from where the span begins"
            )
        span = Window(start or windows[0].start, windows[-1].end if end is None else end)
        results: list[Result] = []
        with progress(0, f"{side.text}: judging") as step:
            for evaluation in judging.judge([span], now):
                step("")
                results += [result for run in evaluation.runs for result in run.results]
    return span, results


def _check_names(asked: Collection[str], results: Collection[Result]) -> None:
    """Raise a usage error if a name is asked for that no side has."""
    names = {one.labels["rule"] if one.kind is ResultKind.RULE else one.metric for one in results}
    for name in asked:
        if name not in names:
            meant = nearest(name, names)
            guess = f"; did you mean {quoted(meant)}?" if meant else ""
            raise typer.BadParameter(f"neither side has {quoted(name)}{guess}", param_hint="--metric")


def share(text: str) -> float:
    """The margin of the command line. Raises a usage error unless it is 0 or above, and below 1.

    >>> share("2%"), share("0.02")
    (0.02, 0.02)
    """
    try:
        value = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise typer.BadParameter(
            f"{quoted(text)} is no margin; write it as 0.02 or 2%", param_hint="--margin"
        )
    return value
