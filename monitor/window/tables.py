"""A window's tables: the logs of its time, and the stored pairs of earlier windows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.results import Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs
from monitor.history.sums import Sums
from monitor.logs.canonical import TIMESTAMP
from monitor.logs.index import readable
from monitor.logs.source import Source
from monitor.metrics.plans import CachedExecutor, Plans
from monitor.metrics.shared import EXPOSURES, Shared, answered
from monitor.settings.recommender import RecommenderSettings
from monitor.window.slices import add_slices

log = logging.getLogger(__name__)

_DAY = timedelta(days=1)
_IDS = (c.USER_ID, c.ITEM_ID)
_FEW_PAIRS = 2_000_000  # about 100 MB; a larger history is summed for each query and never held in memory
_EMPTY: dict[str, str | ibis.DataType] = {
    "id": "string",
    "time": TIMESTAMP,
    "integer": "int64",
    "number": "float64",
    "text": "string",
}


@dataclass(slots=True)
class WindowTables:
    """What the checks of a window read. `made` are the names of tables to drop afterwards."""

    shared: Shared
    user_items_day: ir.Table | None
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
) -> WindowTables:
    """Make the tables of a window. Expensive ones are computed at the first use.

    `around` is the window extended by the attribution on both sides, for the join of actions and lists; None
    if the part reads no feedback. `plans` hold the statements of earlier windows.
    """
    made = ["window_exposures", "exposures", "feedback", "future_exposures", "earlier_actions"]
    made += ["responses", "exposures_around"]

    def materialise(name: str, expression: ir.Table) -> ir.Table:
        made.append(name)
        return engine.create(name, expression)

    loaded = source.load(engine, c.EXPOSURES, window, table="window_exposures")
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
    actions = None
    if around is not None or settings.metrics.popularity == "actions":
        actions = feedback_of(engine, source, history, "earlier_actions")
    day = Window.of(window.start, _DAY)
    keep_missing(engine, source, kept, Window(min(history.start, day.start - _DAY), window.start))
    earlier = remembered(engine, source, kept, history, made, view="history_user_items")
    yesterday = Window(day.start - _DAY, day.start)
    previous = remembered(engine, source, kept, yesterday, made, view="previous_day")
    edges = (window.start.replace(tzinfo=None), window.end.replace(tzinfo=None))
    few = (
        earlier is not None and engine.keeps_statements and _pairs(engine, "history_user_items") <= _FEW_PAIRS
    )
    asked = None

    def part(name: str) -> ir.Table | None:
        return shared.part(name)

    if plans is not None and engine.keeps_statements:
        logs = (exposures, catalog, feedback, responses, around_exposures, actions, earlier, previous)
        plans.begin(few, *(None if table is None else table.op() for table in logs))
        asked = CachedExecutor(plans, engine, made.append, part, edges, engine.key_of("catalog"))
    shared = Shared(
        exposures,
        attempts=loaded,
        catalog=catalog,
        feedback=feedback,
        responses=responses,
        around=around_exposures,
        window=edges,
        history_user_items=earlier,
        history_actions=actions,
        previous_day_user_items=previous,
        materialise=materialise,
        asked=asked,
        store_history=few,
    )
    if around is None and settings.divides_a_day:
        shared.today_user_items = _today(shared, engine, source, kept, day.start, window, made)

    def dimensions() -> dict[str, str]:
        def users(columns: Sequence[str]) -> ir.Table | None:
            made.append("users")
            return source.load_users(engine, table="users", columns=columns)

        return add_slices(shared, settings.slices, window, frozenset(source.schema(c.EXPOSURES)), users)

    return WindowTables(
        shared=shared,
        dimensions=dimensions,
        user_items_day=shared.today_user_items,
        feedback=feedback,
        catalog=catalog,
        future=source.load_future(engine, window, table="future_exposures"),
        known=source.known(c.EXPOSURES),
        has_files=bool(source.logs[c.EXPOSURES].read_entries),
        made=made,
    )


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


def empty_exposures(
    engine: Engine, name: str, further: Sequence[str] = (), known: Mapping[str, ibis.DataType] | None = None
) -> ir.Table:
    """An empty log with every column, so that a rule finds its column and gives `no_data`.

    `known` are the log's own columns: ids must have their types to be compared with other tables.
    """
    schema: dict[str, str | ibis.DataType] = dict.fromkeys(further, "string")
    schema |= {column: _EMPTY[kind] for column, kind in c.TYPES[c.EXPOSURES].items()}
    schema |= known or {}
    return engine.empty(name, ibis.schema(schema))


def keep_missing(engine: Engine, source: Source, kept: KeptPairs, span: Window) -> None:
    """Store the pairs of windows that were never judged, so that the order of judging does not matter."""
    present = kept.paths(span.start, span.end, source.time.window)
    inside = {one for one in source.exposures.windows() if span.start <= one.start and one.end <= span.end}
    keep_pairs(engine, source, kept, inside - present.keys())


def keep_pairs(engine: Engine, source: Source, kept: KeptPairs, windows: Iterable[Window]) -> None:
    """Store the pairs of these windows as the log has them now."""
    for window in sorted(windows):
        try:
            rows = source.load(engine, c.EXPOSURES, window, table="kept_source")
            if rows is None:
                kept.forget(window)
            else:
                table = engine.create("kept_pairs", pairs(rows))
                kept.keep(window, engine.relation(table))
        except duckdb.IOException as exc:  # a file went away; this window can be judged without it
            log.warning("the pairs of %s cannot be read: %s", window.start, readable(exc))
    engine.drop("kept_source", "kept_pairs")


def pairs(exposures: ir.Table) -> ir.Table:
    """The pairs of a window that are stored: user, item, number of exposures."""
    shown = exposures.filter(exposures[c.USER_ID].notnull(), exposures[c.ITEM_ID].notnull())
    return shown.group_by([c.USER_ID, c.ITEM_ID]).aggregate(**{EXPOSURES: shown.count()})


def remembered(
    engine: Engine, source: Source, kept: KeptPairs, span: Window, made: list[str], *, view: str
) -> ir.Table | None:
    """The stored pairs of a span, summed; None if nothing was shown in it."""
    paths = Sums(kept).files(span, source.time.window, engine.cursor)
    if not paths:
        return None
    made += [view]
    table = engine.reader(view, "read_parquet", [str(path) for path in paths], union_by_name=True)
    types = source.id_types()  # the types may have changed since the files were written
    kinds = tuple(types.get(name, "string") for name in _IDS)
    several = len(paths) > 1
    return engine.once(("kept", table.op(), kinds, several), lambda: _typed(table, kinds, several))


def _typed(table: ir.Table, kinds: Sequence[str], several: bool) -> ir.Table:
    ids = {name: table[name].try_cast(kind) for name, kind in zip(_IDS, kinds, strict=True)}
    table = table.select(**ids, **{EXPOSURES: table[EXPOSURES]})
    return _summed(table) if several else table


def _pairs(engine: Engine, view: str) -> int:
    """The number of stored pairs over all files. DuckDB reads it from the Parquet footers, which is fast."""
    counted = engine.relation(engine.backend.table(view)).count("*").fetchone()
    return int(counted[0]) if counted else 0


def _added(left: ir.Table, right: ir.Table) -> ir.Table:
    """The sum of two tables of distinct pairs. A join takes half the time of grouping their union."""
    keys = list(_IDS)
    both = left.outer_join(right, keys, rname="{name}_right")
    counts = both[EXPOSURES].fill_null(0) + both[f"{EXPOSURES}_right"].fill_null(0)
    ids = {key: ibis.coalesce(both[key], both[f"{key}_right"]) for key in keys}
    return both.select(**ids, **{EXPOSURES: counts})


def _summed(table: ir.Table) -> ir.Table:
    return table.group_by([c.USER_ID, c.ITEM_ID]).aggregate(**{EXPOSURES: table[EXPOSURES].sum()})


def feedback_of(engine: Engine, source: Source, span: Window, table: str) -> ir.Table | None:
    """The feedback of a span; an empty table if the log has no rows of the span."""
    if c.FEEDBACK not in source.logs:
        return None
    loaded = source.load(engine, c.FEEDBACK, span, table=table)
    if loaded is not None:
        return loaded
    types = source.id_types()
    schema: dict[str, str | ibis.DataType] = {
        name: types.get(name, "string") if kind == "id" else _EMPTY[kind]
        for name, kind in c.TYPES[c.FEEDBACK].items()
        if name in c.REQUIRED[c.FEEDBACK]
    }
    # With all columns of the log: if orders stop, their sum is 0 and not missing.
    return engine.empty(table, ibis.schema(schema | source.schema(c.FEEDBACK)))
