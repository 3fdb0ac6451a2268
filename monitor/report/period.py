"""A report on a period of one recommender: its state over time, trends, incidents, and what changed.

All of it comes from the stored results, so a report on the past is the same whenever it is made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from monitor.core.results import Result, ResultKind, Status, Window, worst_status
from monitor.core.text import visible
from monitor.history.reads import Evaluated, StoredResult
from monitor.history.violations import PastViolation, past_violations
from monitor.models.specs import CAUSE_LABEL
from monitor.report.causes import cause_name, causes_of, is_cause, share_text
from monitor.report.judged import title
from monitor.report.numbers import moment
from monitor.report.past_violations import GONE
from monitor.report.period_changes import Change, changes_of
from monitor.report.period_means import Compared, compared_means
from monitor.report.period_trends import trends_of
from monitor.report.trend import Trend
from monitor.report.window_verdict import OF_LOGS, window_verdict
from monitor.settings.recommender import RecommenderSettings

_DAY: Final = timedelta(days=1)
_DETAIL: Final = 2000
_EVIDENCE: Final = 3
_MOST_CELLS: Final = 336
_ALWAYS_JUDGED: Final = frozenset({
    ResultKind.RULE, ResultKind.LOG, ResultKind.GAP, ResultKind.DRIFT, ResultKind.ANOMALY,
    ResultKind.SUBSTITUTION, ResultKind.FORECAST, ResultKind.EXPERIMENT,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of the period and its worst verdict; None if none of its windows was judged."""

    span: Window
    status: Status | None


@dataclass(frozen=True, slots=True)
class PastIncident:
    """One violation of the period, in words.

    Attributes:
        what: the rule, metric, or cause.
        since, until: when it was first violated, and when it was back or no longer judged.
        windows: how many windows were violated on their own.
        detail: what the first of them says.
        causes: the anomalies and findings of the same time.
        changes: what changed in the day before it, or during its first window.
        evidence: rows of the first window, as JSON.
    """

    what: str
    severity: str
    since: str
    until: str
    windows: int
    detail: str
    causes: tuple[str, ...]
    changes: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PeriodReport:
    """The content of a report; texts are plain and unescaped.

    Attributes:
        judged, judged_before: how many windows have which worst verdict, in the period and in the one before.
        not_judged: how many windows of the period have no verdict.
        incidents_before: how many incidents the period before had.
        left_out: how many further series have values and no trend here.
    """

    recommender: str
    span: Window
    before: Window
    cells: tuple[Cell, ...]
    judged: Counter[Status]
    judged_before: Counter[Status]
    not_judged: int
    incidents: tuple[PastIncident, ...]
    incidents_before: int
    changes: tuple[Change, ...]
    trends: tuple[Trend, ...]
    left_out: int
    compared: tuple[Compared, ...]

    @property
    def is_empty(self) -> bool:
        """Whether no window of the period was judged."""
        return not self.judged


class Stored(Protocol):
    """A history that can be read."""

    def results(
        self, *, recommenders: Sequence[str] | None, start: datetime | None, end: datetime | None
    ) -> Iterable[StoredResult]: ...

    def evaluated(
        self, recommender: str, *, start: datetime | None, end: datetime | None
    ) -> list[Evaluated]: ...


def read_period(history: Stored, settings: RecommenderSettings, span: Window, now: datetime) -> PeriodReport:
    """The report on a period of a recommender, read from a history. Raises StoreError."""
    start, end = before(span).start, span.end
    results = history.results(recommenders=[settings.name], start=start, end=end)
    evaluated = history.evaluated(settings.name, start=start, end=end)
    return period_report(settings, span, results, evaluated, now)


def before(span: Window) -> Window:
    """The period of the same length before a period."""
    return Window(span.start - span.length, span.start)


def period_report(
    settings: RecommenderSettings,
    span: Window,
    results: Iterable[StoredResult],
    evaluated: Iterable[Evaluated],
    now: datetime,
) -> PeriodReport:
    """The report on a period.

    Args:
        settings: of the recommender: its window, and what its config declares.
        span: the period.
        results: those of the period and of the one before it, in the order of time.
        evaluated: the judged windows of both.
        now: a window that has not ended by now is not missing.
    """
    earlier = before(span)
    stored, evaluated = list(results), list(evaluated)
    own = [one for one in stored if one.window.start >= span.start]
    verdicts = _verdicts(evaluated, settings.window)
    inside = {window: status for window, status in verdicts.items() if window.start >= span.start}
    past = [one for one in past_violations(stored, evaluated) if is_incident(one.result)]
    of_period = [one for one in past if one.end is None or one.end.start >= span.start]
    changes = changes_of(stored, settings, Window(earlier.start, span.end))
    trends, left_out = trends_of(own, span)
    expected = _expected(span, settings.window, now)
    known = _by_expected(inside, expected)
    return PeriodReport(
        recommender=settings.name,
        span=span,
        before=earlier,
        cells=_cells(known, expected),
        judged=Counter(inside.values()),
        judged_before=Counter(status for window, status in verdicts.items() if window not in inside),
        not_judged=len(expected) - len(known),
        incidents=tuple(_incident(one, of_period, changes, stored, span) for one in of_period),
        incidents_before=sum(one.first.start < span.start for one in past),
        changes=tuple(one for one in changes if span.start <= one.at < span.end),
        trends=trends,
        left_out=left_out,
        compared=compared_means(stored, span, settings.window),
    )


