"""The violations of some series in a span of time, each with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from monitor.core.results import Result, ResultKind, Window
from monitor.core.text import plural, visible
from monitor.history.browse import SeriesKey, Span, spans_of_violations
from monitor.history.rows import results_of_windows
from monitor.report import numbers, rows
from monitor.report.bands import deviation_text, series_name
from monitor.report.evidence import evidence_table
from monitor.report.judged import title

MOST: Final = 20
GONE: Final = ", when it was no longer judged"
_MOST_ROWS: Final = 10  # of evidence; the page of the window has all


@dataclass(frozen=True, slots=True)
class PastViolation:
    """A violation from its first window until it was over or no longer judged. What does not apply is empty.

    `said` is the number of the newest window that violates; `rows` are some of that window's evidence, `more`
    how many it has besides.
    """

    name: str
    since: str
    until: str
    windows: str
    said: str
    detail: str
    href: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: int


def past_violations(
    connection: Connection, recommender: str, wanted: Mapping[int, SeriesKey], span: Window
) -> tuple[tuple[PastViolation, ...], int]:
    """The violations of these series that touch the span, the newest first, and how many are left out."""
    found = [one for one in spans_of_violations(connection, recommender, list(wanted)) if _touches(one, span)]
    found.sort(key=lambda one: (one.since, one.series_id), reverse=True)
    shown = found[:MOST]
    stored = results_of_windows(
        connection, sorted({one.window_id for one in shown}), {one.series_id for one in shown}
    )
    violations = [_violation(recommender, one, stored[one.window_id][one.series_id]) for one in shown]
    return tuple(violations), len(found) - len(shown)


def _touches(one: Span, span: Window) -> bool:
    return one.since < span.end and (one.end is None or one.end > span.start)


def _name(result: Result) -> str:
    """The name of what is violated: of a deviation, the series that left its band."""
    if result.kind is not ResultKind.BAND:
        return title(result)
    return f"{' '.join(filter(None, series_name(result.labels)))} out of its band"


def _violation(recommender: str, one: Span, result: Result) -> PastViolation:
    columns, cells = evidence_table(result.evidence[:_MOST_ROWS])
    show = rows.shower_of(result)
    said = "" if result.value is None else show(result.value)
    if result.kind is ResultKind.BAND and result.value is not None:
        said = deviation_text(result.value)
    if result.violations is not None:
        of = "" if result.samples is None else f" of {numbers.count(result.samples)}"
        said = f"{numbers.count(result.violations)}{of}"
    return PastViolation(
        name=visible(_name(result)),
        since=numbers.moment(one.since),
        until="" if one.end is None else f"{numbers.moment(one.end)}{GONE if one.until is None else ''}",
        windows=plural(one.count, "window"),
        said=said,
        detail=visible(result.detail),
        href=rows.window_href(recommender, one.window),
        columns=columns,
        rows=cells,
        more=max(0, len(result.evidence) - _MOST_ROWS),
    )
