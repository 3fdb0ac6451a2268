"""One series as one row of a table: a rule, an objective, a metric, or a slice of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol
from urllib.parse import quote, urlencode

from monitor.anomalies.specs import DEVIATION
from monitor.catalogue import ALL_SPECS
from monitor.core.json_value import iso
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.core.text import encodable, visible
from monitor.forecast.specs import ROLE_LABEL, USED
from monitor.history.snapshot import RuleInfo, Series, Violation
from monitor.metrics.family import MODEL_LABEL
from monitor.report import numbers
from monitor.report.sparkline import sparkline
from monitor.report.views import Lately, SeriesRow, TimeView, Verdict

MEASURED: Final = Verdict("measured", "measured")
_WORDS: Final = {status: status.value.replace("_", " ") for status in Status}
_SLICE_LABELS: Final = ("dimension", "value")
BAD_VALUES: Final = "log_bad_values"  # counted, and judged by nobody
_BARE_LABELS: Final = ("by", "log", "part")  # shown without their name


def verdict(status: Status) -> Verdict:
    return Verdict(status.value, _WORDS[status])


def shown_verdict(result: Result, standing: Status) -> Verdict:
    """The verdict on a result. What nobody judges is measured, and never ok.

    >>> from dataclasses import replace
    >>> gini = Result(metric="gini", status=Status.OK, definition="1", value=0.4)
    >>> shown_verdict(gini, Status.OK).word, shown_verdict(replace(gini, threshold=0.5), Status.OK).word
    ('measured', 'ok')
    """
    return verdict(standing) if standing is not Status.OK or is_judged(result) else MEASURED


def moment(time: datetime, now: datetime) -> TimeView:
    utc = time.astimezone(UTC)
    return TimeView(f"{utc:%Y-%m-%dT%H:%M:%SZ}", numbers.moment(utc), numbers.age(utc, now))


def recommender_href(name: str) -> str:
    return f"recommenders/{in_address(name)}"


def in_address(text: str) -> str:
    """A text as one part of an address.

    >>> in_address("a/b ?")
    'a%2Fb%20%3F'
    """
    return quote(text, safe="", errors="replace")


def rule_href(recommender: str, rule: str) -> str:
    """The address of a rule's evidence.

    >>> rule_href("shop", "no <b>/ items")
    'recommenders/shop/rules/no%20%3Cb%3E%2F%20items'
    """
    return f"{recommender_href(recommender)}/rules/{in_address(rule)}"


class OfSeries(Protocol):
    """A result, or a stored series."""

    @property
    def kind(self) -> ResultKind: ...

    @property
    def metric(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...


def series_href(recommender: str, one: OfSeries) -> str:
    """The address of the past of a series; that of a rule is the page of the rule."""
    if one.kind is ResultKind.RULE:
        return rule_href(recommender, one.labels.get("rule", ""))
    return metric_href(recommender, one.metric, one.labels)


def metric_href(recommender: str, metric: str, labels: Mapping[str, str]) -> str:
    """The address of the past of the series of a metric that have these labels.

    >>> metric_href("shop", "ndcg", {"k": "5", "by": "macro"})
    'recommenders/shop/metrics/ndcg?label=by%3Dmacro&label=k%3D5'
    """
    named = [("label", encodable(f"{name}={value}")) for name, value in sorted(labels.items())]
    query = f"?{urlencode(named)}" if named else ""
    return f"{recommender_href(recommender)}/metrics/{in_address(metric)}{query}"


def window_href(recommender: str, window: Window) -> str:
    """The address of all results of a window.

    >>> from datetime import timedelta
    >>> window_href("shop", Window.of(datetime(2026, 3, 1, 10, tzinfo=UTC), timedelta(hours=1)))
    'recommenders/shop/windows/2026-03-01T10:00:00Z?to=2026-03-01T11:00:00Z'
    """
    return f"{recommender_href(recommender)}/windows/{iso(window.start)}?to={iso(window.end)}"


def value_name(value: str) -> str:
    """The shown name of a value that a log has. One of blanks alone is in quotes, or nobody could see it.

    >>> value_name("home"), value_name(" "), value_name("")
    ('home', '" "', '""')
    """
    return value if value.strip() else f'"{value}"'


def slice_name(dimension: str, value: str) -> str:
    """The shown name of a slice.

    >>> slice_name("scene", "home"), slice_name("scene", "")
    ('scene = home', 'scene = ""')
    """
    return f"{dimension} = {value_name(value)}"


def model_name(model: str) -> str:
    """The shown name of a model. A log with one model need not name it.

    >>> model_name("v1"), model_name(""), model_name(" ")
    ('v1', '(no name)', '" "')
    """
    return value_name(model) if model else "(no name)"


def is_rule(result: Result) -> bool:
    return result.kind is ResultKind.RULE


def is_judged(result: Result) -> bool:
    """Whether anybody has said what this result must be. Otherwise it is only measured."""
    if result.kind is ResultKind.LOG:
        return result.metric != BAD_VALUES
    judged = (ResultKind.RULE, ResultKind.GAP, ResultKind.DRIFT, ResultKind.ANOMALY, ResultKind.SUBSTITUTION)
    used = result.kind is ResultKind.FORECAST and result.labels.get(ROLE_LABEL) == USED
    return result.threshold is not None or result.kind in judged or used or result.metric == DEVIATION.name


def is_slice(result: Result) -> bool:
    return "dimension" in result.labels


def is_of_model(result: Result) -> bool:
    return result.kind.is_of_models and not is_slice(result)


def is_of_bands(result: Result) -> bool:
    """Whether the result is about the past of other series: a band, a drift or a cause."""
    return result.kind.is_of_the_past


def has_objective(result: Result) -> bool:
    return not is_rule(result) and not is_slice(result) and result.threshold is not None


def shower(metric: str) -> Callable[[float], str]:
    """The format of this metric's values: shares as percentages, all others as plain numbers."""
    spec = ALL_SPECS.get(metric)
    if spec is None or not spec.unit:
        return numbers.number
    return numbers.share if spec.unit == "ratio" else lambda value: f"{numbers.number(value)} {spec.unit}"


