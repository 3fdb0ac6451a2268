"""The section on anomalies: causes, drifts, and how many series have a band."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from monitor.anomalies.detectable import wide_bands
from monitor.anomalies.specs import EXPECTED
from monitor.core.results import ResultKind, Status, rank
from monitor.core.text import visible
from monitor.history.snapshot import Series
from monitor.models.specs import CAUSE_LABEL
from monitor.report import numbers, rows
from monitor.report.bands import series_name
from monitor.report.sparkline import sparkline
from monitor.report.views import AnomaliesView, SeriesRow

_DETAIL: Final = 2000  # characters: the meaning of a cause and its worst series
_QUIET: Final = (Status.OK, Status.NO_DATA)


def anomaly_href(recommender: str, cause: str) -> str:
    """The address of the page of a cause.

    >>> anomaly_href("shop", "lists_empty")
    'recommenders/shop/anomalies/lists_empty'
    """
    return f"{rows.recommender_href(recommender)}/anomalies/{rows.in_address(cause)}"


def causes_of(series: Iterable[Series]) -> dict[str, Series]:
    """The series of every cause, in the order in which the causes are checked.

    Both parts of a window check `other`. Of two series of one cause, the worse one is returned.
    """
    by_cause: dict[str, Series] = {}
    for one in series:
        if one.result.kind is not ResultKind.ANOMALY:
            continue
        cause = one.result.labels[CAUSE_LABEL]
        if cause not in by_cause or rank(one.standing) < rank(by_cause[cause].standing):
            by_cause[cause] = one
    return by_cause


def anomaly_row(series: Series, now: datetime) -> SeriesRow:
    """The row of a cause: its sentence and the number of its series."""
    result = series.result
    cause = result.labels[CAUSE_LABEL]
    row = rows.named_row(
        series,
        now,
        name=cause.replace("_", " "),
        note="anomaly",
        href=anomaly_href(series.recommender, cause),
    )
    out = int(result.value or 0)
    detail = result.detail
    if not detail and series.standing is Status.VIOLATED and series.violation is not None:
        detail = series.violation.result.detail
    counted = f"{out:,} series" if out else ""
    spark = sparkline(series.past, numbers.number)
    return replace(row, value="", bound="", counted=counted, detail=visible(detail, _DETAIL), spark=spark)


def anomalies_view(series: Sequence[Series], now: datetime, clock_change: str = "") -> AnomaliesView | None:
    """The section; None if no series is compared with its past."""
    causes = list(causes_of(series).values())
    drifts = _drifts(series)
    expected = [one for one in series if one.result.metric == EXPECTED.name]
    if not (causes or drifts or expected):
        return None
    found = [one for one in causes if one.standing not in _QUIET]
    quiet = [one for one in causes if one.standing in _QUIET]
    drifting = [one for one in drifts if one.standing not in _QUIET]
    return AnomaliesView(
        found=tuple(anomaly_row(one, now) for one in _worst_first(found)),
        quiet=tuple(anomaly_row(one, now) for one in quiet),
        summary=_summary(found, quiet),
        learning=_learning(expected),
        drifts=tuple(_drift_row(one, now) for one in _worst_first(drifting)),
        steady=_steady(drifts, len(drifting)),
        clock_change=visible(clock_change, _DETAIL),
        wide=visible(wide_bands((one.result, one.window.length) for one in expected), _DETAIL),
    )


def attention(series: Sequence[Series], now: datetime) -> list[tuple[Series, SeriesRow]]:
    """What needs attention: everything violated, and one row if causes could not be checked."""
    found = [one for one in (*causes_of(series).values(), *_drifts(series)) if one.standing not in _QUIET]
    ordered = sorted(_worst_first(found), key=lambda one: one.result.kind is ResultKind.DRIFT)
    rows_of = [(one, replace(_found_row(one, now), counted="", value="", bound="")) for one in ordered]
    violated = [(one, row) for one, row in rows_of if one.standing is Status.VIOLATED]
    failed = [(one, row) for one, row in rows_of if one.standing is not Status.VIOLATED]
    return violated + [(one, replace(row, name="anomalies", note="", href="")) for one, row in failed[:1]]


def _found_row(series: Series, now: datetime) -> SeriesRow:
    if series.result.kind is ResultKind.DRIFT:
        return _drift_row(series, now)
    return anomaly_row(series, now)


def _drift_row(series: Series, now: datetime) -> SeriesRow:
    return rows.named_row(series, now, name=series_name(series.result.labels)[0], note="drift")


def _drifts(series: Iterable[Series]) -> list[Series]:
    return [one for one in series if one.result.kind is ResultKind.DRIFT]


def counted(series: Sequence[Series]) -> list[str]:
    """The numbers of violated causes and drifts, for the summary of a recommender."""
    parts = []
    for singular, plural, shown in (
        ("anomaly", "anomalies", causes_of(series).values()),
        ("drift", "drifts", _drifts(series)),
    ):
        count = sum(one.standing is Status.VIOLATED for one in shown)
        parts += [f"{count} {singular if count == 1 else plural}"] if count else []
    return parts


def _worst_first(series: Sequence[Series]) -> list[Series]:
    """Violated series before those that could not be judged, each group newest first."""
    return sorted(series, key=lambda one: (one.standing is not Status.VIOLATED, -one.since.timestamp()))


def _summary(found: Sequence[Series], quiet: Sequence[Series]) -> str:
    checked = sum(one.standing is Status.OK for one in quiet)
    if not checked:
        return "No cause can be searched for yet: no series has enough past windows." if quiet else ""
    other = "other " if found else ""
    text = f"{checked} {other}{'cause' if checked == 1 else 'causes'} checked, none found"
    unchecked = len(quiet) - checked
    return f"{text}; {unchecked} could not be checked yet." if unchecked else f"{text}."


def _learning(expected: Sequence[Series]) -> str:
    banded = sum(one.result.value is not None for one in expected)
    if not expected:
        return ""
    if banded == len(expected):
        return f"All {banded:,} series have a band."
    return f"{banded:,} of {len(expected):,} series have a band; the others need more past windows."


def _steady(drifts: Sequence[Series], drifting: int) -> str:
    steady = sum(one.standing is Status.OK for one in drifts)
    unknown = len(drifts) - steady - drifting
    parts = [f"{steady:,} {'other ' if drifting else ''}series do not drift"] if steady else []
    parts += [f"{unknown:,} series have too few days to judge drift"] if unknown else []
    return "; ".join(parts) + ("." if parts else "")
