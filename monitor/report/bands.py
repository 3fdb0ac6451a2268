"""The band of a series: its expected values beside the measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from monitor.anomalies.specs import BY_LABEL, DEVIATION, EXPECTED, METRIC_LABEL, OF_LABEL, written_of
from monitor.core.results import Result, Status
from monitor.core.text import visible
from monitor.history.snapshot import Series
from monitor.report import rows
from monitor.report.sparkline import Around, sparkline
from monitor.report.views import BandView, SeriesRow

Key = tuple[str, str, str, str, str]  # metric, by, of, dimension, value
_NAMED: Final = (METRIC_LABEL, BY_LABEL, OF_LABEL, "dimension", "value")


@dataclass(frozen=True, slots=True)
class Band:
    """The expected values of one series, and its deviation from them if the band is known."""

    expected: Series
    deviation: Series | None


Bands = Mapping[Key, Band]


def key_of(result: Result) -> Key:
    """The key of the series of a measured result.

    >>> key_of(Result(metric="ndcg", labels={"k": "5", "by": "macro"}, status=Status.OK, definition="1"))
    ('ndcg', 'macro', 'k=5', '', '')
    """
    return series_key(result.metric, result.labels)


def series_key(metric: str, labels: Mapping[str, str]) -> Key:
    """The key of the series with this metric and these labels."""
    place = (labels.get("dimension", ""), labels.get("value", ""))
    return (metric, labels.get(BY_LABEL, ""), written_of(labels), *place)


def key_named(labels: Mapping[str, Any]) -> Key:
    """The key of the series that the labels of a band, or a row of evidence, name.

    >>> key_named({"metric": "volume", "by": "users", "of": "", "dimension": "scene", "value": None})
    ('volume', 'users', '', 'scene', '')
    """
    metric, by, of, dimension, value = (str(labels.get(name) or "") for name in _NAMED)
    return metric, by, of, dimension, value


def bands_of(series: Iterable[Series]) -> Bands:
    """The bands among a recommender's series, by the key of their series."""
    by_metric: dict[str, dict[Key, Series]] = {EXPECTED.name: {}, DEVIATION.name: {}}
    for one in series:
        if one.result.metric in by_metric:
            by_metric[one.result.metric][key_named(one.result.labels)] = one
    deviations = by_metric[DEVIATION.name]
    return {key: Band(expected, deviations.get(key)) for key, expected in by_metric[EXPECTED.name].items()}


def with_band(row: SeriesRow, series: Series, bands: Bands) -> SeriesRow:
    """The row with the band of its series, also in its sparkline. Unchanged if the series has no band."""
    band = bands.get(key_of(series.result))
    if band is None:
        return row
    show = rows.shower_of(series.result)
    shown = view(series, band)
    past = band.expected.past
    broken = {} if band.deviation is None else {one.window: one.status for one in band.deviation.past}
    around = Around(
        expected={one.window: one.value for one in past if one.value is not None},
        between={
            one.window: (one.lower, one.upper)
            for one in past
            if one.lower is not None and one.upper is not None
        },
        text=f"expected {shown.expected} ({shown.between})" if shown.between else "",
        broken=frozenset(window for window, status in broken.items() if status is Status.VIOLATED),
    )
    return replace(row, band=shown, spark=sparkline(series.past, show, series.result.threshold, around))


def view(series: Series, band: Band) -> BandView:
    """The band of the newest window, in the unit of the metric."""
    expected = band.expected.result
    deviation = band.deviation
    lacking = ""
    if band.expected.window != series.window:
        lacking = "this window has not been compared yet"
    elif expected.value is None:
        lacking = expected.detail or rows.verdict(expected.status).word
    if lacking:
        return BandView("", "", "", rows.verdict(Status.NO_DATA), visible(lacking))
    if deviation is not None and deviation.window != series.window:
        deviation = None
    distance = None if deviation is None else deviation.result.value
    return BandView(
        expected=rows.shower_of(series.result)(expected.value) if expected.value is not None else "",
        between=rows.between_text(rows.shower_of(series.result), expected.lower, expected.upper),
        deviation="" if distance is None else deviation_text(distance),
        verdict=rows.verdict(Status.NO_DATA if deviation is None else deviation.standing),
        lacking="",
    )


def deviation_text(deviation: float) -> str:
    """The distance of a value from the expected one, in standard deviations.

    >>> [deviation_text(z) for z in (7.31, -0.42, 0.02, -1234.5)]
    ['7.3 sd above', '0.4 sd below', 'as expected', '1,234 sd below']
    """
    size = abs(deviation)
    if size < 0.05:
        return "as expected"
    text = f"{size:,.0f}" if size >= 100 else f"{size:.1f}"
    return f"{text} sd {'above' if deviation > 0 else 'below'}"


def series_name(labels: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a series and its slice, if it is a series of a slice.

    >>> series_name({"metric": "ndcg", "by": "macro", "of": "event=click,k=5", "dimension": "scene"})
    ('ndcg by macro (event=click, k=5)', 'scene = ""')
    """
    metric, by, of, dimension, value = key_named(labels)
    name = metric + (f" by {by}" if by else "") + (f" ({of.replace(',', ', ')})" if of else "")
    return name, rows.slice_name(dimension, value) if dimension else ""
