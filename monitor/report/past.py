"""The past of a metric, a rule, a slice, an experiment or a model: pictures, a table, and all violations.

The span of time is in the address. Only the results of the asked series are read from the history.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from sqlalchemy import Connection

from monitor.anomalies.specs import DEVIATION, EXPECTED
from monitor.catalogue import ALL_SPECS
from monitor.core.json_value import iso
from monitor.core.results import ResultKind, Status, Window
from monitor.core.text import encodable, plural, visible
from monitor.experiments.specs import EXPERIMENT
from monitor.history.browse import SeriesKey, StoredRow, rows_of, series_named
from monitor.history.snapshot import RecommenderState
from monitor.metrics.family import MODEL_LABEL
from monitor.report import numbers, rows
from monitor.report.bands import key_named, series_key
from monitor.report.judged import title
from monitor.report.past_violations import PastViolation, past_violations
from monitor.report.period_trends import rank
from monitor.report.trend import HEIGHT, WIDTH, Timed, TimeSeries, Trend, gather, trend
from monitor.report.views import Verdict

WEEK: Final = timedelta(days=7)
MOST_WINDOWS: Final = 2000
WIDE, TALL = 1040, 240
_MOST_PICTURES: Final = 24
_MOST_NAMES: Final = 200
_WINDOWS: Final = (28, 400)  # at least, at most, in the default span


@dataclass(frozen=True, slots=True)
class Selection:
    """Which series are asked for, and of which time.

    Attributes:
        metric: None: every metric that has the labels.
        labels: what a series must have all of, or all of another of these; it may have others.
        query: the labels and the check as they stand in the query of the address.
        check: None: any check.
        sliced: whether series of slices belong to it, where the labels name no slice; None: both.
        start, end: None: the newest windows.
    """

    metric: str | None = None
    labels: Sequence[Mapping[str, str]] = ({},)
    query: tuple[tuple[str, str], ...] = ()
    check: str | None = None
    sliced: bool | None = False
    start: datetime | None = None
    end: datetime | None = None

    def takes(self, key: SeriesKey) -> bool:
        """Whether a stored series is asked for."""
        known = {encodable(name): encodable(value) for name, value in key.labels.items()}
        return (
            not key.kind.is_of_the_past
            and self.metric in (None, encodable(key.metric))
            and self.check in (None, key.check)
            and any(
                own.items() <= known.items()
                and ("dimension" in own or self.sliced in (None, "dimension" in known))
                for own in self.labels
            )
        )

    def href(self, start: datetime, end: datetime, **more: str) -> str:
        """The address of the same series over another span."""
        asked = [*self.query, ("from", iso(start)), ("to", iso(end)), *more.items()]
        return f"?{urlencode(asked)}"


@dataclass(frozen=True, slots=True)
class Picture:
    """One series: its newest verdict and value, and its trend, or why there is none."""

    name: str
    href: str
    verdict: Verdict
    value: str
    trend: Trend | None
    lacking: str
    compared: str = ""


@dataclass(frozen=True, slots=True)
class PastRow:
    """One window of one series. What does not apply is empty."""

    window: str
    href: str
    value: str
    expected: str
    interval: str
    samples: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a metric is and how to read it."""

    help: str
    formula: str
    answers: str
    misleads: str


@dataclass(frozen=True, slots=True)
class SpanLink:
    text: str
    href: str
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """The past of the asked series.

    Attributes:
        span: the shown span in words.
        first, last: the ends of the span, for the form.
        query: the hidden fields of the form.
        spans: other spans to look at.
        cut: why not the whole span is shown.
        around: pages on what the single series belongs to.
        pictures: of the most important series.
        others: the names and addresses of series without a picture; `unnamed` is how many further there are.
        table: of a single series, the newest window first.
        violations: the newest first; `older` is how many are not shown.
        csv: the address of the same numbers.
        meaning: of a metric.
    """

    span: str
    first: str
    last: str
    query: tuple[tuple[str, str], ...]
    spans: tuple[SpanLink, ...]
    cut: str
    around: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...]
    others: tuple[tuple[str, str], ...]
    unnamed: int
    table: tuple[PastRow, ...]
    violations: tuple[PastViolation, ...]
    older: int
    csv: str
    meaning: Meaning | None

    @property
    def is_alone(self) -> bool:
        """Whether this is the page of one series."""
        return len(self.pictures) == 1 and not self.others


