"""The work of `survey`: what users say over a span, joined with what they were shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer

from monitor.cli.export import check_name
from monitor.cli.judge import load, why_empty
from monitor.cli.scratch import engine_scratch
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED, fail, progress
from monitor.config.checks.check import Checked
from monitor.core.columns import EXPOSURES, SURVEY
from monitor.core.errors import ExpectedError
from monitor.core.results import Status, Window
from monitor.history.kept import KeptPairs
from monitor.judging.runtimes import open_runtime
from monitor.logs.source import Source
from monitor.settings.config import Config
from monitor.survey.findings import SurveyFound
from monitor.survey.measure import HOW, Survey


class NoAnswersError(ExpectedError):
    """There is no survey, a log has no row, or no answer is in the span."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command."""

    recommender: str | None
    first: datetime | None
    last: datetime | None
    weight: bool
    slices: bool


def survey(path: Path, asked: Asked) -> tuple[SurveyFound, int]:
    """What the survey says, and the exit code."""
    config, checked = load(path)
    chosen = _chosen(config, checked, asked.recommender)
    name = chosen.settings.name
    try:
        with opened(config, chosen, asked.first, asked.last) as one, progress(0, f"{name}: measuring"):
            found = one.found(weight=asked.weight, slices=asked.slices)
    except NoAnswersError as error:
        fail(str(error), NOT_JUDGED)
    return found, code_of(found)


def code_of(found: SurveyFound) -> int:
    """The exit code: 1 if respondents differ from the others, 3 if a question has no number."""
    if found.warnings:
        return VIOLATED
    answered = bool(found.questions) and all(one.answer.status is Status.OK for one in found.questions)
    return OK if answered else NOT_JUDGED


@contextmanager
def opened(
    config: Config, checked: Checked, first: datetime | None, last: datetime | None
) -> Iterator[Survey]:
    """The survey of a recommender over a span, by default from the first to the last answer.

    It leaves no files behind. Raises NoAnswersError without logs.survey, where a log has no row, or where no
    answer is in the span.
    """
    settings, now = checked.settings, datetime.now(UTC)
    if settings.logs.survey is None:
        raise NoAnswersError(f"{settings.name} has no logs.survey")
    with engine_scratch(config) as folder:
        runtime = open_runtime(config.engine, folder / "spill")
        try:
            source = Source(settings.logs, settings)
            with progress(0, f"{settings.name}: reading the logs") as step:
                for log in source.logs.values():
                    while log.refresh(runtime.index, now, step).is_cut:
                        pass  # the next refresh skips the file that took too long
            span = _span(source, first, last, settings.name)
            found = Survey(runtime.engine, source, span, settings, KeptPairs(folder, settings.name))
            try:
                yield found
            finally:
                found.close()
        finally:
            runtime.close()


def _span(source: Source, first: datetime | None, last: datetime | None, name: str) -> Window:
    """The span of the answers."""
    for log in (source.logs[SURVEY], source.logs[EXPOSURES]):
        if not log.windows():
            raise NoAnswersError(f"{name}: {why_empty(log)}")
    windows = source.logs[SURVEY].windows()
    start = min(one.start for one in windows) if first is None else first
    end = max(one.end for one in windows) if last is None else last
    if start >= end:
        edge = f"{min(one.start for one in windows):%Y-%m-%d} to {max(one.end for one in windows):%Y-%m-%d}"
        raise NoAnswersError(f"{name}: no answer is in this span; logs.survey has answers from {edge}")
    return Window(start, end)


def _chosen(config: Config, checked: list[Checked], name: str | None) -> Checked:
    """The recommender of a name; without a name the only one with a survey."""
    with_survey = [one for one in checked if one.settings.logs.survey is not None]
    if name is not None:
        check_name(name, config)
        chosen = next(one for one in checked if one.settings.name == name)
    elif len(with_survey) == 1:
        chosen = with_survey[0]
    elif not with_survey:
        fail(f"no recommender has answers: {HOW}")
    else:
        names = ", ".join(one.settings.name for one in with_survey)
        raise typer.BadParameter(f"name one of {names}", param_hint="--recommender")
    if chosen.settings.logs.survey is None:
        fail(f"{chosen.settings.name} has no answers: {HOW}")
    if chosen.settings.logs.exposures is None:
        fail(f"{chosen.settings.name} has no exposures, so nobody knows what users were shown")
    return chosen
