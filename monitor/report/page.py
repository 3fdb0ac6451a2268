"""The content of the overview and of a recommender's page, as views of a snapshot.

The templates only lay out these views. Nothing else is read: no store and no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from monitor.catalogue import ALL_SPECS
from monitor.core.results import ResultKind, Status, rank, worst_status
from monitor.core.text import visible, visible_lines
from monitor.history import counters
from monitor.history.snapshot import LogState, RecommenderState, Series, SkippedFile, Snapshot
from monitor.metrics.feedback.attribution_health import LOST
from monitor.report import bands, gaps, numbers, rows
from monitor.report.anomalies import anomalies_view, attention_rows, counted
from monitor.report.forecast_section import forecast_attention, forecast_view
from monitor.report.health import health_view
from monitor.report.models import model_views
from monitor.report.platform_section import platform_attention, platform_view
from monitor.report.views import (
    AnomaliesView,
    Frame,
    Group,
    LogView,
    OverviewPage,
    RecommenderPage,
    RecommenderView,
)

_STALE: Final = timedelta(minutes=15)
_SLICE_ROWS: Final = 200  # of one dimension on a page; /metrics has them all
_COUNTERS: Final = {
    counters.WINDOWS: "windows judged",
    counters.CORRECTIONS: "windows corrected by late data",
    counters.CHECK_RUNS: "runs of a check",
    counters.SCHEDULED: "scheduled runs",
    counters.UNDEFINED: "results without a value",
}


def overview(snapshot: Snapshot, now: datetime, docs_url: str = "") -> OverviewPage:
    """The first page: every recommender, the worst state first. Runbook paths are below `docs_url`."""
    views = [recommender_view(state, snapshot, now, docs_url) for state in snapshot.recommenders]
    views.sort(key=lambda view: rank(Status(view.verdict.key)))
    return OverviewPage(
        frame=frame(snapshot, now),
        summary=_headline(views),
        verdict=rows.verdict(worst_status(Status(view.verdict.key) for view in views)),
        recommenders=tuple(views),
    )


def _headline(views: list[RecommenderView]) -> str:
    if not views:
        return "No recommender is configured"
    if all(view.empty and not view.error for view in views):
        return "Nothing has been judged yet"
    bad = sum(view.verdict.key != Status.OK for view in views)
    if len(views) == 1:
        well = f"All is well {'again ' if views[0].lately else ''}with {views[0].name}"
        return f"{views[0].name} needs attention" if bad else well
    if not bad:
        return f"All is well with {len(views):,} recommenders"
    return f"{bad} of {len(views):,} recommenders {'needs' if bad == 1 else 'need'} attention"


def recommender_page(
    snapshot: Snapshot, recommender: str, now: datetime, docs_url: str = ""
) -> RecommenderPage | None:
    """One recommender's page, None if there is no such recommender."""
    for state in snapshot.recommenders:
        if state.name == recommender:
            return RecommenderPage(frame(snapshot, now), recommender_view(state, snapshot, now, docs_url))
    return None


def frame(snapshot: Snapshot, now: datetime) -> Frame:
    stale = ""
    worked_at = snapshot.worked_at or snapshot.taken_at
    if now - worked_at > _STALE:
        stale = (
            f"The monitor's last sign of life is from {numbers.age(worked_at, now)}: it may be stuck, and "
            "this page may be out of date."
        )
    return Frame(
        taken=rows.moment(snapshot.taken_at, now),
        stale=stale,
        history_error=visible_lines(snapshot.history_error),
        config_error=visible_lines(snapshot.config_error or ""),
        config_loaded=None
        if snapshot.config_loaded_at is None
        else rows.moment(snapshot.config_loaded_at, now),
    )


