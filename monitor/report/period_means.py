"""The mean of each number in a period, beside that of the period before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from monitor.anomalies.series import DIMENSION
from monitor.catalogue import ALL_SPECS
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.core.text import visible
from monitor.history.reads import StoredResult
from monitor.report.judged import title
from monitor.report.numbers import signed_share
from monitor.report.rows import shower_of

_KINDS: Final = (ResultKind.METRIC, ResultKind.MODEL, ResultKind.HEALTH, ResultKind.RULE)


@dataclass(frozen=True, slots=True)
class Compared:
    """A series with its mean in both periods, as texts; `change` is relative.

    `size` is the change as a number: infinite after a mean of 0, and 0 if a period has no value.
    """

    name: str
    now: str
    before: str
    change: str
    size: float
    windows: int
    windows_before: int


def compared_means(results: Iterable[StoredResult], span: Window, length: timedelta) -> tuple[Compared, ...]:
    """Each series that has a value in either period, those with the largest relative change first.

    Counts are means by window, and only of windows of one length. Other values are weighted by their samples,
    so that a quiet hour does not count like a busy one.

    Args:
        results: of the period and of the one before it.
        span: the period.
        length: of the windows whose counts are compared.
    """
    series: dict[str, tuple[list[Result], list[Result]]] = {}
    for one in results:
        result = one.result
        if _is_count(result) and one.window.length != length:
            continue
        if result.kind in _KINDS and DIMENSION not in result.labels and _is_measured(result):
            both = series.setdefault(title(result), ([], []))
            both[0 if one.window.start >= span.start else 1].append(result)
    found = [_compared(*both) for both in series.values()]
    return tuple(sorted(found, key=lambda one: (-abs(one.size), one.name)))


def _is_count(result: Result) -> bool:
    spec = ALL_SPECS.get(result.metric)
    return spec is not None and spec.is_count


def _is_measured(result: Result) -> bool:
    usable = (Status.OK, Status.VIOLATED)
    return result.value is not None and math.isfinite(result.value) and result.status in usable


def _compared(now: Sequence[Result], before: Sequence[Result]) -> Compared:
    like = (now or before)[0]
    show = shower_of(like)
    mean, earlier = (_mean(results) for results in (now, before))
    size = 0.0
    # The mean of equal values may differ in its last digit.
    if mean is not None and earlier is not None and not math.isclose(mean, earlier, rel_tol=1e-12):
        size = (mean - earlier) / abs(earlier) if earlier else math.copysign(math.inf, mean)
    return Compared(
        name=visible(title(like)),
        now="" if mean is None else show(mean),
        before="" if earlier is None else show(earlier),
        change="" if mean is None or not earlier else signed_share(size),
        size=size,
        windows=len(now),
        windows_before=len(before),
    )


def _mean(results: Sequence[Result]) -> float | None:
    """The mean, weighted by samples unless it is a count or a window has no samples; None without a value."""
    values = [one.value for one in results if one.value is not None]
    if not values:
        return None
    weights = [float(one.samples or 0) for one in results if one.value is not None]
    if _is_count(results[0]) or not all(weights):
        weights = [1.0] * len(values)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
