"""All results of one window, with their evidence: what was violated first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from monitor.core.json_value import iso
from monitor.core.results import Result, ResultKind, Status, Window, rank, worst_status
from monitor.core.text import visible
from monitor.history.browse import results_at, windows_near
from monitor.history.snapshot import RecommenderState
from monitor.report import numbers, rows
from monitor.report.evidence import evidence_table
from monitor.report.judged import title
from monitor.report.views import Verdict

_MOST_ROWS: Final = 200  # of a kind; the API has all
_TITLES: Final = {
    ResultKind.RULE: "Rules",
    ResultKind.METRIC: "Metrics",
    ResultKind.LOG: "Logs",
    ResultKind.EXPERIMENT: "Experiments",
    ResultKind.MODEL: "Models",
    ResultKind.GAP: "Gaps of AUC",
    ResultKind.CAUSE: "Causes of gaps",
    ResultKind.ANOMALY: "Anomalies",
    ResultKind.DRIFT: "Drift",
    ResultKind.BAND: "Bands",
}


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One result. What does not apply is empty."""

    name: str
    href: str
    verdict: Verdict
    value: str
    bound: str
    interval: str
    samples: str
    detail: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class WindowGroup:
    """The results of one kind: the judged ones first, of these the worst. `left_out` are not shown."""

    title: str
    rows: tuple[WindowRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class WindowView:
    """One window.

    Attributes:
        window: in words.
        verdict: the worst of its results.
        summary: how many results have each verdict.
        before, after: the addresses of the windows beside it.
        distributions: the address of the pictures of its rows.
        groups: its results by kind.
    """

    window: str
    verdict: Verdict
    summary: str
    before: str
    after: str
    distributions: str
    groups: tuple[WindowGroup, ...]


def window_view(
    connection: Connection, state: RecommenderState, start: datetime, end: datetime | None
) -> WindowView | None:
    """The results of the windows that start at a time, None if none does.

    Args:
        connection: to the history.
        state: of the recommender.
        start: of the window.
        end: of the window; None: of whatever length.
    """
    found = results_at(connection, state.name, start, end)
    if not found:
        return None
    near = windows_near(connection, state.name, start)
    window = max((one for _, one, _ in found), key=lambda one: one.length)
    results = [result for _, _, result in found if _is_shown(result)]
    # An error counts also where nobody has said what the result must be.
    judged = [one for one in results if rows.is_judged(one) or one.status is Status.ERROR]
    verdicts = [one.status for one in judged if not _says_nothing(one)]
    return WindowView(
        window=numbers.window(window),
        verdict=rows.verdict(worst_status(verdicts or [one.status for one in results])),
        summary=_summary(results),
        before=_beside(state.name, [one for one in near if one.start < start]),
        after=_beside(state.name, [one for one in near if one.start > start]),
        distributions=(
            f"{rows.recommender_href(state.name)}/distributions?start={iso(window.start)}&end={iso(window.end)}"
        ),
        groups=tuple(_groups(state.name, results)),
    )


def _says_nothing(result: Result) -> bool:
    """Whether it is no verdict: that of a rule that does not apply, or of a cause while bands are learnt."""
    is_learnt = result.kind.is_of_the_past and result.status is Status.NO_DATA
    return is_learnt or result.status is Status.UNDEFINED


def _beside(recommender: str, near: Sequence[Window]) -> str:
    return rows.window_href(recommender, near[0]) if near else ""


def _summary(results: Sequence[Result]) -> str:
    """The counts of what the results say, the worst first. What nobody judges is measured.

    >>> gini = Result(metric="gini", status=Status.OK, definition="1", value=0.4)
    >>> rule = Result(metric="rule", status=Status.VIOLATED, definition="1", kind=ResultKind.RULE)
    >>> _summary([gini, rule, Result(metric="auc", status=Status.ERROR, definition="1")])
    '1 violated, 1 error, 1 measured'
    """
    worst_first = sorted(results, key=lambda one: rank(one.status))
    counts = Counter(rows.shown_verdict(one, one.status).word for one in worst_first)
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())


def _groups(recommender: str, results: Sequence[Result]) -> Iterator[WindowGroup]:
    for kind in [*_TITLES, *(one for one in ResultKind if one not in _TITLES)]:
        own = [one for one in results if one.kind is kind]
        own.sort(key=lambda one: (not rows.is_judged(one), rank(one.status), "dimension" in one.labels))
        if own:
            name = _TITLES.get(kind, kind.value.replace("_", " ").capitalize())
            shown = tuple(_row(recommender, one) for one in own[:_MOST_ROWS])
            yield WindowGroup(name, shown, len(own) - len(shown))


def _is_shown(result: Result) -> bool:
    """What bands say of a series stands on the page of the series, unless it is violated."""
    return result.kind is not ResultKind.BAND or result.status is Status.VIOLATED


def _row(recommender: str, result: Result) -> WindowRow:
    show = rows.shower_of(result)
    value = "" if result.value is None else show(result.value)
    if result.violations is not None:
        of = "" if result.samples is None else f" of {numbers.count(result.samples)}"
        value = f"{numbers.count(result.violations)}{of}"
    columns, cells = evidence_table(result.evidence)
    past = result.kind.is_of_the_past or result.kind is ResultKind.CAUSE
    return WindowRow(
        name=visible(title(result)),
        href="" if past else rows.series_href(recommender, result),
        verdict=rows.shown_verdict(result, result.status),
        value=value,
        bound=rows.bound_text(result, show),
        interval=rows.interval_text(result),
        samples="" if result.samples is None else numbers.count(result.samples),
        detail=visible(result.detail),
        columns=columns,
        rows=cells,
    )