def past_of(connection: Connection, state: RecommenderState, chosen: Selection, now: datetime) -> Past | None:
    """The past of the asked series, None if the history has no such series.

    Args:
        connection: to the history.
        state: of the recommender.
        chosen: which series, and of which time.
        now: the time on the clock.
    """
    keys = series_named(connection, state.name)
    wanted = {number: key for number, key in keys.items() if chosen.takes(key)}
    if not wanted:
        return None
    span, cut = span_of(state, chosen, now)
    is_alone = len(wanted) == 1
    earlier = Window(span.start - WEEK, span.end - WEEK) if is_alone else None
    found = list(
        _results(connection, state, keys, wanted, span.start if earlier is None else earlier.start, span.end)
    )
    series = gather(one for one in found if one.window.start >= span.start)
    drawn = sorted(series.values(), key=rank)
    before = [] if earlier is None else [one for one in found if one.window.end <= earlier.end]
    if chosen.start is None and found and not before:
        span = _from(min(one.window.start for one in found), span)
    shown = [_picture(state.name, one, span, before, is_alone=is_alone) for one in drawn[:_MOST_PICTURES]]
    drawn_keys = {series_key(one.newest.metric, one.newest.labels) for one in drawn[:_MOST_PICTURES]}
    left = [key for key in wanted.values() if series_key(key.metric, key.labels) not in drawn_keys]
    if is_alone:  # it would lead to this page
        left = []
    violations, older = past_violations(
        connection, state.name, {**wanted, **_bands(keys, wanted, DEVIATION.name)}, span
    )
    return Past(
        span=numbers.window(span),
        first=f"{span.start:%Y-%m-%dT%H:%M}",
        last=f"{span.end:%Y-%m-%dT%H:%M}",
        query=chosen.query,
        spans=tuple(_spans(state, chosen, span)),
        cut=cut,
        around=tuple(_around(state.name, *wanted.values(), span=span)) if is_alone else (),
        pictures=tuple(shown),
        others=tuple((visible(_name(key)), _href(state.name, key, span)) for key in left[:_MOST_NAMES]),
        unnamed=max(0, len(left) - _MOST_NAMES),
        table=tuple(_rows(state.name, drawn[0])) if is_alone and drawn else (),
        violations=violations,
        older=older,
        csv=chosen.href(span.start, span.end, format="csv"),
        meaning=_meaning(chosen.metric),
    )


def span_of(state: RecommenderState, chosen: Selection, now: datetime) -> tuple[Window, str]:
    """The span that is shown, and why it is shorter than the asked one."""
    newest = state.last_window
    length = timedelta(hours=1) if newest is None else newest.length
    end = chosen.end or (now if newest is None else newest.end)
    least, most = (count * length for count in _WINDOWS)
    start = chosen.start or end - max(min(WEEK, most), least)
    if start >= end:  # it begins after all windows, and no end is asked for
        end = start + length
    if (end - start) / length <= MOST_WINDOWS:
        return Window(start, end), ""
    return Window(
        end - MOST_WINDOWS * length, end
    ), f"The newest {MOST_WINDOWS:,} windows of the span are shown."


def _from(first: datetime, span: Window) -> Window:
    """The span without the time before the first result, which nobody asked for; at least a quarter of it."""
    return Window(max(span.start, min(first, span.end - span.length / 4)), span.end)


def results_of(
    connection: Connection, state: RecommenderState, chosen: Selection, now: datetime
) -> list[StoredRow] | None:
    """The stored results of the asked series and of their bands, oldest first; None if there is none."""
    keys = series_named(connection, state.name)
    wanted = {number: key for number, key in keys.items() if chosen.takes(key)}
    span, _ = span_of(state, chosen, now)
    return list(_results(connection, state, keys, wanted, span.start, span.end)) if wanted else None


def _results(
    connection: Connection,
    state: RecommenderState,
    keys: Mapping[int, SeriesKey],
    wanted: Mapping[int, SeriesKey],
    start: datetime,
    end: datetime,
) -> Iterable[StoredRow]:
    every = {**wanted, **_bands(keys, wanted, EXPECTED.name, DEVIATION.name)}
    return rows_of(connection, state.name, every, {key.check for key in every.values()}, start, end)


def _bands(
    keys: Mapping[int, SeriesKey], wanted: Mapping[int, SeriesKey], *metrics: str
) -> dict[int, SeriesKey]:
    """The stored series of these metrics that say something of the wanted ones."""
    named = {series_key(key.metric, key.labels) for key in wanted.values()}
    return {
        number: key
        for number, key in keys.items()
        if key.metric in metrics and key_named(key.labels) in named
    }


def _picture(
    recommender: str,
    series: TimeSeries,
    span: Window,
    before: Sequence[Timed],
    *,
    is_alone: bool,
) -> Picture:
    newest = series.newest
    show = rows.shower_of(newest)
    earlier = {
        one.window.start + one.window.length / 2 + WEEK: one.result.value
        for one in before
        if one.result.value is not None and not one.result.kind.is_of_the_past
    }
    width, height = (WIDE, TALL) if is_alone else (WIDTH, HEIGHT)
    drawn = trend(series, span, width=width, height=height, before=earlier, is_large=is_alone)
    return Picture(
        name=visible(title(newest)),
        href="" if is_alone else _href(recommender, newest, span),
        verdict=_verdict(series),
        value="" if newest.value is None else show(newest.value),
        trend=drawn,
        lacking="" if drawn else visible(newest.detail) or "No window of this span has a value.",
        compared=_compared(series.values, list(earlier.values()), show) if is_alone and drawn else "",
    )


