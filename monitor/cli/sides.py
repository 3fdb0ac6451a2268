"""The sides of `compare` and `gate`: read one, and judge its span as one window."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from monitor.cli.judge import monitor_salt, why_empty
from monitor.cli.one_off import OneOff, one_off
from monitor.cli.terminal import progress
from monitor.cli.terminal import span as time_span
from monitor.comparison.lists import items_of, written
from monitor.comparison.sides import Side, SideError, is_of_group, requests_of_part
from monitor.config.checks.check import Checked
from monitor.config.problems import nearest
from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.core.text import quoted
from monitor.judging.log_check import SKIPPED_FILES
from monitor.metrics.catalogue import SPECS
from monitor.settings.config import Config
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.recommender import SliceSettings
from monitor.window.verdicts import mark_late

Times = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class JudgedSide:
    """A side, its span, and its rules and metrics over all of it, also of other slices and of groups.

    `side` is a run if its log holds several. `lists` is the file of its lists, if asked for and not empty.
    `ends` says of each log that ends a window or more before the span where it ends.
    """

    side: Side
    span: Window
    results: list[Result]
    lists: Path | None = None
    ends: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def own(self) -> list[Result]:
        """Its rules and metrics."""
        return self.side.own(self.results)

    @property
    def with_groups(self) -> list[Result]:
        """Its rules and metrics, and its metrics by random groups of users, for `sides.of_users`."""
        return [*self.own, *filter(is_of_group, self.results)]


@dataclass(frozen=True, slots=True)
class WantedLists:
    """Where the lists of a whole side are written, and the event whose actions are counted."""

    path: Path
    event: str | None


def known_side(text: str, known: Mapping[str, Checked]) -> Side:
    """A side of the command line or of the config. Raises SideError if it cannot be judged."""
    side = Side.parse(text)
    if side.recommender not in known:
        meant = nearest(side.recommender, known)
        guess = f"; did you mean {quoted(meant)}?" if meant else f"; there are: {', '.join(known)}"
        raise SideError(f"no recommender is called {quoted(side.recommender)}{guess}")
    if known[side.recommender].settings.logs.exposures is None:
        raise SideError(f"{quoted(side.recommender)} has no exposures, so there is nothing to compare")
    return side


def judge_side(
    config: Config,
    checked: Checked,
    side: Side,
    times: Times,
    *,
    slices: bool = False,
    metrics: Collection[str] = (),
    lists: WantedLists | None = None,
) -> JudgedSide:
    """Judge the rules and metrics of a side over its span.

    Args:
        config: of all recommenders.
        checked: the recommender of the side.
        side: what is judged; if its log holds several runs, as a log of its own.
        times: the span if the side has none of its own.
        slices: whether the slices of the config are measured too.
        metrics: the only metrics that are needed; none: all.
        lists: writes the lists of a side that is no part of a log.
    """
    start, end = time_span(side.start, side.end, side.text) if side.start else times
    if side.is_part:
        with _opened(config, Checked(side.for_metrics(checked.settings, metrics=metrics)), side) as judging:
            span = _span(judging, side, start, end)
            run = _run(judging, side, span)
            if run is side:
                measured = JudgedSide(side, span, _judged(judging, side, span), ends=_ends(judging, span))
                return _judged_part(config, checked, measured, slices=slices)
            side = run
    settings = side.for_whole(checked.settings, slices=slices, metrics=metrics)
    with _opened(config, Checked(settings, checked.rules), side) as judging:
        span = _span(judging, side, start, end)
        found = _judged(judging, side, span)
        path = None
        if lists is not None:
            with progress(0, f"{side.text}: reading lists"):
                rows = items_of(judging.runtime.engine, judging.evaluator.source, span, settings, lists.event)
                path = None if rows is None else written(rows, lists.path)
        return JudgedSide(side, span, found, path, _ends(judging, span))


def _judged_part(config: Config, checked: Checked, measured: JudgedSide, *, slices: bool) -> JudgedSide:
    """A part with its metrics, and its rules if a column of the exposures chooses its rows."""
    side = measured.side
    if slices:
        raise SideError(f"{quoted(side.text)} is a part of a log, which has no slices of its own")
    by_rows = side.for_rules(checked.settings) if checked.rules else None
    if by_rows is None:
        return measured
    with _opened(config, Checked(by_rows, checked.rules), side) as judging:
        return replace(measured, results=[*_judged(judging, side, measured.span), *measured.results])


def check_differ(a: JudgedSide, b: JudgedSide) -> None:
    """Raise SideError if both sides are the same rows."""
    if _rows(a) == _rows(b):
        raise same_rows(a.side, b.side)


def same_rows(a: Side, b: Side) -> SideError:
    return SideError(f"{quoted(a.text)} and {quoted(b.text)} are the same rows")


def _rows(judged: JudgedSide) -> tuple[Side, Window]:
    return replace(judged.side, text="", start="", end=""), judged.span


def judge_split(
    config: Config, checked: Checked, experiment: ExperimentSettings, times: Times
) -> list[Result]:
    """The verdicts on the split of an experiment in the last window of a span, over all of its windows.

    The test of a split looks at one window after the other, as the daemon does.
    """
    name = checked.settings.name
    logs = checked.settings.logs.model_copy(update={"feedback": None, "samples": None})
    update = {
        "logs": logs,
        "rules": (),
        "metrics": checked.settings.metrics.model_copy(update={"disable": tuple(SPECS)}),
        "slices": SliceSettings(),
        "objectives": (),
        "health": None,
        "experiments": (experiment.model_copy(update={"metrics": ()}),),
    }
    now = datetime.now(UTC)
    results: list[Result] = []
    settings = checked.settings.model_copy(update=update)
    with one_off(config, Checked(settings), monitor_salt(config)) as judging:
        with progress(0, f"{name}: reading the logs") as step:
            judging.look(now, step)
        windows, _ = judging.windows(*times, now)
        with progress(len(windows), f"{name}: judging the split of {experiment.name}") as step:
            for evaluation in judging.judge(windows, now):
                step("")
                found = [result for run in evaluation.runs for result in run.results]
                results = [one for one in found if one.kind is ResultKind.EXPERIMENT] or results
    return results


@contextmanager
def _opened(config: Config, checked: Checked, side: Side) -> Iterator[OneOff]:
    """The logs of a side. Raises SideError if there is no row at all."""
    with one_off(config, checked, monitor_salt(config)) as judging:
        with progress(0, f"{side.text}: reading the logs") as step:
            judging.look(datetime.now(UTC), step)
        log = judging.evaluator.source.main
        if log.watermark is None:
            raise SideError(f"{quoted(side.text)}: {why_empty(log)}")
        yield judging


def _span(judging: OneOff, side: Side, start: datetime | None, end: datetime | None) -> Window:
    """The whole windows that are judged, from the first row to the last if no times are given.

    A time within a window takes in all of it, as in `check`: a log is indexed by windows.
    """
    windows, gaps = judging.windows(start, end, datetime.now(UTC))
    if not windows:
        raise SideError(f"{quoted(side.text)} has no row in this span")
    if gaps:
        raise SideError(
            f"{quoted(side.text)} has no row from {gaps[0].start:%Y-%m-%d} to {gaps[0].end:%Y-%m-%d}; "
            "say with --from where the span begins"
        )
    length = judging.evaluator.settings.window
    first = windows[0].start if start is None else Window.of(start, length).start
    if end is None:
        return Window(first, windows[-1].end)
    last = Window.of(end, length)
    return Window(first, end if last.start == end else last.end)


def _ends(judging: OneOff, span: Window) -> dict[str, datetime]:
    """Where each log ends that ends a window or more before the span."""
    source, length = judging.evaluator.source, judging.evaluator.settings.window
    reached = {name: source.logs[name].watermark for name in (EXPOSURES, FEEDBACK) if name in source.logs}
    return {
        name: until for name, until in reached.items() if until is not None and until <= span.end - length
    }


def _judged(judging: OneOff, side: Side, span: Window) -> list[Result]:
    """The rules and metrics of a span that is judged as one window.

    They are late if files of their logs cannot be read: nobody knows what the missing rows say.
    """
    results: list[Result] = []
    unread: dict[str, str] = {}
    with progress(0, f"{side.text}: judging") as step:
        for evaluation in judging.judge([span], datetime.now(UTC)):
            step("")
            unread |= {
                one.labels["log"]: f"{one.labels['log']}: {one.detail}"
                for one in evaluation.results
                if one.metric == SKIPPED_FILES and one.status is Status.ERROR
            }
            joined = evaluation.due.part == FEEDBACK
            why = "; ".join(one for log, one in unread.items() if joined or log != FEEDBACK)
            found = [one for one in evaluation.results if one.kind in (ResultKind.RULE, ResultKind.METRIC)]
            results += mark_late(found, why, a_sample=not joined) if why else found
    return results


def _run(judging: OneOff, side: Side, span: Window) -> Side:
    """The side as a run if its log holds several; else the same side. Raises SideError if it has no row."""
    source = judging.evaluator.source
    if side.log != EXPOSURES:
        return side
    if side.column not in source.known(EXPOSURES):
        raise SideError(
            f"{quoted(side.text)}: the exposures of {quoted(side.recommender)} have no column "
            f"{quoted(side.column)}"
        )
    rows = source.load(judging.runtime.engine, EXPOSURES, span, table="rows_of_runs")
    if rows is None or side.column not in rows.columns:
        raise SideError(f"{quoted(side.text)} has no row in this span")
    inside, both = requests_of_part(rows, side.column, side.value)
    if not inside:
        raise SideError(f"{quoted(side.text)}: no row in this span has this value")
    if 2 * both <= inside:
        return side
    logs = [name for name in (EXPOSURES, FEEDBACK) if name in source.logs]
    return side.as_run(name for name in logs if side.column in source.known(name))
