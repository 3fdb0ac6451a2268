"""The conditions of a gate, one by one: passed, failed, or not yet known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from monitor.comparison.compare import compare, key_of, needed_to_keep
from monitor.comparison.sides import of_users
from monitor.core.results import Kind, Result, ResultKind, Status
from monitor.core.text import plural, quoted
from monitor.metrics.catalogue import SPECS
from monitor.settings.gate import Condition
from monitor.statistics.intervals import Interval

MOST_ROWS = 5
"""How many violating rows the report of a condition on rules shows."""


class Outcome(StrEnum):
    """What is known of a condition."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, slots=True)
class Override:
    """Somebody's decision to launch although a condition does not hold."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A condition and what came of it.

    Attributes:
        asks: the condition in words.
        outcome: passed only if it surely holds.
        detail: what was found, in one sentence.
        candidate, other: the value of the candidate and of the other side, if the condition asks for it.
        interval: of the candidate's value, or of the difference where there is another side.
        bound: what the whole interval must keep.
        rows: violating rows, as the evidence of the rules has them.
        override: set if somebody decided that the launch may go on.
    """

    condition: Condition
    asks: str
    outcome: Outcome
    detail: str
    candidate: Result | None = None
    other: Result | None = None
    interval: Interval | None = None
    bound: float | None = None
    rows: Sequence[Mapping[str, Any]] = ()
    override: Override | None = None

    @property
    def holds(self) -> bool:
        """Whether it is no obstacle: it passed, or somebody overrides it."""
        return self.outcome is Outcome.PASSED or self.override is not None


@dataclass(frozen=True, slots=True)
class Sides:
    """The rules and metrics of the candidate, or of an arm, and of the side that it is compared with.

    For a condition on a survey or a forecast each side has one result: the mean answer to the question, or
    what is predicted.
    Results of random groups of users belong to it, see `comparison.sides.of_users`. `broken` says why
    nothing can be said of the candidate or of both together, `without_other` why the other side has no value.
    """

    candidate: Sequence[Result] = ()
    other: Sequence[Result] = ()
    broken: str = ""
    without_other: str = ""


def judge(condition: Condition, sides: Sides) -> Judgement:
    """Judge one condition.

    - `rules`: failed if a rule is violated; passed if every rule was judged and none is.
    - `max`, `min`: passed if the whole interval of the value is within the bound, failed if none of it does.
    - `margin`: passed if the whole interval of the difference is better than the margin allows, failed if
      none of it is. A metric of which neither direction is better may move by the margin to either side.

    What has no value, is late, or has too few samples for its interval is not known. A value of a metric
    without an interval is a fact of the span: it keeps a bound or does not, but nobody knows whether two of
    them differ by chance.
    """
    if condition.rules is not None:
        return _rules(condition, sides)
    return _bounded(condition, sides) if condition.margin is None else _not_worse(condition, sides)


def overall(judgements: Iterable[Judgement]) -> Outcome:
    """The outcome of the gate: failed if a condition fails, passed if all hold. Overridden ones hold."""
    open_ones = {one.outcome for one in judgements if not one.holds}
    if Outcome.FAILED in open_ones:
        return Outcome.FAILED
    return Outcome.NOT_KNOWN if open_ones else Outcome.PASSED


def _rules(condition: Condition, sides: Sides) -> Judgement:
    hard = condition.rules == "hard"
    asks = f"no {'hard ' if hard else ''}rule is violated"
    if sides.broken:
        return Judgement(condition, asks, Outcome.NOT_KNOWN, sides.broken)
    rules = [
        one
        for one in sides.candidate
        if one.kind is ResultKind.RULE and (not hard or one.labels.get("kind") == Kind.HARD)
    ]
    if not rules:
        return Judgement(condition, asks, Outcome.NOT_KNOWN, f"no {'hard ' if hard else ''}rule was judged")
    violated = [one for one in rules if one.status is Status.VIOLATED]
    if violated:
        names = ", ".join(f"{one.labels['rule']} ({plural(one.violations or 0, 'row')})" for one in violated)
        rows = [{"rule": one.labels["rule"], **row} for one in violated for row in one.evidence]
        return Judgement(condition, asks, Outcome.FAILED, f"violated: {names}", rows=rows[:MOST_ROWS])
    unknown = [one for one in rules if one.status is not Status.OK]
    if unknown:
        names = ", ".join(f"{one.labels['rule']} ({one.status}: {one.detail})" for one in unknown)
        return Judgement(condition, asks, Outcome.NOT_KNOWN, f"not judged: {names}")
    samples = max(one.samples or 0 for one in rules)
    found = f"{plural(len(rules), 'rule')}, {plural(samples, 'row')}"
    return Judgement(condition, asks, Outcome.PASSED, found)