def recommender_view(
    state: RecommenderState, snapshot: Snapshot, now: datetime, docs_url: str = ""
) -> RecommenderView:
    """The view of one recommender."""
    of_bands = [series for series in state.series if rows.is_of_bands(series.result)]
    known = bands.bands_of(of_bands)
    anomalies = anomalies_view(of_bands, now, state.clock_change)
    of_platform = [series for series in state.series if series.result.kind.is_of_the_platform]
    of_forecast = [series for series in state.series if series.result.kind is ResultKind.FORECAST]
    apart = {id(series) for series in (*of_bands, *of_platform, *of_forecast)}
    every = [series for series in state.series if id(series) not in apart]
    rules = [series for series in every if rows.is_rule(series.result)]
    of_models = [series for series in every if rows.is_of_model(series.result)]
    objectives = [s for s in every if rows.has_objective(s.result) and not rows.is_of_model(s.result)]
    measured = [s for s in every if not rows.is_rule(s.result) and not rows.is_slice(s.result)]
    measured = [series for series in measured if series.result.kind is not ResultKind.HEALTH]
    metrics = [series for series in measured if not rows.is_of_model(series.result)]
    judged_gaps = gaps.gaps_that_count(of_models)
    slices = [s for s in every if not rows.is_rule(s.result) and rows.is_slice(s.result)]
    judged = {series.result.labels.get("rule") for series in rules}
    pending = [rows.pending_row(state.name, info) for info in state.rules if info.rule not in judged]
    rule_rows = [rows.rule_row(series, now) for series in _worst_first(rules)] + pending
    objective_rows = [rows.objective_row(series, now) for series in _worst_first(objectives)]
    judged_rules = [series for series in rules if series.standing is not Status.UNDEFINED]  # those that apply
    judged_objectives = [s for s in objectives if s.standing is not Status.UNDEFINED]
    statuses = [series.standing for series in (*judged_rules, *judged_objectives, *judged_gaps)]
    statuses += [Status.ERROR for series in measured if series.result.status is Status.ERROR]
    statuses += [Status.ERROR] if state.error is not None else []
    asked_for = [s for s in judged_objectives if s.result.metric != LOST.name]  # LOST has a bound by default
    if not (rules or asked_for or judged_gaps or pending):  # then the state of the logs counts
        statuses += [series.standing for series in metrics if series.result.kind is ResultKind.LOG]
    gap_rows = [gaps.attention_row(gap, of_models, now) for gap in _worst_first(judged_gaps)]
    failed = [s for s in measured if s.result.status is Status.ERROR and not rows.has_objective(s.result)]
    failed_rows = [rows.objective_row(series, now) for series in failed]
    unlike = attention_rows(anomalies)
    shifted = platform_attention(of_platform, now)
    broken = forecast_attention(of_forecast, now)
    statuses += [Status(row.verdict.key) for row in (*unlike, *shifted, *broken)]
    shown = (*rule_rows, *objective_rows, *gap_rows, *unlike, *shifted, *broken, *failed_rows)
    attention = [row for row in shown if row.verdict.key not in ("ok", "undefined") and row.since]
    return RecommenderView(
        name=visible(state.name),
        href=rows.recommender_href(state.name),
        verdict=rows.verdict(worst_status(statuses)),
        summary=_summary(
            [series.standing for series in judged_rules],
            [series.standing for series in objectives],
            [series.standing for series in judged_gaps],
            len(pending),
            anomalies,
        ),
        error=visible_lines(state.error or ""),
        maintenance=_maintenance(state, now),
        last_window="" if state.last_window is None else numbers.window(state.last_window),
        last_run=None if state.last_run is None else rows.moment(state.last_run, now),
        pending=numbers.count(state.pending_windows),
        logs=tuple(_log(log, now) for log in state.logs),
        health=health_view(every, now),
        anomalies=anomalies,
        platform=platform_view(of_platform, now),
        forecast=forecast_view(of_forecast, now),
        attention=tuple(sorted(attention, key=lambda row: rank(Status(row.verdict.key)))),
        lately=tuple(rows.lately(series, now) for series in rules if rows.is_over(series)),
        rules=tuple(rule_rows),
        objectives=tuple(objective_rows),
        models=model_views(of_models, now, docs_url),
        metrics=_metric_groups(metrics, known, now),
        slices=_slice_groups(slices, known, now),
        slice_count=len(slices),
        durations=tuple((name, numbers.seconds(took)) for name, took in sorted(state.check_seconds.items())),
        counters=tuple(_counter_rows(snapshot, state.name)),
        empty=_empty(state),
    )


def _maintenance(state: RecommenderState, now: datetime) -> str:
    held = state.maintenance
    if held is None:
        return ""
    reason = f": {visible(held.reason)}" if held.reason else ""
    until = numbers.moment(held.until)
    if now < held.until:
        return f"Maintenance until {until}{reason}. Nobody is alerted."
    return f"Maintenance until {until} is over{reason}. Alerts are held back until all of it has been judged."


