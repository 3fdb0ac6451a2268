"""A window's tables: the logs of its time, and the stored pairs of earlier windows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs, ListedPairs
from monitor.logs.empty import empty_exposures, feedback_of
from monitor.logs.source import Source
from monitor.metrics.history import EXPOSURES, LASTING
from monitor.metrics.plans import CachedExecutor, Plans
from monitor.metrics.shared import CATALOG, Shared, answered
from monitor.settings.recommender import RecommenderSettings
from monitor.window.earlier import (
    EarlierPairs,
    common_days,
    day_counts,
    earlier_actions,
    earlier_pairs,
    keep_missing,
    remembered,
)
from monitor.window.slices import add_slices, divided_by

_DAY = timedelta(days=1)
FEW_ROWS: Final = 50_000
"""Exposures of a window up to which they are stored; more of them are read again by every query."""


@dataclass(slots=True)
class WindowTables:
    """What the checks of a window read. `made` are the names of tables to drop afterwards."""

    shared: Shared
    user_items_day: Callable[[], ir.Table | None]
    feedback: ir.Table | None = None
    catalog: ir.Table | None = None
    future: ir.Table | None = None
    known: frozenset[str] | None = None  # the columns of the exposures in any window, if known
    has_files: bool = True  # a file of the exposures can be read, of any window
    dimensions: Callable[[], dict[str, str]] = dict  # the slices; only metrics need them
    made: list[str] = field(default_factory=list)


def prepare(
    engine: Engine,
    source: Source,
    window: Window,
    settings: RecommenderSettings,
    kept: KeptPairs,
    around: Window | None = None,
    plans: Plans | None = None,
    *,
    in_a_row: bool = False,
    looks_back: bool = True,
) -> WindowTables:
    """Make the tables of a window. Expensive ones are computed at the first use.

    `around` is the window extended by the attribution on both sides, for the join of actions and lists; None
    if the part reads no feedback. `plans` hold the statements of earlier windows. If the windows are judged
    `in_a_row`, what those of a day look back on stays in the engine. Unless it `looks_back`, nothing asks for
    the pairs of earlier days.
    """
    made = ["window_exposures", "exposures", "feedback", "future_exposures", "responses", "exposures_around"]

    def materialise(name: str, expression: ir.Table) -> ir.Table:
        made.append(name)
        return engine.create(name, expression)

    few = source.logs[c.EXPOSURES].rows(window) <= FEW_ROWS
    loaded = source.load(engine, c.EXPOSURES, window, table="window_exposures", few=few)
    if loaded is None:
        known = source.id_types() | source.schema(c.EXPOSURES)
        sliced = settings.slices.columns(c.EXPOSURES)
        loaded = empty_exposures(engine, "window_exposures", sliced, known)
    requests = engine.once((answered, loaded.op()), lambda: answered(loaded))
    exposures = engine.view("exposures", requests)
    feedback = feedback_of(engine, source, window, "feedback")
    responses = around_exposures = None
    if around is not None:
        responses = feedback_of(engine, source, around, "responses")
        around_exposures = source.load(engine, c.EXPOSURES, around, table="exposures_around")
    catalog = source.load_catalog(engine, table="catalog")
    history = Window(window.start - settings.metrics.history, window.start)
    day = Window.of(window.start, _DAY)
    shared_span = common_days(history, window) if in_a_row and engine.keeps_statements else None
    actions = None
    if around is not None or settings.metrics.popularity == "actions":
        actions = earlier_actions(engine, source, history, shared_span, made)
    past = Window(min(history.start, day.start - _DAY), window.start)
    kept = ListedPairs(kept, past, source.time.window)
    keep_missing(engine, source, kept, past)
    earlier = EarlierPairs()
    if looks_back:
        earlier = earlier_pairs(engine, source, kept, history, shared_span, made)
    previous = days = None
    if looks_back:
        yesterday = Window(day.start - _DAY, day.start)
        previous = remembered(engine, source, kept, yesterday, made, view="previous_day")
        if around is None and settings.divides_a_day:
            days = day_counts(engine, source, kept, window, made)
    edges = (window.start.replace(tzinfo=None), window.end.replace(tzinfo=None))
    asked = None

    def look(name: str) -> Hashable:
        return shared.look(name)

    if plans is not None and engine.keeps_statements:
        logs = exposures, catalog, feedback, responses, around_exposures, actions
        reads = *logs, earlier.recent, earlier.lasting, *earlier.counts.values(), previous
        reads += () if days is None else (days.items, days.new, days.shown)
        asked = kept_statements(plans, engine, made, look, edges, reads, earlier.key, earlier.is_small)
    shared = Shared(
        exposures,
        attempts=loaded,
        catalog=catalog,
        feedback=feedback,
        responses=responses,
        around=around_exposures,
        part=c.EXPOSURES if around is None else c.FEEDBACK,
        distributed=engine.distributed,
        window=edges,
        history_user_items=earlier.recent,
        lasting_user_items=earlier.lasting,
        history_counts=earlier.counts,
        history_actions=actions,
        previous_day_user_items=previous,
        day_counts=days,
        materialise=materialise,
        asked=asked,
        store_history=earlier.is_small,
        divided_by=divided_by(settings.slices),
    )
    if around is None and settings.divides_a_day:
        shared.know_today(lambda: _today(shared, engine, source, kept, day.start, window, made))

    def dimensions() -> dict[str, str]:
        def users(columns: Sequence[str]) -> ir.Table | None:
            return source.load_users(engine, table="users", columns=columns)

        return add_slices(shared, settings.slices, window, frozenset(source.schema(c.EXPOSURES)), users)

    return WindowTables(
        shared=shared,
        dimensions=dimensions,
        user_items_day=lambda: shared.today_user_items,
        feedback=feedback,
        catalog=catalog,
        future=source.load_future(engine, window, table="future_exposures"),
        known=source.known(c.EXPOSURES),
        has_files=bool(source.logs[c.EXPOSURES].read_entries),
        made=made,
    )


def kept_statements(
    plans: Plans,
    engine: Engine,
    made: list[str],
    look: Callable[[str], Hashable],
    edges: tuple[datetime, datetime],
    reads: Sequence[ir.Table | None],
    lasting: Hashable,
    *differ: Hashable,
) -> CachedExecutor:
    """Runs the statements of earlier windows, if these had the same columns in all that they read.

    `lasting` is the key of the part of the history that may stay; `differ` is what else they depend on.
    """
    plans.begin(*differ, *(None if one is None else one.op() for one in reads))
    stays = {CATALOG: engine.key_of("catalog"), LASTING: lasting}
    return CachedExecutor(plans, engine, made.append, look, edges, stays)


def _today(
    shared: Shared,
    engine: Engine,
    source: Source,
    kept: KeptPairs,
    midnight: datetime,
    window: Window,
    made: list[str],
) -> ir.Table:
    """The pairs of users and items shown from the day's start to the window's end."""
    today = shared.user_items()
    if midnight < window.start:
        before = Window(midnight, window.start)
        earlier = remembered(engine, source, kept, before, made, view="earlier_today")
        if earlier is not None:
            return engine.once((_added, today.op(), earlier.op()), lambda: _added(today, earlier))
    return today


def _added(left: ir.Table, right: ir.Table) -> ir.Table:
    """The sum of two tables of distinct pairs. A join takes half the time of grouping their union."""
    keys = [c.USER_ID, c.ITEM_ID]
    both = left.outer_join(right, keys, rname="{name}_right")
    counts = both[EXPOSURES].fill_null(0) + both[f"{EXPOSURES}_right"].fill_null(0)
    ids = {key: ibis.coalesce(both[key], both[f"{key}_right"]) for key in keys}
    return both.select(**ids, **{EXPOSURES: counts})
