"""Small windows written down as rows, and the way from them to results."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import duckdb
import ibis
import pyarrow as pa

from monitor.engines.duckdb import Engine
from monitor.metrics.catalogue import FAMILIES, SPECS
from monitor.metrics.family import Family
from monitor.metrics.measure import measure_all
from monitor.metrics.plans import CachedExecutor, Plans
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings

START = datetime(2026, 1, 1)

TYPES = {
    "request_id": pa.string(),
    "user_id": pa.string(),
    "item_id": pa.string(),
    "ts": pa.timestamp("us"),
    "position": pa.int64(),
    "score": pa.float64(),
    "propensity": pa.float64(),
    "scene": pa.string(),
    "shelf": pa.string(),
    "items": pa.string(),
    "page": pa.string(),
    "event": pa.string(),
    "value": pa.float64(),
    "length": pa.float64(),
    "duration": pa.string(),
    "status": pa.string(),
    "latency": pa.float64(),
    "ever_shown": pa.bool_(),
    "exposures": pa.int64(),
    "created_at": pa.timestamp("us"),
    "vector": pa.list_(pa.float64()),
}


@dataclass(frozen=True)
class World:
    """The logs of one window; None stands for a log that is not there."""

    exposures: list[dict]
    catalog: list[dict] | None = None
    feedback: list[dict] | None = None
    history: list[tuple[str, str, int]] | None = None
    history_actions: list[tuple[str, str]] | None = None
    yesterday: list[tuple[str, str]] | None = None
    today: list[tuple[str, str]] | None = None
    columns: tuple[str, ...] = ("score", "propensity", "scene", "shelf")
    category: pa.DataType = field(default_factory=pa.string)
    user: pa.DataType = field(default_factory=pa.string)
    catalog_columns: tuple[str, ...] = ("category",)
    feedback_columns: tuple[str, ...] = ("request_id",)
    around: list[dict] | None = None  # exposures of the windows beside this one, and its own
    responses: list[dict] | None = None
    window: tuple[datetime, datetime] | None = None

    def where(self, column: str, value: str) -> World:
        """The same world with only the exposures of one slice; actions belong to the lists as before."""
        own = [r for r in self.exposures if (r.get(column) or "unknown") == value]
        return replace(self, exposures=own, around=self.around or self.exposures)


ACTED_AT = START + timedelta(minutes=29)


def timed(rows: list[dict]) -> list[dict]:
    """Actions, those without a time as late as they count for every list of a small world."""
    return [{"ts": ACTED_AT, **row} for row in rows]


def table(backend, name: str, rows: list[dict], columns: list[str], types: dict | None = None):
    """A table of these columns, whether there are rows or not."""
    types = TYPES | (types or {})
    schema = pa.schema([(c, types[c]) for c in columns])
    data = {c: [row.get(c) for row in rows] for c in columns}
    return backend.create_table(name, pa.table(data, schema=schema))


def embedded():
    """A DuckDB of one's own."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return ibis.duckdb.from_connection(connection)


def shared_of(world: World, backend=None, **options) -> Shared:
    """The world's logs in a database of their own, or in the backend that is given."""
    backend = backend or embedded()

    def pairs(name, rows, columns=("user_id", "item_id")):
        if rows is None:
            return None
        return table(backend, name, [dict(zip(columns, row, strict=True)) for row in rows], list(columns))

    own = {"category": world.category, "tags": pa.list_(pa.string())}
    users = {"user_id": world.user}
    shown = ["request_id", "user_id", "ts", "item_id", *world.columns]
    done = ["user_id", "item_id", "ts", "event", *world.feedback_columns]
    return Shared(
        table(backend, "exposures", world.exposures, shown, users),
        around=None if world.around is None else table(backend, "around", world.around, shown, users),
        responses=None
        if world.responses is None
        else table(backend, "responses", timed(world.responses), done),
        window=world.window,
        catalog=None
        if world.catalog is None
        else table(backend, "catalog", world.catalog, ["item_id", *world.catalog_columns], own),
        feedback=None if world.feedback is None else table(backend, "feedback", timed(world.feedback), done),
        history_user_items=pairs("history", world.history, ("user_id", "item_id", "exposures")),
        history_actions=pairs("history_actions", world.history_actions),
        previous_day_user_items=pairs("yesterday", world.yesterday),
        today_user_items=pairs("today", world.today),
        materialise=lambda name, expression: backend.create_table(f"made {name}", expression),
        **options,
    )


