"""The verdict on actions that join no list: are there too many, and what is the likely reason?

Every rate rests on the join of feedback and exposures. Where it fails, all of them look like those of a very
bad recommender, and none of them is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import duckdb
import ibis

from monitor.core.columns import EVENT, EXPOSURES, FEEDBACK, TS
from monitor.core.results import Result, Status, Window
from monitor.engines.duckdb import DeadlineExceeded, Engine
from monitor.logs.index import readable
from monitor.logs.source import Source
from monitor.metrics.attribution import NOT_SHOWN, UNATTRIBUTED, attributed
from monitor.metrics.feedback.attribution_health import ATTRIBUTION, LOST, lost_actions
from monitor.metrics.feedback.business import ratio_sums
from monitor.metrics.feedback.time_shift import FARTHEST, joining_shift, shift_text
from monitor.metrics.feedback.why_lost import why_lost
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.effects import ratio_within
from monitor.window.tables import WindowTables
from monitor.window.verdicts import MAX

MOST_ROWS: Final = 50_000_000
"""So many exposures are read to look for the reason; in larger logs smaller shifts are tried."""
_TABLE: Final = "exposures_far"
_MISSED: Final = (NOT_SHOWN, UNATTRIBUTED)


def judge_unattributed(
    results: Sequence[Result],
    settings: RecommenderSettings,
    engine: Engine,
    source: Source,
    tables: WindowTables,
    window: Window,
    around: Window,
) -> list[Result]:
    """The results, with the share of actions that join no list judged by `metrics.max_unattributed`.

    An objective of the team's own on this metric takes its place. A window without actions is not judged, nor
    is one of which nothing could join: the exposures begin too late for it, or are missing altogether.

    Users with many lists have a list at any time. With a wrong time zone their actions then join a list that
    did not show the item. That is violated too, but only if a time shift makes most of the actions join.

    Args:
        results: what was measured of feedback in the window; objectives are judged already.
        settings: of the recommender.
        engine, source, tables: the window's logs.
        window: the window.
        around: the time of which the exposures are in the tables.
    """
    judged = list(results)
    for place, measured in enumerate(results):
        if measured.metric != LOST.name:
            continue
        own = measured.threshold is not None
        verdict = measured if own else _judged(measured, settings, source, tables, window, around)
        if verdict.status is Status.OK and not own:
            verdict = _shifted(verdict, results, settings, engine, source, tables, window)
        elif verdict.status is Status.VIOLATED:
            why, _ = _reason(settings, engine, source, tables, window)
            verdict = replace(verdict, detail=f"{verdict.detail}; {why}")
        judged[place] = verdict
    return judged


def _judged(
    result: Result,
    settings: RecommenderSettings,
    source: Source,
    tables: WindowTables,
    window: Window,
    around: Window,
) -> Result:
    most = settings.metrics.max_unattributed
    if most is None:
        return result
    held = replace(result, threshold=most, bound=MAX)
    if result.status is not Status.OK or result.lower is None or result.lower <= most:
        return held
    first = _first_exposure(source, tables, around)
    reached = first + settings.metrics.attribution if first else None
    if reached is None or reached >= window.end:
        begin = "have no rows" if first is None else f"begin at {first:%Y-%m-%dT%H:%M:%SZ}"
        why = f"no exposure is early enough for these actions to join it: the exposures {begin}"
        return replace(held, status=Status.UNDEFINED, value=None, lower=None, upper=None, detail=why)
    value, lower, samples = result.value, result.lower, result.samples
    if reached > window.start:  # what was shown before the log begins is no fault of the join
        actions = attributed(tables.shared, settings.metrics)
        since = ibis.literal(reached.replace(tzinfo=None)).cast("timestamp(6)")
        (row,) = lost_actions(actions.filter(actions[TS] >= since)).to_pyarrow().to_pylist()
        sums = ratio_sums(row, "lost")
        interval = ratio_within(sums) if sums.denominator else None
        if interval is None or interval.lower <= most:
            return held
        value, lower, samples = sums.numerator / sums.denominator, interval.lower, int(sums.denominator)
    detail = (
        f"{value:.0%} of {samples:,} actions join no list (at least {lower:.0%}); "
        f"metrics.max_unattributed allows {most:.0%}"
    )
    return replace(held, status=Status.VIOLATED, detail=detail)


def _shifted(
    verdict: Result,
    results: Sequence[Result],
    settings: RecommenderSettings,
    engine: Engine,
    source: Source,
    tables: WindowTables,
    window: Window,
) -> Result:
    """Violated if most actions join no list that showed their item, and would do so after a time shift."""
    most = settings.metrics.max_unattributed
    ways = [one for one in results if one.metric == ATTRIBUTION.name and one.value is not None]
    missed = sum((one.value or 0) * (one.samples or 0) for one in ways if one.labels["by"] in _MISSED)
    every = sum(one.samples or 0 for one in ways) / len(ATTRIBUTION.by)
    if most is None or missed <= most * every:
        return verdict
    actions = attributed(tables.shared, settings.metrics)
    (row,) = lost_actions(actions, _MISSED).to_pyarrow().to_pylist()
    sums = ratio_sums(row, "lost")
    interval = ratio_within(sums) if sums.denominator else None
    if interval is None or interval.lower <= most:
        return verdict
    why, helps = _reason(settings, engine, source, tables, window)
    if not helps:
        return verdict
    detail = (
        f"{sums.numerator / sums.denominator:.0%} of {int(sums.denominator):,} actions join no list that "
        f"showed their item (at least {interval.lower:.0%})"
    )
    return replace(verdict, status=Status.VIOLATED, detail=f"{detail}; {why}")


def _first_exposure(source: Source, tables: WindowTables, around: Window) -> datetime | None:
    """When the exposures begin: the log's first one, or the start of the tables where it is older."""
    if tables.shared.around.count().to_pyarrow().as_py() == 0:
        return None
    oldest = min((one.start for one in source.exposures.windows()), default=None)
    if oldest is None or oldest < around.start:
        return around.start
    first = tables.shared.around[TS].min().to_pyarrow().as_py()
    return None if first is None else first.replace(tzinfo=around.start.tzinfo)


