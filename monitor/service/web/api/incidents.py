"""The answers on what went wrong: violations, anomalies, and the changes beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from monitor.anomalies.causes import CAUSES
from monitor.anomalies.specs import ANOMALY_SEVERITY
from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import encodable
from monitor.history import schema
from monitor.history.browse import SeriesKey, Span, series_named, spans_of_violations
from monitor.history.rows import results_of_windows
from monitor.history.snapshot import RecommenderState, Series
from monitor.models.specs import CAUSE_LABEL
from monitor.report.anomalies import causes_of
from monitor.report.bands import series_name
from monitor.report.known_changes import Change, ChangeKind, changes_of_config, changes_of_history
from monitor.service.web.api.answers import (
    AnomalyAnswer,
    ChangeAnswer,
    PageOf,
    ViolationAnswer,
    ViolationState,
)
from monitor.service.web.api.context import Context, missing, name_of, result_answer
from monitor.service.web.api.paging import page_of
from monitor.service.web.api.parameters import AnomaliesQuery, ChangesQuery, Query, ViolationsQuery
from monitor.service.web.api.series import DEFAULT_SPAN, newest, overlaps

_RUNBOOKS: Final = "docs/runbooks"


def violations(context: Context, asked: ViolationsQuery, recommender: str) -> PageOf[ViolationAnswer]:
    """The violations that the history keeps, the newest first; single series out of bands for kind=band."""
    state = context.state(recommender)
    violated = {
        _identity(one.check, one.result.metric, one.result.labels)
        for one in state.series
        if one.standing is Status.VIOLATED
    }
    with context.store.reading() as connection:
        known = {
            number: key
            for number, key in series_named(connection, state.name).items()
            if asked.takes(key.check, key.kind, key.metric, key.labels)
            and (key.kind is not ResultKind.BAND or asked.kind is ResultKind.BAND)
        }
        spans = [
            (one, _state(one, known[one.series_id], violated))
            for one in spans_of_violations(connection, state.name)
            if one.series_id in known and overlaps(one, asked.begin, asked.end)
        ]
        page = page_of(
            [one for one in spans if asked.state in (None, one[1])],
            asked,
            key=lambda one: (schema.microseconds(one[0].since), one[0].series_id),
            shown=lambda one: one,
            newest_first=True,
        )
        results = _results(connection, [span for span, _ in page.data])
    return PageOf(
        data=[
            _violation(context, state, span, its_state, results[span.window_id, span.series_id])
            for span, its_state in page.data
        ],
        next_cursor=page.next_cursor,
    )


def _identity(check: str, metric: str, labels: Mapping[str, str]) -> tuple[str, str, str]:
    return check, metric, schema.canonical(dict(labels))


def _state(span: Span, key: SeriesKey, violated: set[tuple[str, str, str]]) -> ViolationState:
    if span.until is not None:
        return "resolved"
    return "open" if _identity(key.check, key.metric, key.labels) in violated else "gone"


def _results(connection: Connection, spans: Sequence[Span]) -> dict[tuple[int, int], Result]:
    windows = sorted({one.window_id for one in spans})
    stored = results_of_windows(connection, windows, {one.series_id for one in spans})
    return {(window, number): one for window, own in stored.items() for number, one in own.items()}


def _violation(
    context: Context, state: RecommenderState, span: Span, its_state: ViolationState, result: Result
) -> ViolationAnswer:
    links = context.links
    return ViolationAnswer(
        what=name_of(result),
        check=span.check,
        kind=result.kind,
        metric=encodable(result.metric),
        labels={encodable(name): encodable(value) for name, value in result.labels.items()},
        state=its_state,
        since=span.since,
        until=span.until,
        windows=span.count,
        result=result_answer(state.name, span.check, span.window, result, with_evidence=False),
        evidence_rows=len(result.evidence),
        evidence_url=links.evidence(state.name, span.check, span.window, result) if result.evidence else None,
        page_url=links.page(state.name, result),
    )


def anomalies(context: Context, asked: AnomaliesQuery, recommender: str) -> PageOf[AnomalyAnswer]:
    """Every cause that is checked, and every drift, with its sentence."""
    state = context.state(recommender)
    return page_of(
        [one for one in _anomalies(state) if asked.standing in (None, one.standing)],
        asked,
        key=lambda one: (one.result.kind.value, schema.canonical(dict(one.result.labels)), one.check),
        shown=lambda one: _anomaly(context, state, one),
    )


def anomaly(context: Context, asked: Query, recommender: str, cause: str) -> AnomalyAnswer:  # noqa: ARG001
    """One cause of anomalies."""
    state = context.state(recommender)
    causes = causes_of(state.series)
    for name, one in causes.items():
        if encodable(name) == cause:
            return _anomaly(context, state, one)
    raise missing("cause", cause, list(causes))


def _anomalies(state: RecommenderState) -> list[Series]:
    drifts = [one for one in state.series if one.result.kind is ResultKind.DRIFT]
    return [*causes_of(state.series).values(), *drifts]


def _name(result: Result) -> str:
    if result.kind is ResultKind.ANOMALY:
        return encodable(result.labels[CAUSE_LABEL])
    return encodable(" ".join(part for part in series_name(result.labels) if part))


def _anomaly(context: Context, state: RecommenderState, series: Series) -> AnomalyAnswer:
    result = series.result
    told = result.detail
    if not told and series.standing is Status.VIOLATED and series.violation is not None:
        told = series.violation.result.detail
    cause = result.labels.get(CAUSE_LABEL) if result.kind is ResultKind.ANOMALY else None
    runbook = "RecsysDrift" if cause is None else "RecsysAnomaly"
    path = f"{_RUNBOOKS}/{f'causes/{cause}' if cause in CAUSES else runbook}.md"
    severity = next(
        (
            one.result.value
            for one in state.series
            if one.result.metric == ANOMALY_SEVERITY.name and one.result.labels.get(CAUSE_LABEL) == cause
        ),
        None,
    )
    return AnomalyAnswer(
        kind="drift" if cause is None else "anomaly",
        name=_name(result),
        standing=series.standing,
        since=series.since,
        excused=series.excused,
        sentence=encodable(told),
        meaning=CAUSES.get(cause or "", ""),
        series=1 if cause is None else int(result.value or 0),
        severity=severity,
        result=newest(series),
        runbook=context.links.runbook(path, context.docs_url),
        page_url=context.links.page(state.name, result),
    )


def changes(context: Context, asked: ChangesQuery, recommender: str) -> PageOf[ChangeAnswer]:
    """Declared changes, and changes of models, lists and definitions, the newest first."""
    state = context.state(recommender)
    found: list[Change] = []
    if state.settings is not None:
        found += [
            one
            for one in changes_of_config(state.settings)
            if (asked.end is None or one.at < asked.end)
            and (asked.begin is None or (one.until or one.at) >= asked.begin)
        ]
    if asked.kind is None or not ChangeKind(asked.kind).is_of_config:
        last = asked.end or (state.last_window.end if state.last_window is not None else context.now)
        with context.store.reading() as connection:
            start = asked.begin or last - DEFAULT_SPAN
            found += changes_of_history(connection, state.name, start, asked.end)
    return page_of(
        dict.fromkeys(one for one in found if asked.kind in (None, one.kind)),
        asked,
        key=lambda one: (
            schema.microseconds(one.at),
            one.kind.value,
            one.what,
            schema.microseconds(one.until or one.at),
            " ".join(one.metrics),
        ),
        shown=lambda one: ChangeAnswer(
            at=one.at, until=one.until, kind=one.kind, what=encodable(one.what), metrics=list(one.metrics)
        ),
        newest_first=True,
    )
