"""The forecasts of candidates: what was predicted, and whether it came true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, insert, select, update

from monitor.history import schema
from monitor.history.schema import forecasts


class Outcome(StrEnum):
    """What came of a forecast: whether the truth lies in its interval."""

    PENDING = "not_yet_known"
    CAME_TRUE = "came_true"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class StoredForecast:
    """A forecast of one business metric of one candidate, from one offline metric.

    `series` names the offline metric, and `content` holds the numbers as plain JSON.
    """

    recommender: str
    candidate: str
    target: str
    series: Mapping[str, Any]
    made_at: datetime
    content: Mapping[str, Any]
    outcome: Outcome = Outcome.PENDING

    @property
    def digest(self) -> str:
        """The same for forecasts that replace each other."""
        return schema.value_digest([self.candidate, self.target, dict(self.series)])


def put(connection: Connection, one: StoredForecast) -> bool:
    """Store a forecast in place of an earlier one that is still pending. False if that one is decided."""
    columns = forecasts.c
    key = (columns.recommender == one.recommender, columns.digest == one.digest)
    known = connection.scalar(select(columns.outcome).where(*key))
    values = {
        "made_at": one.made_at, "content": dict(one.content), "outcome": one.outcome.value,
    }  # fmt: skip
    if known is None:
        connection.execute(
            insert(forecasts).values(
                recommender=one.recommender, digest=one.digest, candidate=one.candidate, target=one.target,
                series=dict(one.series), **values,
            )
        )  # fmt: skip
        return True
    if known != Outcome.PENDING.value:
        return False
    connection.execute(update(forecasts).where(*key).values(**values))
    return True


def decide(connection: Connection, one: StoredForecast) -> None:
    """Store the outcome of a pending forecast, and its content with the truth."""
    columns = forecasts.c
    connection.execute(
        update(forecasts)
        .where(
            columns.recommender == one.recommender,
            columns.digest == one.digest,
            columns.outcome == Outcome.PENDING.value,
        )
        .values(outcome=one.outcome.value, content=dict(one.content))
    )


def read(connection: Connection, recommenders: Sequence[str] | None) -> list[StoredForecast]:
    """The forecasts, oldest first."""
    columns = forecasts.c
    query = select(
        columns.recommender, columns.candidate, columns.target, columns.series, columns.made_at,
        columns.content, columns.outcome,
    )  # fmt: skip
    if recommenders is not None:
        query = query.where(columns.recommender.in_(recommenders))
    rows = connection.execute(query.order_by(columns.made_at, columns.id))
    return [StoredForecast(*row[:6], Outcome(row[6])) for row in rows]
