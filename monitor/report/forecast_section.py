"""The section on forecasts: which metrics predict the business metrics, with the days as a scatter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, Final

from monitor.anomalies.specs import BY_LABEL, METRIC_LABEL, OF_LABEL
from monitor.core.results import Status
from monitor.core.text import visible
from monitor.forecast import specs
from monitor.forecast.days import REASONS
from monitor.forecast.study import Dot
from monitor.history.snapshot import Series
from monitor.report import numbers, rows
from monitor.report.scatter import Scatter
from monitor.report.views import ForecastPairView, ForecastTargetView, ForecastView, SeriesRow

ANCHOR: Final = "forecast"
"""The place of the section on a recommender's page."""


def forecast_view(series: Sequence[Series], now: datetime) -> ForecastView | None:
    """The section; None without results on forecasts."""
    if not series:
        return None
    pairs = [one for one in series if one.result.metric == specs.FORECAST_CORRELATION.name]
    records = {
        one.result.labels[specs.TARGET_LABEL]: one
        for one in series
        if one.result.metric == specs.FORECAST_CAME_TRUE.name
    }
    names = dict.fromkeys([*(one.result.labels[specs.TARGET_LABEL] for one in pairs), *records])
    return ForecastView(
        targets=tuple(
            ForecastTargetView(
                name=visible(name),
                pairs=tuple(
                    _pair(one, series, now) for one in _strongest_first(pairs) if _target(one) == name
                ),
                record=_record(records.get(name)),
            )
            for name in names
        ),
        days=_days(series),
        day=numbers.window(series[0].window),
    )


def forecast_attention(series: Sequence[Series], now: datetime) -> list[tuple[Series, SeriesRow]]:
    """The metrics that no longer predict; and the forecast itself where it failed."""
    vanished = [one for one in series if one.standing is Status.VIOLATED]
    failed = [
        one
        for one in series
        if one.standing is Status.ERROR
        and dict(one.result.labels) == {specs.REASON_LABEL: specs.USED}  # it has one in each run
    ]
    href = f"{rows.recommender_href(series[0].recommender)}#{ANCHOR}" if series else ""
    # The sentence says how the correlation has changed; that of all days would only confuse.
    return [(one, replace(_row(one, now, href), value="")) for one in vanished] + [
        (one, rows.named_row(one, now, name="forecast", href=href)) for one in failed
    ]


def _target(series: Series) -> str:
    return series.result.labels[specs.TARGET_LABEL]


def _strongest_first(pairs: Iterable[Series]) -> list[Series]:
    """Those that are used, then those that were tried, each with the strongest correlation first."""
    return sorted(
        pairs,
        key=lambda one: (
            one.result.labels[specs.ROLE_LABEL] != specs.USED,
            one.result.value is None,
            -abs(one.result.value or 0.0),
        ),
    )


def _pair(series: Series, every: Iterable[Series], now: datetime) -> ForecastPairView:
    own = dict(series.result.labels)
    others = {one.result.metric: one for one in every if dict(one.result.labels) == own}
    saved, error = others.get(specs.FORECAST_SKILL.name), others.get(specs.FORECAST_ERROR.name)
    return ForecastPairView(
        row=_row(series, now),
        saved="" if saved is None or saved.result.value is None else numbers.share(saved.result.value),
        error="" if error is None or error.result.value is None else numbers.number(error.result.value),
        picture=_picture(series.result.evidence),
    )


def _row(series: Series, now: datetime, href: str = "") -> SeriesRow:
    labels = series.result.labels
    parts = [labels.get(key, "") for key in (METRIC_LABEL, BY_LABEL, OF_LABEL)]
    return rows.named_row(
        series,
        now,
        name=" ".join(part for part in parts if part),
        note=f"{labels[specs.ROLE_LABEL]} to predict {_target(series)}",
        href=href,
    )


def _picture(evidence: Sequence[Mapping[str, Any]]) -> Scatter | None:
    """The stored days, and the line with its band; see `ForecastCheck`."""
    days = [
        Dot(date.fromisoformat(one["day"]), one["x"], one["y"], visible(one["model"]), one["reason"])
        for one in evidence
        if "day" in one
    ]
    band = [one for one in evidence if "lower" in one]
    line = [(one["x"], one["y"]) for one in (band[:1] + band[-1:])]
    return Scatter.of(days, line, [(one["x"], one["lower"], one["upper"]) for one in band])


def _record(series: Series | None) -> str:
    """How many forecasts came true."""
    if series is None:
        return ""
    result = series.result
    pending = f"; {visible(result.detail)}" if result.detail else ""
    if result.value is None:
        return f"Forecasts: {visible(result.detail)}."
    between = rows.interval_text(result)
    count = f"{round(result.value * (result.samples or 0))} of {numbers.count(result.samples or 0)}"
    return f"Forecasts: {count} came true ({between}){pending}."


def _days(series: Iterable[Series]) -> str:
    """Which days the section rests on."""
    counts: dict[str, Series] = {
        one.result.labels[specs.REASON_LABEL]: one
        for one in series
        if one.result.metric == specs.FORECAST_DAYS.name
    }
    used = counts.pop(specs.USED, None)
    if used is None or used.result.value is None:
        return "" if used is None else visible(used.result.detail)
    left_out = [
        f"{numbers.number(counts[reason].result.value or 0.0)} ({said})"
        for reason, said in REASONS.items()
        if reason in counts
    ]
    more = f"; left out: {', '.join(left_out)}" if left_out else ""
    known = numbers.count(used.result.samples or 0)
    return f"{numbers.number(used.result.value)} of {known} days are used{more}"
