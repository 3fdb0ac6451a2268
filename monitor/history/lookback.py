"""The standing of many series at once. It takes a few index look-ups for each and never reads its past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from sqlalchemy import Connection, func, select

from monitor.core.results import Status, Window
from monitor.history import schema
from monitor.history.rows import batches
from monitor.history.standing import Question, Signal, fold, from_last

_SIGNALS: Final = tuple(Signal)
_ASKED_AT_ONCE: Final = 1000
_LONG_AGO: Final = schema.EPOCH.replace(year=1)
_FIRST_AFTER: Final = """
WITH asked (series_id, signal, after, place) AS (VALUES QUESTIONS)
SELECT asked.place, (
    SELECT MIN(signals.window_end) FROM signals
    WHERE signals.series_id = asked.series_id AND signals.signal = asked.signal
        AND signals.window_end > asked.after
)
FROM asked
"""


def last_of_each_signal(connection: Connection, series: Sequence[int]) -> dict[int, dict[Signal, datetime]]:
    """Series id -> signal -> the end of the newest window that left it anew: all standings need no more.

    Of `FIRE` it is the newest window that left it at all.
    """
    signals = schema.signals.alias()
    newest = [
        select(func.max(signals.c.window_end))
        .where(signals.c.series_id == schema.series.c.id, signals.c.signal == int(signal))
        .scalar_subquery()
        .label(signal.name)
        for signal in _SIGNALS
    ]
    found: dict[int, dict[Signal, datetime]] = {}
    for part in batches(series):
        query = select(schema.series.c.id, *newest).where(schema.series.c.id.in_(part))
        for number, *ends in connection.execute(query):
            found[number] = {
                signal: end for signal, end in zip(_SIGNALS, ends, strict=True) if end is not None
            }
    return found


def standings(
    connection: Connection, last: Mapping[int, Mapping[Signal, datetime]]
) -> dict[int, tuple[Status, datetime]]:
    """Series id -> the standing, and the end of the window in which it began."""
    status: dict[int, Status] = {}
    asked: list[tuple[int, Question]] = []
    tied: list[int] = []
    for number, signals in last.items():
        if not signals:
            continue
        if len(set(signals.values())) < len(signals):
            tied.append(number)
            continue
        status[number], questions = from_last(signals)
        asked += [(number, question) for question in questions]
    began: dict[int, datetime] = {}
    for number, end in _answers(connection, asked):
        began[number] = max(end, began.get(number, end))
    return {number: (status[number], began[number]) for number in began} | _folded(connection, tied)


def _folded(connection: Connection, series: Sequence[int]) -> dict[int, tuple[Status, datetime]]:
    """The standings of series whose last signals have one end, which does not say which of them came last.

    This happens where windows of two lengths end together, until a newer window is judged.
    """
    signals, windows = schema.signals.c, schema.windows.c
    found: dict[int, tuple[Status, datetime]] = {}
    for part in batches(series):
        query = (
            select(signals.series_id, signals.signal, windows.window_start, windows.window_end)
            .join(schema.windows, windows.id == signals.window_id)
            .where(signals.series_id.in_(part))
            .order_by(signals.series_id, windows.window_end, windows.window_start)
        )
        for number, rows in groupby(connection.execute(query), key=lambda row: row.series_id):
            standing = fold((Window(start, end), Signal(signal)) for _, signal, start, end in rows)
            found[number] = standing.status, standing.since.end
    return found


def _answers(connection: Connection, asked: Sequence[tuple[int, Question]]) -> list[tuple[int, datetime]]:
    """(series id, end of the window) for every question."""
    rows = [
        (number, int(signal), schema.microseconds(question.after or _LONG_AGO), place)
        for place, (number, question) in enumerate(asked)
        for signal in question.signals
    ]
    first: dict[int, int] = {}
    for part in batches(rows, _ASKED_AT_ONCE):
        # Integers only, so no injection. Thousands of bound parameters would take longer than the query.
        questions = ",".join(f"({series},{signal},{after},{place})" for series, signal, after, place in part)
        for place, end in connection.exec_driver_sql(_FIRST_AFTER.replace("QUESTIONS", questions)):
            if end is not None:
                first[place] = min(end, first.get(place, end))
    return [(asked[place][0], schema.from_microseconds(end)) for place, end in first.items()]
