"""A log small enough to work every metric by hand: the example of each metric's page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import ibis
import pyarrow as pa

from monitor.core.results import Result
from monitor.metrics.measure import measure_all
from monitor.metrics.shared import Shared
from monitor.settings.metrics import EventSettings, MetricSettings
from monitor.settings.rating import RatingSettings

START: Final = datetime(2026, 3, 1, 12)
SETTINGS: Final = MetricSettings(
    events={
        "click": EventSettings(),
        "buy": EventSettings(grade=3.0),
        "rating": EventSettings(grade=0.0),
        "play": EventSettings(grade=0.0, length="length"),
    },
    k=(1, 3),
    seed_item="seed",
    rating=RatingSettings(event="rating", distortion={1: {2: 0.5, 4: 2.0}}),
)

REQUESTS: Final = (
    # request, user, minute, scene, the item whose page it is, what was shown as item:score:propensity
    ("r1", "anna", 0, "home", None, "a:0.9:0.5 b:0.7:0.25 c:0.4:0.2"),
    ("r2", "ben", 1, "home", None, "a:0.8:0.5 c:0.6:0.25 d:0.3:0.1"),
    ("r3", "cleo", 2, "feed", None, ""),
    ("r4", "anna", 3, "item", "b", "b:0.6:0.25 d:0.5:0.1"),
    ("r5", "ben", 4, "home", None, "a:0.9:0.5 e:0.2:0.001"),
    ("r6", "dora", 5, "home", None, "a:0.8:0.5 b:0.7:0.25 c:0.5:0.2 d:0.1:0.1"),
    ("r7", "fred", 10, "home", None, ""),
)
ANSWERS: Final = (
    # request, status, latency
    ("r1", "ok", 0.12),
    ("r2", "ok", 0.08),
    ("r3", "ok", 0.05),
    ("r4", "ok", 0.31),
    ("r5", "ok", 0.09),
    ("r6", "ok", 0.11),
    ("r7", "timeout", 1.0),
)
ACTIONS: Final = (
    # user, item, minute, event, request, value
    ("anna", "b", 1, "click", "r1", None),
    ("anna", "b", 2, "rating", "r1", 4.0),
    ("ben", "d", 2, "click", None, None),
    ("anna", "d", 4, "click", "r4", None),
    ("anna", "d", 5, "buy", "r4", 20.0),
    ("dora", "a", 6, "click", "r6", None),
    ("dora", "a", 7, "rating", "r6", 2.0),
    ("dora", "b", 7, "play", "r6", 9.0),
    ("dora", "c", 7, "play", "r6", 20.0),
    ("dora", "f", 8, "click", None, None),
    ("cleo", "a", 9, "click", None, None),
    ("eve", "a", 9, "click", None, None),
)
CATALOG: Final = (
    ("a", "book", 5.0),
    ("b", "book", 10.0),
    ("c", "film", 100.0),
    ("d", "game", None),
    ("f", "film", 80.0),
)
EARLIER_SHOWN: Final = (("anna", "a", 2), ("anna", "b", 1), ("ben", "c", 1), ("dora", "a", 1))
EARLIER_ACTIONS: Final = (("anna", "a"), ("ben", "c"), ("dora", "c"))
YESTERDAY: Final = (("anna", "a"), ("anna", "b"), ("ben", "c"))

_EXPOSURES: Final = {
    "request_id": pa.string(),
    "user_id": pa.string(),
    "ts": pa.timestamp("us"),
    "scene": pa.string(),
    "seed": pa.string(),
    "item_id": pa.string(),
    "position": pa.int64(),
    "score": pa.float64(),
    "propensity": pa.float64(),
    "status": pa.string(),
    "latency": pa.float64(),
    "ever_shown": pa.bool_(),
}
_FEEDBACK: Final = {
    "user_id": pa.string(),
    "item_id": pa.string(),
    "ts": pa.timestamp("us"),
    "event": pa.string(),
    "request_id": pa.string(),
    "value": pa.float64(),
}
_CATALOG: Final = {"item_id": pa.string(), "category": pa.string(), "length": pa.float64()}
_PAIRS: Final = {"user_id": pa.string(), "item_id": pa.string()}


@cache
def results() -> tuple[Result, ...]:
    """The results of every metric of the catalogue on the example."""
    return tuple(one for family in measure_all(_shared(), SETTINGS) for one in family.results)


def exposure_rows() -> list[tuple[Any, ...]]:
    """One row an item shown, and one for each request that returned nothing."""
    rows: list[tuple[Any, ...]] = []
    answers = {request: (status, latency) for request, status, latency in ANSWERS}
    before = {(user, item) for user, item, _ in EARLIER_SHOWN}
    for request, user, minute, scene, seed, shown in REQUESTS:
        own = (request, user, START + timedelta(minutes=minute), scene, seed)
        for position, one in enumerate(shown.split(), start=1):
            item, score, propensity = one.split(":")
            ever = (user, item) in before
            rows.append((*own, item, position, float(score), float(propensity), *answers[request], ever))
        if not shown:
            rows.append((*own, None, None, None, None, *answers[request], None))
    return rows


def _shared() -> Shared:
    backend = ibis.duckdb.connect(threads=1)  # a fixed order of sums gives the same digits everywhere

    def table(name: str, schema: dict[str, pa.DataType], rows: Sequence[Sequence[Any]]) -> ibis.Table:
        columns = [
            pa.array(values, kind)
            for values, kind in zip(zip(*rows, strict=True), schema.values(), strict=True)
        ]
        return backend.create_table(name, pa.table(columns, names=list(schema)))

    actions = [
        (user, item, START + timedelta(minutes=minute), event, request, value)
        for user, item, minute, event, request, value in ACTIONS
    ]
    shown = table("exposures", _EXPOSURES, exposure_rows())
    pairs = shown.filter(shown.item_id.notnull()).select("user_id", "item_id").distinct()
    return Shared(
        shown,
        catalog=table("catalog", _CATALOG, CATALOG),
        feedback=table("feedback", _FEEDBACK, actions),
        history_user_items=table("earlier", {**_PAIRS, "exposures": pa.int64()}, EARLIER_SHOWN),
        history_actions=table("earlier_actions", _PAIRS, EARLIER_ACTIONS),
        previous_day_user_items=table("yesterday", _PAIRS, YESTERDAY),
        today_user_items=pairs,
        materialise=lambda name, expression: backend.create_table(f"made_{name}", expression),
    )
