"""What is unlike a recommender's own past: causes that were found, slow changes, what is learnt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from urllib.parse import quote

from monitor.anomalies.specs import EXPECTED
from monitor.core.results import ResultKind, Status, rank
from monitor.core.text import visible
from monitor.history.snapshot import Series
from monitor.models.specs import CAUSE_LABEL
from monitor.report import numbers, rows
from monitor.report.bands import series_name
from monitor.report.sparkline import sparkline
from monitor.report.views import AnomaliesView, SeriesRow

_DETAIL: Final = 2000  # a cause says what it means, and names its worst series


def anomaly_href(recommender: str, cause: str) -> str:
    """The address of a cause's evidence.

    >>> anomaly_href("shop", "lists_empty")
    'recommenders/shop/anomalies/lists_empty'
    """
    return f"{rows.recommender_href(recommender)}/anomalies/{quote(cause, safe='', errors='replace')}"


def causes_of(series: Iterable[Series]) -> dict[str, Series]:
    """The series of every cause, in the order in which they are looked for.

    Both parts of a window look for `other`: of two series of one cause the worse one is told.
    """
    found: dict[str, Series] = {}
    for one in series:
        if one.result.kind is not ResultKind.ANOMALY:
            continue
        cause = one.result.labels[CAUSE_LABEL]
        if cause not in found or rank(one.standing) < rank(found[cause].standing):
            found[cause] = one
    return found


def anomaly_row(series: Series, now: datetime) -> SeriesRow:
    """A cause: its sentence, and how many series it was read from."""
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
    told = result.detail
    if not told and series.standing is Status.VIOLATED and series.violation is not None:
        told = series.violation.result.detail
    counted = f"{out:,} series" if out else ""
    drawn = sparkline(series.past, numbers.number)
    return replace(row, value="", bound="", counted=counted, detail=visible(told, _DETAIL), spark=drawn)


def drift_row(series: Series, now: datetime) -> SeriesRow:
    """A metric that slides: what it was and what it is now are in its detail."""
    name, _ = series_name(series.result.labels)
    return rows.named_row(series, now, name=name, note="drift")


def anomalies_view(series: Sequence[Series], now: datetime) -> AnomaliesView | None:
    """What is shown of them; None where nothing is compared with its past."""
    causes = list(causes_of(series).values())
    drifts = [one for one in series if one.result.kind is ResultKind.DRIFT]
    expected = [one for one in series if one.result.metric == EXPECTED.name]
    if not (causes or drifts or expected):
        return None
    found = [one for one in causes if one.standing not in (Status.OK, Status.NO_DATA)]
    quiet = [one for one in causes if one.standing in (Status.OK, Status.NO_DATA)]
    sliding = [one for one in drifts if one.standing not in (Status.OK, Status.NO_DATA)]
    return AnomaliesView(
        found=tuple(anomaly_row(one, now) for one in _worst_first(found)),
        quiet=tuple(anomaly_row(one, now) for one in quiet),
        summary=_summary(found, quiet),
        learning=_learning(expected),
        drifts=tuple(drift_row(one, now) for one in _worst_first(sliding)),
        steady=_steady(drifts, len(sliding)),
    )


def attention_rows(view: AnomaliesView | None) -> list[SeriesRow]:
    """What needs somebody: all that stands violated; one row for what could not be looked at."""
    if view is None:
        return []
    shown = [replace(row, counted="", value="", bound="") for row in (*view.found, *view.drifts)]
    violated = [row for row in shown if row.verdict.key == Status.VIOLATED]
    failed = [row for row in shown if row.verdict.key != Status.VIOLATED]
    return violated + [replace(row, name="anomalies", note="", href="") for row in failed[:1]]


def counted(view: AnomaliesView | None) -> list[str]:
    """What stands violated, for the line that sums a recommender up."""
    if view is None:
        return []
    names = (("anomaly", "anomalies", view.found), ("drift", "drifts", view.drifts))
    counts = [(one, many, [row.verdict.key for row in of].count(Status.VIOLATED)) for one, many, of in names]
    return [f"{n} {one if n == 1 else many}" for one, many, n in counts if n]


def _worst_first(series: Sequence[Series]) -> list[Series]:
    """The violated ones before what could not be judged, in each the newest first."""
    return sorted(series, key=lambda one: (one.standing is not Status.VIOLATED, -one.since.timestamp()))


def _summary(found: Sequence[Series], quiet: Sequence[Series]) -> str:
    looked = [one for one in quiet if one.standing is Status.OK]
    if not looked:
        return "No cause can be searched for yet: no series has enough past windows." if quiet else ""
    other = "other " if found else ""
    text = f"{len(looked)} {other}{'cause' if len(looked) == 1 else 'causes'} checked, none found"
    unseen = len(quiet) - len(looked)
    return f"{text}; {unseen} could not be checked yet." if unseen else f"{text}."


def _learning(expected: Sequence[Series]) -> str:
    banded = sum(one.result.value is not None for one in expected)
    if not expected:
        return ""
    if banded == len(expected):
        return f"All {banded:,} series have a band."
    return f"{banded:,} of {len(expected):,} series have a band; the others need more past windows."


def _steady(drifts: Sequence[Series], sliding: int) -> str:
    steady = sum(one.standing is Status.OK for one in drifts)
    young = len(drifts) - steady - sliding
    if not drifts:
        return ""
    text = f"{steady:,} {'other ' if sliding else ''}series do not drift" if steady else ""
    learning = f"{young:,} series have too few days to judge drift" if young else ""
    return "; ".join(part for part in (text, learning) if part) + ("." if text or learning else "")