def _empty(state: RecommenderState) -> str:
    if state.series:
        return ""
    text = "No window has been judged yet: "
    if state.error is not None:
        return text + "the recommender cannot run, see above."
    if all(log.watermark is None for log in state.logs):
        return text + "no readable rows have been found in its logs so far."
    return text + "a window is judged once the log has moved past its end by the configured lateness."


def _summary(
    rules: list[Status],
    objectives: list[Status],
    of_gaps: list[Status],
    pending: int,
    anomalies: AnomaliesView | None,
) -> str:
    counts = Counter(rules)
    violated, ok = counts[Status.VIOLATED], counts[Status.OK]
    unjudged = len(rules) - violated - ok
    parts = [f"{violated} of {_plural(len(rules) + pending, 'rule')} violated"] if violated else []
    parts += [f"{unjudged} could not be judged"] if unjudged else []
    parts += [f"{ok} ok" if parts else f"{_plural(ok, 'rule')} ok"] if ok else []
    parts += [f"{pending} not judged yet"] if pending else []
    missed = objectives.count(Status.VIOLATED)
    parts += [f"{_plural(missed, 'objective')} missed"] if missed else []
    large, fine = of_gaps.count(Status.VIOLATED), of_gaps.count(Status.OK)
    unseen = len(of_gaps) - large - fine
    parts += [f"{_plural(large, 'AUC gap')} too large"] if large else []
    parts += [f"{_plural(unseen, 'AUC gap')} could not be judged"] if unseen else []
    parts += [f"{_plural(fine, 'AUC gap')} ok"] if fine and not (large or unseen) else []
    parts += counted(anomalies)
    return " · ".join(parts) or "no rules"


def _metric_groups(series: Iterable[Series], known: bands.Bands, now: datetime) -> tuple[Group, ...]:
    grouped: dict[str, list[Series]] = {name: [] for name in ALL_SPECS}
    for each in series:
        grouped.setdefault(each.result.metric, []).append(each)
    return tuple(
        Group(
            name=visible(name),
            help=ALL_SPECS[name].help if name in ALL_SPECS else "",
            rows=tuple(bands.with_band(rows.metric_row(each, now), each, known) for each in members),
        )
        for name, members in grouped.items()
        if members
    )


def _slice_groups(series: Iterable[Series], known: bands.Bands, now: datetime) -> tuple[Group, ...]:
    grouped: dict[str, list[Series]] = {}
    for each in series:
        grouped.setdefault(each.result.labels["dimension"], []).append(each)
    groups = []
    for dimension, members in sorted(grouped.items()):
        shown = tuple(
            bands.with_band(rows.slice_row(each, now), each, known) for each in members[:_SLICE_ROWS]
        )
        left_out = max(0, len(members) - _SLICE_ROWS)
        groups.append(Group(visible(dimension), "", shown, left_out))
    return tuple(groups)


def _log(log: LogState, now: datetime) -> LogView:
    return LogView(
        name=visible(log.log),
        watermark=None if log.watermark is None else rows.moment(log.watermark, now),
        files=numbers.count(log.files),
        skipped=_reasons(log.skipped),
        lost=tuple((visible(f.path), f"{_plural(f.rows, 'row')}: {visible(f.reason)}") for f in log.lost),
        unlisted=_reasons(log.unlisted),
    )


def _reasons(files: Iterable[SkippedFile]) -> tuple[tuple[str, str], ...]:
    return tuple((visible(one.path), visible(one.reason)) for one in files)


def _counter_rows(snapshot: Snapshot, name: str) -> Iterable[tuple[str, str]]:
    for (family, pairs), value in sorted(snapshot.counters.items()):
        labels = dict(pairs)
        if family not in _COUNTERS or labels.pop("recommender", None) != name or value == 0:
            continue
        rest = ", ".join(visible(text) for text in labels.values())
        yield f"{_COUNTERS[family]}{': ' if rest else ''}{rest}", numbers.count(value)


def _worst_first(series: list[Series]) -> list[Series]:
    """Sorted by state, the worst and newest first. Series that are ok keep their order."""
    return sorted(
        series,
        key=lambda s: (rank(s.standing), 0 if s.standing is Status.OK else -s.since.timestamp()),
    )


def _plural(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"