def shower_of(result: Result) -> Callable[[float], str]:
    """The format of this result's values. The value of a rule is a share."""
    return numbers.share if is_rule(result) else shower(result.metric)


def rule_row(series: Series, now: datetime, *, drawn: bool = True) -> SeriesRow:
    """The row of a rule; without its sparkline if it is not `drawn`."""
    labels = series.result.labels
    rule = labels.get("rule", "")
    parts = [labels.get("kind", ""), series.result.severity or ""]
    parts += [slice_name(labels["dimension"], labels.get("value", ""))] if is_slice(series.result) else []
    return _row(
        series,
        now,
        name=rule,
        note=", ".join(part for part in parts if part),
        href=rule_href(series.recommender, rule),
        drawn=drawn,
    )


def pending_row(recommender: str, info: RuleInfo) -> SeriesRow:
    """A rule of the config that has not judged any window yet."""
    return SeriesRow(
        name=visible(info.rule),
        note=info.kind.value,
        verdict=verdict(Status.NO_DATA),
        last=None,
        value="",
        bound="",
        counted="",
        interval="",
        samples="",
        since=None,
        spark=None,
        detail="not judged yet",
        href=rule_href(recommender, info.rule),
    )


def objective_row(
    series: Series, now: datetime, *, drawn: bool = True, with_slice: bool = False
) -> SeriesRow:
    """The row of a metric with a bound; without its sparkline if it is not `drawn`."""
    own, labels = _own(series.result), series.result.labels
    by = "by " if "by" in labels or series.result.kind is ResultKind.LOG else ""
    note = f"{by}{own}" if own else ""
    if with_slice and is_slice(series.result):
        of_slice = slice_name(labels["dimension"], labels.get("value", ""))
        note = f"{note}, {of_slice}" if note else of_slice
    return _row(series, now, name=series.result.metric, note=note, href=_past_href(series), drawn=drawn)


