"""The work of `compare`: judge the span of each side as one window, then compare."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from monitor.cli.compare_lists import compared_lists, counted_event
from monitor.cli.judge import load
from monitor.cli.sides import JudgedSide, Times, WantedLists, check_differ, judge_side, known_side
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED
from monitor.comparison.compare import Compared, Verdict
from monitor.comparison.compare import compare as compared
from monitor.comparison.sides import of_users
from monitor.config.problems import nearest
from monitor.core.json_value import iso
from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import quoted
from monitor.report.comparison import Comparison


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
    sides = [known_side(text, known) for text in texts]
    settings = [known[side.recommender].settings for side in sides]
    with tempfile.TemporaryDirectory(prefix="recsys-monitor-") as scratch:
        a, b = (
            judge_side(
                config,
                known[side.recommender],
                side,
                times,
                slices=chosen.slices,
                metrics=chosen.metrics,
                lists=WantedLists(Path(scratch) / f"{letter}.parquet", counted_event(settings)),
            )
            for side, letter in zip(sides, "ab", strict=True)
        )
        check_differ(a, b)
        _check_names(chosen.metrics, [*a.own, *b.own])
        lists = compared_lists(config, (a, b), settings, Path(scratch))
    found = compared(
        a.own,
        b.own,
        margin=chosen.margin,
        metrics=chosen.metrics,
        users=of_users(a.with_groups, b.with_groups),
    )
    return Comparison(texts, (a.span, b.span), found, list(_notes(a, b)), lists), _code(found)


def _notes(a: JudgedSide, b: JudgedSide) -> Iterator[str]:
    if a.span.length != b.span.length:
        yield "the spans differ in length, and so do all counts"
    for judged in (a, b):
        if judged.side.run:
            column = judged.side.column
            yield f"{judged.side.text}: rows with other values of {column} answer the same requests; left out"
        for why in sorted({one.detail for one in judged.own if one.status is Status.LATE}):
            yield f"{judged.side.text}: some results are late and rest on the rows so far: {why}"
        for log, until in judged.ends.items():
            yield f"{judged.side.text}: the log {log} ends at {iso(until)}, before the span does"


def _code(found: Sequence[Compared]) -> int:
    verdicts = {one.verdict for one in found}
    if Verdict.WORSE in verdicts:
        return VIOLATED
    return NOT_JUDGED if Verdict.UNKNOWN in verdicts or verdicts <= {Verdict.NOT_JUDGED} else OK


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
