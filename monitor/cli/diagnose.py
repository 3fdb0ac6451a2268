"""The work of `diagnose`: judges the models of a config once, as of their newest online rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from monitor.cli.export import who_lacks
from monitor.cli.interrupt import end_if_asked
from monitor.cli.judge import load, why_unread
from monitor.cli.one_off import one_off
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED, fail, note, progress, show_traceback
from monitor.config.checks.check import Checked
from monitor.core.columns import SAMPLES
from monitor.core.results import Result, Status, Window
from monitor.core.text import quoted
from monitor.logs.index import readable
from monitor.models import check as models
from monitor.report.judged import Judged
from monitor.settings.config import Config
from monitor.window.verdicts import window_status


@dataclass(frozen=True, slots=True)
class _Diagnosed:
    """The results of a recommender, why rows or results are missing, and what failed."""

    judged: list[Judged]
    reasons: list[str]
    error: Exception | None = None


def diagnose(path: Path, model: str | None, only: str | None) -> tuple[list[Judged], int]:
    """The results of the models, and the exit code from the verdicts on their gaps."""
    config, checked = load(path, only)
    with_samples = [one for one in checked if one.settings.logs.samples is not None]
    if not with_samples:
        fail(f"{who_lacks(only)} logs.samples; docs/models.md says what it holds")
    judged: list[Judged] = []
    failed: list[Exception] = []
    for each in with_samples:
        found = _judge(config, each, model)
        judged += found.judged
        failed += [found.error] if found.error is not None else []
        for why in found.reasons:
            note(f"{each.settings.name}: {why}")
    if not judged:
        if failed:
            raise failed[0]
        fail(_no_rows(model))
    status = window_status(one.result for one in judged)
    if failed and status is not Status.VIOLATED:
        status = Status.ERROR
    return judged, {Status.OK: OK, Status.VIOLATED: VIOLATED}.get(status, NOT_JUDGED)


def _judge(config: Config, checked: Checked, model: str | None) -> _Diagnosed:
    """Judge the models of a recommender. Results that are measured are kept, whatever fails after them."""
    name = checked.settings.name
    now = datetime.now(UTC)
    with one_off(config, checked, salt="") as once, progress(0, f"{name}: reading the samples") as step:
        once.look(now, step)
        evaluator = once.evaluator
        unread = why_unread(evaluator.source.logs[SAMPLES])
        reasons = [unread] if unread else []
        windows = evaluator.parts.timeline(SAMPLES).windows()
        window = max(windows, default=Window.of(now, checked.settings.window))
        step(f"{name} {window.end:%Y-%m-%d %H:%M}")
        error: Exception | None = None
        try:
            results: Sequence[Result] = evaluator.models.judge(once.runtime.engine, window, model)
        except Exception as exc:
            end_if_asked()  # an interrupted diagnosis looks like one that failed
            show_traceback()
            why = once.runtime.revived() or readable(exc)
            reasons.append(f"the diagnosis failed: {why}")
            results, error = evaluator.models.failed(why, model), exc
        judged = [Judged(name, models.NAME, window, one) for one in results if _has_rows(one, results)]
        return _Diagnosed(judged, reasons, error)


def _has_rows(result: Result, results: Sequence[Result]) -> bool:
    """Whether the log has rows of the result's model."""
    model = result.labels["model"]
    return any(one.value is not None for one in results if one.labels["model"] == model)


def _no_rows(model: str | None) -> str:
    if model is None:
        return "the samples hold no row of any model; docs/models.md says what a row is"
    return f"the samples hold no row of a model {quoted(model)}; without --model every model is diagnosed"
