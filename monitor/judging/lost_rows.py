"""The results of a window that was judged before some of its rows became unreadable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from monitor.core.results import Result, Status
from monitor.history.record import CheckRun
from monitor.window.verdicts import window_status

_UNJUDGED = (Status.LATE, Status.ERROR)


def as_late(runs: Iterable[CheckRun], why: str) -> list[CheckRun]:
    """The same results, late for this reason. Violations stay, because they were measured."""
    return [_with(run, [_late(result, why) for result in run.results]) for run in runs]


def _late(result: Result, why: str) -> Result:
    if result.status is Status.VIOLATED:
        return _still(result, why)
    if result.status in (Status.ERROR, Status.UNDEFINED):
        return result
    return replace(result, status=Status.LATE, detail=why)


def _still(result: Result, why: str) -> Result:
    return replace(result, detail=f"{result.detail}; seen before: {why}".lstrip("; "))


def with_violations(runs: Sequence[CheckRun], before: Iterable[CheckRun], *, lost: bool) -> list[CheckRun]:
    """The new runs of a window, with the earlier violations that they cannot end.

    A violation ends only if the window was judged again with all its rows. A check that fails, is late or
    lacks rows that were `lost` proves nothing.
    """
    known = {run.check: run for run in before}
    return [_keeping(run, known[run.check], lost=lost) if run.check in known else run for run in runs]


def _keeping(run: CheckRun, before: CheckRun, *, lost: bool) -> CheckRun:
    current = {_series(result): result for result in run.results}
    failed = run.outcome not in (None, "ok")
    kept: dict[object, Result] = {}
    for result in before.results:
        now = current.get(_series(result))
        if result.status is not Status.VIOLATED:
            continue
        if now is None:
            if failed or lost:
                kept[_series(result)] = _still(result, "the check could not be run again")
        elif now.definition == result.definition and (
            now.status in _UNJUDGED or (lost and now.status is not Status.VIOLATED)
        ):
            kept[_series(result)] = _still(result, now.detail)
    return _with(run, list((current | kept).values())) if kept else run


def _with(run: CheckRun, results: list[Result]) -> CheckRun:
    return replace(run, results=results, status=window_status(results) if results else run.status)


def _series(result: Result) -> tuple[str, tuple[tuple[str, str], ...]]:
    return result.metric, tuple(sorted(result.labels.items()))
