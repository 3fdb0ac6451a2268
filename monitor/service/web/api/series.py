"""The answers on series and results: those of the last windows, of one window, and of a span of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from monitor.anomalies.specs import DEVIATION, EXPECTED
from monitor.catalogue import ALL_SPECS
from monitor.core.json_value import iso
from monitor.core.results import Result, Window
from monitor.core.text import encodable
from monitor.history import schema
from monitor.history.browse import (
    RowKey,
    SeriesKey,
    Span,
    StoredRow,
    results_at,
    rows_of,
    series_named,
    spans_of_violations,
    windows_near,
)
from monitor.history.snapshot import RecommenderState, Series
from monitor.report.bands import Bands, Key, bands_of, key_named, key_of
from monitor.service.web.api.answers import (
    BandAnswer,
    HistoryAnswer,
    PageOf,
    PointAnswer,
    ResultAnswer,
    SeriesAnswer,
    ViolatedSpan,
)
from monitor.service.web.api.context import (
    Context,
    band_answer,
    missing,
    newest_band,
    result_answer,
)
from monitor.service.web.api.paging import cursor_of, page_of, read_cursor, wrong_cursor
from monitor.service.web.api.parameters import HistoryQuery, ResultsQuery, SeriesQuery
from monitor.service.web.api.refusal import Refusal

DEFAULT_SPAN: Final = timedelta(days=7)
_Row = tuple[str, Window, Result]


def series(context: Context, asked: SeriesQuery, recommender: str) -> PageOf[SeriesAnswer]:
    """Every series of a recommender, with its last result and since when it is as it is."""
    state = context.state(recommender)
    known = bands_of(state.series)
    return page_of(
        [
            one
            for one in state.series
            if asked.takes(one.check, one.result.kind, one.result.metric, one.result.labels)
            and asked.standing in (None, one.standing)
        ],
        asked,
        key=lambda one: _key(one.check, one.result),
        shown=lambda one: series_answer(context, one, known),
    )


def series_answer(context: Context, series: Series, known: Bands) -> SeriesAnswer:
    """A series and its last result."""
    result = series.result
    spec = ALL_SPECS.get(result.metric)
    return SeriesAnswer(
        recommender=encodable(series.recommender),
        check=series.check,
        kind=result.kind,
        metric=encodable(result.metric),
        labels={encodable(name): encodable(value) for name, value in result.labels.items()},
        unit="" if spec is None else spec.unit,
        standing=series.standing,
        since=series.since,
        excused=series.excused,
        result=newest(series),
        band=newest_band(series.window, known.get(key_of(result))),
        page_url=context.links.page(series.recommender, result),
        history_url=context.links.history(series.recommender, series.check, result),
    )


def newest(series: Series) -> ResultAnswer:
    """The last result of a series."""
    return result_answer(series.recommender, series.check, series.window, series.result)


def results(context: Context, asked: ResultsQuery, recommender: str) -> PageOf[ResultAnswer]:
    """The results of the last window of each check, or of the windows that start at a time."""
    state = context.state(recommender)
    if asked.window_start is None and asked.window_end is not None:
        detail = "window_end is given without window_start."
        raise Refusal(400, detail, parameter="window_start", expected="the start of the window")
    if asked.window_start is None:
        found: Iterable[_Row] = ((one.check, one.window, one.result) for one in state.series)
    else:
        found = _of_window(context, state, asked.window_start, asked.window_end)
    return page_of(
        [
            (check, window, result)
            for check, window, result in found
            if asked.takes(check, result.kind, result.metric, result.labels)
            and asked.status in (None, result.status)
        ],
        asked,
        key=lambda one: (schema.microseconds(one[1].end), *_key(one[0], one[2])),
        shown=lambda one: result_answer(state.name, *one),
    )


def _of_window(
    context: Context, state: RecommenderState, start: datetime, end: datetime | None
) -> list[_Row]:
    with context.store.reading() as connection:
        found = results_at(connection, state.name, start, end)
        if found is not None:
            return found
        near = windows_near(connection, state.name, start)
    shown = [f"{iso(one.start)} to {iso(one.end)}" for one in near]
    when = iso(start) + ("" if end is None else f" and ends at {iso(end)}")
    raise Refusal(404, f"No judged window starts at {when}. `exists` has those beside it.", exists=shown)


def history(context: Context, asked: HistoryQuery, recommender: str, metric: str) -> HistoryAnswer:
    """The results of a metric in a span of time, the oldest first, with bands and violations."""
    state = context.state(recommender)
    end = asked.end
    last = end or (state.last_window.end if state.last_window is not None else context.now)
    start = asked.begin or last - DEFAULT_SPAN
    with context.store.reading() as connection:
        wanted = wanted_series(connection, state.name, metric, asked)
        checks = {key.check for key in wanted.values()}
        after = None if asked.cursor is None else _place(asked.cursor)
        found = list(
            islice(rows_of(connection, state.name, wanted, checks, start, end, after), asked.limit + 1)
        )
        page = found[: asked.limit]
        known = _bands(connection, state.name, page)
        spans = spans_of_violations(connection, state.name, list(wanted))
    return HistoryAnswer(
        violations=[_violated(one, wanted[one.series_id]) for one in spans if overlaps(one, start, end)],
        data=[_point(state.name, row, known) for row in page],
        next_cursor=_cursor(page[-1].key) if len(found) > len(page) else None,
    )


def overlaps(span: Span, start: datetime | None, end: datetime | None) -> bool:
    """Whether a violation lasted in [start, end); None: no bound."""
    return (end is None or span.since < end) and (start is None or span.end is None or span.end > start)


def _violated(span: Span, key: SeriesKey) -> ViolatedSpan:
    return ViolatedSpan(
        check=span.check,
        labels={encodable(name): encodable(value) for name, value in key.labels.items()},
        since=span.since,
        until=span.until,
        windows=span.count,
    )


def wanted_series(
    connection: Connection, recommender: str, metric: str, asked: HistoryQuery
) -> Mapping[int, SeriesKey]:
    """The stored series of a metric that are asked for; Refusal if there is none."""
    known = series_named(connection, recommender)
    named = {number: key for number, key in known.items() if encodable(key.metric) == metric}
    if not named:
        raise missing("series of the metric", metric, sorted({key.metric for key in known.values()}))
    wanted = {
        number: key
        for number, key in named.items()
        if asked.check in (None, key.check) and asked.has_labels(key.labels)
    }
    if wanted:
        return wanted
    shown = {" ".join(f"label={name}={value}" for name, value in sorted(key.labels.items()))
             for key in named.values()}  # fmt: skip
    detail = f"No series of {metric} has this check and these labels. `exists` has the labels of its series."
    raise Refusal(404, detail, exists=sorted(shown))


def _bands(
    connection: Connection, recommender: str, page: Sequence[StoredRow]
) -> Mapping[tuple[Window, Key], BandAnswer]:
    """The bands of these results, by window and series."""
    keys = {key_of(row.result) for row in page if not row.result.kind.is_of_the_past}
    if not keys:
        return {}
    wanted = {
        number: key
        for metric in (EXPECTED.name, DEVIATION.name)
        for number, key in series_named(connection, recommender, metric=metric).items()
        if key_named(key.labels) in keys
    }
    if not wanted:
        return {}
    start, end = (min(row.window.start for row in page), max(row.window.end for row in page))
    found: dict[str, dict[tuple[Window, Key], Result]] = {EXPECTED.name: {}, DEVIATION.name: {}}
    checks = {key.check for key in wanted.values()}
    for row in rows_of(connection, recommender, wanted, checks, start, end):
        found[row.result.metric][row.window, key_named(row.result.labels)] = row.result
    deviations = found[DEVIATION.name]
    return {place: band_answer(one, deviations.get(place)) for place, one in found[EXPECTED.name].items()}


def _point(recommender: str, row: StoredRow, known: Mapping[tuple[Window, Key], BandAnswer]) -> PointAnswer:
    result = result_answer(recommender, row.check, row.window, row.result)
    band = None if row.result.kind.is_of_the_past else known.get((row.window, key_of(row.result)))
    return PointAnswer(**{name: getattr(result, name) for name in result.model_fields_set}, band=band)


def _key(check: str, result: Result) -> tuple[str, str, str]:
    return check, encodable(result.metric), schema.canonical(dict(result.labels))


def _cursor(key: RowKey) -> str:
    end, start, check, number = key
    return cursor_of((schema.microseconds(end), schema.microseconds(start), check, number))


def _place(cursor: str) -> RowKey:
    end, start, check, number = read_cursor(cursor, [int, int, str, int])
    try:
        times = [schema.from_microseconds(int(one)) for one in (end, start)]
    except OverflowError:
        raise wrong_cursor() from None
    return RowKey(times[0], times[1], str(check), int(number))
