"""Exposures as tables of a lake, written by the packages themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from monitor.core.results import Window
from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = Window(START, START + timedelta(hours=1))
NEXT = Window(HOUR.end, HOUR.end + timedelta(hours=1))


def shown(request: str, items: Sequence[int], hour: int = 0, **more: Any) -> pa.Table:
    """One request with its items, some hours after START."""
    at = (START + timedelta(hours=hour, minutes=5)).replace(tzinfo=None)
    count = len(items)
    columns = {
        "request_id": [request] * count,
        "user_id": ["u1"] * count,
        "ts": pa.array([at] * count, pa.timestamp("us")),
        "item_id": pa.array(items, pa.int64()),
        "position": pa.array(range(1, count + 1), pa.int32()),
    }
    return pa.table({**columns, **{name: [value] * count for name, value in more.items()}})


def source_of(path: object, format_: str, **log: Any) -> Source:
    exposures = {"path": str(path), "format": format_, **log}
    return Source(LogsSettings.model_validate({"exposures": exposures}), TimeSettings())


def rows(source: Source, engine: Any, window: Window, *columns: str) -> list[tuple[Any, ...]]:
    """The values of some columns in a window, sorted."""
    table = source.load(engine, "exposures", window, table="exposures")
    if table is None:
        return []
    found = table.select(*columns).to_pyarrow().to_pylist()
    return sorted((tuple(one[name] for name in columns) for one in found), key=repr)
