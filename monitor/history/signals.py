"""The signals of windows that standings are read from: only those that say something new.

A window's signal of a series is stored if it fires, or if it is not the one that the window before has left.
All others follow from these, and most series leave the same signal for months. What is stored depends on
a window and the one before it alone. So after each change of a window, it and the next one are marked anew.
"""

from __future__ import annotations

from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from monitor.history import schema
from monitor.history.packing import SIGNAL
from monitor.history.rows import window_results
from monitor.history.standing import Signal


def mark(connection: Connection, recommender: str, check: str, end: datetime) -> None:
    """Store the signals of a check's windows with this end and of those with the next end.

    Windows of several lengths may have one end. Then all of their signals are stored, and all of the next.
    """
    windows = schema.windows.c
    judged = (windows.recommender == recommender, windows.check_name == check, windows.current)
    before, after = connection.execute(
        select(
            select(func.max(windows.window_end)).where(*judged, windows.window_end < end).scalar_subquery(),
            select(func.min(windows.window_end)).where(*judged, windows.window_end > end).scalar_subquery(),
        )
    ).one()
    ids: dict[datetime | None, list[int]] = {}
    ends = [one for one in (before, end, after) if one is not None]
    found = select(windows.id, windows.window_end).where(*judged, windows.window_end.in_(ends))
    for number, its_end in connection.execute(found):
        ids.setdefault(its_end, []).append(number)
    left = {
        number: dict(zip(results.series, results.column(SIGNAL), strict=True))
        for number, results in window_results(connection, [*chain(*ids.values())]).items()
    }
    rows: list[dict[str, Any]] = []
    for moment, previous in ((end, before), (after, end)):
        here, there = ids.get(moment, []), ids.get(previous, [])
        known = left[there[0]] if len(here) == len(there) == 1 else {}
        rows += [
            {"series_id": series, "signal": signal, "window_end": moment, "window_id": number}
            for number in here
            for series, signal in left[number].items()
            if signal == Signal.FIRE or known.get(series) != signal
        ]
    marked = ids.get(end, []) + ids.get(after, [])
    connection.execute(delete(schema.signals).where(schema.signals.c.window_id.in_(marked)))
    if rows:
        connection.execute(insert(schema.signals), rows)