def is_incident(result: Result) -> bool:
    """Whether a violation of this series is one that people are told about, and not a part of another one.

    A series that is out of its band is a part of an anomaly.
    """
    return result.kind in _ALWAYS_JUDGED or (
        result.threshold is not None and result.kind is not ResultKind.BAND
    )


def _verdicts(evaluated: Sequence[Evaluated], length: timedelta) -> dict[Window, Status]:
    """The worst verdict of each window over its checks; drifts and platforms have windows of their own.

    Windows of another length count if a check of the logs judged them: the config had another `window` then.
    """
    found: dict[Window, list[Evaluated]] = {}
    of_logs = {one.window for one in evaluated if one.check in OF_LOGS}
    for one in evaluated:
        if one.window.length == length or one.window in of_logs:
            found.setdefault(one.window, []).append(one)
    return {window: window_verdict(found[window]) for window in sorted(found)}


def _expected(span: Window, length: timedelta, now: datetime) -> list[Window]:
    """The windows of the period that have ended."""
    first = Window.of(span.start, length)
    first = first if first.start >= span.start else Window(first.end, first.end + length)
    count = max(0, (min(span.end, now) - first.start) // length)
    return [Window(first.start + at * length, first.end + at * length) for at in range(count)]


def _by_expected(verdicts: Mapping[Window, Status], expected: Sequence[Window]) -> dict[Window, Status]:
    """The worst verdict of the judged windows over each of these; those without one are not in it."""
    found: dict[Window, list[Status]] = {}
    for window, status in verdicts.items() if expected else ():
        start, length = expected[0].start, expected[0].length
        first, last = (window.start - start) // length, -((start - window.end) // length)
        for one in expected[max(first, 0) : max(last, 0)]:
            found.setdefault(one, []).append(status)
    return {window: worst_status(statuses) for window, statuses in found.items()}


def _cells(verdicts: Mapping[Window, Status], expected: Sequence[Window]) -> tuple[Cell, ...]:
    """At most so many parts of the period; a part has the worst verdict of its windows."""
    size = max(1, -(-len(expected) // _MOST_CELLS))
    parts = [expected[at : at + size] for at in range(0, len(expected), size)]
    return tuple(
        Cell(
            Window(part[0].start, part[-1].end),
            worst_status(known) if (known := [verdicts[one] for one in part if one in verdicts]) else None,
        )
        for part in parts
    )


def _incident(
    one: PastViolation,
    others: Sequence[PastViolation],
    changes: Sequence[Change],
    stored: Sequence[StoredResult],
    span: Window,
) -> PastIncident:
    since = f"{'before ' if one.first.start < span.start else ''}{moment(max(one.first.start, span.start))}"
    nearby = [change for change in changes if one.first.start - _DAY <= change.at < one.first.end]
    return PastIncident(
        what=incident_name(one.result),
        severity=one.result.severity or "",
        since=since,
        until="" if one.end is None else f"{moment(one.end.start)}{GONE if one.is_gone else ''}",
        windows=one.windows,
        detail=visible(one.result.detail, _DETAIL),
        causes=tuple(dict.fromkeys(_causes(one, others, stored))),
        changes=tuple(f"{moment(change.at)}: {change.text}" for change in nearby),
        evidence=tuple(
            visible(json.dumps(row, ensure_ascii=False), _DETAIL) for row in one.result.evidence[:_EVIDENCE]
        ),
    )


def incident_name(result: Result) -> str:
    """What was violated, in words.

    >>> anomaly = Result(metric="anomaly", kind=ResultKind.ANOMALY, status=Status.VIOLATED, definition="1",
    ...                  labels={"cause": "traffic_lost"})
    >>> incident_name(anomaly)
    'anomaly: traffic lost'
    """
    if result.kind is ResultKind.ANOMALY:
        return f"anomaly: {cause_name(result)}"
    return visible(title(result))


def _causes(
    one: PastViolation, others: Sequence[PastViolation], stored: Sequence[StoredResult]
) -> Iterable[str]:
    if one.result.kind is ResultKind.GAP:
        beside = [each.result for each in stored if each.window == one.first and is_cause(each.result)]
        for cause in causes_of(one.result, beside):
            share = share_text(cause)
            yield f"{cause_name(cause)}{f' ({share} of the gap)' if share else ''}"
    if one.result.kind is ResultKind.ANOMALY:
        return
    for other in others:
        if other.result.kind is ResultKind.ANOMALY and _overlap(one, other):
            yield str(other.result.labels[CAUSE_LABEL]).replace("_", " ")


def _overlap(one: PastViolation, other: PastViolation) -> bool:
    starts_in_time = other.end is None or one.first.start < other.end.end
    return starts_in_time and (one.end is None or other.first.start < one.end.end)
