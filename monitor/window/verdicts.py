"""Verdicts: objectives on metrics, results of incomplete windows, and the status of a whole window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from monitor.core.numbers import AS_GIVEN, number
from monitor.core.results import Result, ResultKind, Status, worst_status
from monitor.metrics.catalogue import SPECS
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import Objective

MIN, MAX = "min", "max"
NOT_MEASURED = (
    "nothing in this window gives this value: a log or a column is missing, or the slice has no rows"
)


def apply_objectives(
    results: Iterable[Result],
    objectives: Sequence[Objective],
    settings: MetricSettings,
    *,
    otherwise: tuple[Status, str] = (Status.NO_DATA, NOT_MEASURED),
) -> list[Result]:
    """Give each result that has objectives its bound and its verdict.

    A bound is broken only if the whole interval is beyond it; without an interval, if the value is. If one
    series has several objectives, one is shown: a broken one, else one whose bound the value is beyond, else
    one whose `clear` it is beyond, else the first.

    An objective whose series has no result gets a result with `otherwise`, a status and a reason. So no
    objective is skipped in silence.
    """
    results, (status, why) = list(results), otherwise
    measured = {_series(result) for result in results}
    for objective in objectives:
        if _series(objective) not in measured:
            measured.add(_series(objective))
            results.append(
                Result(
                    kind=SPECS[objective.metric].kind,
                    metric=objective.metric,
                    labels=objective.labels,
                    status=status,
                    definition=SPECS[objective.metric].definition(settings),
                    detail=why,
                )
            )
    judged = []
    for result in results:
        verdicts = [_judge(result, each) for each in objectives if _series(each) == _series(result)]
        judged.append(max(verdicts, key=_trouble) if verdicts else result)
    return judged


def _series(item: Result | Objective) -> tuple[str, tuple[tuple[str, str], ...]]:
    return item.metric, tuple(sorted(item.labels.items()))


def _trouble(result: Result) -> int:
    if result.status is Status.VIOLATED:
        return 3
    if result.status is not Status.OK or result.value is None or result.threshold is None:
        return 0
    edges = (result.threshold, result.threshold if result.clear is None else result.clear)
    return sum(result.value < edge if result.bound == MIN else result.value > edge for edge in edges)


def _judge(result: Result, objective: Objective) -> Result:
    bound, side = (objective.max, MAX) if objective.min is None else (objective.min, MIN)
    bounded = replace(result, threshold=bound, bound=side, clear=objective.clear)
    if result.status is Status.UNDEFINED:  # a verdict is never undefined: there was nothing to judge
        return replace(bounded, status=Status.NO_DATA)
    if result.status is not Status.OK or result.value is None or bound is None:
        return bounded
    if side == MIN:
        edge = result.upper if result.upper is not None else result.value
        broken, words = edge < bound, "below the objective's minimum"
    else:
        edge = result.lower if result.lower is not None else result.value
        broken, words = edge > bound, "above the objective's maximum"
    if not broken:
        return bounded
    interval = ""
    if result.lower is not None and result.upper is not None:
        interval = f" (interval {number(result.lower, 6)} to {number(result.upper, 6)})"
    detail = f"{number(result.value, 6)}{interval} is {words}, {number(bound, AS_GIVEN)}"
    return replace(bounded, status=Status.VIOLATED, detail=detail)


def mark_late(results: Iterable[Result], why: str, *, a_sample: bool = True) -> list[Result]:
    """The results of a window whose data may be incomplete.

    A violation stays if the rows so far prove it. For a rule that allows no violation, one row proves it. For
    a rule or an objective with a threshold, the whole interval must be beyond it. All other results depend on
    the
    missing rows: they become `late` and keep the value so far. So does a violated count without an interval:
    more rows would make it larger.

    Args:
        results: of the window.
        why: what is missing.
        a_sample: the rows so far are like the missing ones. False if two logs are joined: a list whose
            actions
            are missing looks like a list without actions, so no objective is proven.
    """
    return [_late(result, why, a_sample=a_sample) for result in results]


def _late(result: Result, why: str, *, a_sample: bool) -> Result:
    if result.status is Status.ERROR or (
        result.kind is ResultKind.RULE and result.status is Status.UNDEFINED
    ):
        return result  # more rows would not make a rule apply
    if result.status is Status.VIOLATED and _is_proven(result, a_sample=a_sample):
        return replace(result, detail=f"{result.detail}; the window is not complete: {why}".lstrip("; "))
    return replace(result, status=Status.LATE, detail=why)


def _is_proven(result: Result, *, a_sample: bool) -> bool:
    if result.kind is ResultKind.RULE and not result.threshold:
        return True
    return a_sample and result.threshold is not None and result.lower is not None


def window_status(results: Iterable[Result]) -> Status:
    """The verdict on a whole window: the worst status of all judged results.

    A metric without an objective is not judged: that it has no value today (no history yet, one user only)
    says nothing about the recommender. Two things count all the same: an error, but for a slice without an
    objective, and a late result, which makes the whole window late.
    """
    judged = {
        result.status
        for result in results
        if is_judged(result)
        or result.status is Status.LATE
        or (result.status is Status.ERROR and "dimension" not in result.labels)
    }
    return worst_status(judged - {Status.UNDEFINED}, default=Status.OK)


def is_judged(result: Result) -> bool:
    """Whether the result has a verdict: a rule, an objective, or a result about the log itself."""
    return result.kind in (ResultKind.RULE, ResultKind.LOG) or result.threshold is not None
