"""The work of `estimate`: what another policy would have earned, from the log of a recommender."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import ibis
import pyarrow as pa
import typer

from monitor.cli.export import check_name
from monitor.cli.judge import held_span, load, why_empty, why_unread
from monitor.cli.one_off import OneOff, one_off
from monitor.cli.terminal import NOT_JUDGED, OK, fail, note, progress
from monitor.config.checks.check import Checked
from monitor.core import columns as c
from monitor.core.results import Result, Status, Window
from monitor.core.text import quoted
from monitor.off_policy.estimate import estimate, target_cells
from monitor.off_policy.results import POLICY_VALUE, Question
from monitor.report.judged import Judged
from monitor.settings.config import Config

CHECK = "estimate"
_OF_AN_ITEM = (c.ITEM_ID, c.POSITION, c.SCORE, c.PROPENSITY)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command."""

    recommender: str | None
    target: str | None
    column: str | None
    event: str | None
    cap: float
    context: tuple[str, ...]
    first: datetime | None
    last: datetime | None


def estimated(path: Path, asked: Asked) -> tuple[list[Judged], int]:
    """The results, and the exit code."""
    if (asked.target is None) == (asked.column is None):
        raise typer.BadParameter("give --target or --target-column, one of them", param_hint="--target")
    if not (math.isfinite(asked.cap) and asked.cap >= 1):
        raise typer.BadParameter(f"{asked.cap} is no weight; give a number from 1", param_hint="--cap")
    if of_item := [one for one in asked.context if one in (*_OF_AN_ITEM, asked.column)]:
        raise typer.BadParameter(
            f"{of_item[0]} belongs to the item that was drawn, and a context is known before; name a column "
            "of the request, such as scene. The model knows items and positions without it",
            param_hint="--context",
        )
    config, checked = load(path)
    logging = _chosen(config, checked, asked.recommender, "--recommender")
    name = logging.settings.name
    if asked.target == name:
        raise typer.BadParameter(f"{name} is the log itself; name another recommender", param_hint="--target")
    event = _event(logging, asked.event)
    now = datetime.now(UTC)
    with one_off(config, logging, salt="") as once, progress(0, f"{name}: reading the logs") as step:
        once.look(now, step)
        span = _span(once, asked, now)
        columns = once.evaluator.source.schema(c.EXPOSURES)
        _require(columns, c.PROPENSITY, name)
        if asked.column is not None:
            _require(columns, asked.column, name)
        for column in asked.context:
            _require(columns, column, name, a_number=False)
        target, by_position = None, c.POSITION in columns
        if asked.target is not None:
            other = _chosen(config, checked, asked.target, "--target")
            counted, by_position = _counted(config, other, asked, now, by_position)
            target = once.runtime.engine.create("target_cells", ibis.memtable(counted))
        question = Question(event, asked.target or asked.column or "", asked.cap, asked.context)
        results = estimate(
            once.runtime.engine, once.evaluator.source, span, logging.settings, question, target, by_position
        )
    return [Judged(name, CHECK, span, one) for one in results], _code(results)


def _counted(
    config: Config, other: Checked, asked: Asked, now: datetime, by_position: bool
) -> tuple[pa.Table, bool]:
    """How often the target's log shows each item, and whether by position."""
    name = other.settings.name
    with one_off(config, other, salt="") as once, progress(0, f"{name}: reading the logs") as step:
        once.look(now, step)
        source = once.evaluator.source
        by_position = by_position and c.POSITION in source.schema(c.EXPOSURES)
        found = target_cells(once.runtime.engine, source, _span(once, asked, now), by_position)
        if found is None:
            fail(f"{name}: its exposures have no row in this span, so its policy is unknown", NOT_JUDGED)
        if why := why_unread(source.logs[c.EXPOSURES]):
            note(f"{why}; the policy of {name} is that of the other files")
        return found.to_pyarrow(), by_position


def _span(once: OneOff, asked: Asked, now: datetime) -> Window:
    """From the first to the last window of the log."""
    windows, _ = once.windows(asked.first, asked.last, now)
    if not windows:
        name, log = once.evaluator.settings.name, once.evaluator.source.main
        if log.watermark is None:
            fail(f"{name}: {why_empty(log)}", NOT_JUDGED)
        fail(f"{name}: the log has no window in this span; {held_span(log.windows())}", NOT_JUDGED)
    return Window(min(one.start for one in windows), max(one.end for one in windows))


def _chosen(config: Config, checked: list[Checked], name: str | None, option: str) -> Checked:
    """The recommender of a name; the only one without a name."""
    if name is None:
        if len(checked) > 1:
            names = ", ".join(one.settings.name for one in checked)
            raise typer.BadParameter(f"name the log: one of {names}", param_hint=option)
        chosen = checked[0]
    else:
        check_name(name, config, option)
        chosen = next(one for one in checked if one.settings.name == name)
    logs = chosen.settings.logs
    if logs.exposures is None:
        fail(f"{chosen.settings.name} has no exposures; docs/off-policy.md says what a log needs")
    return chosen


def _event(logging: Checked, event: str | None) -> str:
    settings = logging.settings
    if settings.logs.feedback is None:
        fail(f"{settings.name} has no feedback, so nothing says what users did; add logs.feedback")
    events = list(settings.metrics.events)
    if event is None:
        return events[0]
    if event not in events:
        raise typer.BadParameter(
            f"{event!r} is not an event of metrics.events; there are: {', '.join(events)}",
            param_hint="--event",
        )
    return event


def _require(columns: dict[str, ibis.DataType], column: str, name: str, *, a_number: bool = True) -> None:
    if column not in columns:
        fail(
            f"the exposures of {name} have no column {quoted(column)}; if the log has it under another name, "
            "map it under logs.exposures.columns"
        )
    if a_number and column != c.PROPENSITY and not columns[column].is_numeric():
        fail(f"the column {quoted(column)} of {name} is {columns[column]}, not a number from 0 to 1")


def _code(results: list[Result]) -> int:
    values = [one.status for one in results if one.metric == POLICY_VALUE]
    return OK if Status.OK in values else NOT_JUDGED
