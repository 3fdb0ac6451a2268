"""Several windows measured in one pass: the window is a group of each query, as a slice is.

Most of the cost of a small window is to plan its queries, not to run them. So consecutive windows that are
judged in a row share their queries, and each gets its own row of the answers. Where the rows of a window by
itself could give another answer, it is measured by itself; so is a family that fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import duckdb

from monitor.core import columns as c
from monitor.core.results import Result, Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs, ListedPairs
from monitor.logs.empty import feedback_of
from monitor.logs.index import FileEntry, readable
from monitor.logs.source import Source
from monitor.logs.windows import Due
from monitor.metrics.attribution import joins_differ
from monitor.metrics.family import Family
from monitor.metrics.history import WINDOW
from monitor.metrics.measure import resolved, wanted
from monitor.metrics.plans import Plans, Records
from monitor.metrics.shared import Shared, answered
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.window.earlier import (
    common_days,
    earlier_actions,
    keep_missing,
    pairs_before_windows,
    remembered,
)
from monitor.window.tables import kept_statements

log = logging.getLogger(__name__)

MOST_WINDOWS: Final = 24
MOST_ROWS: Final = 100_000
"""Exposures of windows that are measured together; those of more pay for their own queries."""
_DAY: Final = timedelta(days=1)
MOST_AROUND: Final = 1_000_000
"""Exposures of these windows and those around them up to which their lists are looked through."""


@dataclass(frozen=True, slots=True)
class Together:
    """What several windows gave in one pass, for one of them.

    Attributes:
        number: of the window among these, from 0.
        shared: the logs of all these windows.
        rows: the row of each family that was measured.
        seconds: this window's part of the time of each family.
        is_whole: whether all families that the logs allow were measured.
        looked_back: whether those that compare with the history were.
        rules: the results of the rules that were judged, by name.
        rule_seconds: this window's part of the time of each step of that.
        keeps_pairs: whether the pairs of this window were kept for later ones.
    """

    number: int
    shared: Shared
    rows: Mapping[str, Records]
    seconds: Mapping[str, float]
    is_whole: bool
    looked_back: bool
    rules: Mapping[str, Result] = field(default_factory=dict)
    rule_seconds: Mapping[str, float] = field(default_factory=dict)
    keeps_pairs: bool = False


def together(dues: Sequence[Due]) -> Iterator[list[Due]]:
    """The parts of consecutive windows that can be measured in one pass, two or more each.

    They are complete, of one day, and small.
    """
    run: list[Due] = []
    for due in dues:
        if run and not _continues(run, due):
            yield from _several(run)
            run = []
        if due.late is None:
            run.append(due)
    yield from _several(run)


def _continues(run: list[Due], due: Due) -> bool:
    return (
        due.late is None
        and run[-1].window.end == due.window.start
        and run[0].window.start.date() == due.window.start.date()
        and len(run) < MOST_WINDOWS
        and sum(one.rows for one in run) + due.rows <= MOST_ROWS
    )


def _several(run: list[Due]) -> Iterator[list[Due]]:
    if len(run) > 1:
        yield run


def measure_together(
    engine: Engine,
    source: Source,
    kept: KeptPairs,
    windows: Sequence[Window],
    settings: RecommenderSettings,
    families: Sequence[Family],
    around: Window | None,
    plans: Plans,
    made: list[str],
    *,
    in_a_row: bool,
) -> dict[Window, Together]:
    """Measure consecutive windows of a day in one pass; those without an answer are not in the result.

    Args:
        engine: computes; it keeps statements.
        source: the logs.
        kept: the pairs of earlier windows.
        windows: the windows, each as long as the others.
        settings: of the recommender.
        families: what to measure; those that cannot be measured so are left out.
        around: the span of the exposures and actions that the windows join, if they read feedback.
        plans: the statements of earlier passes.
        made: gets the names of the tables to drop afterwards.
        in_a_row: the days that other windows look back on as well stay in the engine.
    """
    span = Window(windows[0].start, windows[-1].end)
    if source.exposures.rows_in(around or span) > MOST_AROUND:
        return {}
    if not _alike(source, c.EXPOSURES, around or span) or not _alike(source, c.FEEDBACK, around or span):
        return {}
    shared = _shared(engine, source, kept, windows, settings, around, plans, made, in_a_row=in_a_row)
    if shared is None:
        return {}
    metrics = resolved(settings.metrics, shared)
    if around is not None:
        (row,) = shared.answer("joins_differ", WINDOW, lambda: joins_differ(shared, metrics))
        if row["differ"]:
            return {}
    rows: list[dict[str, Records]] = [{} for _ in windows]
    seconds: dict[str, float] = {}
    left: list[Family] = []
    for family in families:
        if not wanted(family, metrics) or family.reason_not(shared, metrics) is not None:
            continue
        started = time.perf_counter()
        found = _measured(shared, settings, family, metrics) if _fits(family, shared, metrics) else None
        if found is None:
            left.append(family)
            continue
        for row in found:
            rows[row.pop(WINDOW)][family.name] = [row]
        seconds[family.name] = (time.perf_counter() - started) / len(windows)
    looked_back = not any(family.looks_back for family in left)
    return {
        window: Together(number, shared, own, seconds, not left, looked_back)
        for number, (window, own) in enumerate(zip(windows, rows, strict=True))
        if own.keys() == seconds.keys()
    }


def _fits(family: Family, shared: Shared, metrics: MetricSettings) -> bool:
    """Whether the family can be measured for several windows at once."""
    if family.looks_back and (shared.reach == 0 or metrics.popularity != "exposures"):
        return False
    return family.together


def _alike(source: Source, name: str, span: Window) -> bool:
    """Whether the files of a span have the same columns, so that each window by itself has them too."""
    log = source.logs.get(name)
    entries: list[FileEntry] = [] if log is None else log.files_in(span)
    return all(one.shape == entries[0].shape and not one.future for one in entries)


def _shared(
    engine: Engine,
    source: Source,
    kept: KeptPairs,
    windows: Sequence[Window],
    settings: RecommenderSettings,
    around: Window | None,
    plans: Plans,
    made: list[str],
    *,
    in_a_row: bool,
) -> Shared | None:
    """The logs of all windows; None if they have no exposures."""
    first, last = windows[0], windows[-1]
    span = Window(first.start, last.end)
    made += ["together_exposures", "together_feedback", "together_responses", "together_around"]
    loaded = source.load(engine, c.EXPOSURES, span, table="together_exposures", few=True)
    if loaded is None:
        return None
    exposures = engine.once((answered, loaded.op()), lambda: answered(loaded))
    catalog = source.load_catalog(engine, table="catalog")
    feedback = responses = lists = actions = earlier = previous = today = None
    reach = settings.metrics.history // first.length
    if around is None:
        day = Window.of(first.start, _DAY)
        since = min(first.start - reach * first.length, day.start - _DAY)
        kept = ListedPairs(kept, Window(since, first.start), first.length)
        keep_missing(engine, source, kept, Window(since, first.start))
        if settings.divides_a_day:
            yesterday = Window(day.start - _DAY, day.start)
            previous = remembered(engine, source, kept, yesterday, made, view="previous_day")
            if day.start < first.start:
                so_far = Window(day.start, first.start)
                today = remembered(engine, source, kept, so_far, made, view="earlier_today")
        if reach >= len(windows):
            earlier = pairs_before_windows(engine, source, kept, first, reach, made, stays=in_a_row)
    else:
        feedback = feedback_of(engine, source, span, "together_feedback")
        responses = feedback_of(engine, source, around, "together_responses")
        lists = source.load(engine, c.EXPOSURES, around, table="together_around")
        since = first.start - settings.metrics.history
        days = common_days(Window(since, first.start), first) if in_a_row else None
        actions = earlier_actions(engine, source, Window(since, last.start), days, made)
    edges = (span.start.replace(tzinfo=None), span.end.replace(tzinfo=None))
    recent, old = (None, None) if earlier is None else (earlier.recent, earlier.lasting)
    reads = exposures, loaded, catalog, feedback, responses, lists, actions, recent, old, previous, today
    key = None if earlier is None else earlier.key

    def look(name: str) -> Hashable:
        return shared.look(name)

    shared = Shared(
        exposures,
        attempts=loaded,
        catalog=catalog,
        feedback=feedback,
        responses=responses,
        around=lists,
        part=c.EXPOSURES if around is None else c.FEEDBACK,
        window=edges,
        history_actions=actions,
        previous_day_user_items=previous,
        today_user_items=(lambda: today) if around is None and settings.divides_a_day else None,
        asked=kept_statements(plans, engine, made, look, edges, reads, key, earlier is None),
        history_user_items=recent,
        lasting_user_items=old,
        length=first.length,
        reach=0 if earlier is None else reach,
    )
    return shared


def _measured(
    shared: Shared, settings: RecommenderSettings, family: Family, metrics: MetricSettings
) -> Records | None:
    """The rows of a family; None if it failed, which its measurement by itself will explain."""
    try:
        return shared.answer(family.name, WINDOW, lambda: family.measure(shared, metrics, WINDOW))
    except duckdb.InterruptException:
        raise
    except Exception as error:
        log.debug("%s: %s cannot be measured together: %s", settings.name, family.name, readable(error))
        return None
