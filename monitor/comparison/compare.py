"""Rules and metrics of two sides, one by one: the difference, its interval, and which side is better."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from monitor.core.results import Kind, Result, ResultKind
from monitor.metrics.catalogue import SPECS
from monitor.statistics.intervals import Interval
from monitor.statistics.mover import POWER, Estimate, difference, samples_needed

Key = tuple[str, tuple[tuple[str, str], ...]]
_KINDS: Final = (ResultKind.RULE, ResultKind.METRIC)
_NO_INTERVAL: Final = "it has no interval"
_CLEARLY_WIDER: Final = 1.2
_OF_A_SHARE: Final = 0.1
"""A margin of 2 % lets a share differ by 0.002 even if it is 0."""


class Verdict(StrEnum):
    """What a comparison says of B, seen from A."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """Surely another value, of a metric of which neither higher nor lower is better."""
    SAME = "same"
    """The whole interval of the difference lies within the margin."""
    UNKNOWN = "unknown"
    NOT_JUDGED = "not_judged"
    """The metric has no interval, so nobody knows what chance alone does; or no side has a value; or only one
    side has the slice."""


@dataclass(frozen=True, slots=True)
class OfUsers:
    """What random groups of users say of a metric of both sides.

    Attributes:
        correlation: how the values of both sides vary together; 0 if they count as independent.
        wider, wider_other: how many times wider the intervals of A and B are between users than the metric's
            own; 1 if they are not. Intervals over rows are too narrow if the rows of a user are alike.
    """

    correlation: float = 0.0
    wider: float = 1.0
    wider_other: float = 1.0

    @property
    def is_wider(self) -> bool:
        """Whether an interval is clearly wider between users: beyond the error of 100 groups."""
        return max(self.wider, self.wider_other) > _CLEARLY_WIDER


@dataclass(frozen=True, slots=True)
class Compared:
    """One rule or metric of both sides.

    Attributes:
        one, other: the results of A and B; None where a side has none.
        difference: B less A.
        interval: of the difference; it holds together with all other intervals of the comparison.
        margin: differences up to this are the same.
        needed: how many samples each side needs for a verdict in 80 of 100 cases, if the true values are
            those seen; None where it is known already, or where no number of samples decides.
        why: why there is no verdict.
        users: how far the users of both sides made the interval narrower or wider.
    """

    one: Result | None
    other: Result | None
    verdict: Verdict
    difference: float | None = None
    interval: Interval | None = None
    margin: float | None = None
    needed: int | None = None
    why: str = ""
    users: OfUsers = OfUsers()

    @property
    def result(self) -> Result:
        """The result of either side, for its name and labels."""
        found = self.other if self.one is None else self.one
        assert found is not None
        return found


def compare(
    one: Sequence[Result],
    other: Sequence[Result],
    *,
    margin: float,
    metrics: Collection[str] = (),
    users: Mapping[Key, OfUsers] | None = None,
) -> list[Compared]:
    """Compare each rule and metric of B with that of A, in the order of A.

    - A hard rule that only one side violates decides at once, and a rule that no side violates is the same.
      Other rules are compared by the share of rows that violate them, and less is better.
    - A metric with an interval on both sides gets the interval of the difference (`mover.difference`), so
      wide that all intervals of the comparison hold together.
    - `same`: the interval lies within the margin. Else `better`, `worse` or `different` if it does not
      contain 0, or `unknown`.

    Args:
        one, other: the results of A and B.
        margin: relative to the value of A; of a metric from 0 to 1 it is at least a tenth of this.
        metrics: the only names that are compared, of metrics or rules; none: all.
        users: what the users of both sides say of the errors; see `sides.of_users`.
    """
    a, b = _by_key(one, metrics), _by_key(other, metrics)
    keys = list(dict.fromkeys([*a, *b]))
    pairs = {key: (a.get(key), b.get(key)) for key in keys}
    count = sum(_lacking(*pair) == "" and not _is_decided(*pair) for pair in pairs.values())
    known = users or {}
    return [_compared(*pair, margin, max(1, count), known.get(key, OfUsers())) for key, pair in pairs.items()]


def key_of(result: Result) -> Key:
    """What tells the rules and metrics of one side apart."""
    name = result.labels["rule"] if result.kind is ResultKind.RULE else result.metric
    return name, tuple(sorted(result.labels.items()))


def _by_key(results: Iterable[Result], metrics: Collection[str]) -> dict[Key, Result]:
    return {
        key_of(one): one
        for one in results
        if one.kind in _KINDS and (not metrics or key_of(one)[0] in metrics)
    }


def _lacking(one: Result | None, other: Result | None) -> str:
    """Why two results cannot be compared; empty if they can."""
    sides = [
        f"{name}: {_absence(result)}" for name, result in (("A", one), ("B", other)) if not _has_value(result)
    ]
    if sides:
        return "; ".join(sides)
    assert one is not None
    assert other is not None
    if one.definition != other.definition:
        return "the sides measure it with different settings"
    if not _is_decided(one, other) and None in (one.lower, one.upper, other.lower, other.upper):
        return _NO_INTERVAL
    return ""


def _is_slice_of_one_side(one: Result | None, other: Result | None) -> bool:
    """Whether only one side has this slice, such as the Monday of another week."""
    alone = other if one is None else one if other is None else None
    return alone is not None and "dimension" in alone.labels


def _has_value(result: Result | None) -> bool:
    return result is not None and result.value is not None and math.isfinite(result.value)


def _absence(result: Result | None) -> str:
    if result is None:
        return "does not have it"
    return f"{result.status}{f', {result.detail}' if result.detail else ''}"


def _is_decided(one: Result | None, other: Result | None) -> bool:
    """Whether the results are of a rule that no side violates, or of a hard rule that a side keeps.

    No chance is involved.
    """
    if one is None or other is None or None in (one.violations, other.violations):
        return False
    kept = (one.violations, other.violations).count(0)
    return kept == 2 or (kept == 1 and one.labels.get("kind") == Kind.HARD)


def _compared(
    one: Result | None, other: Result | None, margin: float, comparisons: int, users: OfUsers
) -> Compared:
    if why := _lacking(one, other):
        if _has_value(one) and _has_value(other) and why == _NO_INTERVAL:
            return Compared(one, other, Verdict.NOT_JUDGED, _between(one, other), why=why)
        nobody = not _has_value(one) and not _has_value(other)
        ignored = nobody or _is_slice_of_one_side(one, other)
        return Compared(one, other, Verdict.NOT_JUDGED if ignored else Verdict.UNKNOWN, why=why)
    assert one is not None
    assert other is not None
    between = _between(one, other)
    if _is_decided(one, other):
        verdict = Verdict.SAME if between == 0 else _side(one, between)
        return Compared(one, other, verdict, between)
    a, b = _estimate(one, users.wider), _estimate(other, users.wider_other)
    allowed = _margin(one, a.value, margin)
    interval = difference(a, b, comparisons=comparisons, correlation=users.correlation)
    if -allowed <= interval.lower and interval.upper <= allowed:
        verdict = Verdict.SAME
    elif interval.lower > 0 or interval.upper < 0:
        verdict = _side(one, between)
    else:
        needed = _needed(a, b, _samples(one, other), allowed, comparisons, users.correlation)
        why = "chance alone may make such a difference"
        return Compared(one, other, Verdict.UNKNOWN, between, interval, allowed, needed, why, users)
    return Compared(one, other, verdict, between, interval, allowed, users=users)


def _between(one: Result | None, other: Result | None) -> float:
    a, b = (0.0 if result is None or result.value is None else result.value for result in (one, other))
    return b - a


def _margin(result: Result, value: float, margin: float) -> float:
    spec = SPECS.get(result.metric)
    is_share = result.kind is ResultKind.METRIC and spec is not None and spec.bounds == (0.0, 1.0)
    return max(margin * abs(value), _OF_A_SHARE * margin if is_share else 0.0)


def _estimate(result: Result, wider: float) -> Estimate:
    """The value with its interval; values are rounded, so the interval may end just before it."""
    value = float(result.value or 0.0)
    lower = value if result.lower is None else min(result.lower, value)
    upper = value if result.upper is None else max(result.upper, value)
    return Estimate(value, value - wider * (value - lower), value + wider * (upper - value))


def _side(result: Result, between: float) -> Verdict:
    better = "lower" if result.kind is ResultKind.RULE else _better(result.metric)
    if not better:
        return Verdict.DIFFERENT
    return Verdict.BETTER if (between > 0) == (better == "higher") else Verdict.WORSE


def _better(metric: str) -> str:
    spec = SPECS.get(metric)
    return "" if spec is None else spec.better


def _samples(one: Result, other: Result) -> tuple[int, int]:
    return one.samples or 0, other.samples or 0


def _needed(
    one: Estimate,
    other: Estimate,
    samples: tuple[int, int],
    margin: float,
    comparisons: int,
    correlation: float,
) -> int | None:
    """The samples a side at which the interval excludes 0 or lies within the margin, the fewer."""
    between = abs(other.value - one.value)
    # An interval within the margin ends before both bounds, so each end must do so more often.
    asked = ((between, POWER), (margin - between, (1 + POWER) / 2))
    found = [
        samples_needed(
            one, other, samples, distance, power=power, comparisons=comparisons, correlation=correlation
        )
        for distance, power in asked
    ]
    return min((one for one in found if one is not None), default=None)


def needed_to_keep(found: Compared, bound: float) -> int | None:
    """The samples a side at which the interval of the difference lies above or below a bound.

    In 80 of 100 cases, if the true values are those seen; None if no number of samples decides.
    """
    one, other, users = found.one, found.other, found.users
    if one is None or other is None:
        return None
    a, b = _estimate(one, users.wider), _estimate(other, users.wider_other)
    distance = abs(b.value - a.value - bound)
    return samples_needed(a, b, _samples(one, other), distance, correlation=users.correlation)