def _verdict(series: TimeSeries) -> Verdict:
    last = series.results[-1]
    if last.window in series.broken and last.result.status is not Status.VIOLATED:
        return Verdict(Status.VIOLATED.value, "out of its band")
    return rows.shown_verdict(last.result, last.result.status)


def _name(key: SeriesKey) -> str:
    """
    >>> from monitor.core.results import ResultKind
    >>> _name(SeriesKey("exposure", "coverage", {"by": "pv"}, ResultKind.METRIC))
    'coverage by=pv'
    """
    return " ".join([key.metric, *(f"{name}={value}" for name, value in sorted(key.labels.items()))])


def _href(recommender: str, one: rows.OfSeries, span: Window) -> str:
    """The address of a series over the same span."""
    path = rows.series_href(recommender, one)
    return f"{path}{'&' if '?' in path else '?'}from={iso(span.start)}&to={iso(span.end)}"


def _around(recommender: str, key: SeriesKey, *, span: Window) -> Iterator[tuple[str, str]]:
    """Names and addresses of the metric, slice, model and experiment that a series belongs to."""
    home, labels = rows.recommender_href(recommender), key.labels
    when = f"?from={iso(span.start)}&to={iso(span.end)}"
    if key.labels and key.kind is not ResultKind.RULE:
        yield f"all {visible(key.metric)}", f"{rows.metric_href(recommender, key.metric, {})}{when}"
    if "dimension" in labels:
        place = f"{rows.in_address(labels['dimension'])}/{rows.in_address(labels.get('value', ''))}"
        name = rows.slice_name(labels["dimension"], labels.get("value", ""))
        yield f"all of {visible(name)}", f"{home}/slices/{place}{when}"
    for label, folder in ((EXPERIMENT, "experiments"), (MODEL_LABEL, "models")):
        if label in labels:
            name = visible(rows.model_name(labels[label]) if label == MODEL_LABEL else labels[label])
            yield f"{label} {name}", f"{home}/{folder}/{rows.in_address(labels[label])}{when}"


def _compared(now: Sequence[float], before: Sequence[float], show: Callable[[float], str]) -> str:
    """The mean of this span beside that of a week before; empty without values.

    The numbers of windows are given if they differ, as where the history begins within the week before.

    >>> show = rows.shower("gini")
    >>> _compared([2.0, 4.0], [1.0, 3.0], show).replace("\xa0", " ")
    'Mean 3, a week before 2 (+50 %). Nothing says here whether that is more than chance.'
    >>> _compared([2.0, 4.0], [2.0], show).replace("\xa0", " ").split(". ")[0]
    'Mean 3 of 2 windows, a week before 2 of 1 window (+50 %)'
    """
    known = [value for value in before if math.isfinite(value)]
    if not known:
        return ""
    mean, earlier = math.fsum(now) / len(now), math.fsum(known) / len(known)
    change = f" ({numbers.signed_share(mean / earlier - 1)})" if earlier > 0 else ""
    differ = len(known) != len(now)
    of, of_earlier = (f" of {plural(len(one), 'window')}" if differ else "" for one in (now, known))
    return (
        f"Mean {show(mean)}{of}, a week before {show(earlier)}{of_earlier}{change}. "
        "Nothing says here whether that is more than chance."
    )


def _spans(state: RecommenderState, chosen: Selection, span: Window) -> Iterator[SpanLink]:
    """A day, a week and four weeks up to the end of the span, and the spans beside it."""
    newest = span.end if state.last_window is None else max(state.last_window.end, span.end)
    for text, length in (("1 day", timedelta(days=1)), ("7 days", WEEK), ("28 days", 4 * WEEK)):
        yield SpanLink(text, chosen.href(span.end - length, span.end), length == span.length)
    yield SpanLink("earlier", chosen.href(span.start - span.length, span.start))
    if span.end < newest:
        last = min(newest, span.end + span.length)
        yield SpanLink("later", chosen.href(last - span.length, last))
        yield SpanLink("newest", chosen.href(newest - span.length, newest))


def _rows(recommender: str, series: TimeSeries) -> Iterator[PastRow]:
    for one in reversed(series.results):
        result, expected = one.result, series.expected.get(one.window)
        show = rows.shower_of(result)
        yield PastRow(
            window=numbers.window(one.window),
            href=rows.window_href(recommender, one.window),
            value="" if result.value is None else show(result.value),
            expected="" if expected is None else rows.between_text(show, expected.lower, expected.upper),
            interval=rows.interval_text(result),
            samples="" if result.samples is None else numbers.count(result.samples),
            verdict=rows.shown_verdict(result, series.status(one)),
            detail=visible(result.detail),
        )


def _meaning(metric: str | None) -> Meaning | None:
    spec = ALL_SPECS.get(metric or "")
    return None if spec is None else Meaning(spec.help, spec.formula, spec.answers, spec.misleads)