def _bounded(condition: Condition, sides: Sides) -> Judgement:
    is_least = condition.min is not None
    bound = condition.min if is_least else condition.max
    assert bound is not None
    # The bound as it is in the config.
    asks = f"{_series(condition)} is at {'least' if is_least else 'most'} {bound:,.15g}"
    if sides.broken:
        return Judgement(condition, asks, Outcome.NOT_KNOWN, sides.broken)
    found = _find(condition, sides.candidate)
    if found is None or not _is_known(found):
        return Judgement(condition, asks, Outcome.NOT_KNOWN, _missing("the candidate", found), found)
    if found.lower is None and _has_interval(condition):
        return Judgement(condition, asks, Outcome.NOT_KNOWN, _TOO_FEW, found, bound=bound)
    value = found.value or 0.0
    # Values are rounded, so that an interval may end just before its value.
    interval = Interval(
        value if found.lower is None else min(found.lower, value),
        value if found.upper is None else max(found.upper, value),
    )
    worst, best = (interval.lower, interval.upper) if is_least else (-interval.upper, -interval.lower)
    limit = bound if is_least else -bound
    outcome = Outcome.PASSED if worst >= limit else Outcome.FAILED if best < limit else Outcome.NOT_KNOWN
    detail = _SAID[outcome] if found.lower is not None else _WITHOUT_INTERVAL
    return Judgement(condition, asks, outcome, detail, found, interval=interval, bound=bound)


def _not_worse(condition: Condition, sides: Sides) -> Judgement:
    assert condition.margin is not None
    asks = f"{_series(condition)} is not worse by more than {100 * condition.margin:g} %"
    if why := sides.broken or sides.without_other:
        return Judgement(condition, asks, Outcome.NOT_KNOWN, why)
    candidate, other = (_find(condition, results) for results in (sides.candidate, sides.other))
    missing = [
        _missing(name, one)
        for name, one in (("the candidate", candidate), ("the other side", other))
        if one is None or not _is_known(one)
    ]
    if candidate is None or other is None or missing:
        return Judgement(condition, asks, Outcome.NOT_KNOWN, "; ".join(missing), candidate, other)
    users = of_users(sides.other, sides.candidate)
    (found,) = compare([other], [candidate], margin=condition.margin, users=users)
    if found.interval is None:
        return Judgement(condition, asks, Outcome.NOT_KNOWN, found.why, candidate, other)
    spec = SPECS.get(condition.metric or "")
    better = "higher" if condition.survey is not None else "" if spec is None else spec.better
    bound = condition.margin * abs(other.value or 0.0)
    lower, upper = found.interval
    if better == "higher":
        passed, failed, bound = lower >= -bound, upper < -bound, -bound
    elif better == "lower":
        passed, failed = upper <= bound, lower > bound
    else:
        asks = f"{_series(condition)} moves by {100 * condition.margin:g} % at most"
        passed, failed = -bound <= lower and upper <= bound, upper < -bound or lower > bound
    closest = bound if better else math.copysign(bound, found.difference or 0.0)
    outcome = Outcome.PASSED if passed else Outcome.FAILED if failed else Outcome.NOT_KNOWN
    detail = _SAID[outcome]
    needed = needed_to_keep(found, closest)
    if outcome is Outcome.NOT_KNOWN and needed is not None:
        detail += f"; about {needed:,} samples a side would decide, if the values stay as they are"
    return Judgement(condition, asks, outcome, detail, candidate, other, found.interval, bound)


def _find(condition: Condition, results: Sequence[Result]) -> Result | None:
    if condition.metric is None:
        return next(iter(results), None)
    wanted = (condition.metric, tuple(sorted(condition.labels.items())))
    return next((one for one in results if key_of(one) == wanted), None)


def _missing(side: str, found: Result | None) -> str:
    if found is None:
        return f"{side} does not have it"
    return f"{side}: {found.status}{f', {found.detail}' if found.detail else ''}"


def _is_known(found: Result) -> bool:
    """Whether there is a value, of all rows of the span. A count of no data has the value 0, and is none."""
    return found.value is not None and math.isfinite(found.value) and found.status in _MEASURED


def _has_interval(condition: Condition) -> bool:
    """Whether what is asked for has an interval, given enough samples. Answers and forecasts do."""
    if condition.metric is None:
        return True
    spec = SPECS.get(condition.metric)
    return spec is not None and spec.has_interval(condition.labels)


_MEASURED: Final = (Status.OK, Status.VIOLATED)
_TOO_FEW: Final = "too few samples for an interval"
_WITHOUT_INTERVAL: Final = "judged by the value alone, since it has no interval"
_SAID: Final = {
    Outcome.PASSED: "the whole interval is within the bound",
    Outcome.FAILED: "the whole interval is beyond the bound",
    Outcome.NOT_KNOWN: "the bound lies within the interval: chance alone may decide",
}


def _series(condition: Condition) -> str:
    labels = " ".join(f"{name}={value}" for name, value in condition.labels.items())
    name = " ".join(filter(None, [condition.metric, labels]))
    if condition.survey is not None:
        name = f"the mean answer to {quoted(condition.survey)}"
    if condition.forecast is not None:
        name = f"the forecast of {condition.forecast}"
    if condition.experiment is None:
        return name
    arm = f", arm {quoted(condition.arm)}," if condition.arm else ""
    return f"{name} in experiment {condition.experiment}{arm}"
