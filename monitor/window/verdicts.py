"""From measured to judged: objectives on metrics, and what an incomplete window may still say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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

    A bound is broken only where the whole interval lies beyond it (where there is no interval, the
    value itself). Of several objectives on one series the broken one is shown, else the one whose bound
    the value itself is beyond, else the one beyond whose `clear` it is, else the first.

    An objective whose series has no result gets one that says `otherwise`, a status and why: what somebody
    asked to be judged is never passed over in silence.
    """
    results, (status, why) = list(results), otherwise
    measured = {_series(result) for result in results}
    for one in objectives:
        if _series(one) not in measured:
            measured.add(_series(one))
            results.append(
                Result(
                    kind=SPECS[one.metric].kind,
                    metric=one.metric,
                    labels=one.labels,
                    status=status,
                    definition=SPECS[one.metric].definition(settings),
                    detail=why,
                )
            )
    judged = []
    for result in results:
        mine = [one for one in objectives if _series(one) == _series(result)]
        verdicts = [_judge(result, one) for one in mine]
        judged.append(max(verdicts, key=_trouble) if verdicts else result)
    return judged


def _series(one: Result | Objective) -> tuple[str, tuple[tuple[str, str], ...]]:
    return one.metric, tuple(sorted(one.labels.items()))


def _trouble(result: Result) -> int:
    if result.status is Status.VIOLATED:
        return 3
    if result.status is not Status.OK or result.value is None or result.threshold is None:
        return 0
    edges = (result.threshold, result.threshold if result.clear is None else result.clear)
    return sum(result.value < edge if result.bound == MIN else result.value > edge for edge in edges)


def _judge(result: Result, objective: Objective) -> Result:
    bound, side = (objective.max, MAX) if objective.min is None else (objective.min, MIN)
    held = replace(result, threshold=bound, bound=side, clear=objective.clear)
    if result.status is Status.UNDEFINED:  # a verdict knows no undefined: there was nothing to judge
        return replace(held, status=Status.NO_DATA)
    if result.status is not Status.OK or result.value is None or bound is None:
        return held
    if side == MIN:
        edge = result.upper if result.upper is not None else result.value
        broken, words = edge < bound, "below the objective's minimum"
    else:
        edge = result.lower if result.lower is not None else result.value
        broken, words = edge > bound, "above the objective's maximum"
    if not broken:
        return held
    detail = f"{result.value:.6g} (interval edge {edge:.6g}) is {words}, {bound:g}"
    return replace(held, status=Status.VIOLATED, detail=detail)


def mark_late(results: Iterable[Result], why: str, *, a_sample: bool = True) -> list[Result]:
    """What the results of a window say whose data is not known to be complete.

    A violation that the rows so far prove stays: of a rule that allows none, one row is enough; of a rule or
    an objective with a threshold, the whole interval must lie beyond it. Everything else rests on the missing
    rows too and is `late`, with the value that was measured so far. So is a violated count without an
    interval: more rows would make it larger.

    Args:
        results: of the window.
        why: what is missing.
        a_sample: the rows so far are like the missing ones. Not so where two logs are joined: a list whose
            actions are missing looks like one that nobody acted on, so that no objective is proven.
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
    """The verdict on a whole window: of what somebody asked to be judged, the worst.

    A metric without an objective is judged by nobody: that it has no value today (no history yet,
    one user only) says nothing about the recommender. That it failed to run does, of a slice only where
    the slice has an objective. That it is late does too: the whole window is late then.
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
    """Whether somebody asked for a verdict: a rule, an objective, or the log itself."""
    return result.kind in (ResultKind.RULE, ResultKind.LOG) or result.threshold is not None