def _reason(
    settings: RecommenderSettings, engine: Engine, source: Source, tables: WindowTables, window: Window
) -> tuple[str, bool]:
    """The likely reason, in a sentence, and whether it is a time shift; a failed search ends no violation."""
    try:
        return _looked_for(settings, engine, source, tables, window)
    except (duckdb.InterruptException, DeadlineExceeded):
        raise
    except Exception as error:
        return f"the search for the reason failed: {readable(error)}", False


def _looked_for(
    settings: RecommenderSettings, engine: Engine, source: Source, tables: WindowTables, window: Window
) -> tuple[str, bool]:
    metrics = settings.metrics
    feedback = tables.shared.feedback
    assert feedback is not None
    feedback = feedback.filter(feedback[EVENT].isin(list(metrics.events)))
    reach = FARTHEST
    while reach and _rows(source, _span(window, reach, metrics.attribution)) > MOST_ROWS:
        reach = timedelta(hours=reach // timedelta(hours=2))
    far = source.load(engine, EXPOSURES, _span(window, reach, metrics.attribution), table=_TABLE)
    if far is None:
        return "the exposures have no rows in the hours around this window", False
    tables.made.append(_TABLE)
    found = joining_shift(far, feedback, metrics.attribution)
    if found is None:
        return "the actions have neither a user nor a request id", False
    sample = f"in a sample of {found.actions:,} actions"
    if found.helps:
        why = (
            f"shifted by {shift_text(found.shift)}, {found.shifted:.0%} would join the item that was shown "
            f"({found.joined:.0%} do now, {sample}): {_set_timezone(source, found.shift)}"
        )
        return why, True
    why = why_lost(far, feedback, metrics.attribution)
    return f"{why} ({sample}; no time shift of up to {shift_text(reach).lstrip('+')} helps)", False


def _span(window: Window, reach: timedelta, attribution: timedelta) -> Window:
    """Whole windows, since only these are indexed."""
    length = window.length
    before, after = (-(-one // length) * length for one in (reach + attribution, reach))
    return Window(window.start - before, window.end + after)


def _rows(source: Source, span: Window) -> int:
    log = source.exposures
    return sum(log.rows(one) for one in log.windows() if span.start <= one.start < span.end)


def _set_timezone(source: Source, shift: timedelta) -> str:
    zone = source.logs[FEEDBACK].settings.timezone
    own = f"is {zone} now" if zone != "UTC" else f"a zone of UTC{shift_text(-shift).removesuffix(' h')}"
    return f"correct logs.feedback.timezone ({own}), or logs.exposures.timezone if these times are wrong"
