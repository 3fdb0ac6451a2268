"""The sides of `compare` and `gate`: read one, and judge its span as one window."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from monitor.cli.judge import monitor_salt, why_empty
from monitor.cli.one_off import one_off
from monitor.cli.terminal import progress
from monitor.cli.terminal import span as time_span
from monitor.comparison.sides import Side, SideError
from monitor.config.checks.check import Checked
from monitor.config.problems import nearest
from monitor.core.results import Result, ResultKind, Window
from monitor.core.text import quoted
from monitor.metrics.catalogue import SPECS
from monitor.settings.config import Config
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.recommender import USER_GROUP, SliceSettings

Times = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True)
class JudgedSide:
    """A side, its span, and its rules and metrics over the whole of it.

    `measured` are the metrics with those of random groups of users; see `comparison.sides.correlations`.
    """

    side: Side
    span: Window
    measured: list[Result]
    ruled: list[Result]

    @property
    def own(self) -> list[Result]:
        """Its rules and metrics."""
        return self.side.own([*self.ruled, *self.measured])

    @property
    def groups(self) -> list[Result]:
        """Its metrics by random groups of users."""
        return [one for one in self.measured if one.labels.get("dimension") == USER_GROUP]


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
) -> JudgedSide:
    """Judge the rules and metrics of a side over its span; `slices` and `metrics` as in `for_metrics`."""
    start, end = time_span(side.start, side.end, side.text) if side.start else times
    settings = side.for_metrics(checked.settings, slices=slices, metrics=metrics)
    span, found = _over(config, Checked(settings), side, start, end)
    measured = [one for one in found if one.kind is ResultKind.METRIC]
    ruled: list[Result] = []
    by_rows = side.for_rules(checked.settings) if checked.rules else None
    if by_rows is not None:
        _, found = _over(config, Checked(by_rows, checked.rules), side, span.start, span.end)
        ruled = [one for one in found if one.kind is ResultKind.RULE]
    return JudgedSide(side, span, measured, ruled)


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
    with one_off(config, Checked(settings), monitor_salt(config.state)) as judging:
        with progress(0, f"{name}: reading the logs") as step:
            judging.look(now, step)
        windows, _ = judging.windows(*times, now)
        with progress(len(windows), f"{name}: judging the split of {experiment.name}") as step:
            for evaluation in judging.judge(windows, now):
                step("")
                found = [result for run in evaluation.runs for result in run.results]
                results = [one for one in found if one.kind is ResultKind.EXPERIMENT] or results
    return results


def _over(
    config: Config, checked: Checked, side: Side, start: datetime | None, end: datetime | None
) -> tuple[Window, list[Result]]:
    """The span, from the first row to the last if none is given, and what was found in it."""
    now = datetime.now(UTC)
    with one_off(config, checked, monitor_salt(config.state)) as judging:
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
