"""The answers on recommenders as they are now: their state, what is violated, their logs."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.core.results import Status
from monitor.core.text import encodable, visible_lines
from monitor.health.specs import HEALTH_SCORE
from monitor.history.schema import canonical
from monitor.history.snapshot import LogState, RecommenderState, Series, SkippedFile
from monitor.report import numbers, rows
from monitor.report.attention import Attention, attention_of
from monitor.service.prometheus.values import counters_of
from monitor.service.web.api.answers import (
    CounterAnswer,
    FileAnswer,
    HealthAnswer,
    LogAnswer,
    PageOf,
    QuietAnswer,
    RecommenderAnswer,
    RecommenderDetail,
    StatusAnswer,
    TroubleAnswer,
)
from monitor.service.web.api.context import Context, name_of, span_answer, status_word
from monitor.service.web.api.paging import page_of
from monitor.service.web.api.parameters import Query, RecommendersQuery


def recommenders(context: Context, asked: RecommendersQuery) -> PageOf[RecommenderAnswer]:
    """Every recommender, by name."""
    known = [(state, attention_of(state, context.now)) for state in context.snapshot.recommenders]
    return page_of(
        [one for one in known if asked.status in (None, one[1].status)],
        asked,
        key=lambda one: (canonical(one[0].name),),
        shown=lambda one: _recommender(context, *one),
    )


def recommender(context: Context, asked: Query, recommender: str) -> RecommenderDetail:  # noqa: ARG001
    """One recommender."""
    state = context.state(recommender)
    known = _recommender(context, state, attention_of(state, context.now))
    return RecommenderDetail(
        **{name: getattr(known, name) for name in RecommenderAnswer.model_fields},
        last_run=state.last_run,
        logs=[_log(log) for log in state.logs],
        check_seconds=dict(state.check_seconds),
        counters=[
            CounterAnswer(name=name, labels={encodable(k): encodable(v) for k, v in labels}, value=value)
            for (name, labels), value in sorted(counters_of(state, context.snapshot.counters))
        ],
        clock_change=encodable(state.clock_change),
        judged_by=None if state.judged_by is None else encodable(state.judged_by),
    )


def status(context: Context, asked: Query, recommender: str) -> StatusAnswer:  # noqa: ARG001
    """One recommender in a few words."""
    state = context.state(recommender)
    attention = attention_of(state, context.now)
    health = _health(state)
    return StatusAnswer(
        name=encodable(state.name),
        status=attention.status,
        since=attention.since,
        text=_sentence(state, attention),
        violated=len(attention.violated),
        unjudged=len(attention.unjudged),
        health=None if health is None else health.value,
        last_window=span_answer(state.last_window),
        in_maintenance=state.maintenance is not None,
        page_url=context.links.recommender(state.name),
    )


def _recommender(context: Context, state: RecommenderState, attention: Attention) -> RecommenderAnswer:
    held = state.maintenance
    return RecommenderAnswer(
        name=encodable(state.name),
        status=attention.status,
        since=attention.since,
        health=_health(state),
        last_window=span_answer(state.last_window),
        pending_windows=state.pending_windows,
        error=visible_lines(state.error or ""),
        maintenance=None if held is None else QuietAnswer(until=held.until, reason=encodable(held.reason)),
        violated=[_trouble(context, one) for one in attention.violated],
        unjudged=[_trouble(context, one) for one in attention.unjudged],
        page_url=context.links.recommender(state.name),
    )


def _trouble(context: Context, series: Series) -> TroubleAnswer:
    result, source = series.result, rows.evidence_source(series)
    told = series.violation if series.standing is Status.VIOLATED else None
    evidence = None
    if source is not None and source.result.evidence:
        evidence = context.links.evidence(series.recommender, series.check, source.window, source.result)
    return TroubleAnswer(
        what=name_of(result),
        check=series.check,
        kind=result.kind,
        metric=encodable(result.metric),
        labels={encodable(name): encodable(value) for name, value in result.labels.items()},
        standing=series.standing,
        since=series.since,
        excused=series.excused,
        detail=encodable(result.detail or (told.result.detail if told else "")),
        page_url=context.links.page(series.recommender, result),
        evidence_url=evidence,
    )


def _health(state: RecommenderState) -> HealthAnswer | None:
    series = next((one for one in state.series if one.result.metric == HEALTH_SCORE.name), None)
    if series is None:
        return None
    return HealthAnswer(
        value=series.result.value,
        status=series.result.status,
        detail=encodable(series.result.detail),
        window_end=series.window.end,
    )


def _sentence(state: RecommenderState, attention: Attention) -> str:
    words = f"{encodable(state.name)}: {status_word(attention.status)}"
    if attention.since is not None:
        words += f" since {numbers.moment(attention.since)}"
    same = [one for one in attention.series if one.standing is attention.status]
    if same:
        first = min(same, key=lambda one: one.since)
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        return f"{words}: {name_of(first.result)}{more}."
    if state.error:
        return f"{words}: {visible_lines(state.error, 1)}."
    return f"{words}, last window {numbers.window(state.last_window)}." if state.last_window else f"{words}."


def _log(log: LogState) -> LogAnswer:
    after = log.stalled_after
    return LogAnswer(
        log=log.log,
        watermark=log.watermark,
        files=log.files,
        stalled_after_seconds=None if after is None else after.total_seconds(),
        skipped=_files(log.skipped),
        lost=_files(log.lost),
        unlisted=_files(log.unlisted),
    )


def _files(files: Iterable[SkippedFile]) -> list[FileAnswer]:
    return [
        FileAnswer(path=encodable(one.path), reason=encodable(one.reason), rows=one.rows) for one in files
    ]
