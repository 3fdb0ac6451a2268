"""The page of one cause of anomalies, with the series that are out of their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from monitor.anomalies.causes import CAUSES
from monitor.core.results import Status
from monitor.core.text import visible
from monitor.history.snapshot import Series, Snapshot, Violation
from monitor.report import numbers, rows
from monitor.report.anomalies import anomaly_row, causes_of
from monitor.report.bands import (
    Bands,
    Key,
    bands_of,
    deviation_text,
    key_named,
    key_of,
    series_name,
    with_band,
)
from monitor.report.frame import frame
from monitor.report.runbooks import runbook_address
from monitor.report.sparkline import Sparkline
from monitor.report.views import Frame, SeriesRow, TimeView

_RUNBOOKS: Final = "docs/runbooks"


@dataclass(frozen=True, slots=True)
class OutOfBand:
    """A series that was out of its band.

    `spark` is its recent past, if it is still measured. `source` says what its present band is made of.
    """

    name: str
    slice: str
    measured: str
    expected: str
    source: str
    between: str
    deviation: str
    spark: Sparkline | None


@dataclass(frozen=True, slots=True)
class AnomalyPage:
    """The page of one cause.

    `means` is the general meaning of the cause, empty if the row contains it. `shown` is the number of series
    in the table.
    """

    frame: Frame
    recommender: str
    recommender_href: str
    row: SeriesRow
    means: str
    runbook: str  # an address
    samples: str
    window: str
    evaluated: TimeView
    definition: str
    evidence_window: str
    evidence_is_older: bool
    series: tuple[OutOfBand, ...]
    shown: str
    empty: str


def anomaly_page(
    snapshot: Snapshot,
    recommender: str,
    cause: str,
    now: datetime,
    docs_url: str = "",
) -> AnomalyPage | None:
    """A cause and its series, None if no window was checked for it."""
    state = next((one for one in snapshot.recommenders if one.name == recommender), None)
    series = None if state is None else causes_of(state.series).get(cause)
    if state is None or series is None:
        return None
    source = rows.evidence_source(series) or Violation(series.window, series.result)
    table = _table(source.result.evidence, state.series, now)
    path = f"{_RUNBOOKS}/{f'causes/{cause}' if cause in CAUSES else 'RecsysAnomaly'}.md"
    result, row = series.result, anomaly_row(series, now)
    means = visible(CAUSES.get(cause, ""))
    return AnomalyPage(
        frame=frame(snapshot, now),
        recommender=visible(state.name),
        recommender_href=rows.recommender_href(state.name),
        row=row,
        means="" if row.detail.startswith(means) else means,
        runbook=runbook_address(path, docs_url),
        samples="" if result.samples is None else numbers.count(result.samples),
        window=numbers.window(series.window),
        evaluated=rows.moment(series.evaluated_at, now),
        definition=visible(result.definition),
        evidence_window=numbers.window(source.window),
        evidence_is_older=source.window != series.window,
        series=table,
        shown=_shown(len(table), source.result.value),
        empty=_empty(series),
    )


def _table(
    evidence: Sequence[Mapping[str, Any]], series: Sequence[Series], now: datetime
) -> tuple[OutOfBand, ...]:
    keys = {key_named(row) for row in evidence}
    measured = {key_of(one.result): one for one in series if not rows.is_of_bands(one.result)}
    measured = {key: one for key, one in measured.items() if key in keys}
    bands = bands_of(series)
    return tuple(_out_of_band(row, measured, bands, now) for row in evidence)


def _out_of_band(
    row: Mapping[str, Any], measured: Mapping[Key, Series], bands: Bands, now: datetime
) -> OutOfBand:
    key = key_named(row)
    name, of_slice = series_name(row)
    show = rows.shower(key[0])
    value, expected, lower, upper, deviation = (
        row.get(field) for field in ("measured", "expected", "lower", "upper", "deviation")
    )
    one, band = measured.get(key), bands.get(key)
    return OutOfBand(
        name=visible(name),
        slice=visible(of_slice),
        measured="" if value is None else show(value),
        expected="" if expected is None else show(expected),
        source="" if band is None else f"from {band.expected.result.samples or 0:,} past windows",
        between=rows.between_text(show, lower, upper),
        deviation="" if deviation is None else deviation_text(deviation),
        spark=None if one is None else with_band(rows.metric_row(one, now), one, bands).spark,
    )


def _shown(shown: int, value: float | None) -> str:
    """The number of series in the table, and of all if the table does not have all.

    >>> _shown(1, 1.0), _shown(20, 37.0)
    ('1 series', '20 of 37 series')
    """
    out = int(value or 0)
    return f"{shown:,} of {out:,} series" if out > shown else f"{shown:,} series"


def _empty(series: Series) -> str:
    """Why the newest window has no series to show."""
    result = series.result
    if result.evidence:
        return ""
    if result.status is Status.NO_DATA:
        return "It could not be checked in this window."
    if result.status is not Status.OK:
        return "This window could not be compared with the past."
    if result.value:
        return "Series fit this cause in this window, but another cause explains them."
    return "It was checked in this window, and not found."