def named_row(series: Series, now: datetime, *, name: str, note: str = "", href: str = "") -> SeriesRow:
    """The row of a series under another name than its metric."""
    return _row(series, now, name=name, note=note, href=href)


def metric_row(series: Series, now: datetime) -> SeriesRow:
    """A row within its metric's group, named by the labels that differ within the group."""
    return _row(series, now, name=_own(series.result), note="", href=_past_href(series))


def _own(result: Result) -> str:
    """The labels that distinguish a series from others of its metric.

    >>> _own(Result(metric="recall", labels={"k": "10", "by": "macro"}, status=Status.OK, definition="1"))
    'macro, k 10'
    """
    own = [
        (key, model_name(text) if key == MODEL_LABEL else text)
        for key, text in result.labels.items()
        if key not in _SLICE_LABELS
    ]
    bare = [text for key, text in own if key in _BARE_LABELS]
    return ", ".join([*bare, *(f"{key} {text}" for key, text in own if key not in _BARE_LABELS)])


def slice_row(series: Series, now: datetime) -> SeriesRow:
    result = series.result
    name = f"{result.metric} {_own(result)}".strip()
    return _row(
        series, now, name=value_name(result.labels.get("value", "")), note=name, href=_past_href(series)
    )


def _past_href(series: Series) -> str:
    return series_href(series.recommender, series.result)


def is_over(series: Series) -> bool:
    """Whether a rule was violated in one of the recent windows and is ok again."""
    return series.standing is Status.OK and series.violation is not None


def lately(series: Series, now: datetime) -> Lately:
    """The row of a violation that is over."""
    assert series.violation is not None
    violated = series.violation.result
    row = rule_row(series, now)
    counted = f"{numbers.count(violated.violations or 0)} of {numbers.count(violated.samples or 0)}"
    return Lately(row.name, row.href, counted, moment(series.violation.window.start, now))


def evidence_source(series: Series) -> Violation | None:
    """The newest window with evidence: the last one, else the last one that was violated."""
    return Violation(series.window, series.result) if series.result.evidence else series.violation


def interval_text(result: Result) -> str:
    """The interval, empty if there is none."""
    return between_text(shower_of(result), result.lower, result.upper)


def between_text(show: Callable[[float], str], lower: float | None, upper: float | None) -> str:
    """Two bounds, empty if one is missing.

    >>> between_text(shower("gini"), 0.1, 0.25), between_text(shower("gini"), None, 0.25)
    ('0.1 to 0.25', '')
    """
    if lower is None or upper is None:
        return ""
    return f"{show(lower)} to {show(upper)}"


def _row(
    series: Series, now: datetime, *, name: str, note: str, href: str = "", drawn: bool = True
) -> SeriesRow:
    result = series.result
    show = shower_of(result)
    counted = ""
    if result.violations is not None:
        counted = numbers.count(result.violations)
        counted += f" of {numbers.count(result.samples)}" if result.samples is not None else ""
    standing = series.standing
    return SeriesRow(
        name=visible(name),
        note=visible(note),
        verdict=shown_verdict(result, standing),
        last=None if result.status is standing else verdict(result.status),
        value="" if result.value is None else show(result.value),
        bound=bound_text(result, show),
        counted=counted,
        interval=interval_text(result),
        samples="" if result.samples is None else numbers.count(result.samples),
        since=moment(series.since, now),
        spark=sparkline(series.past, show, result.threshold) if drawn else None,
        detail=visible(result.detail),
        href=href,
        evidence=len(result.evidence) or len(series.violation.result.evidence if series.violation else ()),
    )


def bound_text(result: Result, show: Callable[[float], str]) -> str:
    if result.threshold is None:
        return ""
    if is_rule(result) and result.threshold == 0:
        return "none allowed"
    below = result.bound == "min"
    if result.clear is not None:
        side = "below" if below else "above"
        return f"fires {side} {show(result.threshold)}, clears at {show(result.clear)}"
    return f"{'at least' if below else 'at most'} {show(result.threshold)}"
