"""The runs of gates: what was asked, what came of it, and who overrode what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from monitor.history.schema import gate_runs


@dataclass(frozen=True, slots=True)
class GateRun:
    """One run of a recommender's gate; `content` is the launch report as JSON."""

    recommender: str
    judged_at: datetime
    outcome: str
    content: Mapping[str, Any]


def add(connection: Connection, run: GateRun) -> None:
    """Store a run. Nothing ever replaces it."""
    values = {
        "recommender": run.recommender,
        "judged_at": run.judged_at,
        "outcome": run.outcome,
        "content": dict(run.content),
    }
    connection.execute(insert(gate_runs), values)


def read(
    connection: Connection,
    recommenders: Sequence[str] | None,
    start: datetime | None,
    end: datetime | None,
) -> list[GateRun]:
    """The runs in [start, end), oldest first."""
    columns = gate_runs.c
    query = select(columns.recommender, columns.judged_at, columns.outcome, columns.content)
    if recommenders is not None:
        query = query.where(columns.recommender.in_(recommenders))
    if start is not None:
        query = query.where(columns.judged_at >= start)
    if end is not None:
        query = query.where(columns.judged_at < end)
    rows = connection.execute(query.order_by(columns.judged_at, columns.id))
    return [GateRun(*row) for row in rows]