class Windows:
    """One window after the other on one engine, by the same plans, as the monitor judges them."""

    LOGS = ("exposures", "around", "catalog", "feedback", "history_user_items", "history_actions")
    NAMES = (
        "exposures", "around", "responses", "catalog", "feedback", "history", "history_actions",
        "yesterday", "today",
    )  # fmt: skip

    def __init__(self, plans: Plans | None = None, engine: Engine | None = None) -> None:
        self.plans = plans or Plans()
        self.engine = engine or engine_of_one_thread()
        self.made: list[str] = []

    def next(self, world: World, **options) -> Shared:
        """The window's logs as `Shared`, answered by the plans."""
        self.release()
        shared = shared_of(world, self.engine.backend, **options)
        logs = [getattr(shared, name) for name in self.LOGS]
        logs += [shared.previous_day_user_items, shared.today_user_items, shared._responses]
        self.plans.begin(*(None if table is None else table.op() for table in logs))
        edges = world.window or (START, START + timedelta(hours=1))
        shared._asked = CachedExecutor(self.plans, self.engine, self.made.append, shared.look, edges)
        return shared

    def measure(
        self,
        world: World,
        settings: MetricSettings,
        dimensions: Mapping[str, str],
        families: Sequence[Family] = FAMILIES,
    ) -> list:
        measured = measure_all(self.next(world), settings, dimensions, families)
        return [result for family in measured for result in family.results]

    def release(self) -> None:
        self.engine.drop(*self.made, *self.NAMES)
        self.made = []


def engine_of_one_thread() -> Engine:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return Engine(connection)


engine_of_this_process = functools.cache(engine_of_one_thread)


def results_of(
    world: World,
    settings: MetricSettings | None = None,
    dimensions=None,
    only: tuple[str, ...] = (),
    *,
    families: Sequence[Family] = FAMILIES,
    kept: bool = True,
) -> list:
    """Every result of the world, or those of some metrics.

    Unless `kept` is False, the statements of earlier worlds of the same form are used again, as the monitor
    does with its windows. To build them anew takes ten times as long.
    """
    settings = settings or MetricSettings()
    dimensions = dimensions or {}
    if only:
        settings = settings.model_copy(update={"disable": tuple(name for name in SPECS if name not in only)})
    if kept:
        form = (settings.model_dump_json(), *dimensions.items(), world.window is None)
        windows = Windows(Plans(form), engine_of_this_process())
        try:
            return windows.measure(world, settings, dimensions, families)
        finally:
            windows.release()
    measured = measure_all(shared_of(world), settings, dimensions, families)
    return [result for family in measured for result in family.results]


def by_name(results: list) -> dict:
    """Results as (metric, by) -> result, those of slices as (metric, by, dimension, value)."""
    found = {}
    for result in results:
        labels = dict(result.labels)
        key = (result.metric, labels.pop("by", ""), *labels.values())
        assert key not in found, key
        found[key] = result
    return found


def lists(*shown: tuple[str | None, str], **columns) -> list[dict]:
    """Exposures of requests given as (user, items), the items one letter each, a minute apart.

    >>> [(r["request_id"], r["user_id"], r["item_id"]) for r in lists(("u1", "ab"), ("u2", ""))]
    [('r0', 'u1', 'a'), ('r0', 'u1', 'b'), ('r1', 'u2', None)]
    """
    rows = []
    for number, (user, items) in enumerate(shown):
        for position, item in enumerate(items or [None], start=1):
            rows.append(
                {
                    "request_id": f"r{number}",
                    "user_id": user,
                    "ts": START + timedelta(minutes=number),
                    "item_id": item,
                    "position": position,
                    **columns,
                }
            )
    return rows


def catalog(**categories) -> list[dict]:
    """A catalog of item=category."""
    return [{"item_id": item, "category": category} for item, category in categories.items()]
